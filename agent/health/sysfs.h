/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the health of PCI devices from sysfs: AER counters, the state of links, and the addresses
 * of NVMe controllers. Readers block on sysfs. */

#include "agent/health/rule.h"

/* Longest list of PCI devices that is read. */
#define HEALTH_DEVICES_MAX 4096

/* Lists the addresses of the PCI devices below sysfs ("/sys"), at most HEALTH_DEVICES_MAX. Leaves
 * out addresses that pci_address_parse() rejects: their domain has five digits. The caller frees
 * *ret, which can be NULL. Returns their number, or a negative errno. */
int health_sysfs_list(const char *sysfs, char (**ret)[PCI_ADDRESS_SIZE]);

/* Reads the number of uncorrected errors of one kind (HEALTH_AER_…) that the device counted since
 * it was found. Returns 0, -ENODATA if the device has no such counter or it cannot be read, or
 * -ENOMEM. */
int health_sysfs_read_aer(const char *sysfs, const char *address, HealthEvidence kind,
                          uint64_t *ret);

/* Reads the width (in lanes) or the speed (in GT/s times 10) of the device's link: kind is
 * HEALTH_LINK_…. Expected is the smaller maximum of the device and the port above it, because a
 * card can be in a slot with fewer lanes. Returns -ENODATA if the device has no link or no port
 * above it, or if a value is unknown, for example because the device sleeps; or -ENOMEM. */
int health_sysfs_read_link(const char *sysfs, const char *address, HealthEvidence kind,
                           unsigned *ret_current, unsigned *ret_expected);

/* Finds the PCI address of an NVMe controller ("nvme0"). Returns -ENODEV if there is none, or
 * -ENOMEM. */
int health_sysfs_find_nvme(const char *sysfs, const char *name, char ret[static PCI_ADDRESS_SIZE]);
