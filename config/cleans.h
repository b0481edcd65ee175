/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the sections [device_clean NAME], each a group of devices that are cleaned after each
 * guest. */

#include "config/file.h"
#include "drivers/host/host-config.h"

/* Reads all sections into host->cleans, in the order of their first headers. The caller has read
 * [pci] before. Returns -EINVAL with words that begin with the place of the bad option or section,
 * or -ENOMEM. Some sections can have been added then. Each section needs "clean", and
 * device_addresses or resource_classes, and [pci] report_in_placement must be true. The class VGPU
 * is an error. An address and a class belong to one section. */
int config_load_cleans(HostConfig *host, const ConfigSettings *settings, Error *reterr);

/* Frees host->cleans. */
void config_cleans_done(HostConfig *host);
