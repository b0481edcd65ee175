/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* [pci] device_spec against the host: what matches nothing, and what Placement gets too much of.
 * Pure. */

#include "drivers/verify.h"

/* From so many providers of one class on, a request with several groups for it has more
 * combinations than Placement's default lets it look at (LP 2126751). */
#define VERIFY_PCI_SIBLINGS_MAX 7

/* -ENOMEM. */
int verify_pci(const DriverConfig *config, const Snapshot *snapshot, Findings *findings);
