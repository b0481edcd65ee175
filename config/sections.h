/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the sections with names that describe groups of devices: [device_prepare NAME], cards that
 * compute-agent-prepare makes ready at boot; [device_clean NAME], devices that are cleaned after
 * each guest; and [device_shapes NAME], sets of devices that are given out in partitions. */

#include "config/file.h"
#include "drivers/host/host-config.h"

/* Reads all sections into host->prepares, host->cleans and host->shapes, each in the order of their
 * first headers. The caller has read [pci] and the mdev types before. Returns -EINVAL with words
 * that begin with the place of the bad option or section, or -ENOMEM. Some sections can have been
 * added then.
 *
 *   [device_prepare NAME]  needs device_addresses. A card must not be listed twice.
 *   [device_clean NAME]    needs "clean", and device_addresses or resource_classes, and [pci]
 *                          report_in_placement must be true. The class VGPU is an error. An address
 *                          and a class belong to one section.
 *   [device_shapes NAME]   needs resource_class, which must not be VGPU, and [pci]
 *                          report_in_placement must be true. activate and deactivate need each
 *                          other. A device belongs to one set, and to no mdev type and no section
 *                          [device_clean NAME]. No such section has the class. The name has 1 to
 *                          DEVICE_SET_ID_MAX letters, digits, "_", "." and "-". */
int config_load_sections(HostConfig *host, const ConfigSettings *settings, Error *reterr);

/* Frees host->prepares, host->cleans and host->shapes. */
void config_sections_done(HostConfig *host);
