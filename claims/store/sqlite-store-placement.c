/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What Placement was told of claims, and what is still to be told: see versions 5 to 7 in
 * schema.c. */

#include <string.h>

#include "claims/store/sqlite-store-internal.h"

int sqlite_store_set_standing(Store *base, int64_t id, ClaimStanding from, ClaimStanding to,
                              const ClaimTold *told, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int changed, r;

        r = sqlite_store_begin(store, reterr);
        if (r < 0)
                return r;
        r = sqlite_store_run(store, STATEMENT_SET_STANDING, &changed, reterr, "issisi", id,
                             claim_standing_to_text(from), claim_standing_to_text(to),
                             told ? told->generation : (int64_t)0, told ? told->elsewhere.text : "",
                             told ? (int64_t)told->until_sec : (int64_t)0);
        if (r == 0 && changed == 0)
                r = STORE_E_NOT_FOUND;
        return sqlite_store_end(store, r, reterr);
}

int sqlite_store_forget_told(Store *base, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int r = sqlite_store_begin(store, reterr);

        if (r < 0)
                return r;
        r = sqlite_store_run(store, STATEMENT_FORGET_TOLD, NULL, reterr, "");
        if (r == 0)
                r = sqlite_store_run(store, STATEMENT_FORGET_DEPARTED, NULL, reterr, "");
        return sqlite_store_end(store, r, reterr);
}

static int read_uuid(SqliteStore *store, sqlite3_stmt *statement, int column, Uuid *ret,
                     Error *reterr)
{
        const char *text;
        int r = sqlite_column(store->sqlite, statement, column, &text, reterr);

        if (r < 0)
                return r;
        if (uuid_from_text(text, ret) < 0)
                return error_setf(reterr, EUCLEAN,
                                  "The claim database %s is damaged (a consumer is no uuid)",
                                  store->sqlite->path);
        return 0;
}

int sqlite_store_count_debts(Store *base, ClaimDebts *ret, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = sqlite_store_query(store, STATEMENT_COUNT_DEBTS, &statement, reterr, "");

        if (r >= 0)
                r = sqlite_step(store->sqlite, statement, reterr);
        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return error_setf(reterr, EUCLEAN, "The claim database %s is damaged (no count)",
                                  store->sqlite->path);
        *ret = (ClaimDebts){ .n_claims = (uint64_t)sqlite3_column_int64(statement, 0),
                             .n_departures = (uint64_t)sqlite3_column_int64(statement, 1),
                             .n_handovers = (uint64_t)sqlite3_column_int64(statement, 2),
                             .last_departure = sqlite3_column_int64(statement, 3) };
        return 0;
}

/* Of a departure. */
static int read_told(SqliteStore *store, sqlite3_stmt *statement, ClaimTold *ret, Error *reterr)
{
        const char *elsewhere;
        int r = sqlite_column(store->sqlite, statement, 4, &elsewhere, reterr);

        *ret = (ClaimTold){ .generation = sqlite3_column_int64(statement, 3),
                            .until_sec = (uint64_t)sqlite3_column_int64(statement, 6) };
        if (r < 0 || !elsewhere[0])
                return r;
        return read_uuid(store, statement, 4, &ret->elsewhere, reterr);
}

int sqlite_store_next_departure(Store *base, int64_t after, const Uuid *consumer,
                                StoreDeparture *ret, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        StoreDeparture departure;
        int r;

        r = sqlite_store_query(store, STATEMENT_NEXT_DEPARTURE, &statement, reterr, "is", after,
                               consumer ? consumer->text : "");
        if (r >= 0)
                r = sqlite_step(store->sqlite, statement, reterr);
        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return STORE_E_NOT_FOUND;
        departure.id = sqlite3_column_int64(statement, 0);
        departure.claim = sqlite3_column_int64(statement, 1);
        departure.unsure = sqlite3_column_int64(statement, 5) != 0;
        r = read_uuid(store, statement, 2, &departure.consumer, reterr);
        if (r == 0)
                r = read_told(store, statement, &departure.told, reterr);
        if (r < 0)
                return r;
        *ret = departure;
        return 0;
}

int sqlite_store_end_departure(Store *base, int64_t id, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int r = sqlite_store_begin(store, reterr);

        if (r < 0)
                return r;
        r = sqlite_store_run(store, STATEMENT_END_DEPARTURE, NULL, reterr, "i", id);
        return sqlite_store_end(store, r, reterr);
}

static int has_claim(Store *base, const Uuid *consumer, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = base->engine->find(base, consumer, false, &claim, reterr);

        return r < 0 ? r : r == 0;
}

int sqlite_store_begin_handover(Store *base, const Uuid *from, const Uuid *to, const char *to_type,
                                int64_t *ret_id, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int changed, r;

        r = sqlite_store_begin(store, reterr);
        if (r < 0)
                return r;
        r = has_claim(base, to, reterr);
        if (r > 0)
                r = STORE_E_EXISTS;
        if (r == 0) {
                r = sqlite_store_run(store, STATEMENT_BEGIN_HANDOVER, &changed, reterr, "sss",
                                     from->text, to->text, to_type);
                if (r == -EEXIST)
                        r = STORE_E_EXISTS;
                else if (r == 0 && changed == 0)
                        r = STORE_E_NOT_FOUND;
        }
        if (r == 0)
                *ret_id = sqlite3_last_insert_rowid(store->sqlite->db);
        return sqlite_store_end(store, r, reterr);
}

int sqlite_store_next_handover(Store *base, int64_t after, StoreHandover *ret, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        StoreHandover handover = { 0 };
        const char *type;
        int r;

        r = sqlite_store_query(store, STATEMENT_NEXT_HANDOVER, &statement, reterr, "i", after);
        if (r >= 0)
                r = sqlite_step(store->sqlite, statement, reterr);
        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return STORE_E_NOT_FOUND;
        handover.id = sqlite3_column_int64(statement, 0);
        if ((r = read_uuid(store, statement, 1, &handover.from, reterr)) < 0 ||
            (r = read_uuid(store, statement, 2, &handover.to, reterr)) < 0 ||
            (r = sqlite_column(store->sqlite, statement, 3, &type, reterr)) < 0)
                return r;
        handover.to_type = strdup(type);
        if (!handover.to_type)
                return error_oom(reterr);
        *ret = handover;
        return 0;
}

int sqlite_store_end_handover(Store *base, const StoreHandover *handover, const ClaimTold *told,
                              bool ours, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int changed = 0, r = sqlite_store_begin(store, reterr);

        if (r < 0)
                return r;
        r = sqlite_store_run(store, STATEMENT_END_HANDOVER, NULL, reterr, "i", handover->id);
        if (r == 0 && told)
                r = sqlite_store_run(store, STATEMENT_HAND_OVER, &changed, reterr, "sssisii",
                                     handover->from.text, handover->to.text, handover->to_type,
                                     told->generation, told->elsewhere.text, (int64_t)ours,
                                     (int64_t)told->until_sec);
        if (r == 0 && told && ours && changed == 0)
                r = sqlite_store_run(store, STATEMENT_DEPART, NULL, reterr, "sisi",
                                     handover->to.text, told->generation, told->elsewhere.text,
                                     (int64_t)told->until_sec);
        if (r == 0 && changed > 0)
                r = sqlite_store_run(store, STATEMENT_HAND_OVER_ALLOCATIONS, NULL, reterr, "s",
                                     handover->to.text);
        return sqlite_store_end(store, r, reterr);
}
