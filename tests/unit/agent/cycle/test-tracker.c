/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The tracker against fakes of its three collaborators: what each is told, in which order, and what
 * the status says after every way in which a cycle can go. */

#include "agent/cycle/tracker.h"

#include <sys/eventfd.h>

#include "agent/reshape/claim-move.h"
#include "base/log.h"
#include "drivers/update.h"
#include "report/gather.h"
#include "tests/unit/test.h"

#define ROOT "11111111-2222-3333-4444-555555555555"

/* One world for all fakes; reset by each test. */
typedef struct World {
        sd_event *event;
        Tracker *tracker;
        int fd;
        const Snapshot *known;
        DriverEvent poll_answer; /* what the next polls yield; type NONE: the poll hangs */
        DriverEvent pending;     /* not taken yet */
        const char *nodename;
        uint64_t patience_usec;
        bool reshape_needed, starts;
        int refresh_results[16], publish_results[16], gather_results[16]; /* in order, then 0 */
        size_t n_forgotten;
        size_t n_refreshes, n_prepares, n_publishes, n_gathers, n_reshapes;
        ReshaperAccess access;
        ReporterDone done;
        void *done_userdata;
        int done_result;
        sd_event_source *done_source;
        ProviderTree *mirror, *remembered;
        ReporterStatistics statistics;
        bool audit_due, audit_fails;
        size_t n_audits, n_given_up;
        const char *audit_waits; /* of the last audit */
        AuditorDone audit_done;
        void *audit_userdata;
        sd_event_source *audit_source;
        size_t n_polls, n_trees_for_claims, n_told, n_at_once;
        Error told;
} World;

static World world;

/* driver.h */

int driver_get_fd(Driver *driver)
{
        return world.fd;
}

static void post_snapshot(uint64_t began_usec)
{
        world.pending = world.poll_answer;
        if (world.pending.type == DRIVER_EVENT_SNAPSHOT) {
                assert_int_equal(snapshot_new(&world.pending.snapshot), 0);
                free(world.pending.snapshot->nodename);
                world.pending.snapshot->nodename = strdup(world.nodename);
                world.pending.snapshot->began_usec = began_usec;
        }
        assert_int_equal(eventfd_write(world.fd, 1), 0);
}

int driver_poll(Driver *driver, DriverPollKind kind)
{
        world.n_polls++;
        if (world.poll_answer.type != DRIVER_EVENT_NONE)
                post_snapshot(0);
        return 0;
}

int driver_take(Driver *driver, DriverEvent *ret)
{
        uint64_t count;

        if (read(world.fd, &count, sizeof(count)) < 0)
                assert_int_equal(errno, EAGAIN);
        *ret = world.pending;
        world.pending = (DriverEvent){ 0 };
        return 0;
}

int provider_update(const HostConfig *config, const Snapshot *snapshot, ProviderTree *tree,
                    const char *nodename, DriverReshape *reshape, Error *reterr)
{
        Provider *root = provider_tree_find_name(tree, nodename);

        assert_non_null(root);
        if (world.reshape_needed && !reshape->consumers)
                return DRIVER_RESHAPE_NEEDED;
        return provider_set_inventory(root, "VCPU", &INVENTORY_DEFAULT(8));
}

/* agent/guests/database.h */

void claim_service_tend(ClaimService *service)
{
}

void claim_service_set_node(ClaimService *service, const char *node)
{
        assert_string_equal(node, world.nodename);
}

const ProviderTree *claim_service_get_remembered_tree(ClaimService *service)
{
        return world.remembered;
}

void claim_service_set_tree(ClaimService *service, const ProviderTree *tree)
{
        world.n_trees_for_claims++;
}

void claim_service_set_snapshot(ClaimService *service, const Snapshot *snapshot)
{
}

void claim_service_set_guests(ClaimService *service, const Snapshot *snapshot)
{
}

void claim_service_reconcile(ClaimService *service, ReconcileWord word, ClaimWanted *wanted)
{
}

void claim_service_answer(ClaimService *service, const ClaimWanted *asked, Allocations *holding)
{
        allocations_free(holding);
}

int gather_consumers_new(Gather **ret, Session *session, const Uuid *consumers, size_t n_consumers,
                         GatherDone done, void *userdata, Error *reterr)
{
        return -ENOMEM;
}

Gather *gather_free(Gather *gather)
{
        return NULL;
}

void claim_move_follow(ClaimService *service, const TreeMaker *maker, const Snapshot *snapshot,
                       const ProviderTree *tree, const ReshapeImage *reshaped)
{
}

void claim_service_record(ClaimService *service, const EventNote *note)
{
}

Claims *claim_service_get(ClaimService *service)
{
        return NULL;
}

int claims_list(Claims *claims, ClaimsWhich which, const char *of, ClaimList *ret, Error *reterr)
{
        return -ENODATA;
}

void claim_list_done(ClaimList *list)
{
}

/* reporter.h */

int reporter_new(Reporter **ret, sd_event *event, const ReporterConfig *config, const Uuid *root,
                 const char *root_name, Error *reterr)
{
        *ret = (Reporter *)&world;
        return 0;
}

Reporter *reporter_free(Reporter *reporter)
{
        return NULL;
}

static int call_done(sd_event_source *source, void *userdata)
{
        Error error = ERROR_NULL;
        ReporterDone done = world.done;

        world.done = NULL;
        if (world.done_result)
                error_setf(&error, EIO, "outcome %d", world.done_result);
        done((Reporter *)&world, world.done_result, &error, world.done_userdata);
        return 0;
}

static int answer_later(int result, ReporterDone done, void *userdata)
{
        assert_null(world.done);
        world.done = done;
        world.done_userdata = userdata;
        world.done_result = result;
        world.done_source = sd_event_source_unref(world.done_source);
        return sd_event_add_defer(world.event, &world.done_source, call_done, NULL);
}

int reporter_refresh(Reporter *reporter, ReporterDone done, void *userdata)
{
        int result = world.refresh_results[world.n_refreshes++];

        if (result == 0 && !world.mirror)
                assert_int_equal(provider_tree_new(&world.mirror), 0);
        return answer_later(result, done, userdata);
}

void reporter_forget(Reporter *reporter)
{
        assert_null(world.done);
        world.n_forgotten++;
}

int reporter_gather(Reporter *reporter, const StringSet *classes, const ProviderTree *ahead,
                    ReporterDone done, void *userdata)
{
        return answer_later(world.gather_results[world.n_gathers++], done, userdata);
}

void reporter_take_gathered(Reporter *reporter, Allocations **ret_consumers,
                            Allocations **ret_others)
{
        *ret_others = NULL;
        assert_int_equal(allocations_new(ret_consumers), 0);
}

const ProviderTree *reporter_tree(Reporter *reporter)
{
        return world.mirror;
}

int reporter_publish(Reporter *reporter, const ProviderTree *desired,
                     const Allocations *allocations, ReporterDone done, void *userdata)
{
        int result = world.publish_results[world.n_publishes++];

        world.n_reshapes += allocations != NULL;
        if (result == 0) {
                world.reshape_needed &= !allocations;
                world.mirror = provider_tree_free(world.mirror);
                assert_int_equal(provider_tree_copy(&world.mirror, desired), 0);
        }
        return answer_later(result, done, userdata);
}

int reporter_prepare(Reporter *reporter, const ProviderTree *desired, ReporterDone done,
                     void *userdata)
{
        world.n_prepares++;
        return answer_later(0, done, userdata);
}

int reporter_plan(Reporter *reporter, const ProviderTree *desired, const Allocations *allocations,
                  Plan **ret, Error *reterr)
{
        return -ENODATA;
}

Session *reporter_get_session(Reporter *reporter)
{
        return NULL;
}

void reporter_ask_at_once(Reporter *reporter)
{
        world.n_at_once++;
}

const ReporterStatistics *reporter_get_statistics(Reporter *reporter)
{
        return &world.statistics;
}

void reporter_get_progress(const Reporter *reporter, Progress *ret)
{
        *ret = (Progress){ .phase = "publishing", .n_done = 1, .n_total = 2 };
}

const PlacementProviders *reporter_get_sharing(const Reporter *reporter)
{
        return NULL;
}

ReshaperAccess reporter_get_reshaper_access(const Reporter *reporter)
{
        return world.access;
}

/* agent/audit/auditor.h */

int auditor_new(Auditor **ret, const AuditorConfig *config)
{
        *ret = (Auditor *)&world;
        return 0;
}

Auditor *auditor_free(Auditor *auditor)
{
        return NULL;
}

void auditor_ask(Auditor *auditor, bool heal, const EventAuthor *by)
{
        world.audit_due = true;
}

bool auditor_is_due(Auditor *auditor)
{
        return world.audit_due;
}

static int end_audit(sd_event_source *source, void *userdata)
{
        world.audit_done(world.audit_userdata);
        return 0;
}

int auditor_begin(Auditor *auditor, Reporter *reporter, const char *waits, AuditorDone done,
                  void *userdata, Error *reterr)
{
        world.audit_waits = waits;
        world.n_audits++;
        if (world.audit_fails)
                return error_setf(reterr, EIO, "not now");
        world.audit_due = false;
        world.audit_done = done;
        world.audit_userdata = userdata;
        world.audit_source = sd_event_source_unref(world.audit_source);
        return sd_event_add_defer(world.event, &world.audit_source, end_audit, NULL);
}

void auditor_give_up(Auditor *auditor, const Error *error)
{
        world.n_given_up++;
        world.audit_due = false;
}

void auditor_get_progress(const Auditor *auditor, Progress *ret)
{
        *ret = (Progress){ "auditing", 1, 2 };
}

const AuditorState *auditor_get_state(const Auditor *auditor)
{
        return NULL;
}

/* Setting up, and running a cycle to its end. */

static const ReporterConfig reporter_config;

static void start(const ReporterConfig *reporter, bool dry_run)
{
        TrackerConfig config = { .patience_usec = world.patience_usec,
                                 .reporter = reporter,
                                 .interval_usec = UINT64_MAX,
                                 .dry_run = dry_run,
                                 .starts = world.starts,
                                 .known = world.known };
        Error error = ERROR_NULL;

        assert_int_equal(uuid_from_text(ROOT, &config.maker.root), 0);
        if (tracker_new(&world.tracker, world.event, &config, &error) < 0)
                fail_msg("%s", error.text);
}

static int set_up(void **state)
{
        log_set_level(LOG_EMERG);
        world = (World){ .nodename = "host1", .patience_usec = 50 * USEC_PER_MSEC };
        world.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        world.poll_answer.type = DRIVER_EVENT_SNAPSHOT;
        return world.fd < 0 ? -1 : sd_event_new(&world.event);
}

static int tear_down(void **state)
{
        tracker_free(world.tracker);
        sd_event_source_unref(world.done_source);
        sd_event_source_unref(world.audit_source);
        sd_event_unref(world.event);
        provider_tree_free(world.mirror);
        provider_tree_free(world.remembered);
        snapshot_unref(world.pending.snapshot);
        close(world.fd);
        return 0;
}

/* Another world, for the next case of a table. */
static void start_over(void)
{
        (void)tear_down(NULL);
        assert_int_equal(set_up(NULL), 0);
}

static void on_told(Tracker *tracker, const Error *error, void *userdata)
{
        world.n_told++;
        world.told = *error;
}

/* Runs the loop until somebody was told, bounded. */
static void run_until_told(size_t n_told)
{
        for (int i = 0; i < 400 && world.n_told < n_told; i++)
                assert_true(sd_event_run(world.event, 20 * USEC_PER_MSEC) >= 0);
        assert_int_equal(world.n_told, n_told);
}

static const TrackerStatus *run_cycle(void)
{
        assert_int_equal(tracker_sync(world.tracker, on_told, NULL), 0);
        run_until_told(world.n_told + 1);
        return tracker_get_status(world.tracker);
}

/* It reads anew what it is to, and once. */
static void test_a_full_sync(void **state)
{
        start(&reporter_config, false);
        assert_int_equal(run_cycle()->sync_state, SYNC_SYNCED);
        assert_int_equal(world.n_forgotten, 0);
        assert_int_equal(tracker_sync_full(world.tracker, on_told, NULL), 0);
        run_until_told(world.n_told + 1);
        assert_int_equal(world.n_forgotten, 1);
        assert_int_equal(world.n_refreshes, 2);
        (void)run_cycle();
        assert_int_equal(world.n_forgotten, 1);
        assert_int_equal(world.n_refreshes, 3);
}

static void test_one_cycle(void **state)
{
        const TrackerStatus *status;
        Progress progress;

        start(&reporter_config, false);
        assert_int_equal(tracker_get_status(world.tracker)->sync_state, SYNC_PENDING);
        tracker_get_progress(world.tracker, &progress);
        assert_string_equal(progress.phase, "waiting");
        assert_int_equal(progress.n_total, 0);
        status = run_cycle();
        assert_int_equal(status->sync_state, SYNC_SYNCED);
        assert_int_equal(world.told.code, 0);
        assert_int_equal(world.n_polls, 1);
        assert_int_equal(world.n_refreshes, 1);
        assert_int_equal(world.n_publishes, 1);
        assert_true(status->last_sync_usec > 0);
        assert_true(status->sync_since_usec > 0 &&
                    status->sync_since_usec <= status->last_sync_usec + USEC_PER_SEC);
        assert_string_equal(tracker_get_tree(world.tracker)->providers[0]->name, "host1");
        assert_true(world.n_trees_for_claims > 0);
}

/* What the first cycle does of a reshape, and what is left for the next ones. */
static void test_reshape_at_the_start(void **state)
{
        static const struct {
                const char *about;
                bool starts;
                int gather[4], publish[4];
                size_t n_gathers, n_reshapes; /* in the first cycle, and all in all */
                bool needed, failed;          /* after it */
                size_t n_later;
        } cases[] = {
                { "done", true, .n_gathers = 1, .n_reshapes = 1, .n_later = 1 },
                { "not at the start", false, .needed = true },
                { "G2.3: overtaken three times", true, .gather = { 0, REPORT_E_CONFLICT },
                  .publish = { REPORT_E_CONFLICT, REPORT_E_IN_USE }, .n_gathers = 4,
                  .n_reshapes = 3, .n_later = 3 },
                { "forbidden: once, and not again", true, .publish = { REPORT_E_FORBIDDEN },
                  .n_gathers = 1, .n_reshapes = 1, .needed = true, .failed = true, .n_later = 1 },
                { "Placement goes away: it is still the start", true,
                  .gather = { REPORT_E_UNREACHABLE }, .n_gathers = 1, .needed = true,
                  .n_later = 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const TrackerStatus *status;

                start_over();
                world.starts = cases[i].starts;
                world.reshape_needed = true;
                memcpy(world.gather_results, cases[i].gather, sizeof(cases[i].gather));
                memcpy(world.publish_results, cases[i].publish, sizeof(cases[i].publish));
                start(&reporter_config, false);
                status = run_cycle();
                if (world.n_gathers != cases[i].n_gathers ||
                    world.n_reshapes != cases[i].n_reshapes ||
                    status->reshape_needed != cases[i].needed ||
                    !!status->reshape_error.code != cases[i].failed)
                        fail_msg("%s: %zu, %zu: %s", cases[i].about, world.n_gathers,
                                 world.n_reshapes, status->reshape_error.text);
                (void)run_cycle();
                if (world.n_reshapes != cases[i].n_later)
                        fail_msg("%s: %zu later", cases[i].about, world.n_reshapes);
        }
}

static void test_outcomes(void **state)
{
        static const struct {
                int refresh, publish;
                SyncState expected;
        } cases[] = {
                { 0, 0, SYNC_SYNCED },
                { REPORT_E_UNREACHABLE, 0, SYNC_OFFLINE },
                { REPORT_E_UNAVAILABLE, 0, SYNC_OFFLINE },
                { REPORT_E_UNAUTHORIZED, 0, SYNC_OFFLINE },
                { 0, REPORT_E_UNREACHABLE, SYNC_OFFLINE },
                { 0, REPORT_E_FORBIDDEN, SYNC_STALE },
                { 0, REPORT_E_IN_USE, SYNC_STALE },
                { 0, REPORT_E_DUPLICATE_NAME, SYNC_STALE },
                { 0, REPORT_E_REFUSED, SYNC_STALE },
                { REPORT_E_TOO_OLD, 0, SYNC_STALE },
                { 0, -ENOMEM, SYNC_STALE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const TrackerStatus *status;

                start_over();
                world.refresh_results[0] = cases[i].refresh;
                world.publish_results[0] = cases[i].publish;
                start(&reporter_config, false);
                status = run_cycle();
                if (status->sync_state != cases[i].expected)
                        fail_msg("case %zu: %s", i, sync_state_to_text(status->sync_state));
                assert_int_equal(world.told.code != 0, cases[i].expected != SYNC_SYNCED);
                assert_int_equal(status->sync_error.code != 0, cases[i].expected != SYNC_SYNCED);
                /* The next cycle heals it. */
                assert_int_equal(run_cycle()->sync_state, SYNC_SYNCED);
        }
}

static void test_conflicts_start_over(void **state)
{
        for (int i = 0; i < 3; i++)
                world.publish_results[i] = REPORT_E_CONFLICT;
        start(&reporter_config, false);
        assert_int_equal(run_cycle()->sync_state, SYNC_SYNCED);
        assert_int_equal(world.n_polls, 1);
        assert_int_equal(world.n_refreshes, 4);
        assert_int_equal(world.n_publishes, 4);
}

static void test_conflicts_end(void **state)
{
        for (int i = 0; i < 16; i++)
                world.publish_results[i] = REPORT_E_CONFLICT;
        start(&reporter_config, false);
        assert_int_equal(run_cycle()->sync_state, SYNC_PENDING);
        assert_int_not_equal(world.told.code, 0);
        assert_true(world.n_publishes < 16);
}

static void fail_polls(const char *words)
{
        world.poll_answer.type = DRIVER_EVENT_POLL_FAILED;
        error_setf(&world.poll_answer.error, ECONNREFUSED, "%s", words);
}

static void test_no_snapshot_publishes_nothing(void **state)
{
        const TrackerStatus *status;

        fail_polls("no libvirtd");
        start(&reporter_config, false);
        status = run_cycle();
        assert_int_equal(world.n_refreshes, 0);
        assert_string_equal(status->hypervisor_error.text, "no libvirtd");
        assert_string_equal(world.told.text, "no libvirtd");
        assert_null(tracker_get_tree(world.tracker));
}

static void test_the_last_snapshot_is_kept(void **state)
{
        const TrackerStatus *status;

        start(&reporter_config, false);
        run_cycle();
        fail_polls("gone");
        status = run_cycle();
        assert_int_equal(world.n_refreshes, 2);
        assert_int_equal(status->sync_state, SYNC_SYNCED);
        assert_string_equal(world.told.text, "gone");
        assert_non_null(tracker_get_snapshot(world.tracker));
        world.poll_answer.type = DRIVER_EVENT_SNAPSHOT;
        assert_int_equal(run_cycle()->hypervisor_error.code, 0);
}

/* As a reload hands it over; the hypervisor is away. */
static void test_a_known_host_is_served(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *known = NULL;
        const TrackerStatus *status;

        assert_int_equal(snapshot_new(&known), 0);
        free(known->nodename);
        known->nodename = strdup(world.nodename);
        known->taken_realtime_usec = 7;
        fail_polls("no libvirtd");
        world.known = known;
        start(&reporter_config, false);
        assert_true(tracker_get_snapshot(world.tracker) == known);
        status = run_cycle();
        assert_string_equal(world.told.text, "no libvirtd");
        assert_int_equal(status->sync_state, SYNC_SYNCED);
        assert_int_equal(status->last_poll_usec, 7);
        assert_non_null(tracker_get_tree(world.tracker));
}

static void test_a_hung_poll_does_not_hold_the_cycle(void **state)
{
        const TrackerStatus *status;

        start(&reporter_config, false);
        run_cycle();
        world.poll_answer.type = DRIVER_EVENT_NONE;
        status = run_cycle();
        assert_int_equal(status->hypervisor_error.code, ETIMEDOUT);
        assert_int_equal(status->sync_state, SYNC_SYNCED);
        assert_int_equal(world.n_refreshes, 2);
        world.poll_answer.type = DRIVER_EVENT_SNAPSHOT;
        assert_int_equal(run_cycle()->hypervisor_error.code, 0);
}

/* A look that is under way when a cycle is asked for says nothing of what came since. */
static void test_a_cycle_waits_for_a_later_poll(void **state)
{
        world.patience_usec = 0; /* long */
        start(&reporter_config, false);
        world.poll_answer.type = DRIVER_EVENT_NONE;
        assert_int_equal(tracker_look(world.tracker, NULL), 0);
        assert_int_equal(tracker_sync(world.tracker, on_told, NULL), 0);
        while (world.n_polls < 2)
                assert_true(sd_event_run(world.event, 20 * USEC_PER_MSEC) >= 0);
        world.poll_answer.type = DRIVER_EVENT_SNAPSHOT;
        post_snapshot(1);
        assert_true(sd_event_run(world.event, 20 * USEC_PER_MSEC) >= 0);
        assert_int_equal(world.n_refreshes, 0);
        post_snapshot(UINT64_MAX);
        run_until_told(1);
        assert_int_equal(world.n_refreshes, 1);
}

static void test_a_request_during_a_cycle_gets_its_own(void **state)
{
        start(&reporter_config, false);
        assert_int_equal(tracker_sync(world.tracker, on_told, NULL), 0);
        while (world.n_refreshes == 0)
                assert_true(sd_event_run(world.event, 20 * USEC_PER_MSEC) >= 0);
        assert_int_equal(tracker_sync(world.tracker, on_told, NULL), 0);
        run_until_told(1);
        assert_int_equal(world.n_polls, 1);
        run_until_told(2);
        assert_int_equal(world.n_polls, 2);
}

static void test_cancelled_waiters_are_not_told(void **state)
{
        int mine;

        start(&reporter_config, false);
        assert_int_equal(tracker_sync(world.tracker, on_told, &mine), 0);
        tracker_sync_cancel(world.tracker, &mine);
        run_cycle();
        assert_int_equal(world.n_told, 1);
}

static void test_dry_run_stops_before_the_first_write(void **state)
{
        start(&reporter_config, true);
        run_cycle();
        assert_int_equal(world.told.code, 0);
        assert_int_equal(world.n_refreshes, 1);
        assert_int_equal(world.n_prepares, 1); /* or its plan would show traits that are left out */
        assert_int_equal(world.n_publishes, 0);
}

/* An audit is the last part of a cycle that read Placement, whatever became of the rest. */
static void test_audits(void **state)
{
        static const struct {
                int refresh, publish;
                bool fails;
                size_t n_audits, n_given_up;
        } cases[] = {
                { 0, 0, false, 1, 0 },
                { 0, REPORT_E_REFUSED, false, 1, 0 },
                { REPORT_E_UNREACHABLE, 0, false, 0, 1 },
                { 0, REPORT_E_UNAVAILABLE, false, 0, 1 },
                { 0, 0, true, 1, 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                start_over();
                world.refresh_results[0] = cases[i].refresh;
                world.publish_results[0] = cases[i].publish;
                world.audit_fails = cases[i].fails;
                start(&reporter_config, false);
                assert_int_equal(tracker_audit(world.tracker, false, NULL, on_told, NULL), 0);
                run_until_told(1);
                assert_int_equal(world.n_audits, cases[i].n_audits);
                assert_true((world.audit_waits != NULL) == (cases[i].publish == REPORT_E_REFUSED));
                assert_int_equal(world.n_given_up, cases[i].n_given_up);
                /* once, not in each cycle */
                run_cycle();
                assert_int_equal(world.n_audits, cases[i].n_audits);
        }
}

/* Nobody loses something while the shape of the tree, or who is here, is not what it should be. */
static void test_what_audits_wait_for(void **state)
{
        start(&reporter_config, false);
        world.audit_due = true;
        run_cycle();
        assert_null(world.audit_waits);
        world.reshape_needed = world.audit_due = true;
        run_cycle();
        assert_non_null(strstr(world.audit_waits, "reshaped"));
        world.reshape_needed = false;
        world.audit_due = true;
        fail_polls("gone");
        run_cycle();
        assert_non_null(strstr(world.audit_waits, "hypervisor"));
        world.audit_due = true;
        world.poll_answer.type = DRIVER_EVENT_SNAPSHOT;
        run_cycle();
        assert_null(world.audit_waits);
}

static void test_standalone(void **state)
{
        start(NULL, false);
        assert_int_equal(run_cycle()->sync_state, SYNC_STANDALONE);
        assert_int_equal(world.n_refreshes, 0);
        assert_int_equal(tracker_get_tree(world.tracker)->n_providers, 1);
        assert_true(world.n_trees_for_claims > 0);
}

static void test_a_reshape_is_reported_and_the_old_shape_kept(void **state)
{
        const TrackerStatus *status;

        world.reshape_needed = true;
        start(&reporter_config, false);
        status = run_cycle();
        assert_true(status->reshape_needed);
        assert_int_equal(status->sync_state, SYNC_STALE);
        world.reshape_needed = false;
        assert_int_equal(run_cycle()->sync_state, SYNC_SYNCED);
}

/* Also when a publish fails for another reason. */
static void test_the_right_to_reshape_is_told(void **state)
{
        start(&reporter_config, false);
        world.publish_results[0] = REPORT_E_REFUSED;
        world.access = RESHAPER_FORBIDDEN;
        assert_int_equal(run_cycle()->reshape_access, RESHAPER_FORBIDDEN);
        world.access = RESHAPER_ALLOWED;
        assert_int_equal(run_cycle()->reshape_access, RESHAPER_ALLOWED);
}

static void test_a_renamed_host_is_refused(void **state)
{
        start(&reporter_config, false);
        run_cycle();
        world.nodename = "host2";
        assert_non_null(strstr(run_cycle()->hypervisor_error.text, "host2"));
        assert_string_equal(tracker_get_tree(world.tracker)->providers[0]->name, "host1");
}

/* Placement is away at the start: what an operator had set there is not forgotten. */
static void test_without_placement_the_remembered_host_is_used(void **state)
{
        static const struct {
                const char *name;
                bool used;
        } cases[] = { { "host1", true }, { "old", false } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Inventory inventory = INVENTORY_DEFAULT(77);
                const Provider *root;
                Provider *remembered;
                Uuid uuid;

                start_over();
                assert_int_equal(uuid_from_text(ROOT, &uuid), 0);
                assert_int_equal(provider_tree_new(&world.remembered), 0);
                assert_int_equal(provider_tree_add(world.remembered, &uuid, cases[i].name, NULL,
                                                   &remembered, NULL),
                                 0);
                assert_int_equal(provider_set_inventory(remembered, "CUSTOM_X", &inventory), 0);
                world.refresh_results[0] = REPORT_E_UNREACHABLE;
                start(&reporter_config, false);
                run_cycle();
                root = tracker_get_tree(world.tracker)->providers[0];
                assert_string_equal(root->name, "host1");
                assert_int_equal(provider_find_inventory(root, "CUSTOM_X") != NULL, cases[i].used);
                /* Placement's own answer counts more. */
                assert_int_equal(run_cycle()->sync_state, SYNC_SYNCED);
                root = tracker_get_tree(world.tracker)->providers[0];
                assert_null(provider_find_inventory(root, "CUSTOM_X"));
        }
}

static void test_a_root_under_another_name_is_refused(void **state)
{
        Uuid root;

        assert_int_equal(uuid_from_text(ROOT, &root), 0);
        assert_int_equal(provider_tree_new(&world.mirror), 0);
        assert_int_equal(provider_tree_add(world.mirror, &root, "old", NULL, NULL, NULL), 0);
        start(&reporter_config, false);
        assert_int_equal(run_cycle()->sync_state, SYNC_STALE);
        assert_int_equal(world.n_publishes, 0);
        assert_non_null(strstr(world.told.text, "old"));
}

TEST_MAIN_WITH(set_up, tear_down, test_a_full_sync, test_one_cycle, test_reshape_at_the_start,
               test_outcomes, test_conflicts_start_over, test_conflicts_end,
               test_no_snapshot_publishes_nothing, test_the_last_snapshot_is_kept,
               test_a_known_host_is_served, test_a_hung_poll_does_not_hold_the_cycle,
               test_a_cycle_waits_for_a_later_poll, test_a_request_during_a_cycle_gets_its_own,
               test_cancelled_waiters_are_not_told, test_dry_run_stops_before_the_first_write,
               test_audits, test_what_audits_wait_for, test_standalone,
               test_a_reshape_is_reported_and_the_old_shape_kept, test_the_right_to_reshape_is_told,
               test_a_renamed_host_is_refused, test_without_placement_the_remembered_host_is_used,
               test_a_root_under_another_name_is_refused)
