/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The engine's frame: statements, transactions, opening; and the writes of claims. What is read of
 * claims is in sqlite-store-claims.c, the providers are in sqlite-store-host.c, the SQL is in
 * sqlite-store-sql.c. */

#include "claims/store/sqlite-store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "claims/store/claim-file.h"
#include "claims/store/sqlite-store-internal.h"

/* When it is first run: a statement takes some kilobytes, and most hosts never run most of them. */
static int prepare(SqliteStore *store, StatementId id, Error *reterr)
{
        if (store->statements[id])
                return 0;
        return sqlite_prepare(store->sqlite, sqlite_store_sql[id], &store->statements[id], reterr);
}

static int bindv(SqliteStore *store, StatementId id, sqlite3_stmt **ret, Error *reterr,
                 const char *types, va_list ap)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = prepare(store, id, reterr);

        if (r < 0)
                return r;
        statement = store->statements[id];
        r = sqlite_bindv(store->sqlite, statement, reterr, types, ap);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(statement);
        return 0;
}

int sqlite_store_query(SqliteStore *store, StatementId id, sqlite3_stmt **ret, Error *reterr,
                       const char *types, ...)
{
        va_list ap;
        int r;

        va_start(ap, types);
        r = bindv(store, id, ret, reterr, types, ap);
        va_end(ap);
        return r;
}

int sqlite_store_get_row(SqliteStore *store, StatementId id, sqlite3_stmt **ret, Error *reterr,
                         const char *types, ...)
{
        va_list ap;
        int r;

        va_start(ap, types);
        r = bindv(store, id, ret, reterr, types, ap);
        va_end(ap);
        return r < 0 ? r : sqlite_step(store->sqlite, *ret, reterr);
}

int sqlite_store_each(SqliteStore *store, StatementId id, SqliteRead read, void *context,
                      Error *reterr, const char *types, ...)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        va_list ap;
        int r;

        va_start(ap, types);
        r = bindv(store, id, &statement, reterr, types, ap);
        va_end(ap);
        while (r == 0 && (r = sqlite_step(store->sqlite, statement, reterr)) == SQLITE_STEP_ROW)
                r = read(store, statement, context, reterr);
        return r;
}

int sqlite_store_column_uuid(SqliteStore *store, sqlite3_stmt *statement, int column,
                             const char *what, Uuid *ret, Error *reterr)
{
        const char *text;
        int r = sqlite_column(store->sqlite, statement, column, &text, reterr);

        if (r < 0)
                return r;
        return uuid_from_text(text, ret) < 0 ? sqlite_damaged(store->sqlite, what, reterr) : 0;
}

static int runv(SqliteStore *store, StatementId id, Error *reterr, const char *types, va_list ap)
{
        sqlite3_stmt *statement;
        int r = bindv(store, id, &statement, reterr, types, ap);

        return r < 0 ? r : sqlite_run(store->sqlite, statement, reterr);
}

int sqlite_store_run(SqliteStore *store, StatementId id, Error *reterr, const char *types, ...)
{
        va_list ap;
        int r;

        va_start(ap, types);
        r = runv(store, id, reterr, types, ap);
        va_end(ap);
        return r;
}

int sqlite_store_change(SqliteStore *store, StatementId id, StoreOutcome otherwise, Error *reterr,
                        const char *types, ...)
{
        va_list ap;
        int r;

        va_start(ap, types);
        r = runv(store, id, reterr, types, ap);
        va_end(ap);
        return r == 0 && sqlite3_changes(store->sqlite->db) == 0 ? (int)otherwise : r;
}

int sqlite_store_begin(SqliteStore *store, Error *reterr)
{
        if (store->has_turn)
                return 0;
        return sqlite_begin_write(store->sqlite, reterr);
}

int sqlite_store_end(SqliteStore *store, int result, Error *reterr)
{
        store->has_turn = false;
        if (result == 0)
                return sqlite_commit(store->sqlite, reterr);
        sqlite_rollback(store->sqlite);
        return result;
}

static int take_turn(Store *base, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int r;

        assert(!store->has_turn);
        r = sqlite_begin_write(store->sqlite, reterr);
        if (r < 0)
                return r;
        store->has_turn = true;
        return 0;
}

static void drop_turn(Store *base)
{
        SqliteStore *store = (SqliteStore *)base;

        if (!store->has_turn)
                return;
        store->has_turn = false;
        sqlite_rollback(store->sqlite);
}

/* ISO 8601 in UTC, as the specification has created_at. */
static void format_time(uint64_t usec, char text[48])
{
        time_t seconds = (time_t)(usec / USEC_PER_SEC);
        char date[32] = "";
        struct tm utc;

        if (gmtime_r(&seconds, &utc))
                strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
        snprintf(text, 48, "%s.%06" PRIu64 "Z", date, usec % USEC_PER_SEC);
}

/* Compare and update: every provider that the fit takes from must be as the view saw it. */
static int bump_providers(SqliteStore *store, const HostView *view, const Fit *fit, Error *reterr)
{
        for (size_t i = 0; i < fit->n_pieces; i++) {
                bool done = false;
                int r;

                for (size_t j = 0; j < i && !done; j++)
                        done = fit->pieces[j].provider == fit->pieces[i].provider;
                if (done)
                        continue;
                r = sqlite_store_bump(store, &view->providers[fit->pieces[i].provider], reterr);
                if (r != 0)
                        return r;
        }
        return 0;
}

static int insert_allocations(SqliteStore *store, int64_t id, const Uuid *consumer,
                              const ResourceRequest *request, const HostView *view, const Fit *fit,
                              Error *reterr)
{
        for (size_t i = 0; i < fit->n_pieces; i++) {
                const FitPiece *piece = &fit->pieces[i];
                int r = sqlite_store_run(store, STATEMENT_INSERT_ALLOCATION, reterr, "issiis",
                                         view->providers[piece->provider].id, consumer->text,
                                         piece->resource_class, (int64_t)piece->amount, id,
                                         request ? request->groups[piece->group].suffix : "");

                if (r < 0)
                        return r;
        }
        return 0;
}

static uint64_t sum_pieces(const Fit *fit, const char *resource_class)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < fit->n_pieces; i++)
                if (strcmp(fit->pieces[i].resource_class, resource_class) == 0)
                        sum += fit->pieces[i].amount;
        return sum;
}

/* STORE_E_NOT_FOUND. */
static int fill_from(SqliteStore *store, int64_t id, const Fit *fit, Error *reterr)
{
        return sqlite_store_change(store, STATEMENT_FILL_CLAIM, STORE_E_NOT_FOUND, reterr, "iiii",
                                   id, (int64_t)(sum_pieces(fit, "VCPU") + sum_pieces(fit, "PCPU")),
                                   (int64_t)sum_pieces(fit, "MEMORY_MB"),
                                   (int64_t)sum_pieces(fit, "DISK_GB"));
}

static int insert_row(SqliteStore *store, const StoreClaim *claim, int64_t *ret_id, Error *reterr)
{
        const ClaimRequest *request = claim->request;
        char created_at[48];
        int r;

        format_time(claim->created_usec, created_at);
        r = sqlite_store_run(
                store, STATEMENT_INSERT_CLAIM, reterr, "sssisiisssssssisis", claim->host,
                claim->node, request->consumer.text, (int64_t)request->resize_target, created_at,
                (int64_t)claim->created_usec, (int64_t)claim->expires_usec, request->project_id,
                request->user_id, claim->request_text, claim->boot_id,
                claim_state_to_text(claim->confirmed ? CLAIM_STATE_CONFIRMED : CLAIM_STATE_CLAIMED),
                request->consumer_type, claim_standing_to_text(claim->standing),
                claim->reported.generation, claim->reported.elsewhere.text,
                (int64_t)claim->reported.until_sec, request->life);
        if (r == -EEXIST)
                return STORE_E_EXISTS;
        if (r < 0)
                return r;
        *ret_id = sqlite3_last_insert_rowid(store->sqlite->db);
        return 0;
}

static int insert_devices(SqliteStore *store, int64_t id, const ClaimDevice *devices, size_t n,
                          Error *reterr)
{
        for (size_t i = 0; i < n; i++) {
                int r = sqlite_store_run(store, STATEMENT_INSERT_DEVICE, reterr, "issssss", id,
                                         devices[i].provider.text, devices[i].suffix,
                                         devices[i].name, devices[i].address, devices[i].mdev_type,
                                         devices[i].mdev.text);

                if (r < 0)
                        return r == -EEXIST ? STORE_E_EXISTS : r;
        }
        return 0;
}

static int insert_claim(SqliteStore *store, const StoreClaim *claim, const HostView *view,
                        const Fit *fit, Claim **ret, Error *reterr)
{
        int64_t id;
        int r = insert_row(store, claim, &id, reterr);

        if (r != 0)
                return r;
        r = bump_providers(store, view, fit, reterr);
        if (r == 0)
                r = insert_allocations(store, id, &claim->request->consumer,
                                       &claim->request->resources, view, fit, reterr);
        if (r == 0)
                r = insert_devices(store, id, claim->devices, claim->n_devices, reterr);
        if (r == 0 && claim->layout)
                r = sqlite_store_write_layout(store, id, claim->layout, reterr);
        if (r == 0)
                r = fill_from(store, id, fit, reterr);
        if (r == 0)
                r = sqlite_store_note_claim(
                        store, id,
                        &(EventNote){ .kind = claim->confirmed ? EVENT_ADOPTED : EVENT_CLAIMED,
                                      .by = claim->request->by,
                                      .reason = claim->reason },
                        claim->created_usec, reterr);
        return r == 0 ? store->store.engine->get(&store->store, id, ret, reterr) : r;
}

static int insert(Store *base, const StoreClaim *claim, const HostView *view, const Fit *fit,
                  Claim **ret, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        _cleanup_(claim_freep) Claim *stored = NULL;
        int r = sqlite_store_begin(store, reterr);

        if (r == 0)
                r = insert_claim(store, claim, view, fit, &stored, reterr);
        r = sqlite_store_end(store, r, reterr);
        if (r == 0)
                *ret = TAKE_PTR(stored);
        return r;
}

static int place(Store *base, const StoreUnplaced *claim, const HostView *view, const Fit *fit,
                 Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int r = sqlite_store_begin(store, reterr);

        if (r == 0)
                r = sqlite_store_change(store, STATEMENT_FILL_CLAIM, STORE_E_NOT_FOUND, reterr,
                                        "iiii", claim->id, (int64_t)claim->vcpus,
                                        (int64_t)claim->memory_mb, (int64_t)claim->disk_gb);
        if (r == 0)
                r = bump_providers(store, view, fit, reterr);
        if (r == 0)
                r = insert_allocations(store, claim->id, &claim->consumer, NULL, view, fit, reterr);
        if (r == 0)
                r = insert_devices(store, claim->id, claim->devices, claim->n_devices, reterr);
        return sqlite_store_end(store, r, reterr);
}

static int complete(Store *base, int64_t id, const Uuid *consumer, const HostView *view,
                    const Fit *fit, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int r = sqlite_store_begin(store, reterr);

        if (r == 0)
                r = fill_from(store, id, fit, reterr);
        if (r == 0)
                r = bump_providers(store, view, fit, reterr);
        /* those that it leaves, too */
        if (r == 0)
                r = sqlite_store_run(store, STATEMENT_BUMP_OF_CLAIM, reterr, "i", id);
        if (r == 0)
                r = sqlite_store_run(store, STATEMENT_DELETE_ALLOCATIONS, reterr, "i", id);
        if (r == 0)
                r = insert_allocations(store, id, consumer, NULL, view, fit, reterr);
        return sqlite_store_end(store, r, reterr);
}

/* A confirmed resize target that is left alone is the consumer's claim from now on. */
static int promote(SqliteStore *store, const Uuid *consumer, Error *reterr)
{
        return sqlite_store_run(store, STATEMENT_PROMOTE, reterr, "s", consumer->text);
}

static int confirm(Store *base, int64_t id, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = sqlite_store_begin(store, reterr);

        if (r == 0)
                r = sqlite_store_change(store, STATEMENT_CONFIRM, STORE_E_NOT_FOUND, reterr, "i",
                                        id);
        if (r == 0)
                r = base->engine->get(base, id, &claim, reterr);
        if (r == 0)
                r = promote(store, &claim->consumer, reterr);
        return sqlite_store_end(store, r, reterr);
}

static int set_life(Store *base, int64_t id, const char *life, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int r = sqlite_store_begin(store, reterr);

        if (r == 0)
                r = sqlite_store_change(store, STATEMENT_SET_LIFE, STORE_E_NOT_FOUND, reterr, "is",
                                        id, life);
        return sqlite_store_end(store, r, reterr);
}

static int extend(Store *base, int64_t id, uint64_t expires_usec, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int r = sqlite_store_begin(store, reterr);

        if (r == 0)
                r = sqlite_store_change(store, STATEMENT_EXTEND, STORE_E_NOT_FOUND, reterr, "ii",
                                        id, (int64_t)expires_usec);
        return sqlite_store_end(store, r, reterr);
}

static int add_layout(SqliteStore *store, int64_t id, const Layout *layout, Error *reterr)
{
        bool has;
        int r = sqlite_store_has_layout(store, id, &has, reterr);

        return r < 0 || has ? r : sqlite_store_write_layout(store, id, layout, reterr);
}

static int renew(Store *base, int64_t id, const char *boot_id, const ClaimDevice *devices,
                 size_t n_devices, const Layout *layout, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int r = sqlite_store_begin(store, reterr);

        if (r == 0)
                r = sqlite_store_change(store, STATEMENT_SET_BOOT, STORE_E_NOT_FOUND, reterr, "is",
                                        id, boot_id);
        if (r == 0)
                r = insert_devices(store, id, devices, n_devices, reterr);
        if (r == 0 && layout)
                r = add_layout(store, id, layout, reterr);
        return sqlite_store_end(store, r, reterr);
}

/* Nobody was promised one that is pending: nothing happened to it. */
static int end_claim(SqliteStore *store, int64_t id, bool only_claimed, const EventNote *note,
                     uint64_t ended_usec, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = store->store.engine->get(&store->store, id, &claim, reterr);

        if (r == 0)
                r = sqlite_store_change(store, STATEMENT_END_CLAIM, STORE_E_NOT_FOUND, reterr,
                                        "iisi", id, (int64_t)ended_usec, note->reason,
                                        (int64_t)only_claimed);
        if (r != 0)
                return r;
        r = claim->state == CLAIM_STATE_PENDING
                    ? sqlite_store_forget_events(store, id, reterr)
                    : sqlite_store_note_claim(store, id, note, ended_usec, reterr);
        /* what it held goes with it */
        if (r == 0)
                r = sqlite_store_run(store, STATEMENT_BUMP_OF_CLAIM, reterr, "i", id);
        if (r == 0)
                r = sqlite_store_run(store, STATEMENT_DELETE_CLAIM, reterr, "i", id);
        if (r == 0)
                r = promote(store, &claim->consumer, reterr);
        if (r == 0)
                r = sqlite_store_run(store, STATEMENT_TRIM_HISTORY, reterr, "i",
                                     (int64_t)CLAIM_HISTORY_MAX);
        return r;
}

static int release(Store *base, int64_t id, bool only_claimed, const EventAuthor *by,
                   const char *reason, uint64_t ended_usec, Error *reterr)
{
        const EventNote note = { .kind = EVENT_RELEASED, .by = by, .reason = reason };
        SqliteStore *store = (SqliteStore *)base;
        int r = sqlite_store_begin(store, reterr);

        if (r == 0)
                r = end_claim(store, id, only_claimed, &note, ended_usec, reterr);
        return sqlite_store_end(store, r, reterr);
}

static int withdraw(Store *base, int64_t id, const char *reason, uint64_t ended_usec, Error *reterr)
{
        const EventNote note = { .kind = EVENT_RELEASED, .reason = reason };
        SqliteStore *store = (SqliteStore *)base;
        int r = sqlite_store_begin(store, reterr);

        if (r == 0)
                r = sqlite_store_change(
                        store, STATEMENT_SET_STANDING, STORE_E_NOT_FOUND, reterr, "issisi", id,
                        claim_standing_to_text(CLAIM_STANDING_PENDING),
                        claim_standing_to_text(CLAIM_STANDING_NONE), (int64_t)0, "", (int64_t)0);
        if (r == 0)
                r = end_claim(store, id, false, &note, ended_usec, reterr);
        if (r == 0)
                r = sqlite_store_forget_events(store, id, reterr);
        return sqlite_store_end(store, r, reterr);
}

/* Done when none is left. */
static int next_expired(SqliteStore *store, uint64_t now_usec, int64_t *ret_id, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = sqlite_store_get_row(store, STATEMENT_NEXT_EXPIRED, &statement, reterr, "i",
                                     (int64_t)now_usec);

        if (r == SQLITE_STEP_ROW)
                *ret_id = sqlite3_column_int64(statement, 0);
        return r;
}

static int expire_all(SqliteStore *store, uint64_t now_usec, const char *reason, uint64_t *n,
                      Error *reterr)
{
        const EventNote note = { .kind = EVENT_EXPIRED, .reason = reason };
        int64_t id;
        int r;

        while ((r = next_expired(store, now_usec, &id, reterr)) == SQLITE_STEP_ROW) {
                r = end_claim(store, id, true, &note, now_usec, reterr);
                if (r < 0)
                        return r;
                if (r > 0)
                        return sqlite_damaged(store->sqlite, "a claim is listed but not there",
                                              reterr);
                (*n)++;
        }
        return r;
}

static int expire(Store *base, uint64_t now_usec, const char *reason, uint64_t *ret_n,
                  Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int64_t id;
        uint64_t n = 0;
        int r;

        /* Most of the time there is nothing to do, and that takes no turn and no fsync. */
        r = next_expired(store, now_usec, &id, reterr);
        if (r < 0)
                return r;
        if (r == SQLITE_STEP_ROW) {
                r = sqlite_store_begin(store, reterr);
                if (r < 0)
                        return r;
                r = expire_all(store, now_usec, reason, &n, reterr);
                r = sqlite_store_end(store, r, reterr);
                if (r < 0)
                        return r;
        }
        *ret_n = n;
        return 0;
}

static int probe(Store *base, Error *reterr)
{
        SqliteStore *store = (SqliteStore *)base;
        int r = sqlite_store_begin(store, reterr);

        if (r < 0)
                return r;
        /* There and back again: SQLite writes no page for a row that stays as it is. */
        r = sqlite_store_run(store, STATEMENT_PROBE, reterr, "i", (int64_t)1);
        if (r == 0)
                r = sqlite_store_run(store, STATEMENT_PROBE, reterr, "i", (int64_t)-1);
        return sqlite_store_end(store, r, reterr);
}

static void finalize_statements(SqliteStore *store)
{
        for (size_t i = 0; i < _STATEMENT_MAX; i++) {
                sqlite3_finalize(store->statements[i]);
                store->statements[i] = NULL;
        }
}

static Store *sqlite_store_free(Store *base)
{
        SqliteStore *store = (SqliteStore *)base;

        if (!store)
                return NULL;
        drop_turn(base);
        finalize_statements(store);
        sqlite_close(store->sqlite);
        free(store);
        return NULL;
}

static const StoreEngine sqlite_engine = {
        .name = "sqlite",
        .free = sqlite_store_free,
        .take_turn = take_turn,
        .drop_turn = drop_turn,
        .load_view = sqlite_store_load_view,
        .write_host = sqlite_store_write_host,
        .shift = sqlite_store_shift,
        .insert = insert,
        .place = place,
        .complete = complete,
        .next_unplaced = sqlite_store_next_unplaced,
        .confirm = confirm,
        .extend = extend,
        .set_life = set_life,
        .release = release,
        .withdraw = withdraw,
        .expire = expire,
        .find = sqlite_store_find,
        .get = sqlite_store_get,
        .list = sqlite_store_list,
        .list_with_devices = sqlite_store_list_with_devices,
        .list_some = sqlite_store_list_some,
        .taken = sqlite_store_taken,
        .renew = renew,
        .set_standing = sqlite_store_set_standing,
        .forget_reported = sqlite_store_forget_reported,
        .next_write = sqlite_store_next_write,
        .count_owed = sqlite_store_count_owed,
        .next_removal = sqlite_store_next_removal,
        .end_removal = sqlite_store_end_removal,
        .begin_move = sqlite_store_begin_move,
        .next_move = sqlite_store_next_move,
        .end_move = sqlite_store_end_move,
        .probe = probe,
        .count = sqlite_store_count,
        .note = sqlite_store_note,
        .last_event = sqlite_store_last_event,
        .list_events = sqlite_store_list_events,
};

static int read_events(SqliteStore *store, Error *reterr)
{
        int64_t before = INT64_MAX;
        size_t n;

        do {
                _cleanup_(event_list_done) EventList list = { 0 };
                int r = sqlite_store_list_events(&store->store, before, &list, reterr);

                if (r < 0)
                        return r;
                n = list.n_events;
                before = n > 0 ? list.events[n - 1].id : before;
        } while (n > 0);
        return 0;
}

static int read_everything(SqliteStore *store, Error *reterr)
{
        _cleanup_(host_view_freep) HostView *view = NULL;
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = sqlite_store_load_view(&store->store, &view, reterr);

        if (r >= 0)
                r = sqlite_store_list(&store->store, CLAIMS_ALL, NULL, &list, reterr);
        return r < 0 ? r : read_events(store, reterr);
}

/* Prepares each statement, which fails when a table or column is missing, and reads all rows. */
static int verify(Sqlite *sqlite, void *context, Error *reterr)
{
        SqliteStore *store = context;
        int r = 0;

        store->sqlite = sqlite;
        for (StatementId id = 0; r == 0 && id < _STATEMENT_MAX; id++) {
                r = prepare(store, id, reterr);
                finalize_statements(store);
        }
        if (r == 0)
                r = read_everything(store, reterr);
        finalize_statements(store);
        store->sqlite = NULL;
        return r;
}

int sqlite_store_open(Store **ret, const char *path, uint64_t busy_usec, Error *reterr)
{
        SqliteStore *store = calloc(1, sizeof(SqliteStore));
        int r;

        if (!store)
                return error_oom(reterr);
        store->store.engine = &sqlite_engine;
        r = claim_file_open(&store->sqlite, path, busy_usec, verify, store, reterr);
        if (r < 0) {
                sqlite_store_free(&store->store);
                return r;
        }
        *ret = &store->store;
        return r;
}
