/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Keeps removals and moves: allocations that must still be removed from consumers in Placement, or
 * moved there (schema.c has the tables). Also counts all pending writes; store.c has the write
 * states of claims. This file sends nothing; it is the outbox on disk. A trigger leaves a removal
 * when a claim ends whose allocations the agent has written, or can have written. claims_end_move()
 * adds another removal: for the new consumer of a claim that ended during its move, if the agent
 * wrote that consumer. After a reshape, claims_forget_reported() forgets the states of consumers in
 * Placement (ClaimReported.elsewhere) that claims and removals have. A move has two steps: its
 * record, and its end, which changes the consumer of the claim if the move was done. Each step is
 * one transaction, and a failure changes nothing.
 *
 * Tests: tests/unit/claims/test-claims-placement.c */

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "claims/store/frame.h"

ROW(removal, ClaimRemoval, "removal", COLUMN("id", ClaimRemoval, id),
    COLUMN("claim_id", ClaimRemoval, claim), COLUMN("consumer", ClaimRemoval, consumer),
    COLUMN("unsure", ClaimRemoval, unsure),
    COLUMN("reported_generation", ClaimRemoval, reported.generation),
    COLUMN("reported_elsewhere", ClaimRemoval, reported.elsewhere, .optional = true),
    COLUMN("reported_until", ClaimRemoval, reported.until_sec));

ROW(move, ClaimMove, "move", COLUMN("id", ClaimMove, id), COLUMN("claim_id", ClaimMove, claim),
    COLUMN("from_consumer", ClaimMove, from), COLUMN("to_consumer", ClaimMove, to),
    COLUMN("to_type", ClaimMove, to_type));

ROW(pending_writes, PendingWrites, "the pending writes",
    COLUMN("(SELECT COUNT(*) FROM claims WHERE " IS_UNDER_WAY " AND write_state <> 'pending')",
           PendingWrites, n_writes),
    COLUMN("(SELECT COUNT(*) FROM removals)", PendingWrites, n_removals),
    COLUMN("(SELECT COUNT(*) FROM moves)", PendingWrites, n_moves),
    COLUMN("(SELECT ifnull(max(id), 0) FROM removals)", PendingWrites, last_removal),
    COLUMN("(SELECT COUNT(*) FROM claims WHERE " IS_UNALLOCATED ")", PendingWrites, n_unallocated));

int claims_forget_reported(Claims *claims, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_run(claims, STATEMENT_FORGET_REPORTED, NO_VALUES, CLAIM_DONE, reterr);
        if (r == 0)
                r = store_run(claims, STATEMENT_FORGET_REMOVALS, NO_VALUES, CLAIM_DONE, reterr);
        return store_end(claims, r, reterr);
}

int claims_count_pending_writes(Claims *claims, PendingWrites *ret, Error *reterr)
{
        return store_get(claims, STATEMENT_COUNT_PENDING_WRITES, NO_VALUES, ret, reterr);
}

int claims_next_removal(Claims *claims, int64_t after, const Uuid *consumer, ClaimRemoval *ret,
                        Error *reterr)
{
        return store_get(claims, STATEMENT_NEXT_REMOVAL,
                         VALUES(after, consumer ? consumer->text : ""), ret, reterr);
}

int claims_end_removal(Claims *claims, int64_t id, Error *reterr)
{
        return store_run_alone(claims, STATEMENT_END_REMOVAL, VALUES(id), 0, reterr);
}

/* Returns 1 if the consumer has a living first claim, 0 if not, or a negative errno with words. */
static int has_claim(Claims *claims, const Uuid *consumer, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error words = ERROR_NULL;
        int r = claims_find(claims, consumer, false, &claim, &words);

        if (r < 0 && reterr)
                *reterr = words;
        return r < 0 ? r : r == 0;
}

/* Records a move in one transaction. The UNIQUE columns of the table reject a second move from the
 * same consumer, or to the same one. */
static int begin_move(Claims *claims, ClaimMove *move, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = has_claim(claims, &move->to, reterr);
        if (r > 0)
                r = CLAIM_E_CONFLICT;
        if (r == 0)
                r = claims_find(claims, &move->from, false, &claim, reterr);
        if (r == 0) {
                move->claim = claim->id;
                r = store_run(claims, STATEMENT_BEGIN_MOVE,
                              VALUES(move->claim, move->to.text, move->to_type), CLAIM_E_NOT_FOUND,
                              reterr);
        }
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
                           "Consumer %s has a claim, or a move to it or from %s is pending",
                           to->text, from->text);
        }
        return r;
}

int claims_next_move(Claims *claims, int64_t after, ClaimMove *ret, Error *reterr)
{
        return store_get(claims, STATEMENT_NEXT_MOVE, VALUES(after), ret, reterr);
}

/* Writes the event of a claim that another consumer has now. */
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

/* Changes the consumer of the claim that the stored move names now (store_pass_move()). A resize
 * target stays behind, and if confirmed becomes the first claim of move->from. If the claim has
 * ended, and the agent wrote the allocations of move->to (ours), adds a removal of these. */
static int hand_over(Claims *claims, const ClaimMove *move, const ClaimReported *reported,
                     bool ours, Error *reterr)
{
        int r = store_run(claims, STATEMENT_HAND_OVER,
                          VALUES(move->id, move->to.text, move->to_type, reported->generation,
                                 reported->elsewhere.text, ours, reported->until_sec),
                          CLAIM_E_NOT_FOUND, reterr);

        if (r == CLAIM_E_NOT_FOUND)
                return ours ? store_run(claims, STATEMENT_ADD_REMOVAL,
                                        VALUES(move->to.text, reported->generation,
                                               reported->elsewhere.text, reported->until_sec),
                                        CLAIM_DONE, reterr)
                            : 0;
        if (r == 0)
                r = store_run(claims, STATEMENT_HAND_OVER_ALLOCATIONS,
                              VALUES(move->id, move->to.text), CLAIM_DONE, reterr);
        if (r == 0)
                r = store_promote(claims, &move->from, reterr);
        return r == 0 ? note_move(claims, move, reterr) : r;
}

int claims_end_move(Claims *claims, const ClaimMove *move, const ClaimReported *reported, bool ours,
                    Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0 && reported)
                r = hand_over(claims, move, reported, ours, reterr);
        if (r == 0)
                r = store_run(claims, STATEMENT_END_MOVE, VALUES(move->id), CLAIM_DONE, reterr);
        return store_end(claims, r, reterr);
}

int store_pass_move(Claims *claims, int64_t from, int64_t to, Error *reterr)
{
        return store_run(claims, STATEMENT_PASS_MOVE, VALUES(from, to), CLAIM_DONE, reterr);
}
