/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which provider each suffixed group got, when only the amounts are known (spec 5: an older
 * scheduler told no mappings). Pure.
 *
 * The model: a group can be on a provider that has its required and no forbidden traits, when what
 * is held there is the group's amounts, class by class, or a whole multiple of them where groups
 * may share a provider; other classes there must be of the group without a suffix. Groups and
 * providers are then matched with augmenting paths (claims/fit/matching.h): first one group to a
 * provider, then as many as the multiple says. That is polynomial: 64 groups on 64 providers take
 * less than a millisecond (make bench-match).
 *
 * LIMITATIONS: groups of different amounts that share one provider, and a group that asks for a
 * class of which the group without a suffix has some, too, are no matching but a packing problem.
 * These are left to the fit, whose work is bounded. */

#include "base/allocation.h"
#include "base/resource-request.h"
#include "claims/claim/host-view.h"

typedef enum GroupMatch {
        GROUP_MATCH_DONE = 0,
        GROUP_MATCH_AMBIGUOUS = 1, /* found, and there is at least one more way */
        GROUP_MATCH_E_NONE,        /* not to be told by this model */
} GroupMatch;

/* Sets the provider of each suffixed group with resources that has none yet; none on
 * GROUP_MATCH_E_NONE. Providers that the view does not have are passed over. -ENOMEM. */
int group_match(const HostView *view, const Consumer *holding, ResourceRequest *request);
