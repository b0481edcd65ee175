/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the sections [device_shapes NAME], each a set of devices that are given out in
 * partitions. */

#include "config/file.h"
#include "drivers/host/host-config.h"

/* Reads all sections into host->shapes, in the order of their first headers. The caller has read
 * [pci], the mdev types and the sections [device_clean NAME] before. Returns -EINVAL with words
 * that begin with the place of the bad option or section, or -ENOMEM. Some sections can have been
 * added then. Each section needs resource_class, which must not be VGPU, and [pci]
 * report_in_placement must be true. A device belongs to one set, and to no mdev type and no section
 * [device_clean NAME]. No such section has the class. The name has 1 to DEVICE_SET_ID_MAX letters,
 * digits, "_", "." and "-". */
int config_load_shapes(HostConfig *host, const ConfigSettings *settings, Error *reterr);

/* Frees host->shapes. */
void config_shapes_done(HostConfig *host);
