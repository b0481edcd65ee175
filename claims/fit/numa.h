/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Does a request with a layout fit the host as it stands, and where? Pure.
 *
 * Each cell of the guest gets a host cell of its own (numa_host_fit() says which fit); what cells'
 * providers have of VCPU, PCPU, MEMORY_MB and hugepages is taken from there, all else by
 * fit_groups(). Devices obey the affinity: required, of a host cell of the guest; legacy, of one of
 * these or of none; socket, of a cell in the socket of one of these; preferred, as required if that
 * is possible, else anywhere.
 *
 * The choice, in this order: with the affinity "preferred", devices of the guest's cells before
 * others; the set of host cells that is first when host cells are ranked by
 *   1. devices: most if the request asks for some, fewest if not,
 *   2. for a guest with dedicated CPUs those that are free: most (spread) or fewest (pack); for
 *      one without the guest CPUs that share the cell's: fewest (spread) or most (pack),
 *   3. memory that is free, of pages of all sizes: most (spread) or least (pack),
 *   4. the id, as Nova does;
 * in the set the first cell of the guest gets the first host cell that leaves one for each of the
 * others, and so on. It is deterministic, and complete: when a fit exists it is found, or
 * CLAIM_E_TOO_HARD is returned when the effort is spent: each try of a host cell or of a provider
 * counts. Only devices can make it try more than one set of host cells. */

#include "claims/claim/host-facts.h"
#include "claims/fit/fit.h"

/* As fit_groups(), which it is for a request without a layout. facts NULL: the host was not polled
 * yet, and no layout fits. placed (claims/fit/placed.h): nothing else may be taken; pages that
 * nobody placed are not counted. NULL: it is free to choose. */
int fit_request_numa(const HostView *view, const HostFacts *facts, const char *node,
                     const ResourceRequest *request, const Consumer *placed, FitEffort *effort,
                     Fit *ret, Error *reterr);

/* As fit_force(), for a guest that is in those cells: what cells' providers have is counted there,
 * and what floats over cells as there is room. The pieces' classes are borrowed from resources or
 * facts. */
int fit_force_numa(const HostView *view, const HostFacts *facts, const char *node,
                   const Resources *resources, const Layout *layout, Fit *ret);

/* As fit_explain_request(), and what each host cell says to each cell of the guest: verdicts with
 * the suffix "cell 0" and the provider's name "host, cell 1". */
int fit_explain_numa(const HostView *view, const HostFacts *facts, const char *node,
                     const ResourceRequest *request, FitEffort *effort, FitVerdicts *ret,
                     Error *reterr);
