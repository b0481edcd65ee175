/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What of a consumer is this host's: its allocations on the providers of the host's own tree. What
 * it holds of other hosts and of sharing providers is left alone. Pure. */

#include "claims/claim.h"
#include "claims/host-view.h"

/* Has it anything of this host? */
bool claim_share_has(const HostView *view, const char *node, const Consumer *consumer);

/* Takes it away, and what claim (NULL: nothing) held elsewhere, which the agent wrote for it. True
 * when there was something. */
bool claim_share_remove(const HostView *view, const char *node, const Claim *claim,
                        Consumer *consumer);

/* Has it of the claim's providers exactly what the claim has? */
bool claim_share_is(const Claim *claim, const Consumer *consumer);

/* Adds what the claim holds. -ENOMEM, -EOVERFLOW. */
int claim_share_add(const Claim *claim, Consumer *consumer);
