/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the inputs of a comparison over a claim database, the requests that it sends, and the clock
 * that claims expire by. */

#include "agent/guests/comparison.h"

#include "base/clock.h"
#include "report/gather.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/host-facts.h"
#include "tests/fixtures/host.h"
#include "tests/fixtures/trace.h"

#define TREE "host DISK_GB=10; cell0<host VCPU=8 MEMORY_MB=4096; host_a<host VGPU=3"
#define GUEST                                                                \
        "\"domains\": [{\"uuid\": \"11111111-1111-4111-8111-111111111111\"," \
        " \"name\": \"g\", \"state\": \"running\"}]"

static const HostConfig driver;

#define GPU "0000:41:00.0"

/* Replaces the functions of agent/guests/reconcile.c and report/ that the module calls. It is
 * linked before the library. */
static struct {
        const char *wanted, *held; /* letters of consumers; held: those of the whole host */
        bool all, cannot_ask, cannot_look;
        unsigned n_turns;  /* turns of the next comparison before its last one */
        bool leaves_out;   /* comparisons leave an action out, so another one is due */
        int result;        /* result of comparisons */
        size_t n_asked;    /* number of consumers in the request */
        size_t n_answered; /* number of consumers in the answer */
        GatherDone looked;
        GatherDone gathered;
        ReporterDone all_gathered;
        void *userdata;
        ProviderTree *tree;
} world;

/* Replaces the clocks of this host. */
static struct {
        uint64_t real_usec, boot_usec; /* real_usec 0: those of the host count */
} clocks;

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
        uint64_t usec = clock == CLOCK_REALTIME ? clocks.real_usec : clocks.boot_usec;

        if (clocks.real_usec == 0)
                return __real_clock_gettime(clock, ret);
        *ret = (struct timespec){ .tv_sec = (time_t)(usec / USEC_PER_SEC),
                                  .tv_nsec = (long)(usec % USEC_PER_SEC * NSEC_PER_USEC) };
        return 0;
}

/* Returns consumers with one CPU each: "a" on this host, all others on another one. */
static Allocations *make_consumers(const char *letters)
{
        Allocations *made;

        assert_int_equal(allocations_new(&made), 0);
        for (; *letters; letters++) {
                const Uuid uuid = make_guest(*letters),
                           provider = make_uuid(*letters == 'a' ? "host" : "other");
                Consumer *consumer;

                assert_int_equal(allocations_ensure(made, &uuid, &consumer), 0);
                assert_int_equal(consumer_set(consumer, &provider, "VCPU", 1), 0);
        }
        return made;
}

/* Checks that answers are sorted, and that each one shows whether the consumer has an allocation
 * here, elsewhere or nowhere. */
static void check_answers(const ReconcileInput *order, const Allocations *holding)
{
        const Uuid here = make_guest('a');

        assert_int_equal(order->n_answers, world.all ? MAX(holding->n_consumers, order->n_answers)
                                                     : strlen(world.wanted));
        assert_int_equal(order->complete, world.all);
        for (size_t i = 0; i < order->n_answers; i++) {
                const ConsumerRead *answer = &order->answers[i];

                assert_int_equal(answer->here, uuid_equal(&answer->consumer, &here));
                assert_ptr_equal(answer->holding, allocations_find(holding, &answer->consumer));
                assert_true(i == 0 || uuid_order(&answer[-1].consumer, &answer->consumer) < 0);
        }
}

int claim_reconcile_new(ClaimReconcile **ret)
{
        *ret = (ClaimReconcile *)&world;
        return 0;
}

ClaimReconcile *claim_reconcile_free(ClaimReconcile *run)
{
        return NULL;
}

int claim_reconcile(ClaimReconcile *run, ClaimService *service, const ReconcileInput *order,
                    ClaimWanted *wanted, Error *reterr)
{
        const Allocations *holding = service->comparison.holding;

        assert_int_equal(wanted != NULL, order->access == RECONCILE_CAN_READ);
        if (world.n_turns > 0) {
                world.n_turns--;
                note('.');
                return CLAIM_RECONCILE_MORE;
        }
        if (order->held)
                note('h');
        if (holding) {
                note(service->tree_is_absent ? 'A' : 'a');
                world.n_answered = holding->n_consumers;
                check_answers(order, holding);
        }
        note(order->access == RECONCILE_CAN_READ ? 'c' : 'w');
        service->comparison.is_due |= world.leaves_out;
        if (!wanted)
                return world.result;
        wanted->all = world.all;
        wanted->uuids = calloc(strlen(world.wanted) + 1, sizeof(Uuid));
        for (const char *letter = world.wanted; *letter; letter++)
                wanted->uuids[wanted->n_uuids++] = make_guest(*letter);
        return 0;
}

Session *reporter_get_session(Reporter *reporter)
{
        return NULL;
}

const ProviderTree *reporter_tree(Reporter *reporter)
{
        return world.tree;
}

int64_t reporter_get_generation(const Reporter *reporter, const Uuid *provider)
{
        return 5;
}

int gather_new(Gather **ret, Session *session, const Uuid *providers, size_t n_providers,
               const StringSet *classes, GatherDone done, void *userdata, Error *reterr)
{
        note('p');
        assert_int_equal(n_providers, 2); /* the GPU has no amount of a guest */
        assert_non_null(classes);
        assert_int_equal(classes->n_items, 0);
        if (world.cannot_look)
                return -ENOMEM;
        world.looked = done;
        world.userdata = userdata;
        *ret = (Gather *)&world;
        return 0;
}

int gather_consumers_new(Gather **ret, Session *session, const Uuid *consumers, size_t n_consumers,
                         GatherDone done, void *userdata, Error *reterr)
{
        note('g');
        world.n_asked = n_consumers;
        if (world.cannot_ask)
                return -ENOMEM;
        world.gathered = done;
        world.userdata = userdata;
        *ret = (Gather *)&world;
        return 0;
}

Gather *gather_free(Gather *gather)
{
        if (gather)
                note('f');
        return NULL;
}

int reporter_gather(Reporter *reporter, const StringSet *classes, const ProviderTree *ahead,
                    ReporterDone done, void *userdata)
{
        note('G');
        if (world.cannot_ask)
                return -EBUSY;
        world.all_gathered = done;
        world.userdata = userdata;
        return 0;
}

void reporter_take_gathered(Reporter *reporter, Allocations **ret_consumers,
                            Allocations **ret_others)
{
        *ret_consumers = make_consumers(world.held);
        *ret_others = NULL;
}

/* begun_sec: start of the poll, in seconds since 1970. */
static Snapshot *make_poll(const char *members, uint64_t begun_sec)
{
        Snapshot *snapshot = host_new(members);

        snapshot->began_usec = clock_usec(CLOCK_MONOTONIC) -
                               (clock_usec(CLOCK_REALTIME) - begun_sec * USEC_PER_SEC);
        return snapshot;
}

/* Opens a service with the tree of a host, and with a poll if it is not NULL. */
static ClaimService *open_service(const Fixture *fixture, const Snapshot *poll)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("host VCPU=8");
        const ClaimSettings settings = { .driver = &driver };
        ClaimService *service;

        assert_int_equal(claim_service_new(&service, fixture->path, "host", &settings), 0);
        if (poll)
                claim_service_set_snapshot(service, poll, NULL);
        claim_service_set_tree(service, tree);
        return service;
}

/* Makes a claim of a guest that follows the amounts of another writer. */
static void add_follower(Fixture *fixture)
{
        const ClaimPlacing placing = { .write_state = CLAIM_WRITE_NONE };
        const ClaimReported reported = { .generation = 1, .elsewhere = make_guest('f') };
        ClaimRequest request = { .consumer = make_guest('f'), .consumer_type = CLAIM_TYPE_GUEST };
        _cleanup_(claim_freep) Claim *claim = NULL;

        fixture_create(fixture, "host VCPU=8");
        make_request(&request.resources, "VCPU=1");
        assert_int_equal(claims_claim(fixture->claims, &request, &placing, &claim, NULL, NULL), 0);
        resource_request_done(&request.resources);
        assert_int_equal(claims_confirm(fixture->claims, claim->id, NULL), 0);
        assert_int_equal(claims_set_write_state(fixture->claims, claim->id, CLAIM_WRITE_NONE,
                                                CLAIM_WRITE_NONE, &reported, NULL),
                         0);
        fixture_close(fixture);
}

static void on_done(void *userdata)
{
        ComparisonRun **run = userdata;

        note('d');
        *run = comparison_run_free(*run);
}

/* The event loop of all tests. */
static sd_event *loop;

/* Runs the turns of a comparison without Placement. */
static void compare_alone(ClaimService *service)
{
        ComparisonRun *run = NULL;

        (void)comparison_run_begin_alone(&run, service, loop, RECONCILE_NO_PLACEMENT, on_done,
                                         &run);
        while (run)
                assert_true(sd_event_run(loop, USEC_PER_SEC) > 0);
}

typedef struct Row {
        const char *about;
        const char *wanted;
        bool all;
        const char *held; /* NULL: Placement does not have the tree */
        bool cannot_ask, cancelled;
        bool cancelled_late; /* after the providers were read */
        int result;          /* result of the read */
        bool moved;          /* another writer changed an allocation of the host */
        bool cannot_look, leaves_out;
        int looked;     /* result of reading the providers */
        bool no_claims; /* the database is not open */
        const char *trace;
        size_t n_asked, n_answered;
        size_t absent; /* number of consumers in the request that Placement does not have */
} Row;

static void answer(const Row *row, ComparisonRun **run)
{
        if (world.looked)
                world.looked(row->looked, row->looked == 0 ? make_consumers("") : NULL,
                             row->looked == 0 ? make_consumers("") : NULL, &ERROR_NULL,
                             world.userdata);
        if (row->cancelled_late)
                *run = comparison_run_free(*run);
        if (*run && world.all_gathered)
                world.all_gathered(NULL, row->result, &ERROR_NULL, world.userdata);
        if (*run && world.gathered)
                world.gathered(row->result,
                               row->result == 0 ? make_consumers(row->wanted + strlen(row->wanted) -
                                                                 world.n_asked + row->absent)
                                                : NULL,
                               NULL, &ERROR_NULL, world.userdata);
}

static void check(const Fixture *fixture, const Row *row)
{
        _cleanup_(snapshot_unrefp) Snapshot *poll = make_poll("", 10);
        ClaimService *service = open_service(fixture, poll);
        ComparisonRun *run = NULL;
        const Uuid root = make_uuid("host");

        memset(&world, 0, sizeof(world));
        trace[0] = '\0';
        world.wanted = row->wanted;
        world.all = row->all;
        world.held = row->held ? row->held : "";
        world.cannot_ask = row->cannot_ask;
        world.cannot_look = row->cannot_look;
        world.leaves_out = row->leaves_out;
        if (row->held)
                world.tree = make_tree(TREE);
        else
                assert_int_equal(provider_tree_new(&world.tree), 0);
        /* The generations of the root and of the cell are 5. */
        claim_service_restore_held(service, row->moved ? 11 : 12);
        if (row->no_claims)
                service->claims = claims_free(service->claims);
        if (comparison_run_begin(&run, service, loop, (Reporter *)&world, &root, on_done, &run) > 0)
                note('|');
        assert_int_equal(run != NULL, strchr(row->trace, '|') != NULL);
        if (row->cancelled)
                run = comparison_run_free(run);
        else if (run)
                answer(row, &run);
        if (run || strcmp(trace, row->trace) != 0)
                fail_msg("%s: %s", row->about, trace);
        assert_int_equal(world.n_asked, row->n_asked);
        assert_int_equal(world.n_answered, row->n_answered);
        if (row->moved && row->looked == 0 && !row->cannot_look && !row->cancelled)
                assert_int_equal(service->comparison.held_stamp,
                                 row->result == 0 && !row->cancelled_late && !row->leaves_out ? 12
                                                                                              : 0);
        provider_tree_free(world.tree);
        claim_service_free(service);
}

static void test_asks_placement(void **state)
{
        static const Row rows[] = {
                { "nothing hangs on it", "", .held = "", .trace = "c" },
                { "asked, and answered", "xy", .held = "", .trace = "cg|awdf", .n_asked = 2,
                  .n_answered = 2 },
                { "asked, and Placement knows one", "xy", .held = "", .trace = "cg|awdf",
                  .n_asked = 2, .n_answered = 1, .absent = 1 },
                { "there is no database", "xy", .held = "", .no_claims = true, .trace = "" },
                { "asked, and Placement is away", "xy", .held = "", .result = REPORT_E_UNREACHABLE,
                  .trace = "cg|wdf", .n_asked = 2 },
                { "it cannot be asked", "xy", .held = "", .cannot_ask = true, .trace = "cgw",
                  .n_asked = 2 },
                { "cancelled", "x", .held = "", .cancelled = true, .trace = "cg|f", .n_asked = 1 },
                { "all", "", true, "ab", .trace = "cG|awd", .n_answered = 2 },
                { "all, and one that is not among them", "ax", true, "ab", .trace = "cG|gawdf",
                  .n_asked = 1, .n_answered = 3 },
                { "all that are asked about are among them", "ab", true, "ab", .trace = "cG|awd",
                  .n_answered = 2 },
                { "all, and Placement is away", "x", true, "ab", .result = REPORT_E_UNREACHABLE,
                  .trace = "cG|wd" },
                { "all cannot be asked", "", true, "ab", .cannot_ask = true, .trace = "cGw" },
                { "Placement does not have the tree", "", true, NULL, .trace = "cAw" },
                { "the same, and one is asked about", "x", true, NULL, .trace = "cg|Awdf",
                  .n_asked = 1, .n_answered = 1 },
                { "another writer, and no claim is concerned", "", .held = "", .moved = true,
                  .trace = "p|fhcd" },
                { "the same, and an action was left out", "", .held = "", .moved = true,
                  .leaves_out = true, .trace = "p|fhcd" },
                { "another writer changed what a claim holds", "x", .held = "", .moved = true,
                  .trace = "p|fhcgawdf", .n_asked = 1, .n_answered = 1 },
                { "the same, and Placement is away then", "x", .held = "", .moved = true,
                  .result = REPORT_E_UNREACHABLE, .trace = "p|fhcgwdf", .n_asked = 1 },
                { "the same, and cancelled then", "x", .held = "", .moved = true,
                  .cancelled_late = true, .trace = "p|fhcgf", .n_asked = 1 },
                { "the same, and all are read", "x", true, "ab", .moved = true,
                  .trace = "p|fhcGgawdf", .n_asked = 1, .n_answered = 3 },
                { "the providers cannot be read", "x", .held = "", .moved = true,
                  .looked = REPORT_E_UNREACHABLE, .trace = "p|fcgawdf", .n_asked = 1,
                  .n_answered = 1 },
                { "no memory to read the providers", "", .held = "", .moved = true,
                  .cannot_look = true, .trace = "pc" },
                { "cancelled while the providers are read", "x", .held = "", .cancelled = true,
                  .moved = true, .trace = "p|f" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check(*state, &rows[i]);
}

/* A poll from before a request for capacity does not end that request. A comparison that needs
 * answers first stays due. */
static void test_ends(void **state)
{
        static const struct {
                uint64_t taken_sec;
                const char *wanted;
                bool due, urgent_after;
        } cases[] = {
                { 9, "", false, true },
                { 11, "", false, false },
                { 11, "x", true, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *poll = make_poll("", cases[i].taken_sec);
                ClaimService *service = open_service(*state, poll);
                ComparisonRun *run = NULL;
                const Uuid root = make_uuid("host");

                memset(&world, 0, sizeof(world));
                trace[0] = '\0';
                world.wanted = cases[i].wanted;
                service->comparison.urgent_usec = 10 * USEC_PER_SEC;
                (void)comparison_run_begin(&run, service, loop, NULL, &root, on_done, &run);
                comparison_run_free(run);
                assert_int_equal(service->comparison.is_due, cases[i].due);
                assert_int_equal(service->comparison.urgent_usec,
                                 cases[i].urgent_after ? 10 * USEC_PER_SEC : 0);
                claim_service_free(service);
        }
}

/* Guests can be newer than devices. Claims that were made or returned since the poll of the devices
 * are remembered. */
static void test_polls(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *first = make_poll(GUEST, 10);
        _cleanup_(snapshot_unrefp) Snapshot *second = make_poll("", 20);
        ClaimService *service = open_service(*state, NULL);

        assert_null(service->facts);
        claim_service_set_guests(service, second); /* before the first poll: no effect */
        assert_null(service->facts);
        claim_service_touch(service, 1);
        service->comparison.recent[0].when_usec = 5 * USEC_PER_SEC;
        claim_service_touch(service, 2);
        service->comparison.recent[1].when_usec = 15 * USEC_PER_SEC;
        claim_service_set_snapshot(service, first, NULL);
        assert_int_equal(service->facts->n_domains, 1);
        assert_int_equal(service->comparison.n_recent, 1);
        assert_int_equal(service->comparison.recent[0].claim_id, 2);

        claim_service_set_guests(service, second);
        assert_int_equal(service->facts->n_domains, 0);
        assert_int_equal(service->comparison.n_recent, 1);
        claim_service_set_snapshot(service, second, NULL);
        assert_int_equal(service->comparison.n_recent, 0);
        claim_service_free(service);
}

/* Removes a claim with this device. */
static void end_claim(ClaimService *service, const char *address)
{
        ClaimDevice device = { .address = (char *)address, .mdev_type = (char *)"" };
        const Claim claim = { .id = 3, .devices = &device, .n_devices = 1 };

        claim_service_notify(service, CLAIM_EVENT_REMOVED, &claim);
}

/* A device of a partition is withheld after its claim ended. A newer poll of the guests, and a tree
 * that was made before the end, change nothing. The next poll ends it. */
static void test_devices_of_an_ended_claim_are_withheld(void **state)
{
        static const char devices[] = "'devices':[{'name':'d','address':'" GPU "'}]";
        char *members[] = { (char *)GPU, NULL }, *partitions[] = { (char *)"all=1", NULL };
        HostShapes shapes = { .activate = (char *)"on@.service" };
        const HostConfig config = { .shapes = &shapes, .n_shapes = 1 };
        _cleanup_(snapshot_unrefp) Snapshot *poll = make_poll(devices, 10);
        _cleanup_(snapshot_unrefp) Snapshot *guests = make_poll(devices, 18);
        _cleanup_(snapshot_unrefp) Snapshot *later = make_poll(devices, 20);
        const DeviceFacts known = { 0 };
        ClaimService *service = open_service(*state, NULL);

        assert_int_equal(
                device_set_parse(&shapes.set, "hgx", "CUSTOM_GPU", members, partitions, NULL), 0);
        service->settings.driver = &config;
        claim_service_set_snapshot(service, poll, &known);
        assert_int_equal(service->facts->n_pci, 1);
        assert_false(service->facts->pci[0].withheld);

        end_claim(service, GPU);
        service->comparison.released[0].when_usec = 15 * USEC_PER_SEC;
        assert_true(service->facts->pci[0].withheld);
        claim_service_set_guests(service, guests);
        assert_true(service->facts->pci[0].withheld);
        service->comparison.driver_is_new = true;
        claim_service_set_snapshot(service, poll, &known);
        assert_true(service->facts->pci[0].withheld);
        claim_service_set_snapshot(service, later, &known);
        assert_false(service->facts->pci[0].withheld);
        claim_service_free(service);
        device_set_done(&shapes.set);
}

#define SEC  USEC_PER_SEC
#define YEAR (365 * 86400 * SEC)
#define NOW  (50 * YEAR)

/* Makes the memory of a comparison with these times. */
static void set_missing(ClaimComparison *comparison, uint64_t first_usec, uint64_t second_usec)
{
        reconcile_memory_done(&comparison->memory);
        comparison->memory.items = calloc(2, sizeof(ReconcileMissing));
        comparison->memory.items[0] = (ReconcileMissing){ .claim_id = 1, .since_usec = first_usec };
        comparison->memory.items[1] =
                (ReconcileMissing){ .claim_id = 2, .since_usec = second_usec };
        comparison->memory.n_items = comparison->memory.n_allocated = 2;
}

/* Looks at clocks that show these times. Returns the first time of set_missing(). */
static uint64_t look(ClaimService *service, uint64_t real_usec, uint64_t boot_usec)
{
        clocks.real_usec = real_usec;
        clocks.boot_usec = boot_usec;
        compare_alone(service);
        clocks.real_usec = 0;
        return service->comparison.memory.items[0].since_usec;
}

static void test_jumps(void **state)
{
        static const struct {
                const char *about;
                int64_t real, boot; /* time between two looks, by each of the clocks */
                int64_t by;
        } cases[] = {
                { "nothing", 60 * SEC, 60 * SEC, 0 },
                { "corrected a bit", 69 * SEC, 60 * SEC, 0 },
                { "corrected a bit back", 51 * SEC, 60 * SEC, 0 },
                { "a sleep of a day", 86400 * SEC, 86400 * SEC, 0 },
                { "a year forward", YEAR + 60 * SEC, 60 * SEC, YEAR },
                { "a year back", 60 * SEC - (int64_t)YEAR, 60 * SEC, -(int64_t)YEAR },
                { "ten seconds", 70 * SEC, 60 * SEC, 10 * SEC },
                { "no time at all", 0, 0, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimService *service = open_service(*state, NULL);
                uint64_t real = NOW + (uint64_t)cases[i].real, boot = SEC + (uint64_t)cases[i].boot,
                         moved = 2 * NOW + (uint64_t)cases[i].by;

                set_missing(&service->comparison, 2 * NOW, 2 * NOW);
                assert_int_equal(look(service, NOW, SEC), 2 * NOW);
                if (look(service, real, boot) != moved)
                        fail_msg("%s", cases[i].about);
                /* The time moves once. */
                assert_int_equal(look(service, real + SEC, boot + SEC), moved);
                claim_service_free(service);
        }
}

static void test_clock_jump_moves_earlier_times(void **state)
{
        static const struct {
                int64_t by;
                int64_t at; /* time relative to NOW, the last look; a minute has passed */
                bool before;
        } cases[] = {
                { YEAR, -100 * (int64_t)SEC, true },
                { YEAR, 30 * SEC, true },
                { YEAR, YEAR + 30 * SEC, false },
                { -(int64_t)YEAR, 30 * SEC, true },
                { -(int64_t)YEAR, -(int64_t)YEAR + 30 * (int64_t)SEC, false },
                { -(int64_t)YEAR, -2 * (int64_t)YEAR, true },
                { -3600 * (int64_t)SEC, 0, true },
                { 20 * SEC, 45 * SEC, true }, /* both are possible */
                { -20 * (int64_t)SEC, 10 * SEC, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimService *service = open_service(*state, NULL);
                ClaimComparison *comparison = &service->comparison;
                uint64_t at = NOW + (uint64_t)cases[i].at, moved = at + (uint64_t)cases[i].by;

                set_missing(comparison, at, at);
                claim_service_touch(service, 1);
                comparison->recent[0].when_usec = at;
                assert_int_equal(look(service, NOW, SEC), at);
                assert_int_equal(look(service, NOW + 60 * SEC + (uint64_t)cases[i].by, 61 * SEC),
                                 moved);
                assert_int_equal(comparison->recent[0].when_usec, cases[i].before ? moved : at);
                claim_service_free(service);
        }
}

static void test_ends_of_time(void **state)
{
        ClaimService *service = open_service(*state, NULL);
        ClaimComparison *comparison = &service->comparison;

        set_missing(comparison, 10, UINT64_MAX);
        assert_int_equal(look(service, 1, SEC), 10);
        assert_int_equal(look(service, INT64_MAX, SEC), INT64_MAX);
        assert_int_equal(comparison->memory.items[1].since_usec, INT64_MAX);
        set_missing(comparison, 3, 20 * SEC);
        assert_int_equal(look(service, INT64_MAX - 20 * SEC, SEC), 1);
        assert_int_equal(comparison->memory.items[1].since_usec, 1);
        claim_service_free(service);
}

/* A change of the clock moves the times from before it. */
static void test_a_clock_that_is_set_moves_times(void **state)
{
        ClaimService *service = open_service(*state, NULL);
        ClaimComparison *comparison = &service->comparison;
        uint64_t recent_usec;

        claim_service_touch(service, 1);
        recent_usec = comparison->recent[0].when_usec;
        comparison->memory.items = calloc(1, sizeof(ReconcileMissing));
        comparison->memory.items[0] = (ReconcileMissing){ .claim_id = 1, .since_usec = 2 * NOW };
        comparison->memory.n_items = comparison->memory.n_allocated = 1;
        comparison->released = calloc(2, sizeof(struct ReleasedDevice));
        comparison->n_released = comparison->n_released_allocated = 2;
        compare_alone(service);
        assert_int_equal(comparison->recent[0].when_usec, recent_usec);
        comparison->clock.real_usec -= YEAR; /* one year forward */
        comparison->recent[0].when_usec = recent_usec - YEAR;
        comparison->released[0].when_usec = recent_usec - YEAR;
        comparison->released[1].when_usec = recent_usec;
        comparison->urgent_usec = recent_usec - YEAR;
        compare_alone(service);
        assert_in_range(comparison->recent[0].when_usec, recent_usec - SEC, recent_usec + SEC);
        assert_in_range(comparison->memory.items[0].since_usec, 2 * NOW + YEAR - SEC,
                        2 * NOW + YEAR + SEC);
        assert_int_equal(comparison->memory.items[0].asked_usec, 0);
        assert_in_range(comparison->released[0].when_usec, recent_usec - SEC, recent_usec + SEC);
        assert_int_equal(comparison->released[1].when_usec, recent_usec);
        assert_in_range(comparison->urgent_usec, recent_usec - SEC, recent_usec + SEC);
        claim_service_free(service);
}

/* The begin of a poll moves with a clock that is set during the poll or after it. So a claim that
 * was made during the poll stays later than the poll. */
static void test_a_clock_that_is_set_moves_the_poll(void **state)
{
        static const int64_t cases[] = { 3600 * SEC, -3600 * (int64_t)SEC };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *poll = host_new("");
                _cleanup_(snapshot_unrefp) Snapshot *guests = host_new("");
                ClaimService *service = open_service(*state, NULL);
                ClaimComparison *comparison = &service->comparison;
                uint64_t by = (uint64_t)cases[i];

                poll->began_usec = guests->began_usec = 100 * SEC;
                set_missing(comparison, NOW, NOW);
                (void)look(service, NOW, 100 * SEC);
                claim_service_touch(service, 1);
                comparison->recent[0].when_usec = NOW + 1 * SEC;
                clocks.real_usec = NOW + 2 * SEC + by;
                clocks.boot_usec = 102 * SEC;
                claim_service_set_snapshot(service, poll, NULL);
                assert_int_equal(comparison->n_recent, 1);
                assert_int_equal(comparison->recent[0].when_usec, NOW + 1 * SEC + by);
                assert_int_equal(service->facts->taken_usec, NOW + by);

                (void)look(service, NOW + 3 * SEC + 2 * by, 103 * SEC);
                assert_int_equal(service->facts->taken_usec, NOW + 2 * by);
                clocks.real_usec = NOW + 4 * SEC + 2 * by;
                clocks.boot_usec = 104 * SEC;
                claim_service_set_guests(service, guests);
                assert_int_equal(service->facts->taken_usec, NOW + 2 * by);
                assert_int_equal(comparison->n_recent, 1);
                clocks.real_usec = 0;
                claim_service_free(service);
        }
}

/* Without Placement, a claim that expired before the poll ends with the next comparison that
 * succeeds, and leaves no action out. The action can be the confirmation of the claim. */
static void test_expired_claims_end(void **state)
{
        const Fixture *fixture = *state;
        ClaimService *service = open_service(fixture, NULL);
        _cleanup_(snapshot_unrefp) Snapshot *poll = NULL;
        ClaimRequest request = { .consumer = make_guest('e'), .consumer_type = CLAIM_TYPE_GUEST };
        const ClaimPlacing placing = { 0 };
        _cleanup_(claim_freep) Claim *claim = NULL;

        make_request(&request.resources, "VCPU=1");
        assert_int_equal(claims_claim(service->claims, &request, &placing, &claim, NULL, NULL), 0);
        resource_request_done(&request.resources);
        assert_int_equal(claims_extend(service->claims, claim->id, 10 * SEC, NULL), 0);
        poll = make_poll("", 11);
        claim_service_set_snapshot(service, poll, NULL);
        for (int i = 0; i < 3; i++) {
                memset(&world, 0, sizeof(world));
                world.wanted = "";
                world.result = i == 0 ? -ENOMEM : 0;
                world.leaves_out = i == 1;
                compare_alone(service);
                claim = claim_free(claim);
                assert_int_equal(
                        claims_find(service->claims, &request.consumer, false, &claim, NULL),
                        i < 2 ? 0 : CLAIM_E_NOT_FOUND);
        }
        claim_service_free(service);
}

static void on_adopted(void *userdata)
{
        note('!');
}

/* A comparison that cannot read, but could ask, leaves its questions to a later one. */
static void test_questions_are_left(void **state)
{
        static const struct {
                ReconcileAccess access;
                const char *wanted, *trace;
                bool asks;
        } cases[] = {
                { RECONCILE_CAN_READ, "", "|cd", false },
                { RECONCILE_CAN_READ, "x", "|cd", true },
                { RECONCILE_NO_READS, "x", "|wd", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *poll = make_poll("", 10);
                ClaimService *service = open_service(*state, poll);
                ComparisonRun *run = NULL;

                memset(&world, 0, sizeof(world));
                trace[0] = '\0';
                world.wanted = cases[i].wanted;
                assert_int_equal(comparison_run_begin_alone(&run, service, loop, cases[i].access,
                                                            on_done, &run),
                                 1);
                note('|');
                while (run)
                        assert_true(sd_event_run(loop, USEC_PER_SEC) > 0);
                assert_string_equal(trace, cases[i].trace);
                assert_int_equal(service->comparison.wants_answers, cases[i].asks);
                assert_int_equal(service->comparison.is_due, cases[i].asks);
                claim_service_free(service);
        }
}

/* A comparison of several turns shows that it adopts guests until its end, also if it is cancelled
 * or the database is closed. Then it is due again. */
static void test_takes_turns(void **state)
{
        static const struct {
                const char *about;
                bool alone, cancelled, closed;
                unsigned n_turns;
                const char *trace;
                bool is_due;
        } cases[] = {
                { "one turn", false, false, false, 0, "c", false },
                { "three turns", false, false, false, 2, ".|.c!d", false },
                { "cancelled", false, true, false, 2, ".|!", true },
                { "the database is closed", false, false, true, 2, ".|!d", true },
                { "without Placement", true, false, false, 0, "|w!d", false },
                { "without Placement, three turns", true, false, false, 2, "|..w!d", false },
                { "without Placement, cancelled", true, true, false, 0, "|!", true },
        };
        const Uuid root = make_uuid("host");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *poll = make_poll("", 10);
                ClaimService *service = open_service(*state, poll);
                ComparisonRun *run = NULL;
                int r;

                memset(&world, 0, sizeof(world));
                trace[0] = '\0';
                world.wanted = "";
                world.n_turns = cases[i].n_turns;
                claim_service_on_adopted(service, on_adopted, NULL);
                r = cases[i].alone
                            ? comparison_run_begin_alone(&run, service, loop, RECONCILE_NO_READS,
                                                         on_done, &run)
                            : comparison_run_begin(&run, service, loop, NULL, &root, on_done, &run);
                assert_int_equal(r, run != NULL);
                assert_int_equal(service->is_adopting, run != NULL);
                if (run)
                        note('|');
                if (cases[i].cancelled)
                        run = comparison_run_free(run);
                if (cases[i].closed)
                        service->claims = claims_free(service->claims);
                while (run)
                        assert_true(sd_event_run(loop, USEC_PER_SEC) > 0);
                if (strcmp(trace, cases[i].trace) != 0)
                        fail_msg("%s: %s", cases[i].about, trace);
                assert_false(service->is_adopting);
                assert_int_equal(service->comparison.is_due, cases[i].is_due);
                claim_service_free(service);
        }
}

/* The claim survives the tests, each of which opens the database. */
static int set_up(void **state)
{
        int r = fixture_setup(state);

        if (r == 0)
                add_follower(*state);
        return r == 0 && sd_event_new(&loop) < 0 ? -1 : r;
}

static int tear_down(void **state)
{
        loop = sd_event_unref(loop);
        return fixture_teardown(state);
}

TEST_MAIN_WITH(set_up, tear_down, test_asks_placement, test_ends, test_questions_are_left,
               test_takes_turns, test_polls, test_devices_of_an_ended_claim_are_withheld,
               test_jumps, test_clock_jump_moves_earlier_times, test_ends_of_time,
               test_a_clock_that_is_set_moves_times, test_a_clock_that_is_set_moves_the_poll,
               test_expired_claims_end)
