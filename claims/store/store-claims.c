/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reading claims: each query yields one row per allocation (or one, for a claim without any), the
 * rows of a claim one after the other, in the columns of CLAIM_COLUMNS (store-sql.c). */

#include <string.h>

#include "claims/store/store-internal.h"

enum {
        COLUMN_ID,
        COLUMN_CONSUMER,
        COLUMN_STATE,
        COLUMN_RESIZE_TARGET,
        COLUMN_HOST,
        COLUMN_NODE,
        COLUMN_PROJECT_ID,
        COLUMN_USER_ID,
        COLUMN_REQUEST,
        COLUMN_BOOT_ID,
        COLUMN_CREATED_USEC,
        COLUMN_EXPIRES_USEC,
        COLUMN_ENDED_USEC,
        COLUMN_END_REASON,
        COLUMN_PROVIDER_UUID,
        COLUMN_PROVIDER_NAME,
        COLUMN_RESOURCE_CLASS,
        COLUMN_USED,
        COLUMN_GROUP,
        COLUMN_CONSUMER_TYPE,
        COLUMN_STANDING,
        COLUMN_GUEST,
        COLUMN_WAS_READ,
        COLUMN_IS_UNHELD,
        COLUMN_LIFE,
};

static int damaged(const Store *store, int64_t id, const char *what, Error *reterr)
{
        char of[80];

        snprintf(of, sizeof(of), "%s of claim %lld", what, (long long)id);
        return sqlite_damaged(store->sqlite, of, reterr);
}

/* The first n columns. */
static int columns(Store *store, sqlite3_stmt *statement, const char *texts[], int n, Error *reterr)
{
        int r = 0;

        for (int i = 0; r == 0 && i < n; i++)
                r = sqlite_column(store->sqlite, statement, i, &texts[i], reterr);
        return r;
}

static int column_text(Store *store, sqlite3_stmt *statement, int column, char **ret, Error *reterr)
{
        const char *text;
        char *copy;
        int r = sqlite_column(store->sqlite, statement, column, &text, reterr);

        if (r < 0 || (*ret && strcmp(text, *ret) == 0)) /* most are empty, as they were made */
                return r;
        copy = strdup(text);
        if (!copy)
                return error_oom(reterr);
        free(*ret);
        *ret = copy;
        return 0;
}

static int read_texts(Store *store, sqlite3_stmt *statement, Claim *claim, Error *reterr)
{
        const struct {
                int column;
                char **text;
        } texts[] = {
                { COLUMN_HOST, &claim->host },
                { COLUMN_NODE, &claim->node },
                { COLUMN_PROJECT_ID, &claim->project_id },
                { COLUMN_USER_ID, &claim->user_id },
                { COLUMN_CONSUMER_TYPE, &claim->consumer_type },
                { COLUMN_REQUEST, &claim->request },
                { COLUMN_BOOT_ID, &claim->boot_id },
                { COLUMN_LIFE, &claim->life },
                { COLUMN_END_REASON, &claim->end_reason },
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                int r = column_text(store, statement, texts[i].column, texts[i].text, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_standing(Store *store, sqlite3_stmt *statement, Claim *claim, Error *reterr)
{
        const char *text;
        int r = sqlite_column(store->sqlite, statement, COLUMN_STANDING, &text, reterr);

        if (r < 0)
                return r;
        claim->standing = claim_standing_from_text(text);
        if (claim->standing < 0)
                return damaged(store, claim->id, "what Placement has of it", reterr);
        if (claim->standing == CLAIM_STANDING_PENDING)
                claim->state = CLAIM_STATE_PENDING;
        return 0;
}

static int read_guest(Store *store, sqlite3_stmt *statement, Claim *claim, Error *reterr)
{
        const char *text;
        int r = sqlite_column(store->sqlite, statement, COLUMN_GUEST, &text, reterr);

        if (r < 0)
                return r;
        if (text[0] && uuid_from_text(text, &claim->guest) < 0)
                return damaged(store, claim->id, "whose guest it is of", reterr);
        return 0;
}

static int read_claim(Store *store, sqlite3_stmt *statement, Claim **ret, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        const char *consumer, *state;
        int r;

        if (claim_new(&claim) < 0)
                return error_oom(reterr);
        claim->id = sqlite3_column_int64(statement, COLUMN_ID);
        r = sqlite_column(store->sqlite, statement, COLUMN_CONSUMER, &consumer, reterr);
        if (r < 0)
                return r;
        if (uuid_from_text(consumer, &claim->consumer) < 0)
                return damaged(store, claim->id, "the uuid", reterr);
        r = sqlite_column(store->sqlite, statement, COLUMN_STATE, &state, reterr);
        if (r < 0)
                return r;
        claim->state = claim_state_from_text(state);
        if (claim->state < 0)
                return damaged(store, claim->id, "the state", reterr);
        claim->resize_target = sqlite3_column_int64(statement, COLUMN_RESIZE_TARGET) != 0;
        claim->was_read = sqlite3_column_int64(statement, COLUMN_WAS_READ) != 0;
        claim->is_unheld = sqlite3_column_int64(statement, COLUMN_IS_UNHELD) != 0;
        claim->created_usec = (uint64_t)sqlite3_column_int64(statement, COLUMN_CREATED_USEC);
        claim->expires_usec = (uint64_t)sqlite3_column_int64(statement, COLUMN_EXPIRES_USEC);
        claim->ended_usec = (uint64_t)sqlite3_column_int64(statement, COLUMN_ENDED_USEC);
        r = read_texts(store, statement, claim, reterr);
        if (r >= 0)
                r = read_standing(store, statement, claim, reterr);
        if (r >= 0)
                r = read_guest(store, statement, claim, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(claim);
        return 0;
}

static int read_allocation(Store *store, sqlite3_stmt *statement, Claim *claim, Error *reterr)
{
        int64_t used = sqlite3_column_int64(statement, COLUMN_USED);
        const char *uuid, *name, *suffix, *resource_class;
        Uuid provider;
        int r;

        if (sqlite3_column_type(statement, COLUMN_USED) == SQLITE_NULL)
                return 0;
        r = sqlite_column(store->sqlite, statement, COLUMN_PROVIDER_UUID, &uuid, reterr);
        if (r < 0)
                return r;
        r = sqlite_column(store->sqlite, statement, COLUMN_PROVIDER_NAME, &name, reterr);
        if (r < 0)
                return r;
        r = sqlite_column(store->sqlite, statement, COLUMN_RESOURCE_CLASS, &resource_class, reterr);
        if (r < 0)
                return r;
        r = sqlite_column(store->sqlite, statement, COLUMN_GROUP, &suffix, reterr);
        if (r < 0)
                return r;
        if (uuid_from_text(uuid, &provider) < 0 || used <= 0 ||
            !resource_class_valid(resource_class))
                return damaged(store, claim->id, "an allocation", reterr);
        r = claim_add(claim, &provider, name, suffix, resource_class, (uint64_t)used);
        if (r == -EOVERFLOW)
                return damaged(store, claim->id, "an allocation", reterr);
        return r < 0 ? error_oom(reterr) : 0;
}

static int read_device(Store *store, Claim *claim, sqlite3_stmt *statement, Error *reterr)
{
        const char *texts[6]; /* provider, group, device, address, type, mdev */
        ClaimDevice device;
        int r = columns(store, statement, texts, 6, reterr);

        if (r < 0)
                return r;
        /* Borrowed for the copy that claim_add_device() makes. */
        device = (ClaimDevice){ .suffix = (char *)texts[1],
                                .name = (char *)texts[2],
                                .address = (char *)texts[3],
                                .mdev_type = (char *)texts[4] };
        if (uuid_from_text(texts[0], &device.provider) < 0 ||
            (texts[5][0] && uuid_from_text(texts[5], &device.mdev) < 0))
                return damaged(store, claim->id, "a device", reterr);
        return claim_add_device(claim, &device) < 0 ? error_oom(reterr) : 0;
}

/* How many claims that nobody asked for a query passes before it is asked anew. */
#define CLAIMS_PASSED_MAX 16

static int next_row(Store *store, struct SqlitePart *part, Error *reterr)
{
        int r = sqlite_step(store->sqlite, part->statement, reterr);

        part->at = r == SQLITE_STEP_ROW
                           ? sqlite3_column_int64(part->statement,
                                                  sqlite3_column_count(part->statement) - 1)
                           : INT64_MAX;
        return MIN(r, 0);
}

int store_read_part(Store *store, struct SqlitePart *part, StatementId id, Claim *claim,
                    SqliteReadRow read_row, Error *reterr)
{
        bool goes_on = part->statement && claim->state != CLAIM_STATE_RELEASED &&
                       claim->id > part->asked &&
                       (part->at >= claim->id || claim->id - part->asked <= CLAIMS_PASSED_MAX);
        int r = 0;

        if (!goes_on) {
                statement_resetp(&part->statement);
                r = store_query(store, id, &part->statement, reterr, "i", claim->id);
                if (r >= 0)
                        r = next_row(store, part, reterr);
        }
        part->asked = claim->id;
        while (r >= 0 && part->at <= claim->id) {
                if (part->at == claim->id)
                        r = read_row(store, claim, part->statement, reterr);
                if (r >= 0)
                        r = next_row(store, part, reterr);
        }
        return r;
}

static void parts_done(SqliteParts *parts)
{
        statement_resetp(&parts->devices.statement);
        statement_resetp(&parts->cells.statement);
        statement_resetp(&parts->cpus.statement);
        statement_resetp(&parts->pins.statement);
}

static int read_parts(Store *store, SqliteParts *parts, Claim *claim, Error *reterr)
{
        int r = store_read_part(store, &parts->devices,
                                claim->state == CLAIM_STATE_RELEASED ? STATEMENT_READ_ENDED_DEVICES
                                                                     : STATEMENT_READ_DEVICES,
                                claim, read_device, reterr);

        return r < 0 ? r : store_read_layout(store, parts, claim, reterr);
}

/* Reads all claims of a query. */
static int read_claims(Store *store, sqlite3_stmt *statement, ClaimList *list, Error *reterr)
{
        _cleanup_(parts_done) SqliteParts parts = { 0 };
        Claim *claim = NULL; /* of the list */
        int r;

        while ((r = sqlite_step(store->sqlite, statement, reterr)) == SQLITE_STEP_ROW) {
                if (!claim || claim->id != sqlite3_column_int64(statement, COLUMN_ID)) {
                        _cleanup_(claim_freep) Claim *next = NULL;

                        r = read_claim(store, statement, &next, reterr);
                        if (r < 0)
                                return r;
                        if (claim_list_add(list, next) < 0)
                                return error_oom(reterr);
                        claim = TAKE_PTR(next);
                        if ((r = read_parts(store, &parts, claim, reterr)) < 0)
                                return r;
                }
                r = read_allocation(store, statement, claim, reterr);
                if (r < 0)
                        return r;
        }
        return r;
}

/* The only claim of a query. */
static int read_one(Store *store, sqlite3_stmt *statement, Claim **ret, Error *reterr)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = read_claims(store, statement, &list, reterr);

        if (r < 0)
                return r;
        if (list.n_claims == 0)
                return STORE_E_NOT_FOUND;
        *ret = TAKE_PTR(list.claims[0]);
        return 0;
}

int store_find(Store *store, const Uuid *consumer, bool resize_target, Claim **ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_query(store, STATEMENT_FIND, &statement, reterr, "si", consumer->text,
                            (int64_t)resize_target);

        if (r < 0)
                return r;
        return read_one(store, statement, ret, reterr);
}

static int get_from(Store *store, StatementId from, int64_t id, Claim **ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_query(store, from, &statement, reterr, "i", id);

        if (r < 0)
                return r;
        return read_one(store, statement, ret, reterr);
}

int store_get(Store *store, int64_t id, Claim **ret, Error *reterr)
{
        int r;

        /* An ended claim never lives again: looking here first cannot miss one that ends between.
         */
        r = get_from(store, STATEMENT_GET, id, ret, reterr);
        if (r != STORE_E_NOT_FOUND)
                return r;
        return get_from(store, STATEMENT_GET_ENDED, id, ret, reterr);
}

/* of NULL: the query has no parameter. */
static int add_from(Store *store, StatementId from, const char *of, ClaimList *list, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_query(store, from, &statement, reterr, of ? "s" : "", of);

        return r < 0 ? r : read_claims(store, statement, list, reterr);
}

/* One state, so that a claim that ends meanwhile is not listed twice. */
static int add_all(Store *store, ClaimList *list, Error *reterr)
{
        int r = sqlite_begin_read(store->sqlite, reterr);

        if (r < 0)
                return r;
        r = add_from(store, STATEMENT_LIST, NULL, list, reterr);
        if (r == 0)
                r = add_from(store, STATEMENT_LIST_ENDED, NULL, list, reterr);
        sqlite_rollback(store->sqlite);
        return r;
}

int store_list(Store *store, ClaimsWhich which, const char *of, ClaimList *ret, Error *reterr)
{
        static const StatementId statements[_CLAIMS_WHICH_MAX] = {
                [CLAIMS_LIVING] = STATEMENT_LIST,
                [CLAIMS_ENDED] = STATEMENT_LIST_ENDED,
                [CLAIMS_PENDING] = STATEMENT_LIST_PENDING,
                [CLAIMS_OF_DEVICE] = STATEMENT_LIST_DEVICE,
                [CLAIMS_OF_GUEST] = STATEMENT_LIST_GUEST,
        };
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = which == CLAIMS_ALL ? add_all(store, &list, reterr)
                                    : add_from(store, statements[which], of, &list, reterr);

        if (r < 0)
                return r;
        *ret = list;
        list = (ClaimList){ 0 };
        return 0;
}

/* Of STATEMENT_LIST_WITH_DEVICES, behind what read_device() reads. */
enum {
        COLUMN_DEVICE_CLAIM = 6,
        COLUMN_DEVICE_CONSUMER,
};

static int add_owner(Store *store, sqlite3_stmt *statement, int64_t id, ClaimList *list,
                     Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        const char *consumer;
        int r = sqlite_column(store->sqlite, statement, COLUMN_DEVICE_CONSUMER, &consumer, reterr);

        if (r < 0)
                return r;
        if (claim_new(&claim) < 0)
                return error_oom(reterr);
        claim->id = id;
        if (uuid_from_text(consumer, &claim->consumer) < 0)
                return damaged(store, claim->id, "the uuid", reterr);
        if (claim_list_add(list, claim) < 0)
                return error_oom(reterr);
        TAKE_PTR(claim);
        return 0;
}

static int add_owned(Store *store, sqlite3_stmt *statement, void *context, Error *reterr)
{
        ClaimList *list = context;
        int64_t id = sqlite3_column_int64(statement, COLUMN_DEVICE_CLAIM);
        int r = 0;

        if (list->n_claims == 0 || list->claims[list->n_claims - 1]->id != id)
                r = add_owner(store, statement, id, list, reterr);
        return r < 0 ? r : read_device(store, list->claims[list->n_claims - 1], statement, reterr);
}

int store_list_with_devices(Store *store, ClaimList *ret, Error *reterr)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = store_each(store, STATEMENT_LIST_WITH_DEVICES, add_owned, &list, reterr, "");

        if (r < 0)
                return r;
        *ret = list;
        list = (ClaimList){ 0 };
        return 0;
}

int store_next_write(Store *store, int64_t after, Claim **ret, Error *reterr)
{
        return get_from(store, STATEMENT_NEXT_WRITE, after, ret, reterr);
}

int store_list_some(Store *store, int64_t after, ClaimList *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = store_query(store, STATEMENT_LIST_SOME, &statement, reterr, "ii", after,
                            (int64_t)CLAIMS_LOT);

        if (r >= 0)
                r = read_claims(store, statement, &list, reterr);
        if (r < 0)
                return r;
        *ret = list;
        list = (ClaimList){ 0 };
        return 0;
}

static int add_taken(Store *store, sqlite3_stmt *statement, void *taken, Error *reterr)
{
        const char *texts[3]; /* mdev, device, address */
        Uuid mdev = UUID_NULL;
        int r = columns(store, statement, texts, 3, reterr);

        if (r < 0)
                return r;
        if (texts[0][0] && uuid_from_text(texts[0], &mdev) < 0)
                return damaged(store, 0, "a device", reterr);
        return taken_add(taken, &mdev, texts[1], texts[2]) < 0 ? error_oom(reterr) : 0;
}

int store_taken(Store *store, Taken *ret, Error *reterr)
{
        return store_each(store, STATEMENT_TAKEN, add_taken, ret, reterr, "");
}

int store_count(Store *store, uint64_t *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_get_row(store, STATEMENT_COUNT, &statement, reterr, "");

        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return sqlite_damaged(store->sqlite, "no count", reterr);
        *ret = (uint64_t)MAX(sqlite3_column_int64(statement, 0), INT64_C(0));
        return 0;
}

static uint64_t column_amount(sqlite3_stmt *statement, int column)
{
        int64_t amount = sqlite3_column_int64(statement, column);

        return (uint64_t)MAX(amount, 0);
}

int store_next_unplaced(Store *store, int64_t after, StoreUnplaced *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        const char *consumer;
        StoreUnplaced claim = { 0 };
        int r = store_get_row(store, STATEMENT_NEXT_UNPLACED, &statement, reterr, "i", after);

        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return STORE_E_NOT_FOUND;
        claim.id = sqlite3_column_int64(statement, 0);
        r = sqlite_column(store->sqlite, statement, 1, &consumer, reterr);
        if (r < 0)
                return r;
        if (uuid_from_text(consumer, &claim.consumer) < 0)
                return damaged(store, claim.id, "the uuid", reterr);
        claim.vcpus = column_amount(statement, 3);
        claim.memory_mb = column_amount(statement, 4);
        claim.disk_gb = column_amount(statement, 5);
        if ((r = column_text(store, statement, 2, &claim.node, reterr)) < 0 ||
            (r = column_text(store, statement, 6, &claim.pci, reterr)) < 0) {
                store_unplaced_done(&claim);
                return r;
        }
        *ret = claim;
        return 0;
}
