/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/claims-placement.h"

#include <inttypes.h>
#include <string.h>

#include "claims/claims-internal.h"

static int finish(int r, int64_t id, ClaimStanding standing, Error *reterr)
{
        if (r != STORE_E_NOT_FOUND)
                return claims_finish(r);
        error_setf(reterr, ENOENT, "There is no claim %" PRIi64 " that is %s", id,
                   claim_standing_to_text(standing));
        return CLAIM_E_NOT_FOUND;
}

int claims_set_standing(Claims *claims, int64_t id, ClaimStanding from, ClaimStanding to,
                        const ClaimTold *told, Error *reterr)
{
        int r = claims->store->engine->set_standing(claims->store, id, from, to, told, reterr);

        return finish(r, id, from, reterr);
}

int claims_withdraw(Claims *claims, int64_t id, const char *reason, Error *reterr)
{
        int r = claims->store->engine->withdraw(claims->store, id, reason, claims_now_usec(),
                                                reterr);

        return finish(r, id, CLAIM_STANDING_PENDING, reterr);
}

int claims_forget_told(Claims *claims, Error *reterr)
{
        return claims_finish(claims->store->engine->forget_told(claims->store, reterr));
}

int claims_list_pending(Claims *claims, ClaimList *ret, Error *reterr)
{
        return claims_finish(claims->store->engine->list_pending(claims->store, ret, reterr));
}

int claims_next_debt(Claims *claims, int64_t after, Claim **ret, Error *reterr)
{
        int r = claims->store->engine->next_debt(claims->store, after, ret, reterr);

        return r == STORE_E_NOT_FOUND ? CLAIM_E_NOT_FOUND : claims_finish(r);
}

int claims_count_debts(Claims *claims, ClaimDebts *ret, Error *reterr)
{
        return claims_finish(claims->store->engine->count_debts(claims->store, ret, reterr));
}

int claims_next_departure(Claims *claims, int64_t after, const Uuid *consumer, ClaimDeparture *ret,
                          Error *reterr)
{
        StoreDeparture departure;
        int r = claims->store->engine->next_departure(claims->store, after, consumer, &departure,
                                                      reterr);

        if (r == STORE_E_NOT_FOUND)
                return CLAIM_E_NOT_FOUND;
        if (r == 0)
                *ret = (ClaimDeparture){ .id = departure.id,
                                         .claim = departure.claim,
                                         .consumer = departure.consumer,
                                         .told = departure.told,
                                         .unsure = departure.unsure };
        return claims_finish(r);
}

int claims_end_departure(Claims *claims, int64_t id, Error *reterr)
{
        return claims_finish(claims->store->engine->end_departure(claims->store, id, reterr));
}

void claim_handover_done(ClaimHandover *handover)
{
        free(handover->to_type);
        *handover = (ClaimHandover){ 0 };
}

int claims_begin_handover(Claims *claims, const Uuid *from, const Uuid *to, const char *to_type,
                          ClaimHandover *ret, Error *reterr)
{
        ClaimHandover handover = { .from = *from, .to = *to, .to_type = strdup(to_type) };
        int r;

        if (!handover.to_type)
                return error_oom(reterr);
        r = claims->store->engine->begin_handover(claims->store, from, to, to_type, &handover.id,
                                                  reterr);
        if (r == 0) {
                *ret = handover;
                return 0;
        }
        claim_handover_done(&handover);
        if (r == STORE_E_NOT_FOUND) {
                error_setf(reterr, ENOENT, "Consumer %s has no claim", from->text);
                return CLAIM_E_NOT_FOUND;
        }
        if (r == STORE_E_EXISTS) {
                error_setf(reterr, EEXIST,
                           "Consumer %s has a claim, or something is on its way to it or from %s",
                           to->text, from->text);
                return CLAIM_E_CONFLICT;
        }
        return claims_finish(r);
}

int claims_next_handover(Claims *claims, int64_t after, ClaimHandover *ret, Error *reterr)
{
        StoreHandover handover;
        int r = claims->store->engine->next_handover(claims->store, after, &handover, reterr);

        if (r == STORE_E_NOT_FOUND)
                return CLAIM_E_NOT_FOUND;
        if (r == 0)
                *ret = (ClaimHandover){ .id = handover.id,
                                        .from = handover.from,
                                        .to = handover.to,
                                        .to_type = handover.to_type };
        return claims_finish(r);
}

int claims_end_handover(Claims *claims, const ClaimHandover *handover, const ClaimTold *told,
                        bool ours, Error *reterr)
{
        const StoreHandover row = { .id = handover->id,
                                    .from = handover->from,
                                    .to = handover->to,
                                    .to_type = handover->to_type };

        return claims_finish(
                claims->store->engine->end_handover(claims->store, &row, told, ours, reterr));
}
