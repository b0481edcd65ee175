/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads claims. One query yields the rows of the claims. One query for each part of claims that is
 * needed (devices, allocations, cells, CPUs, held host CPUs) yields its rows for all claims of the
 * list. Both results are in the order of the claims, so one pass joins them (add_to_claim()). If
 * the ids of living claims are far apart, each claim's parts are read alone. A list of claims is
 * one state of the file. Living and ended claims have different tables, and so different queries. A
 * value of a wrong type, range or form ends the read with -EUCLEAN (claims/store/columns.h). A list
 * of claims is empty after a failure. Also lists the taken devices and the identities of claimed
 * ones, counts the living claims, and finds those of schema version 1 that are not placed.
 *
 * Tests: tests/unit/claims/test-claims.c tests/unit/claims/test-claims-layout.c
 *   tests/unit/claims/test-claims-scale.c */

#include <inttypes.h>

#include "base/array.h"
#include "claims/store/frame.h"

typedef struct AllocationRow {
        Uuid provider;
        const char *provider_name, *resource_class, *group;
        uint64_t used;
} AllocationRow;

typedef struct TakenRow {
        Uuid mdev;
        const char *device, *address, *type;
} TakenRow;

/* Every claim has the columns of owner and claim. A living one also has living and reported, which
 * is only read here. An ended one also has ended. A list of CLAIMS_WITH_DEVICES reads only
 * owner. */
ROW(owner, Claim, "claim", COLUMN("c.id", Claim, id), COLUMN("instance_uuid", Claim, consumer));

ROW(claim, Claim, "claim", COLUMN("resize_target", Claim, resize_target),
    COLUMN("host", Claim, host), COLUMN("node", Claim, node),
    COLUMN("project_id", Claim, project_id), COLUMN("user_id", Claim, user_id),
    COLUMN("request", Claim, request), COLUMN("boot_id", Claim, boot_id),
    COLUMN("created_usec", Claim, created_usec), COLUMN("expires_usec", Claim, expires_usec),
    COLUMN("consumer_type", Claim, consumer_type));

ROW(living, Claim, "claim",
    COLUMN("state", Claim, state, .max = _CLAIM_STATE_MAX - 1, .to_text = claim_state_to_text),
    COLUMN("write_state", Claim, write_state, .max = _CLAIM_WRITE_MAX - 1,
           .to_text = claim_write_state_to_text),
    COLUMN("guest", Claim, guest, .optional = true), COLUMN("life", Claim, process));

ROW(reported, Claim, "claim", COLUMN("reported_elsewhere <> ''", Claim, was_read),
    COLUMN(IS_UNALLOCATED, Claim, is_unallocated));

ROW(ended, Claim, "claim", COLUMN("ended_usec", Claim, ended_usec),
    COLUMN("end_reason", Claim, end_reason));

/* An ended claim has the rows of the next four types as JSON lists. So a new column must be the
 * last one of its ROW, and must be optional. */
ROW(allocation, AllocationRow, "an allocation of claim", COLUMN("uuid", AllocationRow, provider),
    COLUMN("name", AllocationRow, provider_name),
    COLUMN("resource_class", AllocationRow, resource_class), COLUMN("used", AllocationRow, used),
    COLUMN("request_group", AllocationRow, group));

ROW(device, ClaimDevice, "a device of claim", COLUMN("provider_uuid", ClaimDevice, provider),
    COLUMN("request_group", ClaimDevice, suffix), COLUMN("device", ClaimDevice, name),
    COLUMN("address", ClaimDevice, address), COLUMN("mdev_type", ClaimDevice, mdev_type),
    COLUMN("mdev_uuid", ClaimDevice, mdev, .optional = true),
    COLUMN("identity", ClaimDevice, identity, .optional = true));

ROW(cell, LayoutCell, "a cell of claim", COLUMN("cell", LayoutCell, cell),
    COLUMN("host_cell", LayoutCell, host_cell),
    COLUMN("memory_mb", LayoutCell, memory_mb, .max = MEMORY_MAX),
    COLUMN("page_kib", LayoutCell, page_kib, .max = MEMORY_MAX), COLUMN("vcpus", LayoutCell, vcpus),
    COLUMN("n_shared", LayoutCell, n_shared, .max = CPU_SET_MAX));

ROW(cpu, LayoutCpu, "a CPU of claim", COLUMN("vcpu", LayoutCpu, vcpu, .max = CPU_SET_MAX),
    COLUMN("dedicated", LayoutCpu, dedicated), COLUMN("cpus", LayoutCpu, cpus));

ROW(held, Layout, "held host CPUs", COLUMN("ifnull(group_concat(cpu), '')", Layout, held));

ROW(taken, TakenRow, "a claimed device", COLUMN("mdev_uuid", TakenRow, mdev, .optional = true),
    COLUMN("device", TakenRow, device), COLUMN("address", TakenRow, address),
    COLUMN("mdev_type", TakenRow, type));

ROW(identity, ClaimedDevice, "a claimed device", COLUMN("address", ClaimedDevice, address),
    COLUMN("identity", ClaimedDevice, identity));

ROW(unplaced, StoreUnplaced, "claim", COLUMN("id", StoreUnplaced, id),
    COLUMN("instance_uuid", StoreUnplaced, consumer), COLUMN("vcpus", StoreUnplaced, vcpus),
    COLUMN("memory_mb", StoreUnplaced, memory_mb), COLUMN("disk_gb", StoreUnplaced, disk_gb),
    COLUMN("pci", StoreUnplaced, pci));

/* Reads the current row of a query as a claim and adds it to the list. Ended and pending are states
 * without a column: the row type or the write state implies them. An ended claim counts as read
 * from Placement. */
static int read_claim(Claims *claims, sqlite3_stmt *statement, const Row *const *rows,
                      ClaimList *list, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = 0;

        if (claim_new(&claim) < 0)
                return error_oom(reterr);
        for (int first = 0; r == 0 && *rows; first += (int)(*rows++)->n_columns) {
                r = row_read(claims->sqlite, statement, first, *rows, claim, reterr);
                if (*rows == &ended_row) {
                        claim->state = CLAIM_STATE_RELEASED;
                        claim->was_read = true;
                }
        }
        if (claim->write_state == CLAIM_WRITE_UNANSWERED)
                claim->state = CLAIM_STATE_PENDING;
        if (r == 0 && claim_list_add(list, claim) < 0)
                r = error_oom(reterr);
        if (r == 0)
                TAKE_PTR(claim);
        return r;
}

static int add_allocation(Claim *claim, void *row)
{
        const AllocationRow *allocation = row;

        if (allocation->used == 0 || !resource_class_valid(allocation->resource_class))
                return -EINVAL;
        return claim_add(claim, &allocation->provider, allocation->provider_name, allocation->group,
                         allocation->resource_class, allocation->used);
}

static int add_device(Claim *claim, void *row)
{
        return claim_add_device(claim, row);
}

static int add_cell(Claim *claim, void *row)
{
        Layout *layout = &claim->layout;

        if (array_grow(&layout->cells, sizeof(LayoutCell), layout->n_cells,
                       &claim->n_cells_allocated) < 0)
                return -ENOMEM;
        layout->cells[layout->n_cells++] = *(LayoutCell *)row;
        return 0;
}

static int add_cpu(Claim *claim, void *row)
{
        Layout *layout = &claim->layout;

        /* A claim without cells has no guest CPUs, but it can hold host CPUs. */
        if (layout->n_cells == 0)
                return 1;
        if (array_grow(&layout->cpus, sizeof(LayoutCpu), layout->n_cpus, &claim->n_cpus_allocated) <
            0)
                return -ENOMEM;
        layout->cpus[layout->n_cpus++] = *(LayoutCpu *)row;
        return 0;
}

static int add_held(Claim *claim, void *row)
{
        claim->layout.held = ((Layout *)row)->held;
        return 0;
}

typedef int (*ClaimAdd)(Claim *claim, void *row); /* see store_each() */

/* The parts of claims in the order in which they are read. The first column of each query is the id
 * of the claim, from ?1 to ?2. Living claims are in ascending order of ids, ended ones begin with
 * the one that ended last. An ended claim holds no host CPU. */
static const struct {
        StatementId living, ended;
        ClaimAdd add;
} parts[] = {
        { STATEMENT_READ_DEVICES, STATEMENT_READ_ENDED_DEVICES, add_device },
        { STATEMENT_READ_ALLOCATIONS, STATEMENT_READ_ENDED_ALLOCATIONS, add_allocation },
        { STATEMENT_READ_CELLS, STATEMENT_READ_ENDED_CELLS, add_cell },
        { STATEMENT_READ_CPUS, STATEMENT_READ_ENDED_CPUS, add_cpu },
        { STATEMENT_READ_HELD, _STATEMENT_MAX, add_held },
};

/* The claims that the next row can belong to. */
typedef struct Reader {
        ClaimAdd add;
        Claim *const *claims;
        size_t n;
} Reader;

/* Adds a row to its claim, and skips the claims before it. Rows of living claims that are not in
 * the list are ignored. A list of ended claims must have every claim of its range. */
static int add_to_claim(void *context, int64_t key, void *row)
{
        Reader *reader = context;
        Claim *claim = reader->claims[0];

        while (reader->n > 1 &&
               (claim->state == CLAIM_STATE_RELEASED ? claim->id != key : claim->id < key)) {
                claim = *++reader->claims;
                reader->n--;
        }
        return claim->id == key ? reader->add(claim, row) : 1;
}

/* Each part is read for all claims at once. For living claims with more than this many ids per
 * claim between the first and the last, one claim at a time costs less. */
#define NUMBERS_PER_CLAIM 16

static bool have_cells(Claim *const *list, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (list[i]->layout.n_cells > 0)
                        return true;
        return false;
}

/* Reads the first n_parts parts of living claims with ascending ids, or of ended claims, the one
 * that ended last first. */
static int read_parts(Claims *claims, Claim *const *list, size_t n, size_t n_parts, Error *reterr)
{
        bool ended = n > 0 && list[0]->state == CLAIM_STATE_RELEASED;
        int64_t first = INT64_MAX, last = INT64_MIN;
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                first = MIN(first, list[i]->id);
                last = MAX(last, list[i]->id);
        }
        if (n > 1 && !ended && (uint64_t)last - (uint64_t)first > n * NUMBERS_PER_CLAIM) {
                for (size_t i = 0; r == 0 && i < n; i++)
                        r = read_parts(claims, list + i, 1, n_parts, reterr);
                return r;
        }
        for (size_t i = 0; r == 0 && n > 0 && i < n_parts; i++) {
                Reader reader = { .add = parts[i].add, .claims = list, .n = n };

                if (parts[i].add == add_cpu && !have_cells(list, n))
                        continue;
                if (!ended || parts[i].ended != _STATEMENT_MAX)
                        r = store_each(claims, ended ? parts[i].ended : parts[i].living,
                                       VALUES(first, last), add_to_claim, &reader, reterr);
        }
        return r;
}

/* Runs a query of claims and adds them to the list. If the query has only the owners of the claims,
 * reads only their devices. */
static int add_claims(Claims *claims, StatementId id, const SqliteValue *values, ClaimList *list,
                      Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        const Row *const *rows;
        size_t before = list->n_claims;
        int r = store_query(claims, id, values, &statement, &rows, reterr);

        while (r == 0 && (r = sqlite_step(claims->sqlite, statement, reterr)) > 0)
                r = read_claim(claims, statement, rows, list, reterr);
        if (r < 0 || list->n_claims == before)
                return r;
        return read_parts(claims, list->claims + before, list->n_claims - before,
                          rows[1] ? ARRAY_SIZE(parts) : 1, reterr);
}

/* Runs a query of claims, and a second one (_STATEMENT_MAX: none), in one state of the file, and
 * adds the claims to ret. A failure empties ret. */
static int list_claims(Claims *claims, StatementId id, StatementId second,
                       const SqliteValue *values, ClaimList *ret, Error *reterr)
{
        bool began = false;
        int r = store_begin_read(claims, &began, reterr);

        if (r == 0)
                r = add_claims(claims, id, values, ret, reterr);
        if (r == 0 && second != _STATEMENT_MAX)
                r = add_claims(claims, second, values, ret, reterr);
        store_end_read(claims, began);
        if (r < 0)
                claim_list_done(ret);
        return r;
}

/* Yields the first claim of a query. Returns CLAIM_E_NOT_FOUND if there is none. The query is not
 * stepped to its end before the parts are read, so that both are of the same state of the file. */
static int get_claim(Claims *claims, StatementId id, const SqliteValue *values, Claim **ret,
                     Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        const Row *const *rows;
        int r = store_query(claims, id, values, &statement, &rows, reterr);

        if (r == 0)
                r = sqlite_step(claims->sqlite, statement, reterr);
        if (r <= 0)
                return r < 0 ? r : CLAIM_E_NOT_FOUND;
        r = read_claim(claims, statement, rows, &list, reterr);
        if (r == 0)
                r = read_parts(claims, list.claims, 1, ARRAY_SIZE(parts), reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(list.claims[0]);
        return 0;
}

int claims_find(Claims *claims, const Uuid *consumer, bool resize_target, Claim **ret,
                Error *reterr)
{
        int r = get_claim(claims, STATEMENT_FIND, VALUES(consumer->text, resize_target), ret,
                          reterr);

        if (r == CLAIM_E_NOT_FOUND)
                error_setf(reterr, ENOENT, "Consumer %s has no claim", consumer->text);
        return r;
}

int claims_get(Claims *claims, int64_t id, Claim **ret, Error *reterr)
{
        /* An ended claim never becomes a living one, so a claim that ends between the queries is
         * found. */
        int r = get_claim(claims, STATEMENT_GET, VALUES(id), ret, reterr);

        if (r == CLAIM_E_NOT_FOUND)
                r = get_claim(claims, STATEMENT_GET_ENDED, VALUES(id), ret, reterr);
        if (r == CLAIM_E_NOT_FOUND)
                error_setf(reterr, ENOENT, "There is no claim %" PRIi64, id);
        return r;
}

int claims_next_write(Claims *claims, int64_t after, Claim **ret, Error *reterr)
{
        return get_claim(claims, STATEMENT_NEXT_WRITE, VALUES(after), ret, reterr);
}

int claims_list(Claims *claims, ClaimsWhich which, const char *of, ClaimList *ret, Error *reterr)
{
        static const StatementId statements[_CLAIMS_WHICH_MAX] = {
                [CLAIMS_LIVING] = STATEMENT_LIST,
                [CLAIMS_ENDED] = STATEMENT_LIST_ENDED,
                [CLAIMS_ALL] = STATEMENT_LIST,
                [CLAIMS_PENDING] = STATEMENT_LIST_PENDING,
                [CLAIMS_OF_DEVICE] = STATEMENT_LIST_DEVICE,
                [CLAIMS_OF_GUEST] = STATEMENT_LIST_GUEST,
                [CLAIMS_WITH_DEVICES] = STATEMENT_LIST_WITH_DEVICES,
        };

        return list_claims(claims, statements[which],
                           which == CLAIMS_ALL ? STATEMENT_LIST_ENDED : _STATEMENT_MAX,
                           of ? VALUES(of) : NO_VALUES, ret, reterr);
}

int claims_list_some(Claims *claims, int64_t after, ClaimList *ret, Error *reterr)
{
        return list_claims(claims, STATEMENT_LIST_SOME, _STATEMENT_MAX, VALUES(after, CLAIMS_LOT),
                           ret, reterr);
}

static int add_identity(void *context, int64_t key, void *row)
{
        ClaimedDevices *list = context;

        if (array_grow(&list->items, sizeof(ClaimedDevice), list->n_items, &list->n_allocated) < 0)
                return -ENOMEM;
        list->items[list->n_items++] = *(ClaimedDevice *)row;
        return 0;
}

int claims_list_identities(Claims *claims, ClaimedDevices *ret, Error *reterr)
{
        return store_each(claims, STATEMENT_LIST_IDENTITIES, NO_VALUES, add_identity, ret, reterr);
}

static int add_taken(void *taken, int64_t key, void *row)
{
        const TakenRow *device = row;

        return taken_add(taken, &device->mdev, device->device, device->address, device->type);
}

int store_taken(Claims *claims, bool with_unclean, Taken *ret, Error *reterr)
{
        int r;

        ret->facts = claims->facts;
        r = store_each(claims, STATEMENT_TAKEN, NO_VALUES, add_taken, ret, reterr);
        if (r == 0 && with_unclean)
                r = store_each(claims, STATEMENT_TAKEN_UNCLEAN, NO_VALUES, add_taken, ret, reterr);
        return r;
}

int claims_count(Claims *claims, uint64_t *ret, Error *reterr)
{
        int64_t n;
        int r = store_get_integer(claims, STATEMENT_COUNT, NO_VALUES, &n, reterr);

        if (r == 0)
                *ret = (uint64_t)MAX(n, INT64_C(0));
        return r;
}

int store_next_unplaced(Claims *claims, int64_t after, StoreUnplaced *ret, Error *reterr)
{
        return store_get(claims, STATEMENT_NEXT_UNPLACED, VALUES(after), ret, reterr);
}
