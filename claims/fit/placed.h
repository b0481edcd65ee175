/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Prepares a request for a fit to the allocations that a scheduler wrote already, and checks that
 * fit. The caller runs the fit in between. Pure.
 *
 * The request becomes a bound one, in which each mapped group with a suffix names its provider. The
 * caller gives the allocations to the fit as upper bounds, so it can only choose these. Amounts
 * that providers of other hosts serve are removed from the request first. These are suffixed groups
 * that the mappings map there, and equal amounts of the group without a suffix. A part of another
 * kind stays, so the allocations do not match. A consumer that moves has its amounts twice. So an
 * allocation elsewhere removes nothing if those here cover the request's amounts of its classes. */

#include "base/allocation.h"
#include "base/resource-request.h"
#include "claims/fit/fit.h"

/* Binds each suffixed group that the mappings name to its provider: it fits there, or not at
 * all. */
void placed_bind_groups(ResourceRequest *request, const RequestMappings *mappings);

/* Makes the bound request in ret, which must be empty, and returns CLAIM_DONE. mappings NULL:
 * unknown; the fit then finds the provider of each group by the amounts. Returns CLAIM_E_OTHER with
 * words if the sums of the allocations here do not match the request, or if none is on this host.
 * Returns CLAIM_E_NO_CAPACITY if claims have too much of an allocated amount, or if a provider
 * lacks its class. Returns -ENOMEM on failure. */
int placed_make(const HostView *view, const char *node, const ResourceRequest *request,
                const Consumer *holding, const RequestMappings *mappings, ResourceRequest *ret,
                Error *reterr);

/* Checks that a fit of the bound request takes exactly the allocations on each provider that it
 * uses. Returns CLAIM_DONE, -ENOMEM, or CLAIM_E_OTHER if not: a layout can choose other cells than
 * the scheduler. *ret_ambiguous (NULL: not needed) says whether two suffixed groups without a
 * mapping could exchange their providers: they have equal amounts, and each provider has the traits
 * for the other group. in_tree and subtrees are not compared. */
int placed_check(const HostView *view, const ResourceRequest *bound, const Consumer *holding,
                 const Fit *fit, bool *ret_ambiguous, Error *reterr);
