/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moving what claims hold. Rows are deleted and inserted, never updated: the sums of usage hang on
 * that. A row belongs to a request group, which it keeps. The devices that a claim names go along,
 * where one of the two providers is theirs. */

#include <string.h>

#include "base/clock.h"
#include "claims/store/store-internal.h"

/* The first row of what is to be moved. CLAIM_E_NOT_FOUND. */
static int read_row(Claims *claims, const StoreShift *shift, char **ret_group, uint64_t *ret_used,
                    Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_get_row(claims, STATEMENT_READ_SHARE, &statement, reterr, "iss", shift->claim,
                              shift->from.text, shift->from_class);

        if (r <= 0)
                return r < 0 ? r : CLAIM_E_NOT_FOUND;
        *ret_group = strdup((const char *)sqlite3_column_text(statement, 0));
        *ret_used = (uint64_t)sqlite3_column_int64(statement, 1);
        return *ret_group ? 0 : error_oom(reterr);
}

static int read_used(Claims *claims, int64_t claim, const Uuid *provider,
                     const char *resource_class, const char *group, uint64_t *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_get_row(claims, STATEMENT_READ_PART, &statement, reterr, "isss", claim,
                              provider->text, resource_class, group);

        if (r < 0)
                return r;
        *ret = r > 0 ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
        return 0;
}

static int write_used(Claims *claims, int64_t claim, const Uuid *provider,
                      const char *resource_class, const char *group, uint64_t used, Error *reterr)
{
        int r = store_run(claims, STATEMENT_DELETE_PART, reterr, "isss", claim, provider->text,
                          resource_class, group);

        if (r < 0 || used == 0)
                return r;
        return store_run(claims, STATEMENT_INSERT_PART, reterr, "isssi", claim, provider->text,
                         resource_class, group, (int64_t)used);
}

/* Moves up to amount of one row, and tells how much it was. */
static int move_row(Claims *claims, const StoreShift *shift, uint64_t amount, uint64_t *ret_moved,
                    Error *reterr)
{
        _cleanup_free_ char *group = NULL;
        uint64_t used, there, part;
        int r = read_row(claims, shift, &group, &used, reterr);

        if (r != 0)
                return r;
        part = MIN(used, amount);
        r = read_used(claims, shift->claim, &shift->to, shift->to_class, group, &there, reterr);
        if (r == 0)
                r = write_used(claims, shift->claim, &shift->from, shift->from_class, group,
                               used - part, reterr);
        if (r == 0)
                r = write_used(claims, shift->claim, &shift->to, shift->to_class, group,
                               there + part, reterr);
        if (r == 0 && !uuid_equal(&shift->from, &shift->to))
                r = store_run(claims, STATEMENT_SHIFT_DEVICES, reterr, "isssi", shift->claim,
                              shift->from.text, shift->to.text, group, (int64_t)part);
        *ret_moved = part;
        return r;
}

static int move_one(Claims *claims, const StoreShift *shift, Error *reterr)
{
        uint64_t left = shift->amount, moved;
        int r = store_run(claims, STATEMENT_BUMP_OF_CLAIM, reterr, "i", shift->claim);

        while (r == 0 && left > 0) {
                r = move_row(claims, shift, left, &moved, reterr);
                if (r == CLAIM_E_NOT_FOUND)
                        break;
                left -= r == 0 ? moved : 0;
        }
        if (r < 0)
                return r;
        return store_run(claims, STATEMENT_BUMP_OF_CLAIM, reterr, "i", shift->claim);
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
