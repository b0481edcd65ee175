/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where on the host a guest is, as its domain says. Pure. */

#include "claims/claim/host-facts.h"
#include "drivers/host/snapshot.h"

/* facts: the cells of the host. A guest's CPU is in the host cell that has all the host CPUs that
 * it may run on, else in the one that its memory is bound to; one that floats over several cells is
 * in none, as for Nova. Memory is in the one cell that it is bound to, else where the CPUs of its
 * cell are. So a guest's cell that is spread over host cells becomes one for each of them. A guest
 * that sees no cells is one. A CPU is dedicated when it is pinned to one host CPU of those that are
 * dedicated. A guest that is in no cell has no cells and no guest CPUs in its layout.
 *
 * held has the CPUs of dedicated guest CPUs, and every dedicated host CPU that <emulatorpin> or
 * <iothreadpin> names, also of a guest that is in no cell. It also has the dedicated CPUs of the
 * persistent definition of a running guest (decision devices/definition). ret must be LAYOUT_INIT.
 * -ENOMEM. */
int claim_layout_make(const SnapshotDomain *domain, const HostFacts *facts, Layout *ret);
