/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reading claims: each query yields one row per allocation (or one, for a claim without any), the
 * rows of a claim one after the other, in the columns of CLAIM_COLUMNS (statements.h). */

#include <inttypes.h>

#include "base/array.h"
#include "claims/store/store-internal.h"

/* Of CLAIM_COLUMNS: what follows is of an allocation. */
enum { COLUMN_ID, COLUMN_PROVIDER = 20, COLUMN_USED };

static int damaged(const Claims *claims, int64_t id, const char *what, Error *reterr)
{
        char of[80];

        snprintf(of, sizeof(of), "%s of claim %lld", what, (long long)id);
        return sqlite_damaged(claims->sqlite, of, reterr);
}

static int read_claim(Claims *claims, sqlite3_stmt *statement, Claim **ret, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        const char *state, *write_state;
        int r;

        if (claim_new(&claim) < 0)
                return error_oom(reterr);
        r = store_read(claims, statement, COLUMN_ID, "the uuid of a claim", reterr,
                       "iusbSSSSSSnnnSSsUbbS", &claim->id, &claim->consumer, &state,
                       &claim->resize_target, &claim->host, &claim->node, &claim->project_id,
                       &claim->user_id, &claim->request, &claim->boot_id, &claim->created_usec,
                       &claim->expires_usec, &claim->ended_usec, &claim->end_reason,
                       &claim->consumer_type, &write_state, &claim->guest, &claim->was_read,
                       &claim->is_unheld, &claim->life);
        if (r < 0)
                return r;
        claim->state = claim_state_from_text(state);
        claim->write_state = claim_write_state_from_text(write_state);
        if (claim->state < 0 || claim->write_state < 0)
                return damaged(claims, claim->id, "the state", reterr);
        if (claim->write_state == CLAIM_WRITE_PENDING)
                claim->state = CLAIM_STATE_PENDING;
        *ret = TAKE_PTR(claim);
        return 0;
}

static int read_allocation(Claims *claims, sqlite3_stmt *statement, Claim *claim, Error *reterr)
{
        const char *name, *suffix, *resource_class;
        uint64_t used;
        Uuid provider;
        int r;

        if (sqlite3_column_type(statement, COLUMN_USED) == SQLITE_NULL)
                return 0;
        r = store_read(claims, statement, COLUMN_PROVIDER, "an allocation's provider", reterr,
                       "unsss", &provider, &used, &name, &resource_class, &suffix);
        if (r < 0)
                return r;
        if (used == 0 || !resource_class_valid(resource_class))
                return damaged(claims, claim->id, "an allocation", reterr);
        r = claim_add(claim, &provider, name, suffix, resource_class, used);
        if (r == -EOVERFLOW)
                return damaged(claims, claim->id, "an allocation", reterr);
        return r < 0 ? error_oom(reterr) : 0;
}

static int read_device(Claims *claims, Claim *claim, sqlite3_stmt *statement, Error *reterr)
{
        ClaimDevice device; /* its texts borrowed for the copy that claim_add_device() makes */
        int r = store_read(claims, statement, 0, "a claim's device", reterr, "ussssUs",
                           &device.provider, &device.suffix, &device.name, &device.address,
                           &device.mdev_type, &device.mdev, &device.identity);

        if (r < 0)
                return r;
        return claim_add_device(claim, &device) < 0 ? error_oom(reterr) : 0;
}

/* How many claims that nobody asked for a query passes before it is asked anew. */
#define CLAIMS_PASSED_MAX 16

static int next_row(Claims *claims, struct SqlitePart *part, Error *reterr)
{
        int r = sqlite_step(claims->sqlite, part->statement, reterr);

        part->at = r == SQLITE_STEP_ROW
                           ? sqlite3_column_int64(part->statement,
                                                  sqlite3_column_count(part->statement) - 1)
                           : INT64_MAX;
        return MIN(r, 0);
}

int store_read_part(Claims *claims, struct SqlitePart *part, StatementId id, Claim *claim,
                    SqliteReadRow read_row, Error *reterr)
{
        bool goes_on = part->statement && claim->state != CLAIM_STATE_RELEASED &&
                       claim->id > part->asked &&
                       (part->at >= claim->id || claim->id - part->asked <= CLAIMS_PASSED_MAX);
        int r = 0;

        if (!goes_on) {
                statement_resetp(&part->statement);
                r = store_query(claims, id, &part->statement, reterr, "i", claim->id);
                if (r >= 0)
                        r = next_row(claims, part, reterr);
        }
        part->asked = claim->id;
        while (r >= 0 && part->at <= claim->id) {
                if (part->at == claim->id)
                        r = read_row(claims, claim, part->statement, reterr);
                if (r >= 0)
                        r = next_row(claims, part, reterr);
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

static int read_parts(Claims *claims, SqliteParts *parts, Claim *claim, Error *reterr)
{
        int r = store_read_part(claims, &parts->devices,
                                claim->state == CLAIM_STATE_RELEASED ? STATEMENT_READ_ENDED_DEVICES
                                                                     : STATEMENT_READ_DEVICES,
                                claim, read_device, reterr);

        return r < 0 ? r : store_read_layout(claims, parts, claim, reterr);
}

/* Reads all claims of a query. */
static int read_claims(Claims *claims, sqlite3_stmt *statement, ClaimList *list, Error *reterr)
{
        _cleanup_(parts_done) SqliteParts parts = { 0 };
        Claim *claim = NULL; /* of the list */
        int r;

        while ((r = sqlite_step(claims->sqlite, statement, reterr)) == SQLITE_STEP_ROW) {
                if (!claim || claim->id != sqlite3_column_int64(statement, COLUMN_ID)) {
                        _cleanup_(claim_freep) Claim *next = NULL;

                        r = read_claim(claims, statement, &next, reterr);
                        if (r < 0)
                                return r;
                        if (claim_list_add(list, next) < 0)
                                return error_oom(reterr);
                        claim = TAKE_PTR(next);
                        if ((r = read_parts(claims, &parts, claim, reterr)) < 0)
                                return r;
                }
                r = read_allocation(claims, statement, claim, reterr);
                if (r < 0)
                        return r;
        }
        return r;
}

/* The only claim of a query. */
static int read_one(Claims *claims, sqlite3_stmt *statement, Claim **ret, Error *reterr)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = read_claims(claims, statement, &list, reterr);

        if (r < 0)
                return r;
        if (list.n_claims == 0)
                return CLAIM_E_NOT_FOUND;
        *ret = TAKE_PTR(list.claims[0]);
        return 0;
}

int claims_find(Claims *claims, const Uuid *consumer, bool resize_target, Claim **ret,
                Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_query(claims, STATEMENT_FIND, &statement, reterr, "si", consumer->text,
                            (int64_t)resize_target);

        if (r == 0)
                r = read_one(claims, statement, ret, reterr);
        if (r == CLAIM_E_NOT_FOUND)
                error_setf(reterr, ENOENT, "Consumer %s has no claim", consumer->text);
        return r;
}

static int get_from(Claims *claims, StatementId from, int64_t id, Claim **ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_query(claims, from, &statement, reterr, "i", id);

        if (r < 0)
                return r;
        return read_one(claims, statement, ret, reterr);
}

int claims_get(Claims *claims, int64_t id, Claim **ret, Error *reterr)
{
        /* An ended claim never lives again: looking here first cannot miss one that ends between.
         */
        int r = get_from(claims, STATEMENT_GET, id, ret, reterr);

        if (r == CLAIM_E_NOT_FOUND)
                r = get_from(claims, STATEMENT_GET_ENDED, id, ret, reterr);
        if (r == CLAIM_E_NOT_FOUND)
                error_setf(reterr, ENOENT, "There is no claim %" PRIi64, id);
        return r;
}

/* of NULL: the query has no parameter. */
static int add_from(Claims *claims, StatementId from, const char *of, ClaimList *list,
                    Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_query(claims, from, &statement, reterr, of ? "s" : "", of);

        return r < 0 ? r : read_claims(claims, statement, list, reterr);
}

/* One state, so that a claim that ends meanwhile is not listed twice. */
static int add_all(Claims *claims, ClaimList *list, Error *reterr)
{
        int r = sqlite_begin_read(claims->sqlite, reterr);

        if (r < 0)
                return r;
        r = add_from(claims, STATEMENT_LIST, NULL, list, reterr);
        if (r == 0)
                r = add_from(claims, STATEMENT_LIST_ENDED, NULL, list, reterr);
        sqlite_rollback(claims->sqlite);
        return r;
}

int claims_list(Claims *claims, ClaimsWhich which, const char *of, ClaimList *ret, Error *reterr)
{
        static const StatementId statements[_CLAIMS_WHICH_MAX] = {
                [CLAIMS_LIVING] = STATEMENT_LIST,
                [CLAIMS_ENDED] = STATEMENT_LIST_ENDED,
                [CLAIMS_PENDING] = STATEMENT_LIST_PENDING,
                [CLAIMS_OF_DEVICE] = STATEMENT_LIST_DEVICE,
                [CLAIMS_OF_GUEST] = STATEMENT_LIST_GUEST,
        };
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = which == CLAIMS_ALL ? add_all(claims, &list, reterr)
                                    : add_from(claims, statements[which], of, &list, reterr);

        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(list);
        return 0;
}

/* Of STATEMENT_LIST_WITH_DEVICES, behind what read_device() reads: a claim and its consumer. */
enum { COLUMN_DEVICE_CLAIM = 7 };

static int add_owner(Claims *claims, sqlite3_stmt *statement, ClaimList *list, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r;

        if (claim_new(&claim) < 0)
                return error_oom(reterr);
        r = store_read(claims, statement, COLUMN_DEVICE_CLAIM, "the uuid of a claim", reterr, "iu",
                       &claim->id, &claim->consumer);
        if (r < 0)
                return r;
        if (claim_list_add(list, claim) < 0)
                return error_oom(reterr);
        TAKE_PTR(claim);
        return 0;
}

static int add_owned(Claims *claims, sqlite3_stmt *statement, void *context, Error *reterr)
{
        ClaimList *list = context;
        int64_t id = sqlite3_column_int64(statement, COLUMN_DEVICE_CLAIM);
        int r = 0;

        if (list->n_claims == 0 || list->claims[list->n_claims - 1]->id != id)
                r = add_owner(claims, statement, list, reterr);
        return r < 0 ? r : read_device(claims, list->claims[list->n_claims - 1], statement, reterr);
}

int claims_list_with_devices(Claims *claims, ClaimList *ret, Error *reterr)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = store_each(claims, STATEMENT_LIST_WITH_DEVICES, add_owned, &list, reterr, "");

        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(list);
        return 0;
}

static int add_identity(Claims *claims, sqlite3_stmt *statement, void *context, Error *reterr)
{
        ClaimedDevices *list = context;
        const char *address, *identity;
        ClaimedDevice *item;
        int r = store_read(claims, statement, 0, "a claim's device", reterr, "ss", &address,
                           &identity);

        if (r < 0)
                return r;
        if (array_grow(&list->items, sizeof(ClaimedDevice), list->n_items, &list->n_allocated) < 0)
                return error_oom(reterr);
        item = &list->items[list->n_items++];
        snprintf(item->address, sizeof(item->address), "%s", address);
        snprintf(item->identity, sizeof(item->identity), "%s", identity);
        return 0;
}

int claims_list_identities(Claims *claims, ClaimedDevices *ret, Error *reterr)
{
        return store_each(claims, STATEMENT_LIST_IDENTITIES, add_identity, ret, reterr, "");
}

int claims_next_write(Claims *claims, int64_t after, Claim **ret, Error *reterr)
{
        return get_from(claims, STATEMENT_NEXT_WRITE, after, ret, reterr);
}

int claims_list_some(Claims *claims, int64_t after, ClaimList *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = store_query(claims, STATEMENT_LIST_SOME, &statement, reterr, "ii", after,
                            (int64_t)CLAIMS_LOT);

        if (r >= 0)
                r = read_claims(claims, statement, &list, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(list);
        return 0;
}

static int add_taken(Claims *claims, sqlite3_stmt *statement, void *taken, Error *reterr)
{
        const char *device, *address;
        Uuid mdev;
        int r = store_read(claims, statement, 0, "a claim's device", reterr, "Uss", &mdev, &device,
                           &address);

        if (r < 0)
                return r;
        return taken_add(taken, &mdev, device, address) < 0 ? error_oom(reterr) : 0;
}

int store_taken(Claims *claims, Taken *ret, Error *reterr)
{
        ret->facts = claims->facts;
        return store_each(claims, STATEMENT_TAKEN, add_taken, ret, reterr, "");
}

int claims_count(Claims *claims, uint64_t *ret, Error *reterr)
{
        int64_t n;
        int r = store_get_integer(claims, STATEMENT_COUNT, &n, reterr);

        if (r == 0)
                *ret = (uint64_t)MAX(n, INT64_C(0));
        return r;
}

int store_next_unplaced(Claims *claims, int64_t after, StoreUnplaced *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        _cleanup_(store_unplaced_done) StoreUnplaced claim = { 0 };
        int r = store_get_row(claims, STATEMENT_NEXT_UNPLACED, &statement, reterr, "i", after);

        if (r < 0)
                return r;
        if (r == SQLITE_STEP_DONE)
                return CLAIM_E_NOT_FOUND;
        r = store_read(claims, statement, 0, "the uuid of a claim", reterr, "iuSnnnS", &claim.id,
                       &claim.consumer, &claim.node, &claim.vcpus, &claim.memory_mb, &claim.disk_gb,
                       &claim.pci);
        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(claim);
        return 0;
}
