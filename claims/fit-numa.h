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
 *   1. devices: with them if the request asks for some, without them if not,
 *   2. dedicated CPUs that are free: most (spread) or fewest (pack),
 *   3. guest CPUs that share its CPUs: fewest (spread) or most (pack),
 *   4. memory that is free: most (spread) or least (pack),
 *   5. the id;
 * in the set the first cell of the guest gets the first host cell that leaves one for each of the
 * others, and so on. It is deterministic, and complete: when a fit exists it is found, or
 * FIT_E_TOO_HARD is returned when FIT_WORK_MAX steps did not do: each try of a host cell or of a
 * provider is one. Only devices can make it try more than one set of host cells. */

#include "claims/fit.h"
#include "claims/host-facts.h"

/* As fit_request(), which it is for a request without a layout. facts NULL: the host was not polled
 * yet, and no layout fits. */
int fit_request_numa(const HostView *view, const HostFacts *facts, const char *node,
                     const ResourceRequest *request, Fit *ret, Error *reterr);

/* As fit_force(), for a guest that is in those cells: what cells' providers have is counted there.
 * The pieces' classes are borrowed from resources or facts. */
int fit_force_numa(const HostView *view, const HostFacts *facts, const char *node,
                   const Resources *resources, const Layout *layout, Fit *ret);

/* As fit_explain_request(), and what each host cell says to each cell of the guest: verdicts with
 * the suffix "cell 0" and the provider's name "host, cell 1". */
int fit_explain_numa(const HostView *view, const HostFacts *facts, const char *node,
                     const ResourceRequest *request, FitVerdicts *ret, Error *reterr);
