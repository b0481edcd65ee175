/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl discover": what a poll of the driver found, as tables. Pure. */

#include "ctl/print/page.h"
#include "drivers/host/snapshot.h"

/* With all: every device, not only those that guests may be given. */
void ctl_host_print(const Snapshot *snapshot, CtlPage *page);
