/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the place of a guest on the host, by its domain. Pure. */

#include "claims/claim/host-facts.h"
#include "drivers/host/snapshot.h"

/* Makes the layout of a guest. facts has the cells of the host.
 *
 * A guest's CPU is in the host cell that has all host CPUs on which it can run. Otherwise it is in
 * the single host cell that the memory of its guest cell is bound to. If there is no such cell
 * either, the CPU is in none, as in Nova. A CPU that can run on any host CPU has no entry in cpus.
 * Memory is in the single cell that it is bound to, otherwise in the cells of its CPUs, in
 * proportion to their number, rounded down. Memory of CPUs that are in no cell is in none either. A
 * guest's cell that is spread over host cells therefore becomes one part for each of them. A guest
 * without cells counts as one cell. A CPU is dedicated if it is pinned to one host CPU, and that
 * one is dedicated. The layout of a guest that is in no cell has no cells and no CPUs.
 *
 * held has the host CPUs of dedicated guest CPUs. The set also has every dedicated host CPU that
 * <emulatorpin> or <iothreadpin> names, even for a guest that is in no cell. For a running guest,
 * it also has the dedicated host CPUs of the persistent definition (decision devices/definition).
 * ret must be LAYOUT_INIT; the caller frees it with layout_done(). Returns -ENOMEM on failure, with
 * ret unchanged. */
int claim_layout_make(const SnapshotDomain *domain, const HostFacts *facts, Layout *ret);
