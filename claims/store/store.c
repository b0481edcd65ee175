/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The frame: statements, transactions, opening; and the writes of claims. What is read of
 * claims is in store-claims.c, the providers are in store-host.c, the SQL is in statements.h. */

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "claims/store/claim-file.h"
#include "claims/store/store-internal.h"

static const char *const texts[_STATEMENT_MAX] = {
#define STATEMENT(name, sql) [STATEMENT_##name] = (sql),
#include "claims/store/statements.h"
#undef STATEMENT
};

/* When it is first run: a statement takes some kilobytes, and most hosts never run most of them. */
static int prepare(Claims *claims, StatementId id, Error *reterr)
{
        if (claims->statements[id])
                return 0;
        return sqlite_prepare(claims->sqlite, texts[id], &claims->statements[id], reterr);
}

static int bindv(Claims *claims, StatementId id, sqlite3_stmt **ret, Error *reterr,
                 const char *types, va_list ap)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = prepare(claims, id, reterr);

        if (r < 0)
                return r;
        statement = claims->statements[id];
        r = sqlite_bindv(claims->sqlite, statement, reterr, types, ap);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(statement);
        return 0;
}

int store_query(Claims *claims, StatementId id, sqlite3_stmt **ret, Error *reterr,
                const char *types, ...)
{
        va_list ap;
        int r;

        va_start(ap, types);
        r = bindv(claims, id, ret, reterr, types, ap);
        va_end(ap);
        return r;
}

int store_get_row(Claims *claims, StatementId id, sqlite3_stmt **ret, Error *reterr,
                  const char *types, ...)
{
        va_list ap;
        int r;

        va_start(ap, types);
        r = bindv(claims, id, ret, reterr, types, ap);
        va_end(ap);
        return r < 0 ? r : sqlite_step(claims->sqlite, *ret, reterr);
}

int store_each(Claims *claims, StatementId id, SqliteRead read, void *context, Error *reterr,
               const char *types, ...)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        va_list ap;
        int r;

        va_start(ap, types);
        r = bindv(claims, id, &statement, reterr, types, ap);
        va_end(ap);
        while (r == 0 && (r = sqlite_step(claims->sqlite, statement, reterr)) == SQLITE_STEP_ROW)
                r = read(claims, statement, context, reterr);
        return r;
}

int store_get_integer(Claims *claims, StatementId id, int64_t *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_get_row(claims, id, &statement, reterr, "");

        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return sqlite_damaged(claims->sqlite, "a row is missing", reterr);
        *ret = sqlite3_column_int64(statement, 0);
        return 0;
}

static int copy_text(const char *text, char **ret, Error *reterr)
{
        char *copy;

        if (*ret && strcmp(text, *ret) == 0) /* most are empty, as they were made */
                return 0;
        copy = strdup(text);
        if (!copy)
                return error_oom(reterr);
        free(*ret);
        *ret = copy;
        return 0;
}

static int read_text(Claims *claims, const char *text, const char *what, char type, void *ret,
                     Error *reterr)
{
        switch (type) {
        case 's':
                *(const char **)ret = text;
                return 0;
        case 'S':
                return copy_text(text, ret, reterr);
        case 'U':
                *(Uuid *)ret = UUID_NULL;
                if (!text[0])
                        return 0;
                break;
        }
        return uuid_from_text(text, ret) < 0 ? sqlite_damaged(claims->sqlite, what, reterr) : 0;
}

static int read_column(Claims *claims, sqlite3_stmt *statement, int column, const char *what,
                       char type, void *ret, Error *reterr)
{
        const char *text;
        int r;

        switch (type) {
        case 'i':
                *(int64_t *)ret = sqlite3_column_int64(statement, column);
                return 0;
        case 'n':
                *(uint64_t *)ret =
                        (uint64_t)MAX(sqlite3_column_int64(statement, column), INT64_C(0));
                return 0;
        case 'b':
                *(bool *)ret = sqlite3_column_int64(statement, column) != 0;
                return 0;
        }
        r = sqlite_column(claims->sqlite, statement, column, &text, reterr);
        return r < 0 ? r : read_text(claims, text, what, type, ret, reterr);
}

int store_read(Claims *claims, sqlite3_stmt *statement, int first, const char *what, Error *reterr,
               const char *types, ...)
{
        va_list ap;
        int r = 0;

        va_start(ap, types);
        for (int i = 0; r == 0 && types[i]; i++)
                r = read_column(claims, statement, first + i, what, types[i], va_arg(ap, void *),
                                reterr);
        va_end(ap);
        return r;
}

static int runv(Claims *claims, StatementId id, Error *reterr, const char *types, va_list ap)
{
        sqlite3_stmt *statement;
        int r = bindv(claims, id, &statement, reterr, types, ap);

        return r < 0 ? r : sqlite_run(claims->sqlite, statement, reterr);
}

int store_run(Claims *claims, StatementId id, Error *reterr, const char *types, ...)
{
        va_list ap;
        int r;

        va_start(ap, types);
        r = runv(claims, id, reterr, types, ap);
        va_end(ap);
        return r;
}

int store_change(Claims *claims, StatementId id, ClaimOutcome otherwise, Error *reterr,
                 const char *types, ...)
{
        va_list ap;
        int r;

        va_start(ap, types);
        r = runv(claims, id, reterr, types, ap);
        va_end(ap);
        return r == 0 && sqlite3_changes(claims->sqlite->db) == 0 ? (int)otherwise : r;
}

int store_begin(Claims *claims, Error *reterr)
{
        if (claims->has_turn)
                return 0;
        return sqlite_begin_write(claims->sqlite, reterr);
}

int store_end(Claims *claims, int result, Error *reterr)
{
        claims->has_turn = false;
        if (result == 0)
                return sqlite_commit(claims->sqlite, reterr);
        sqlite_rollback(claims->sqlite);
        return result;
}

int store_take_turn(Claims *claims, Error *reterr)
{
        int r;

        assert(!claims->has_turn);
        r = sqlite_begin_write(claims->sqlite, reterr);
        if (r < 0)
                return r;
        claims->has_turn = true;
        return 0;
}

void store_drop_turn(Claims *claims)
{
        if (!claims->has_turn)
                return;
        claims->has_turn = false;
        sqlite_rollback(claims->sqlite);
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
static int bump_providers(Claims *claims, const Fit *fit, Error *reterr)
{
        for (size_t i = 0; i < fit->n_pieces; i++) {
                bool done = false;
                int r;

                for (size_t j = 0; j < i && !done; j++)
                        done = fit->pieces[j].provider == fit->pieces[i].provider;
                if (done)
                        continue;
                r = store_bump(claims, &claims->view->providers[fit->pieces[i].provider], reterr);
                if (r != 0)
                        return r;
        }
        return 0;
}

static int insert_allocations(Claims *claims, int64_t id, const Uuid *consumer,
                              const ResourceRequest *request, const Fit *fit, Error *reterr)
{
        for (size_t i = 0; i < fit->n_pieces; i++) {
                const FitPiece *piece = &fit->pieces[i];
                int r = store_run(claims, STATEMENT_INSERT_ALLOCATION, reterr, "issiis",
                                  claims->view->providers[piece->provider].id, consumer->text,
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

/* CLAIM_E_NOT_FOUND. */
static int fill_from(Claims *claims, int64_t id, const Fit *fit, Error *reterr)
{
        return store_change(claims, STATEMENT_FILL_CLAIM, CLAIM_E_NOT_FOUND, reterr, "iiii", id,
                            (int64_t)(sum_pieces(fit, "VCPU") + sum_pieces(fit, "PCPU")),
                            (int64_t)sum_pieces(fit, "MEMORY_MB"),
                            (int64_t)sum_pieces(fit, "DISK_GB"));
}

static int insert_row(Claims *claims, const StoreClaim *claim, int64_t *ret_id, Error *reterr)
{
        const ClaimRequest *request = claim->request;
        char created_at[48];
        int r;

        format_time(claim->created_usec, created_at);
        r = store_run(
                claims, STATEMENT_INSERT_CLAIM, reterr, "sssisiisssssssisis", claims->host,
                claims->node, request->consumer.text, (int64_t)request->resize_target, created_at,
                (int64_t)claim->created_usec, (int64_t)claim->expires_usec, request->project_id,
                request->user_id, claim->request_text, claims->boot_id,
                claim_state_to_text(claim->confirmed ? CLAIM_STATE_CONFIRMED : CLAIM_STATE_CLAIMED),
                request->consumer_type, claim_write_state_to_text(claim->write_state),
                claim->reported.generation, claim->reported.elsewhere.text,
                (int64_t)claim->reported.until_sec, request->life);
        if (r == -EEXIST)
                return CLAIM_E_CONFLICT;
        if (r < 0)
                return r;
        *ret_id = sqlite3_last_insert_rowid(claims->sqlite->db);
        return 0;
}

static int insert_devices(Claims *claims, int64_t id, const ClaimDevice *devices, size_t n,
                          Error *reterr)
{
        for (size_t i = 0; i < n; i++) {
                int r = store_run(claims, STATEMENT_INSERT_DEVICE, reterr, "isssssss", id,
                                  devices[i].provider.text, devices[i].suffix, devices[i].name,
                                  devices[i].address, devices[i].mdev_type, devices[i].mdev.text,
                                  devices[i].identity ? devices[i].identity : "");

                if (r < 0)
                        return r == -EEXIST ? CLAIM_E_CONFLICT : r;
        }
        return 0;
}

static int insert_claim(Claims *claims, const StoreClaim *claim, const Fit *fit, Claim **ret,
                        Error *reterr)
{
        int64_t id;
        int r = insert_row(claims, claim, &id, reterr);

        if (r != 0)
                return r;
        r = bump_providers(claims, fit, reterr);
        if (r == 0)
                r = insert_allocations(claims, id, &claim->request->consumer,
                                       &claim->request->resources, fit, reterr);
        if (r == 0)
                r = insert_devices(claims, id, claim->devices, claim->n_devices, reterr);
        if (r == 0 && claim->layout)
                r = store_write_layout(claims, id, claim->layout, reterr);
        if (r == 0)
                r = fill_from(claims, id, fit, reterr);
        if (r == 0)
                r = store_note_claim(
                        claims, id,
                        &(EventNote){ .kind = claim->confirmed ? EVENT_ADOPTED : EVENT_CLAIMED,
                                      .by = claim->request->by,
                                      .reason = claim->reason },
                        claim->created_usec, reterr);
        return r == 0 ? claims_get(claims, id, ret, reterr) : r;
}

int store_insert(Claims *claims, const StoreClaim *claim, const Fit *fit, Claim **ret,
                 Error *reterr)
{
        _cleanup_(claim_freep) Claim *stored = NULL;
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = insert_claim(claims, claim, fit, &stored, reterr);
        r = store_end(claims, r, reterr);
        if (r == 0)
                *ret = TAKE_PTR(stored);
        return r;
}

int store_place(Claims *claims, const StoreUnplaced *claim, const Fit *fit, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_change(claims, STATEMENT_FILL_CLAIM, CLAIM_E_NOT_FOUND, reterr, "iiii",
                                 claim->id, (int64_t)claim->vcpus, (int64_t)claim->memory_mb,
                                 (int64_t)claim->disk_gb);
        if (r == 0)
                r = bump_providers(claims, fit, reterr);
        if (r == 0)
                r = insert_allocations(claims, claim->id, &claim->consumer, NULL, fit, reterr);
        if (r == 0)
                r = insert_devices(claims, claim->id, claim->devices, claim->n_devices, reterr);
        return store_end(claims, r, reterr);
}

int store_complete(Claims *claims, int64_t id, const Uuid *consumer, const Fit *fit, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = fill_from(claims, id, fit, reterr);
        if (r == 0)
                r = bump_providers(claims, fit, reterr);
        /* those that it leaves, too */
        if (r == 0)
                r = store_run(claims, STATEMENT_BUMP_OF_CLAIM, reterr, "i", id);
        if (r == 0)
                r = store_run(claims, STATEMENT_DELETE_ALLOCATIONS, reterr, "i", id);
        if (r == 0)
                r = insert_allocations(claims, id, consumer, NULL, fit, reterr);
        return store_end(claims, r, reterr);
}

/* A confirmed resize target that is left alone is the consumer's claim from now on. */
static int promote(Claims *claims, const Uuid *consumer, Error *reterr)
{
        return store_run(claims, STATEMENT_PROMOTE, reterr, "s", consumer->text);
}

int store_not_found(int64_t id, Error *reterr)
{
        error_setf(reterr, ENOENT, "There is no active claim %" PRIi64, id);
        return CLAIM_E_NOT_FOUND;
}

/* What a call that is for claims that are not confirmed found instead. */
static int explain_missing(Claims *claims, int64_t id, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = claims_get(claims, id, &claim, reterr);

        if (r < 0)
                return r;
        if (r == 0 && claim->state == CLAIM_STATE_CONFIRMED) {
                error_setf(reterr, EEXIST, "Claim %" PRIi64 " is confirmed", id);
                return CLAIM_E_CONFLICT;
        }
        return store_not_found(id, reterr);
}

int claims_confirm(Claims *claims, int64_t id, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_change(claims, STATEMENT_CONFIRM, CLAIM_E_NOT_FOUND, reterr, "i", id);
        if (r == 0)
                r = claims_get(claims, id, &claim, reterr);
        if (r == 0)
                r = promote(claims, &claim->consumer, reterr);
        r = store_end(claims, r, reterr);
        return r == CLAIM_E_NOT_FOUND ? store_not_found(id, reterr) : r;
}

int store_set_life(Claims *claims, int64_t id, const char *life, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_change(claims, STATEMENT_SET_LIFE, CLAIM_E_NOT_FOUND, reterr, "is", id,
                                 life);
        return store_end(claims, r, reterr);
}

int claims_extend(Claims *claims, int64_t id, uint64_t expires_usec, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_change(claims, STATEMENT_EXTEND, CLAIM_E_NOT_FOUND, reterr, "ii", id,
                                 (int64_t)MIN(expires_usec, INT64_MAX));
        r = store_end(claims, r, reterr);
        return r == CLAIM_E_NOT_FOUND ? explain_missing(claims, id, reterr) : r;
}

static int add_layout(Claims *claims, int64_t id, const Layout *layout, Error *reterr)
{
        const Layout held = { .held = layout->held };
        bool has;
        int r = store_has_layout(claims, id, &has, reterr);

        return r < 0 ? r : store_write_layout(claims, id, has ? &held : layout, reterr);
}

static int drop_pins(Claims *claims, int64_t id, const CpuSet *cpus, Error *reterr)
{
        CPU_SET_FOREACH(cpu, cpus) {
                int r = store_run(claims, STATEMENT_DELETE_PIN, reterr, "ii", (int64_t)cpu, id);

                if (r < 0)
                        return r;
        }
        return 0;
}

int store_set_identity(Claims *claims, int64_t id, const char *address, const char *identity,
                       Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_run(claims, STATEMENT_SET_IDENTITY, reterr, "iss", id, address, identity);
        return store_end(claims, r, reterr);
}

int store_renew(Claims *claims, int64_t id, const ClaimDevice *devices, size_t n_devices,
                const Layout *layout, const CpuSet *dropped, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_change(claims, STATEMENT_SET_BOOT, CLAIM_E_NOT_FOUND, reterr, "is", id,
                                 claims->boot_id);
        if (r == 0)
                r = insert_devices(claims, id, devices, n_devices, reterr);
        if (r == 0 && layout)
                r = add_layout(claims, id, layout, reterr);
        if (r == 0)
                r = drop_pins(claims, id, dropped, reterr);
        return store_end(claims, r, reterr);
}

/* Nobody was promised one that is pending: nothing happened to it. */
static int end_claim(Claims *claims, int64_t id, bool only_claimed, const EventNote *note,
                     uint64_t ended_usec, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = claims_get(claims, id, &claim, reterr);

        if (r == 0)
                r = store_change(claims, STATEMENT_END_CLAIM, CLAIM_E_NOT_FOUND, reterr, "iisi", id,
                                 (int64_t)ended_usec, note->reason, (int64_t)only_claimed);
        if (r != 0)
                return r;
        r = claim->state == CLAIM_STATE_PENDING
                    ? store_forget_events(claims, id, reterr)
                    : store_note_claim(claims, id, note, ended_usec, reterr);
        /* what it held goes with it */
        if (r == 0)
                r = store_run(claims, STATEMENT_BUMP_OF_CLAIM, reterr, "i", id);
        if (r == 0)
                r = store_run(claims, STATEMENT_DELETE_CLAIM, reterr, "i", id);
        if (r == 0)
                r = promote(claims, &claim->consumer, reterr);
        if (r == 0)
                r = store_run(claims, STATEMENT_TRIM_HISTORY, reterr, "i",
                              (int64_t)CLAIM_HISTORY_MAX);
        return r;
}

static int release(Claims *claims, int64_t id, bool only_claimed, const char *reason, Error *reterr)
{
        char cut[CLAIM_TEXT_MAX + 1];
        const EventNote note = { .kind = EVENT_RELEASED,
                                 .by = claims->author,
                                 .reason = claim_cut_text(reason, cut) };
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = end_claim(claims, id, only_claimed, &note, clock_usec(CLOCK_REALTIME), reterr);
        return store_end(claims, r, reterr);
}

int claims_release(Claims *claims, int64_t id, const char *reason, Error *reterr)
{
        int r = release(claims, id, false, reason, reterr);

        return r == CLAIM_E_NOT_FOUND ? store_not_found(id, reterr) : r;
}

int claims_abort(Claims *claims, int64_t id, const char *reason, Error *reterr)
{
        int r = release(claims, id, true, reason, reterr);

        return r == CLAIM_E_NOT_FOUND ? explain_missing(claims, id, reterr) : r;
}

int claims_withdraw(Claims *claims, int64_t id, const char *reason, Error *reterr)
{
        const EventNote note = { .kind = EVENT_RELEASED, .reason = reason };
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_change(claims, STATEMENT_SET_WRITE_STATE, CLAIM_E_NOT_FOUND, reterr,
                                 "issisi", id, claim_write_state_to_text(CLAIM_WRITE_PENDING),
                                 claim_write_state_to_text(CLAIM_WRITE_NONE), (int64_t)0, "",
                                 (int64_t)0);
        if (r == 0)
                r = end_claim(claims, id, false, &note, clock_usec(CLOCK_REALTIME), reterr);
        if (r == 0)
                r = store_forget_events(claims, id, reterr);
        return store_note_state(store_end(claims, r, reterr), id, CLAIM_WRITE_PENDING, reterr);
}

/* Done when none is left. */
static int next_expired(Claims *claims, uint64_t now_usec, int64_t *ret_id, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_get_row(claims, STATEMENT_NEXT_EXPIRED, &statement, reterr, "i",
                              (int64_t)now_usec);

        if (r == SQLITE_STEP_ROW)
                *ret_id = sqlite3_column_int64(statement, 0);
        return r;
}

static int expire_all(Claims *claims, uint64_t now_usec, uint64_t *n, Error *reterr)
{
        const EventNote note = { .kind = EVENT_EXPIRED, .reason = CLAIM_EXPIRED };
        int64_t id;
        int r;

        while ((r = next_expired(claims, now_usec, &id, reterr)) == SQLITE_STEP_ROW) {
                r = end_claim(claims, id, true, &note, now_usec, reterr);
                if (r < 0)
                        return r;
                if (r > 0)
                        return sqlite_damaged(claims->sqlite, "a claim is listed but not there",
                                              reterr);
                (*n)++;
        }
        return r;
}

int claims_expire(Claims *claims, uint64_t now_usec, uint64_t *ret_n, Error *reterr)
{
        int64_t id;
        uint64_t n = 0;
        int r;

        now_usec = MIN(now_usec, INT64_MAX);
        /* Most of the time there is nothing to do, and that takes no turn and no fsync. */
        r = next_expired(claims, now_usec, &id, reterr);
        if (r < 0)
                return r;
        if (r == SQLITE_STEP_ROW) {
                r = store_begin(claims, reterr);
                if (r < 0)
                        return r;
                r = expire_all(claims, now_usec, &n, reterr);
                r = store_end(claims, r, reterr);
                if (r < 0)
                        return r;
        }
        *ret_n = n;
        return 0;
}

int claims_probe(Claims *claims, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r < 0)
                return r;
        /* There and back again: SQLite writes no page for a row that stays as it is. */
        r = store_run(claims, STATEMENT_PROBE, reterr, "i", (int64_t)1);
        if (r == 0)
                r = store_run(claims, STATEMENT_PROBE, reterr, "i", (int64_t)-1);
        return store_end(claims, r, reterr);
}

static void finalize_statements(Claims *claims)
{
        for (size_t i = 0; i < _STATEMENT_MAX; i++) {
                sqlite3_finalize(claims->statements[i]);
                claims->statements[i] = NULL;
        }
}

void store_close(Claims *claims)
{
        store_drop_turn(claims);
        finalize_statements(claims);
        claims->sqlite = sqlite_close(claims->sqlite);
}

static int read_events(Claims *claims, Error *reterr)
{
        int64_t before = INT64_MAX;
        size_t n;

        do {
                _cleanup_(event_list_done) EventList list = { 0 };
                int r = claims_list_events(claims, before, &list, reterr);

                if (r < 0)
                        return r;
                n = list.n_events;
                before = n > 0 ? list.events[n - 1].id : before;
        } while (n > 0);
        return 0;
}

static int read_everything(Claims *claims, Error *reterr)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = store_load_view(claims, reterr);

        claims->view = host_view_free(claims->view);
        if (r >= 0)
                r = claims_list(claims, CLAIMS_ALL, NULL, &list, reterr);
        return r < 0 ? r : read_events(claims, reterr);
}

/* Prepares each statement, which fails when a table or column is missing, and reads all rows. */
static int verify(Sqlite *sqlite, void *context, Error *reterr)
{
        Claims *claims = context;
        int r = 0;

        claims->sqlite = sqlite;
        for (StatementId id = 0; r == 0 && id < _STATEMENT_MAX; id++) {
                r = prepare(claims, id, reterr);
                finalize_statements(claims);
        }
        if (r == 0)
                r = read_everything(claims, reterr);
        finalize_statements(claims);
        claims->sqlite = NULL;
        return r;
}

/* SQLite's user_version, which no schema uses: 1 while the database is unread. A file without a
 * host and claims is new: its maker can have died before it wrote this. */
static int load_unread(Claims *claims, Error *reterr)
{
        static const char is_empty[] = "SELECT NOT EXISTS (SELECT 1 FROM resource_providers)"
                                       " AND NOT EXISTS (SELECT 1 FROM claims)";
        int64_t empty = 0, unread = 0;
        int r = sqlite_query_integer(claims->sqlite, is_empty, &empty, reterr);

        if (r == 0)
                r = sqlite_query_integer(claims->sqlite, "PRAGMA user_version", &unread, reterr);
        if (r == 0 && empty && !unread)
                r = sqlite_exec(claims->sqlite, "PRAGMA user_version = 1", reterr);
        claims->is_unread = unread || empty;
        return r;
}

bool claims_is_unread(const Claims *claims)
{
        return claims->is_unread;
}

int claims_note_read(Claims *claims, Error *reterr)
{
        int r = claims->is_unread ? sqlite_exec(claims->sqlite, "PRAGMA user_version = 0", reterr)
                                  : 0;

        if (r == 0)
                claims->is_unread = false;
        return r;
}

int store_open(Claims *claims, const char *path, uint64_t busy_usec, Error *reterr)
{
        int opened = claim_file_open(&claims->sqlite, path, busy_usec, verify, claims, reterr);
        int r = opened < 0 ? opened : load_unread(claims, reterr);

        return r < 0 ? r : opened;
}
