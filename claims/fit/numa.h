/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Fits a request with a layout to the host cells. Pure.
 *
 * Each guest cell gets a host cell of its own (numa_host_fit() compares them). If the providers of
 * cells have VCPU, PCPU, MEMORY_MB or hugepages, these classes are taken from there. Other classes
 * are fitted as fit_groups() does. The affinity restricts the providers of devices:
 *
 *   "required"   The device is of a host cell of the guest.
 *   "legacy"     The device is of such a cell, or of no cell.
 *   "socket"     The device is of a cell in the same socket as such a cell.
 *   "preferred"  As "required" if that is possible, else any device.
 *
 * The choice begins with the affinity: with "preferred", sets with devices of the guest's cells
 * come before others. Then the host cells are ranked, and the first set of cells in this order that
 * fits is chosen:
 *
 *   1. Devices. Most if the request asks for some, fewest if not. A group without resources asks
 *      for the devices that have its traits.
 *   2. CPUs. For a guest with dedicated CPUs, free dedicated CPUs: most (spread) or fewest (pack).
 *      For other guests, guest CPUs that share the cell's: fewest (spread) or most (pack).
 *   3. Free memory in pages of all sizes. Most (spread) or least (pack).
 *   4. The id, as in Nova.
 *
 * In the set, the first guest cell gets the first host cell that leaves one for each of the others,
 * and so on. The result is deterministic, unless the time ends the effort. More than one complete
 * set is tried only if the request has devices, or required traits while cells' providers count a
 * class. The result is complete with one exception: for large or any pages, a host cell tries only
 * the largest size that has enough free pages, also in the inventory of its provider. Otherwise an
 * existing fit is found, or CLAIM_E_TOO_HARD is returned when the effort is spent. Each try of a
 * host cell or of a provider costs effort. */

#include "claims/claim/host-facts.h"
#include "claims/fit/fit.h"

/* Fits like fit_groups(), and calls it for a request without a layout. facts NULL: the host was not
 * polled yet, and each request with a layout is CLAIM_E_NO_CAPACITY. placed (claims/fit/placed.h):
 * upper bounds; hugepages that were not placed are not counted, but large or any pages are then of
 * a placed size, if there is one. NULL: the choice is free. The pieces' classes are borrowed from
 * request or facts. */
int fit_request_numa(const HostView *view, const HostFacts *facts, const char *node,
                     const ResourceRequest *request, const Consumer *placed, FitEffort *effort,
                     Fit *ret, Error *reterr);

/* Counts resources that are used already, whether they fit or not. Resources of cells' providers
 * are counted in the cells of layout, in the amounts of the layout. A host cell that facts lacks,
 * or whose provider is withheld, counts as one without a provider. Each other class goes to the
 * root if the root has it, as a whole, and else to the provider with most free capacity. An excess
 * goes to the next provider, and the part without any free capacity stays with the first one. A
 * class that no usable provider of the node has is left out. facts can be NULL only for a layout
 * without cells. The pieces' classes are borrowed from resources or facts. ret must be FIT_NULL,
 * and can stay without pieces. Returns -ENOMEM on failure. */
int fit_force_numa(const HostView *view, const HostFacts *facts, const char *node,
                   const Resources *resources, const Layout *layout, Fit *ret);

/* Explains like fit_explain_request(); the result is that of fit_request_numa(). A request with a
 * layout gets no verdicts about the classes that cells' providers count. Instead, the answer of
 * each host cell to each guest cell is added: verdicts with the suffix "cell 0" and the provider's
 * name "host, cell 1". These are not limited by FIT_VERDICTS_MAX, and are made also if the effort
 * is spent. For a layout without facts (NULL) there are no verdicts, and the result is
 * CLAIM_E_NO_CAPACITY. */
int fit_explain_numa(const HostView *view, const HostFacts *facts, const char *node,
                     const ResourceRequest *request, FitEffort *effort, FitVerdicts *ret,
                     Error *reterr);
