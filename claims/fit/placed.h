/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A request whose providers somebody chose already: a scheduler that wrote the allocations. Pure.
 *
 * It becomes a request whose suffixed groups name their providers, and which is fitted with the
 * holding as the limit (FitGiven.placed): exactly this, here. What the consumer holds of providers
 * that are not this host's is taken out of the request. */

#include "base/allocation.h"
#include "base/resource-request.h"
#include "claims/fit/fit.h"

/* Each suffixed group that the mappings name comes from its provider there, or not at all. */
void placed_bind_groups(ResourceRequest *request, const RequestMappings *mappings);

/* mappings NULL: not known; then the fit finds which group is where from the amounts. ret, which is
 * the request bound to what was placed, must be empty. -ENOMEM. */
int placed_make(const HostView *view, const char *node, const ResourceRequest *request,
                const Consumer *holding, const RequestMappings *mappings, ResourceRequest *ret,
                Error *reterr);

/* Does a fit of the bound request take all that was placed? CLAIM_E_OTHER when it does not: a
 * layout has its own mind about cells. */
int placed_check(const HostView *view, const Consumer *holding, const Fit *fit, Error *reterr);

/* Could two groups that the mappings did not name have each other's provider? */
bool placed_is_ambiguous(const HostView *view, const ResourceRequest *bound, const Fit *fit);
