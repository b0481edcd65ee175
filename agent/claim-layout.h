/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where on the host a guest is, as its domain tells it. Pure. */

#include "claims/host-facts.h"
#include "drivers/snapshot.h"

/* facts: the cells of the host. A guest's cell lies in the one host cell that its memory is bound
 * to, else in that of its first CPU that is pinned. A guest that sees no cells is one. A CPU is
 * dedicated when it is pinned to one host CPU of those that are dedicated. A guest that is bound to
 * nothing has no layout. ret must be LAYOUT_INIT. -ENOMEM. */
int claim_layout_make(const SnapshotDomain *domain, const HostFacts *facts, Layout *ret);
