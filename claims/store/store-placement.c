/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What was reported to Placement of claims, and what is still to be reported: see schema.c. */

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "claims/store/store-internal.h"

int store_note_state(int r, int64_t id, ClaimWriteState write_state, Error *reterr)
{
        if (r == CLAIM_E_NOT_FOUND)
                error_setf(reterr, ENOENT, "There is no claim %" PRIi64 " that is %s", id,
                           claim_write_state_to_text(write_state));
        return r;
}

int claims_set_write_state(Claims *claims, int64_t id, ClaimWriteState from, ClaimWriteState to,
                           const ClaimReported *reported, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_change(claims, STATEMENT_SET_WRITE_STATE, CLAIM_E_NOT_FOUND, reterr,
                                 "issisi", id, claim_write_state_to_text(from),
                                 claim_write_state_to_text(to),
                                 reported ? reported->generation : (int64_t)0,
                                 reported ? reported->elsewhere.text : "",
                                 reported ? (int64_t)reported->until_sec : (int64_t)0);
        return store_note_state(store_end(claims, r, reterr), id, from, reterr);
}

int claims_forget_reported(Claims *claims, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_run(claims, STATEMENT_FORGET_REPORTED, reterr, "");
        if (r == 0)
                r = store_run(claims, STATEMENT_FORGET_REMOVALS, reterr, "");
        return store_end(claims, r, reterr);
}

int claims_count_owed(Claims *claims, ClaimsOwed *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_get_row(claims, STATEMENT_COUNT_OWED, &statement, reterr, "");

        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return sqlite_damaged(claims->sqlite, "no count", reterr);
        return store_read(claims, statement, 0, "", reterr, "nnnin", &ret->n_writes,
                          &ret->n_removals, &ret->n_moves, &ret->last_removal, &ret->n_unheld);
}

int claims_next_removal(Claims *claims, int64_t after, const Uuid *consumer, ClaimRemoval *ret,
                        Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        ClaimRemoval removal;
        int r = store_get_row(claims, STATEMENT_NEXT_REMOVAL, &statement, reterr, "is", after,
                              consumer ? consumer->text : "");

        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return CLAIM_E_NOT_FOUND;
        r = store_read(claims, statement, 0, "a consumer is no uuid", reterr, "iiubiUn",
                       &removal.id, &removal.claim, &removal.consumer, &removal.unsure,
                       &removal.reported.generation, &removal.reported.elsewhere,
                       &removal.reported.until_sec);
        if (r < 0)
                return r;
        *ret = removal;
        return 0;
}

int claims_end_removal(Claims *claims, int64_t id, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_run(claims, STATEMENT_END_REMOVAL, reterr, "i", id);
        return store_end(claims, r, reterr);
}

static int has_claim(Claims *claims, const Uuid *consumer, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = claims_find(claims, consumer, false, &claim, reterr);

        return r < 0 ? r : r == 0;
}

static int begin_move(Claims *claims, ClaimMove *move, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = has_claim(claims, &move->to, reterr);
        if (r > 0)
                r = CLAIM_E_CONFLICT;
        if (r == 0)
                r = store_change(claims, STATEMENT_BEGIN_MOVE, CLAIM_E_NOT_FOUND, reterr, "sss",
                                 move->from.text, move->to.text, move->to_type);
        if (r == -EEXIST)
                r = CLAIM_E_CONFLICT;
        if (r == 0)
                move->id = sqlite3_last_insert_rowid(claims->sqlite->db);
        return store_end(claims, r, reterr);
}

int claims_begin_move(Claims *claims, const Uuid *from, const Uuid *to, const char *to_type,
                      ClaimMove *ret, Error *reterr)
{
        _cleanup_(claim_move_done)
                ClaimMove move = { .from = *from, .to = *to, .to_type = strdup(to_type) };
        int r = move.to_type ? begin_move(claims, &move, reterr) : error_oom(reterr);

        if (r == 0) {
                *ret = TAKE_STRUCT(move);
        } else if (r == CLAIM_E_NOT_FOUND) {
                error_setf(reterr, ENOENT, "Consumer %s has no claim", from->text);
        } else if (r == CLAIM_E_CONFLICT) {
                error_setf(reterr, EEXIST,
                           "Consumer %s has a claim, or something is on its way to it or from %s",
                           to->text, from->text);
        }
        return r;
}

int claims_next_move(Claims *claims, int64_t after, ClaimMove *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        _cleanup_(claim_move_done) ClaimMove move = { 0 };
        int r = store_get_row(claims, STATEMENT_NEXT_MOVE, &statement, reterr, "i", after);

        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return CLAIM_E_NOT_FOUND;
        r = store_read(claims, statement, 0, "a consumer is no uuid", reterr, "iuuS", &move.id,
                       &move.from, &move.to, &move.to_type);
        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(move);
        return 0;
}

static int note_move(Claims *claims, const ClaimMove *move, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        char reason[64];
        const EventNote note = { .kind = EVENT_MOVED, .by = move->by, .reason = reason };
        int r = claims_find(claims, &move->to, false, &claim, reterr);

        if (r != 0)
                return MIN(r, 0);
        snprintf(reason, sizeof(reason), "from consumer %s", move->from.text);
        return store_note_claim(claims, claim->id, &note, clock_usec(CLOCK_REALTIME), reterr);
}

/* The claim is the other's; when it ended, the other leaves a removal. */
static int hand_over(Claims *claims, const ClaimMove *move, const ClaimReported *reported,
                     bool ours, Error *reterr)
{
        int r = store_change(claims, STATEMENT_HAND_OVER, CLAIM_E_NOT_FOUND, reterr, "sssisii",
                             move->from.text, move->to.text, move->to_type, reported->generation,
                             reported->elsewhere.text, (int64_t)ours, (int64_t)reported->until_sec);

        if (r == CLAIM_E_NOT_FOUND)
                return ours ? store_run(claims, STATEMENT_ADD_REMOVAL, reterr, "sisi",
                                        move->to.text, reported->generation,
                                        reported->elsewhere.text, (int64_t)reported->until_sec)
                            : 0;
        if (r == 0)
                r = store_run(claims, STATEMENT_HAND_OVER_ALLOCATIONS, reterr, "s", move->to.text);
        return r == 0 ? note_move(claims, move, reterr) : r;
}

int claims_end_move(Claims *claims, const ClaimMove *move, const ClaimReported *reported, bool ours,
                    Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_run(claims, STATEMENT_END_MOVE, reterr, "i", move->id);
        if (r == 0 && reported)
                r = hand_over(claims, move, reported, ours, reterr);
        return store_end(claims, r, reterr);
}
