/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl discover": the result of a poll of the driver, as tables. Pure, except for the time
 * zone. */

#include "ctl/print/page.h"
#include "drivers/host/snapshot.h"

/* Prints the snapshot. With "all" in the style, prints every device. Otherwise prints only devices
 * with mdev types, GPUs of the PCI class of displays, physical and virtual functions, and parents
 * of vDPA devices. */
void ctl_host_print(const Snapshot *snapshot, CtlPage *page);
