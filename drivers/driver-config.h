/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Judging the options that every driver obeys, before any hypervisor is asked. Pure. */

#include "drivers/host/host-config.h"

/* -EINVAL with the option's name in the words when a value makes no sense: an mdev type without a
 * name or listed twice, a device address that is none or stands under two types, an mdev_class that
 * is neither VGPU nor CUSTOM_…, an amount or a ratio that Placement would refuse, sets of CPUs that
 * contradict each other (facts C3), reserved_huge_pages of another form, file_backed_memory with
 * overcommitment, images_type = lvm without a pool to measure. */
int driver_config_check(const HostConfig *config, Error *reterr);
