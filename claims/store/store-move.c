/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moving what claims hold. Rows are deleted and inserted, never updated: the sums of usage hang on
 * that. A row belongs to a request group, which it keeps. The devices that a claim names go along,
 * where one of the two providers is theirs. */

#include <string.h>

#include "base/clock.h"
#include "claims/store/store-internal.h"

static int read_used(Claims *claims, int64_t claim, const Uuid *provider,
                     const char *resource_class, const char *group, uint64_t *ret, Error *reterr)
{
        int64_t used;
        int r = store_get_integer(claims, STATEMENT_READ_PART,
                                  VALUES(claim, provider->text, resource_class, group), &used,
                                  reterr);

        if (r == 0)
                *ret = (uint64_t)used;
        return r;
}

static int write_used(Claims *claims, int64_t claim, const Uuid *provider,
                      const char *resource_class, const char *group, uint64_t used, Error *reterr)
{
        int r = store_run(claims, STATEMENT_DELETE_PART,
                          VALUES(claim, provider->text, resource_class, group), reterr);

        if (r < 0 || used == 0)
                return r;
        return store_run(claims, STATEMENT_INSERT_PART,
                         VALUES(claim, provider->text, resource_class, group, used), reterr);
}

/* Moves up to amount of the first row, and yields how much it was. CLAIM_E_NOT_FOUND without a row.
 */
static int move_share(Claims *claims, const StoreShift *shift, uint64_t amount, uint64_t *ret_moved,
                      Error *reterr)
{
        _cleanup_(share_row_done) ShareRow share = { 0 };
        uint64_t there, part;
        int r = store_get(claims, STATEMENT_READ_SHARE,
                          VALUES(shift->claim, shift->from.text, shift->from_class), &share,
                          reterr);

        if (r != 0)
                return r;
        part = MIN(share.used, amount);
        r = read_used(claims, shift->claim, &shift->to, shift->to_class, share.group, &there,
                      reterr);
        if (r == 0)
                r = write_used(claims, shift->claim, &shift->from, shift->from_class, share.group,
                               share.used - part, reterr);
        if (r == 0)
                r = write_used(claims, shift->claim, &shift->to, shift->to_class, share.group,
                               there + part, reterr);
        if (r == 0 && !uuid_equal(&shift->from, &shift->to))
                r = store_run(
                        claims, STATEMENT_SHIFT_DEVICES,
                        VALUES(shift->claim, shift->from.text, shift->to.text, share.group, part),
                        reterr);
        *ret_moved = part;
        return r;
}

static int move_one(Claims *claims, const StoreShift *shift, Error *reterr)
{
        uint64_t left = shift->amount, moved;
        int r = store_run(claims, STATEMENT_BUMP_OF_CLAIM, VALUES(shift->claim), reterr);

        while (r == 0 && left > 0) {
                r = move_share(claims, shift, left, &moved, reterr);
                if (r == CLAIM_E_NOT_FOUND)
                        break;
                left -= r == 0 ? moved : 0;
        }
        if (r < 0)
                return r;
        return store_run(claims, STATEMENT_BUMP_OF_CLAIM, VALUES(shift->claim), reterr);
}

int store_shift(Claims *claims, const HostView *wanted, const StoreShift *shifts, size_t n_shifts,
                Error *reterr)
{
        const EventNote note = { .kind = EVENT_RESHAPED,
                                 .reason = "it follows what the host's providers became" };
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_write_changes(claims, wanted, reterr);
        for (size_t i = 0; r == 0 && i < n_shifts; i++) {
                r = move_one(claims, &shifts[i], reterr);
                /* those of a claim stand together */
                if (r == 0 && (i + 1 == n_shifts || shifts[i + 1].claim != shifts[i].claim))
                        r = store_note_claim(claims, shifts[i].claim, &note,
                                             clock_usec(CLOCK_REALTIME), reterr);
        }
        return store_end(claims, r, reterr);
}
