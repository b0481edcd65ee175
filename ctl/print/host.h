/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl discover": the result of a poll of the driver, as tables. Pure. */

#include "ctl/print/page.h"
#include "drivers/host/snapshot.h"

/* Prints the snapshot. With "all" in the style, prints every device and not only those that guests
 * can get. */
void ctl_host_print(const Snapshot *snapshot, CtlPage *page);
