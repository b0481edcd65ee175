/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A request whose providers somebody chose already: a scheduler that wrote the allocations. Pure.
 *
 * It becomes a request whose suffixed groups name their providers, and which is fitted with the
 * holding as the limit (FitGiven.placed): exactly this, here. What the consumer holds of providers
 * that are not this host's is taken out of the request. */

#include "base/allocation.h"
#include "base/request-mappings.h"
#include "claims/fit/fit.h"

typedef enum PlacedOutcome {
        PLACED_DONE = 0,
        PLACED_E_OTHER = 1, /* what is held is not what the request asks for; reterr says what */
        PLACED_E_NO_ROOM,   /* this host has promised what was placed; reterr names the class */
        _PLACED_OUTCOME_MAX,
} PlacedOutcome;

/* A request bound to what was placed. */
typedef struct Placed {
        ResourceRequest request;
        bool ambiguous; /* groups could have got other providers, as far as the amounts tell */
} Placed;

#define PLACED_NULL ((Placed){ 0 })

void placed_done(Placed *placed);

/* Each suffixed group that the mappings name comes from its provider there, or not at all. */
void placed_bind_groups(ResourceRequest *request, const RequestMappings *mappings);

/* mappings NULL: not told. ret must be PLACED_NULL. -ENOMEM. */
int placed_make(const HostView *view, const char *node, const ResourceRequest *request,
                const Consumer *holding, const RequestMappings *mappings, Placed *ret,
                Error *reterr);

/* Does a fit of the bound request take all that was placed? PLACED_E_OTHER when it does not: a
 * layout has its own mind about cells. */
int placed_check(const HostView *view, const Consumer *holding, const Fit *fit, Error *reterr);
