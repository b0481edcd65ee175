/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What was reported to Placement of claims, and what is still to be reported: see schema.c. */

#include "base/clock.h"
#include "claims/store/store-internal.h"

int store_set_write_state(Store *store, int64_t id, ClaimWriteState from, ClaimWriteState to,
                          const ClaimReported *reported, Error *reterr)
{
        int r = store_begin(store, reterr);

        if (r == 0)
                r = store_change(store, STATEMENT_SET_WRITE_STATE, CLAIM_E_NOT_FOUND, reterr,
                                 "issisi", id, claim_write_state_to_text(from),
                                 claim_write_state_to_text(to),
                                 reported ? reported->generation : (int64_t)0,
                                 reported ? reported->elsewhere.text : "",
                                 reported ? (int64_t)reported->until_sec : (int64_t)0);
        return store_end(store, r, reterr);
}

int store_forget_reported(Store *store, Error *reterr)
{
        int r = store_begin(store, reterr);

        if (r == 0)
                r = store_run(store, STATEMENT_FORGET_REPORTED, reterr, "");
        if (r == 0)
                r = store_run(store, STATEMENT_FORGET_REMOVALS, reterr, "");
        return store_end(store, r, reterr);
}

int store_count_owed(Store *store, ClaimsOwed *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_get_row(store, STATEMENT_COUNT_OWED, &statement, reterr, "");

        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return sqlite_damaged(store->sqlite, "no count", reterr);
        return store_read(store, statement, 0, "", reterr, "nnnin", &ret->n_writes,
                          &ret->n_removals, &ret->n_moves, &ret->last_removal, &ret->n_unheld);
}

int store_next_removal(Store *store, int64_t after, const Uuid *consumer, ClaimRemoval *ret,
                       Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        ClaimRemoval removal;
        int r = store_get_row(store, STATEMENT_NEXT_REMOVAL, &statement, reterr, "is", after,
                              consumer ? consumer->text : "");

        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return CLAIM_E_NOT_FOUND;
        r = store_read(store, statement, 0, "a consumer is no uuid", reterr, "iiubiUn", &removal.id,
                       &removal.claim, &removal.consumer, &removal.unsure,
                       &removal.reported.generation, &removal.reported.elsewhere,
                       &removal.reported.until_sec);
        if (r < 0)
                return r;
        *ret = removal;
        return 0;
}

int store_end_removal(Store *store, int64_t id, Error *reterr)
{
        int r = store_begin(store, reterr);

        if (r == 0)
                r = store_run(store, STATEMENT_END_REMOVAL, reterr, "i", id);
        return store_end(store, r, reterr);
}

static int has_claim(Store *store, const Uuid *consumer, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = store_find(store, consumer, false, &claim, reterr);

        return r < 0 ? r : r == 0;
}

int store_begin_move(Store *store, const Uuid *from, const Uuid *to, const char *to_type,
                     int64_t *ret_id, Error *reterr)
{
        int r = store_begin(store, reterr);

        if (r == 0)
                r = has_claim(store, to, reterr);
        if (r > 0)
                r = CLAIM_E_CONFLICT;
        if (r == 0)
                r = store_change(store, STATEMENT_BEGIN_MOVE, CLAIM_E_NOT_FOUND, reterr, "sss",
                                 from->text, to->text, to_type);
        if (r == -EEXIST)
                r = CLAIM_E_CONFLICT;
        if (r == 0)
                *ret_id = sqlite3_last_insert_rowid(store->sqlite->db);
        return store_end(store, r, reterr);
}

int store_next_move(Store *store, int64_t after, ClaimMove *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        _cleanup_(claim_move_done) ClaimMove move = { 0 };
        int r = store_get_row(store, STATEMENT_NEXT_MOVE, &statement, reterr, "i", after);

        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return CLAIM_E_NOT_FOUND;
        r = store_read(store, statement, 0, "a consumer is no uuid", reterr, "iuuS", &move.id,
                       &move.from, &move.to, &move.to_type);
        if (r < 0)
                return r;
        *ret = move;
        move = (ClaimMove){ 0 };
        return 0;
}

static int note_move(Store *store, const ClaimMove *move, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        char reason[64];
        const EventNote note = { .kind = EVENT_MOVED, .by = move->by, .reason = reason };
        int r = store_find(store, &move->to, false, &claim, reterr);

        if (r != 0)
                return MIN(r, 0);
        snprintf(reason, sizeof(reason), "from consumer %s", move->from.text);
        return store_note_claim(store, claim->id, &note, clock_usec(CLOCK_REALTIME), reterr);
}

/* The claim is the other's; when it ended, the other leaves a removal. */
static int hand_over(Store *store, const ClaimMove *move, const ClaimReported *reported, bool ours,
                     Error *reterr)
{
        int r = store_change(store, STATEMENT_HAND_OVER, CLAIM_E_NOT_FOUND, reterr, "sssisii",
                             move->from.text, move->to.text, move->to_type, reported->generation,
                             reported->elsewhere.text, (int64_t)ours, (int64_t)reported->until_sec);

        if (r == CLAIM_E_NOT_FOUND)
                return ours ? store_run(store, STATEMENT_ADD_REMOVAL, reterr, "sisi", move->to.text,
                                        reported->generation, reported->elsewhere.text,
                                        (int64_t)reported->until_sec)
                            : 0;
        if (r == 0)
                r = store_run(store, STATEMENT_HAND_OVER_ALLOCATIONS, reterr, "s", move->to.text);
        return r == 0 ? note_move(store, move, reterr) : r;
}

int store_end_move(Store *store, const ClaimMove *move, const ClaimReported *reported, bool ours,
                   Error *reterr)
{
        int r = store_begin(store, reterr);

        if (r == 0)
                r = store_run(store, STATEMENT_END_MOVE, reterr, "i", move->id);
        if (r == 0 && reported)
                r = hand_over(store, move, reported, ours, reterr);
        return store_end(store, r, reterr);
}
