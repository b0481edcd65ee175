/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prepares the claim of a guest that is about to start. A claim that another caller made for the
 * guest is kept, and so is one for this start, or of a guest that runs. Any other claim of the
 * guest is of an earlier start. It ends, because the domain can be another one now. Its end and the
 * new claim are one transaction: if the start is refused, or the write fails, the earlier claim
 * stays. Only the first claim of the guest can end. If the second one (resize_target) becomes the
 * first by that end (store_promote()), it is kept, and no new claim is made.
 *
 * Tests: tests/unit/claims/test-claims-guests.c */

#include <string.h>

#include "claims/claims-internal.h"
#include "claims/follow.h"

/* Returns true for a claim as claims_claim_starting() makes it for this start: unconfirmed, and
 * made of the allocations in Placement, which the agent does not write. It must name all mdevs, and
 * all PCI devices that this host counts, of the domain. */
static bool is_of_this_start(const Claims *claims, const Claim *claim, const HostDomain *domain)
{
        if (claim->state != CLAIM_STATE_CLAIMED || !claim_is_placed(claim))
                return false;
        for (size_t i = 0; i < domain->n_mdevs; i++)
                if (!claim_has_mdev(claim, &domain->mdevs[i]))
                        return false;
        for (size_t i = 0; i < domain->n_pci; i++)
                if (host_facts_find_pci(claims->facts, domain->pci[i]) &&
                    !claim_has_pci(claim, domain->pci[i]))
                        return false;
        return true;
}

/* Finds the first claim of the guest if it has CLAIM_TYPE_GUEST and is of an earlier start. *ret
 * stays NULL if there is none. The claim of a running guest is none, and neither is one that was
 * made for this start. */
static int find_earlier_claim(Claims *claims, const HostDomain *domain, Claim **ret, Error *reterr)
{
        const HostDomain *seen = host_facts_find_domain(claims->facts, &domain->uuid);
        _cleanup_(claim_freep) Claim *held = NULL;
        int r = claims_find(claims, &domain->uuid, false, &held, reterr);

        if (r == CLAIM_DONE && !(seen && seen->running) &&
            strcmp(held->consumer_type, CLAIM_TYPE_GUEST) == 0 &&
            !is_of_this_start(claims, held, domain))
                *ret = TAKE_PTR(held);
        return MIN(r, 0);
}

static int prepare_once(Claims *claims, ClaimStart *start, Claim **ret, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = claims_find(claims, &start->domain->uuid, false, &claim, reterr);

        start->is_new = r == CLAIM_E_NOT_FOUND;
        if (start->is_new)
                return claims_prepare_new(claims, start, ret, reterr);
        if (r == CLAIM_DONE)
                r = claims_note_domain(claims, claim, start->domain, reterr);
        if (r == CLAIM_DONE)
                *ret = TAKE_PTR(claim);
        return r > 0 ? CLAIM_E_RACE : r;
}

static int prepare(Claims *claims, ClaimStart *start, Claim **ret, Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        while (claims_attempt(&attempts, reterr))
                attempts.result = prepare_once(claims, start, ret, reterr);
        return attempts.result;
}

/* Replaces the earlier claim in one transaction, so that a refusal or failure keeps it. A pending
 * move of it becomes that of the new claim, but not of a resize target that is promoted. Frees
 * *earlier and sets it to NULL if another process has ended it already. If another writer made the
 * guest's allocations, or can have made them, the agent does not write the new claim, which then
 * also outlives a stop of the guest. */
static int replace(Claims *claims, ClaimStart *start, Claim **earlier, Claim **ret, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = claims_begin_group(claims, reterr);

        if (r < 0)
                return r;
        start->writes = start->writes &&
                        (claim_is_of_guest_alone(*earlier, true) || (*earlier)->is_unallocated);
        r = claims_release(claims, (*earlier)->id, "its guest starts again", reterr);
        if (r == CLAIM_E_NOT_FOUND)
                *earlier = claim_free(*earlier);
        start->earlier = *earlier;
        if (r >= 0)
                r = prepare(claims, start, &claim, reterr);
        if (r == CLAIM_DONE && start->is_new && *earlier)
                r = store_pass_move(claims, (*earlier)->id, claim->id, reterr);
        r = claims_end_group(claims, r, reterr);
        if (r == CLAIM_DONE)
                *ret = TAKE_PTR(claim);
        return r;
}

int claims_prepare(Claims *claims, const HostDomain *domain, const StringSet *cordoned,
                   Claim **ret_claim, Claim **ret_ended, Error *reterr)
{
        ClaimStart start = { .domain = domain,
                             .cordoned = cordoned,
                             .writes = claims->rules.writes_guests };
        _cleanup_(claim_freep) Claim *earlier = NULL;
        int r;

        if (!claims->facts)
                return error_setf(reterr, EAGAIN, "The host was not polled yet");
        r = find_earlier_claim(claims, domain, &earlier, reterr);
        if (r < 0 || !earlier)
                return r < 0 ? r : prepare(claims, &start, ret_claim, reterr);
        r = replace(claims, &start, &earlier, ret_claim, reterr);
        if (r == CLAIM_DONE)
                *ret_ended = TAKE_PTR(earlier);
        return r;
}
