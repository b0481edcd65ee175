/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/claims-placement.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "claims/claims-internal.h"

static int finish(int r, int64_t id, ClaimWriteState write_state, Error *reterr)
{
        if (r != CLAIM_E_NOT_FOUND)
                return r;
        error_setf(reterr, ENOENT, "There is no claim %" PRIi64 " that is %s", id,
                   claim_write_state_to_text(write_state));
        return CLAIM_E_NOT_FOUND;
}

int claims_set_write_state(Claims *claims, int64_t id, ClaimWriteState from, ClaimWriteState to,
                           const ClaimReported *reported, Error *reterr)
{
        int r = store_set_write_state(claims->store, id, from, to, reported, reterr);

        return finish(r, id, from, reterr);
}

int claims_withdraw(Claims *claims, int64_t id, const char *reason, Error *reterr)
{
        int r = store_withdraw(claims->store, id, reason, clock_usec(CLOCK_REALTIME), reterr);

        return finish(r, id, CLAIM_WRITE_PENDING, reterr);
}

int claims_forget_reported(Claims *claims, Error *reterr)
{
        return store_forget_reported(claims->store, reterr);
}

int claims_next_write(Claims *claims, int64_t after, Claim **ret, Error *reterr)
{
        int r = store_next_write(claims->store, after, ret, reterr);

        return r == CLAIM_E_NOT_FOUND ? CLAIM_E_NOT_FOUND : r;
}

int claims_count_owed(Claims *claims, ClaimsOwed *ret, Error *reterr)
{
        return store_count_owed(claims->store, ret, reterr);
}

int claims_next_removal(Claims *claims, int64_t after, const Uuid *consumer, ClaimRemoval *ret,
                        Error *reterr)
{
        int r = store_next_removal(claims->store, after, consumer, ret, reterr);

        return r == CLAIM_E_NOT_FOUND ? CLAIM_E_NOT_FOUND : r;
}

int claims_end_removal(Claims *claims, int64_t id, Error *reterr)
{
        return store_end_removal(claims->store, id, reterr);
}

int claims_begin_move(Claims *claims, const Uuid *from, const Uuid *to, const char *to_type,
                      ClaimMove *ret, Error *reterr)
{
        ClaimMove move = { .from = *from, .to = *to, .to_type = strdup(to_type) };
        int r;

        if (!move.to_type)
                return error_oom(reterr);
        r = store_begin_move(claims->store, from, to, to_type, &move.id, reterr);
        if (r == 0) {
                *ret = move;
                return 0;
        }
        claim_move_done(&move);
        if (r == CLAIM_E_NOT_FOUND) {
                error_setf(reterr, ENOENT, "Consumer %s has no claim", from->text);
                return CLAIM_E_NOT_FOUND;
        }
        if (r == CLAIM_E_CONFLICT) {
                error_setf(reterr, EEXIST,
                           "Consumer %s has a claim, or something is on its way to it or from %s",
                           to->text, from->text);
                return CLAIM_E_CONFLICT;
        }
        return r;
}

int claims_next_move(Claims *claims, int64_t after, ClaimMove *ret, Error *reterr)
{
        int r = store_next_move(claims->store, after, ret, reterr);

        return r == CLAIM_E_NOT_FOUND ? CLAIM_E_NOT_FOUND : r;
}

int claims_end_move(Claims *claims, const ClaimMove *move, const ClaimReported *reported, bool ours,
                    Error *reterr)
{
        return store_end_move(claims->store, move, reported, ours, reterr);
}
