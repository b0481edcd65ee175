/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The tracker with fakes of its three collaborators: the driver, the claims and the reporter. The
 * tests check the calls to each, their order, and the status after each course of a cycle. */

#include "agent/cycle/tracker-internal.h"

#include <inttypes.h>
#include <sys/eventfd.h>

#include "agent/reshape/claim-move.h"
#include "base/clock.h"
#include "base/log.h"
#include "drivers/update.h"
#include "report/gather.h"
#include "tests/fakes/reporter.h"
#include "tests/fixtures/tree.h"
#include "tests/unit/test.h"

#define ROOT "11111111-2222-3333-4444-555555555555"

/* The state of all fakes; reset by each test. */
typedef struct World {
        Tracker *tracker;
        int fd;
        const Snapshot *known;
        DriverEvent poll_answer; /* the result of the next polls; type NONE: the poll hangs */
        DriverEvent pending;     /* an event that the tracker has not taken */
        const char *nodename;
        uint64_t patience_usec;
        bool broken, lost, starts, audit_due, audit_fails;
        size_t n_needed; /* reshapes after which the tree needs no other one */
        Cordon *cordon;
        Retained *retained; /* NULL: none */
        ProviderTree *remembered;
        bool asks;               /* a comparison without reads has a question to Placement */
        const char *audit_waits; /* why the last audit must not heal */
        void (*audit_done)(void *userdata);
        void *audit_userdata;
        sd_event_source *audit_source;
        size_t n_trees_for_claims, n_told, n_copies, n_followed;
        ProviderTree *for_claims; /* the last tree that the claims got */
        Error told;
} World;

static World world;

/* Counts the copies of trees. Linked with --wrap. */
int __real_provider_tree_copy(ProviderTree **ret, const ProviderTree *tree);
int __wrap_provider_tree_copy(ProviderTree **ret, const ProviderTree *tree);
int __wrap_provider_tree_copy(ProviderTree **ret, const ProviderTree *tree)
{
        world.n_copies++;
        return __real_provider_tree_copy(ret, tree);
}

/* Fake of drivers/driver.h */

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
        fake_reporter_note('P');
        if (world.poll_answer.type != DRIVER_EVENT_NONE)
                post_snapshot(clock_usec(CLOCK_MONOTONIC));
        return 0;
}

int driver_take(Driver *driver, DriverEvent *ret)
{
        uint64_t count;

        assert_true(read(world.fd, &count, sizeof(count)) >= 0 || errno == EAGAIN);
        *ret = TAKE_STRUCT(world.pending);
        return 0;
}

int provider_update(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                    ProviderTree *tree, const char *nodename, DriverReshape *reshape, Error *reterr)
{
        Provider *root = provider_tree_find_name(tree, nodename);

        assert_non_null(root);
        if (world.broken)
                return error_setf(reterr, EINVAL, "broken");
        /* The driver must not edit a borrowed tree. */
        assert_true(!reshape->before || provider_tree_equal(tree, reshape->before));
        if (world.n_needed > fake_reporter.n_reshapes && !reshape->consumers)
                return DRIVER_RESHAPE_NEEDED;
        if (world.lost)
                provider_remove_inventory(root, "VCPU");
        return world.lost ? 0 : provider_set_inventory(root, "VCPU", &INVENTORY_DEFAULT(8));
}

/* Fake of agent/guests/database.h */

void claim_service_tend(ClaimService *service)
{
}

void claim_service_set_node(ClaimService *service, const char *node)
{
        assert_string_equal(node, world.nodename);
}

void claim_service_set_tree(ClaimService *service, const ProviderTree *tree)
{
        world.n_trees_for_claims++;
        provider_tree_free(world.for_claims);
        world.for_claims = provider_tree_ref(tree);
}

void claim_service_set_snapshot(ClaimService *service, const Snapshot *snapshot,
                                const DeviceFacts *known)
{
}

void claim_service_watch_cards(ClaimService *service, void (*watch)(void *userdata), void *userdata)
{
}

void claim_service_set_guests(ClaimService *service, const Snapshot *snapshot)
{
}

int comparison_run_begin(ComparisonRun **ret, ClaimService *service, sd_event *event,
                         Reporter *reporter, const Uuid *root, void (*done)(void *userdata),
                         void *userdata)
{
        return 0;
}

int comparison_run_begin_alone(ComparisonRun **ret, ClaimService *service, sd_event *event,
                               ReconcileAccess word, void (*done)(void *userdata), void *userdata)
{
        service->comparison.wants_answers = word == RECONCILE_CAN_READ && world.asks;
        return 0;
}

ComparisonRun *comparison_run_free(ComparisonRun *run)
{
        return NULL;
}

void claim_service_note_published(ClaimService *service)
{
}

void claim_service_restore_held(ClaimService *service, uint64_t stamp)
{
        service->comparison.held_stamp = stamp;
}

bool claim_move_follow(ClaimService *service, const TreeMaker *maker, const Snapshot *snapshot,
                       const ProviderTree *tree, const ReshapeImage *reshaped, bool is_final)
{
        return (world.n_followed += reshaped->after.consumers != NULL) > 1;
}

void claim_service_record(ClaimService *service, const EventNote *note)
{
}

size_t claim_service_count(ClaimService *service)
{
        return 0;
}

int claims_host(Claims *claims, const HostView **ret, Error *reterr)
{
        return -ENOENT;
}

int claims_list(Claims *claims, ClaimsWhich which, const char *of, ClaimList *ret, Error *reterr)
{
        *ret = (ClaimList){ 0 };
        return 0;
}

int claims_get(Claims *claims, int64_t id, Claim **ret, Error *reterr)
{
        return CLAIM_E_NOT_FOUND;
}

int claims_list_unclean(Claims *claims, UncleanDevices *ret, Error *reterr)
{
        return 0;
}

int claims_list_identities(Claims *claims, ClaimedDevices *ret, Error *reterr)
{
        return -ENODATA;
}

/* Fake of agent/audit/auditor.h */

int auditor_new(Auditor **ret, sd_event *event, const AuditorConfig *config)
{
        *ret = (Auditor *)&world;
        return 0;
}

Auditor *auditor_free(Auditor *auditor)
{
        return NULL;
}

void auditor_ask(Auditor *auditor, bool heals, const Uuid *consumer, const EventAuthor *by)
{
        world.audit_due = true;
}

void auditor_spare(Auditor *auditor, uint64_t ended_usec)
{
        world.audit_due = false;
}

bool auditor_is_due(Auditor *auditor, const char *waits)
{
        return world.audit_due;
}

static int end_audit(sd_event_source *source, void *userdata)
{
        world.audit_done(world.audit_userdata);
        return 0;
}

int auditor_begin(Auditor *auditor, Reporter *reporter, const char *waits,
                  void (*done)(void *userdata), void *userdata, Error *reterr)
{
        assert_non_null(reporter);
        world.audit_waits = waits;
        fake_reporter_note('A');
        if (world.audit_fails)
                return error_setf(reterr, EIO, "not now");
        world.audit_due = false;
        world.audit_done = done;
        world.audit_userdata = userdata;
        world.audit_source = sd_event_source_unref(world.audit_source);
        return sd_event_add_defer(fake_reporter.event, &world.audit_source, end_audit, NULL);
}

void auditor_give_up(Auditor *auditor, const Error *error)
{
        fake_reporter_note('g');
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

/* Set-up, and a complete cycle */

static const ReporterConfig reporter_config, observer_config = { .nova = NOVA_OBSERVE };

static void ignore_change(Tracker *tracker, void *userdata)
{
}

static void ignore_look(Tracker *tracker, uint64_t began_usec, const Error *error, void *userdata)
{
}

static Claims *get_no_claims(ClaimService *service)
{
        return NULL;
}

static void start(const ReporterConfig *reporter, bool dry_run)
{
        static const HostConfig host_config;
        static ClaimService claims;
        TrackerConfig config = { .maker = { .config = &host_config,
                                            .claims = &claims,
                                            .get_claims = get_no_claims,
                                            .cordon = world.cordon,
                                            .retained = world.retained },
                                 .patience_usec = world.patience_usec,
                                 .reporter = reporter,
                                 .interval_usec = UINT64_MAX,
                                 .dry_run = dry_run,
                                 .starts = world.starts,
                                 .known = world.known,
                                 .changed = ignore_change,
                                 .looked = ignore_look };
        Error error = ERROR_NULL;

        claims = (ClaimService){ .claims = (Claims *)&world, .remembered = world.remembered };
        assert_int_equal(uuid_from_text(ROOT, &config.maker.root), 0);
        if (tracker_new(&world.tracker, fake_reporter.event, &config, &error) < 0)
                fail_msg("%s", error.text);
}

static int set_up(void **state)
{
        log_set_level(LOG_EMERG);
        fake_reporter_begin();
        world = (World){ .nodename = "host1", .patience_usec = 50 * USEC_PER_MSEC };
        world.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        world.poll_answer.type = DRIVER_EVENT_SNAPSHOT;
        assert_int_equal(cordon_new(&world.cordon, "/", true, NULL), 0);
        return world.fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
        tracker_free(world.tracker);
        sd_event_source_unref(world.audit_source);
        provider_tree_free(world.remembered);
        snapshot_unref(world.pending.snapshot);
        fake_reporter_end();
        provider_tree_free(world.for_claims);
        cordon_free(world.cordon);
        retained_free(world.retained);
        close(world.fd);
        return 0;
}

/* Resets the world for the next case of a table. */
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

/* Runs the loop until n_told waiters were called, with a limit. */
static void run_until_told(size_t n_told)
{
        for (int i = 0; i < 400 && world.n_told < n_told; i++)
                assert_true(sd_event_run(fake_reporter.event, 20 * USEC_PER_MSEC) >= 0);
        assert_int_equal(world.n_told, n_told);
}

static const TrackerStatus *run_cycle(void)
{
        memset(fake_reporter.did, 0, sizeof(fake_reporter.did));
        assert_int_equal(tracker_sync(world.tracker, TRACKER_SYNC, on_told, NULL), 0);
        run_until_told(world.n_told + 1);
        return tracker_view(world.tracker).status;
}

static void ask_retirement(RetireKind kind)
{
        const EventAuthor by = { .text = "tester" };
        Uuid root;

        assert_int_equal(uuid_from_text(ROOT, &root), 0);
        assert_int_equal(cordon_set(world.cordon, NULL, &root, "", "sold", "tester", NULL, 1, NULL),
                         0);
        retirement_ask(tracker_view(world.tracker).retirement, kind, &by);
}

static void fail_polls(const char *words)
{
        world.poll_answer.type = DRIVER_EVENT_POLL_FAILED;
        error_setf(&world.poll_answer.error, ECONNREFUSED, "%s", words);
}

/* Prepares the events of a cycle: words with blanks between them; "": no event. "W:conflict" is the
 * next result of the requests that FakeReporter.did calls W; "ok" is a success. */
static void let_come(const char *events)
{
        static const struct {
                const char *name;
                int result;
        } answers[] = { { "ok", 0 },
                        { "conflict", REPORT_E_CONFLICT },
                        { "in-use", REPORT_E_IN_USE },
                        { "duplicate", REPORT_E_DUPLICATE_NAME },
                        { "forbidden", REPORT_E_FORBIDDEN },
                        { "refused", REPORT_E_REFUSED },
                        { "too-old", REPORT_E_TOO_OLD },
                        { "no-memory", -ENOMEM },
                        { "unauthorized", REPORT_E_UNAUTHORIZED },
                        { "unavailable", REPORT_E_UNAVAILABLE },
                        { "unreadable", REPORT_E_UNREADABLE },
                        { "unreachable", REPORT_E_UNREACHABLE } };
        ReshapeControl *control = tracker_view(world.tracker).reshape;
        char word[16];

        world.poll_answer.type = DRIVER_EVENT_SNAPSHOT;
        world.nodename = "host1";
        fake_reporter.refreshes = fake_reporter.publishes = fake_reporter.gathers =
                (FakeAnswers){ 0 };
        fake_reporter.n_reshapes = world.n_needed = 0;
        world.broken = world.lost = world.audit_fails = false;
        fake_reporter.access = RESHAPER_ALLOWED;
        world.audit_waits = NULL;
        for (int n; sscanf(events, "%15s%n", word, &n) == 1; events += n) {
                FakeAnswers *list = word[0] == 'R'   ? &fake_reporter.refreshes
                                    : word[0] == 'W' ? &fake_reporter.publishes
                                                     : &fake_reporter.gathers;

                for (size_t i = 0; word[1] == ':' && i < ARRAY_SIZE(answers); i++)
                        if (strcmp(answers[i].name, word + 2) == 0)
                                list->results[list->n++] = answers[i].result;
                if (strcmp(word, "gone") == 0)
                        fail_polls(word);
                else if (strcmp(word, "hangs") == 0)
                        world.poll_answer.type = DRIVER_EVENT_NONE;
                else if (strcmp(word, "renamed") == 0)
                        world.nodename = "host2";
                else if (strcmp(word, "reshape") == 0)
                        world.n_needed++;
                else if (strcmp(word, "broken") == 0)
                        world.broken = true;
                else if (strcmp(word, "lost") == 0)
                        world.lost = true;
                else if (strcmp(word, "may-not") == 0)
                        fake_reporter.access = RESHAPER_FORBIDDEN;
                else if (strcmp(word, "audit-fails") == 0)
                        world.audit_fails = true;
                else if (strcmp(word, "audit") == 0)
                        auditor_ask(tracker_view(world.tracker).auditor, false, NULL, NULL);
                else if (strcmp(word, "retire") == 0)
                        ask_retirement(RETIRE_DO);
                else if (strcmp(word, "retire-show") == 0)
                        ask_retirement(RETIRE_SHOW);
                else if (strcmp(word, "reshape-show") == 0)
                        reshape_control_ask(control, RESHAPE_SHOW, NULL);
                else if (strcmp(word, "undo") == 0)
                        reshape_control_ask(control, RESHAPE_UNDO, NULL);
                else if (strcmp(word, "full") == 0)
                        assert_int_equal(
                                tracker_sync(world.tracker, TRACKER_PUBLISH_ALL, NULL, NULL), 0);
        }
        fake_reporter.refreshes.n = fake_reporter.publishes.n = fake_reporter.gathers.n = 0;
}

/* Runs a cycle with these events. then is the expected text: the requests, the status, the words of
 * the waiter, and the reason for which an audit does not heal. */
static void run_as(const char *about, const char *comes, const char *then)
{
        const TrackerStatus *status;
        const ProviderTree *tree;
        char text[300];

        let_come(comes);
        status = run_cycle();
        tree = tracker_view(world.tracker).tree;
        snprintf(text, sizeof(text), "%s %s%s%s%s%s%s%.20s%s%.19s", fake_reporter.did,
                 sync_state_to_text(status->sync_state), status->reshape_needed ? ", needed" : "",
                 status->reshape_error.code ? ", failed" : "",
                 status->reshape_access == RESHAPER_FORBIDDEN ? ", forbidden" : "",
                 status->hypervisor_error.code ? ", unread" : "", world.told.code ? ": " : "",
                 world.told.text, world.audit_waits ? "; " : "",
                 world.audit_waits ? strstr(world.audit_waits, "until") : "");
        if (strcmp(text, then) != 0)
                fail_msg("%s: %s", about, text);
        if (status->sync_state == SYNC_STALE || status->sync_state == SYNC_OFFLINE)
                assert_string_equal(status->sync_error.text, world.told.text);
        if (status->sync_state == SYNC_RETIRED)
                assert_true(status->tree_published &&
                            !reshape_control_get_state(tracker_view(world.tracker).reshape)->asked);
        assert_int_equal(!tree, !tracker_view(world.tracker).snapshot);
        assert_true(!tree == (world.n_trees_for_claims == 0));
        assert_true(world.n_followed == 0 || world.n_followed == 2); /* the first one fails */
        if (tree)
                assert_string_equal(tree->providers[0]->name, "host1");
}

/* The kinds of trackers, with the result of a cycle without events. */
static const struct {
        const char *name;
        const ReporterConfig *reporter;
        bool dry_run, starts;
        const char *well;
} kinds[] = {
        { "", &reporter_config, false, false, "PRW synced" },
        { "starts", &reporter_config, false, true, "PRW synced" },
        { "dry", &reporter_config, true, false, "PRp pending" },
        { "observe", &observer_config, false, false, "PRp left-to-nova" },
        { "retires", &reporter_config, false, false, "Pg retired" },
        { "retains", &reporter_config, false, false, "PRW synced" },
        { "alone", NULL, false, false, "Pg standalone" },
};

/* The cycles. A row without about is the next cycle after the row above it. how is the kind of the
 * tracker. */
static const struct {
        const char *about, *how, *comes, *then;
} cycles[] = {
        { "a full one reads again, once", "", "", "PRW synced" },
        { NULL, "", "full", "PFRW synced" },
        { "without a snapshot nothing is published", "", "gone", "Pg pending, unread: gone" },
        { "the last snapshot is kept", "", "", "PRW synced" },
        { NULL, "", "gone", "PRW synced, unread: gone" },
        { "a poll that hangs does not hold the cycle", "", "", "PRW synced" },
        { NULL, "", "hangs", "PRW synced, unread: The hypervisor has n" },
        { "a host that was renamed is refused", "", "", "PRW synced" },
        { NULL, "", "renamed", "PRW synced, unread: The host's name chan" },
        { "without Placement", "alone", "", "Pg standalone" },
        { "without Placement a tree cannot be made: no audit", "alone", "", "Pg standalone" },
        { NULL, "", "audit broken", "Pg stale: broken" },
        { "nothing is written, but it is known which traits go", "dry", "", "PRp pending" },
        { "conflicts start over", "", "W:conflict W:conflict", "PRWRWRW synced" },
        { "conflicts without end", "",
          "W:conflict W:conflict W:conflict W:conflict W:conflict W:conflict W:conflict W:conflict W:conflict",
          "PRWRWRWRWRWRWRWRWRWg pending: outcome 6" },
        { "Placement is away", "", "R:unreachable", "PRg offline: outcome 1" },
        { "or busy", "", "R:unavailable", "PRg offline: outcome 2" },
        { "or knows us not", "", "R:unauthorized", "PRg offline: outcome 3" },
        { "or forbids to read", "", "R:unreadable", "PRg offline: outcome 10" },
        { "or leaves in between", "", "W:unreachable", "PRWg offline: outcome 1" },
        { "403", "", "W:forbidden", "PRW stale: outcome 4" },
        { "in use", "", "W:in-use", "PRW stale: outcome 7" },
        { "in use since its holders were read: once more", "retains", "W:in-use", "PRWRW synced" },
        { NULL, "", "W:in-use W:in-use", "PRWRW stale: outcome 7" },
        { "the holders of what goes are read", "retains", "", "PRW synced" },
        { NULL, "", "lost H:conflict", "PRIRIW synced" },
        { "another has the name", "", "W:duplicate", "PRW stale: outcome 8" },
        { "too old", "", "R:too-old", "PR stale: outcome 5" },
        { "no memory", "", "W:no-memory", "PRW stale: outcome -12" },
        { "the old shape is kept", "", "reshape", "PRW stale, needed: The tree must change" },
        { "no right to reshape, and another reason to fail", "", "W:refused may-not",
          "PRW stale, forbidden: outcome 9" },
        { "a reshape at the start", "starts", "reshape", "PRRHSRW synced" },
        { "G2.3: overtaken three times", "starts", "reshape H:ok H:conflict W:conflict W:in-use",
          "PRRHSRHRHSRHSRW synced" },
        { "forbidden: once, and not again", "starts", "reshape W:forbidden",
          "PRRHSRW stale, needed, failed: The tree must change" },
        { NULL, "", "reshape", "PRW stale, needed, failed: The tree must change" },
        { "Placement goes away: it is still the start", "starts", "reshape H:unreachable",
          "PRRHg offline, needed: outcome 1" },
        { NULL, "", "reshape", "PRRHSRW synced" },
        { "claims follow a reshape later, although another one is needed", "starts",
          "reshape reshape", "PRRHSRW stale, needed: The tree must change" },
        { "an audit, once", "", "audit", "PRWA synced" },
        { "an audit behind what was refused", "", "audit W:refused",
          "PRWA stale: outcome 9; until Placement has" },
        { "no audit: nothing can be read", "", "audit R:unreachable", "PRg offline: outcome 1" },
        { "no audit: nothing can be written", "", "audit W:unavailable",
          "PRWg offline: outcome 2" },
        { "an audit fails", "", "audit audit-fails", "PRWAg synced" },
        { "no heal while the tree waits for a reshape", "", "audit reshape",
          "PRWA stale, needed: The tree must change; until the tree is r" },
        { "nor while guests are not known", "", "", "PRW synced" },
        { NULL, "", "audit gone", "PRWA synced, unread: gone; until the hyperviso" },
        { NULL, "", "audit", "PRWA synced" },
        { "the tree is nova-compute's", "observe", "audit", "PRpA left-to-nova" },
        { NULL, "", "reshape", "PRp left-to-nova" },
        { NULL, "", "R:unavailable", "PRg offline: outcome 2" },
        { "a reshape that is shown writes nothing", "", "reshape reshape-show",
          "PRRHRW stale, needed: The tree must change" },
        { "no reshape to undo", "", "undo", "PRW synced" },
        { "a retirement that is shown writes nothing", "", "", "PRW synced" },
        { NULL, "", "retire-show", "PRHW synced" },
        { NULL, "", "retire-show gone", "PRW synced, unread: gone" },
        { "Placement refuses a retirement", "", "", "PRW synced" },
        { NULL, "", "retire W:in-use", "PRHWRW synced" },
        { "or was overtaken", "", "", "PRW synced" },
        { NULL, "retires", "retire H:conflict", "PRHRHW retired" },
        { NULL, "retires", "audit", "Pg retired" },
        { "or is away", "", "", "PRW synced" },
        { NULL, "", "retire H:unreachable", "PRHg offline: outcome 1" },
        { "the guests are not known", "", "", "PRW synced" },
        { NULL, "", "retire gone", "PRW synced, unread: gone" },
        { "there is no provider", "retires", "retire", "PRW retired" },
        { "no audit after a retirement", "", "", "PRW synced" },
        { NULL, "retires", "audit retire", "PRHW retired" },
        { "a retirement drops a reshape", "", "", "PRW synced" },
        { NULL, "retires", "retire undo", "PRHW retired" },
};

static void test_cycles(void **state)
{
        const char *well = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(cycles); i++) {
                size_t kind = 0;

                while (strcmp(kinds[kind].name, cycles[i].how) != 0)
                        kind++;
                if (cycles[i].about) {
                        start_over();
                        world.starts = kinds[kind].starts;
                        if (strcmp(kinds[kind].name, "retains") == 0)
                                assert_int_equal(retained_new(&world.retained, "/", true, NULL), 0);
                        start(kinds[kind].reporter, kinds[kind].dry_run);
                }
                if (cycles[i].about || kind > 0)
                        well = kinds[kind].well;
                run_as(cycles[i].about, cycles[i].comes, cycles[i].then);
                /* The next cycle without events repairs the state. */
                if (i + 1 == ARRAY_SIZE(cycles) || cycles[i + 1].about)
                        run_as(cycles[i].about, "", well);
        }
}

static void test_times_and_progress(void **state)
{
        const TrackerStatus *status;
        Progress progress;

        start(&reporter_config, false);
        assert_int_equal(tracker_view(world.tracker).status->sync_state, SYNC_PENDING);
        tracker_get_progress(world.tracker, &progress);
        assert_string_equal(progress.phase, "waiting");
        assert_int_equal(progress.n_total, 0);
        status = run_cycle();
        assert_true(status->last_sync_usec > 0);
        assert_true(status->sync_since_usec > 0 &&
                    status->sync_since_usec <= status->last_sync_usec + USEC_PER_SEC);
}

/* The snapshot of an earlier tracker is used while the hypervisor is away. */
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
        assert_true(tracker_view(world.tracker).snapshot == known);
        status = run_cycle();
        assert_string_equal(world.told.text, "no libvirtd");
        assert_int_equal(status->sync_state, SYNC_SYNCED);
        assert_int_equal(status->last_poll_usec, 7);
        assert_non_null(tracker_view(world.tracker).tree);
}

/* A poll that runs when a cycle is requested has no evidence about later changes, so the cycle
 * waits for the next one. It does not wait for the poll of a later request. */
static void test_a_cycle_waits_for_a_later_poll(void **state)
{
        world.patience_usec = 0; /* the default */
        start(&reporter_config, false);
        world.poll_answer.type = DRIVER_EVENT_NONE;
        assert_int_equal(tracker_look(world.tracker, NULL), 0);
        assert_int_equal(tracker_sync(world.tracker, TRACKER_SYNC, on_told, NULL), 0);
        while (strcmp(fake_reporter.did, "PP") != 0)
                assert_true(sd_event_run(fake_reporter.event, 20 * USEC_PER_MSEC) >= 0);
        world.poll_answer.type = DRIVER_EVENT_SNAPSHOT;
        post_snapshot(1);
        assert_true(sd_event_run(fake_reporter.event, 20 * USEC_PER_MSEC) >= 0);
        assert_string_equal(fake_reporter.did, "PP");
        world.poll_answer.type = DRIVER_EVENT_NONE;
        assert_int_equal(tracker_look(world.tracker, NULL), 0);
        world.poll_answer.type = DRIVER_EVENT_SNAPSHOT;
        post_snapshot(tracker_view(world.tracker).status->cycle_began_usec);
        run_until_told(1);
        assert_string_equal(fake_reporter.did, "PPPRW");
}

/* Requests while the hypervisor hangs do not extend the patience. */
static void test_a_hang_is_noticed_in_spite_of_requests(void **state)
{
        world.patience_usec = 300 * USEC_PER_MSEC;
        start(&reporter_config, false);
        world.poll_answer.type = DRIVER_EVENT_NONE;
        assert_int_equal(tracker_sync(world.tracker, TRACKER_SYNC, on_told, NULL), 0);
        for (int i = 0; i < 100 && world.n_told == 0; i++) {
                assert_true(sd_event_run(fake_reporter.event, 20 * USEC_PER_MSEC) >= 0);
                assert_int_equal(tracker_look(world.tracker, NULL), 0);
        }
        assert_int_equal(world.told.code, ETIMEDOUT);
}

static void test_a_request_during_a_cycle_gets_its_own(void **state)
{
        start(&reporter_config, false);
        assert_int_equal(tracker_sync(world.tracker, TRACKER_SYNC, on_told, NULL), 0);
        while (strcmp(fake_reporter.did, "PR") != 0)
                assert_true(sd_event_run(fake_reporter.event, 20 * USEC_PER_MSEC) >= 0);
        assert_int_equal(tracker_sync(world.tracker, TRACKER_SYNC, on_told, NULL), 0);
        run_until_told(1);
        assert_string_equal(fake_reporter.did, "PRW");
        run_until_told(2);
        assert_string_equal(fake_reporter.did, "PRWPRW");
}

/* Returns the time at which the next cycle begins. */
static uint64_t get_due(void)
{
        uint64_t usec;

        assert_int_equal(sd_event_source_get_time(world.tracker->cycle_timer, &usec), 0);
        assert_true(sd_event_source_get_enabled(world.tracker->cycle_timer, NULL) > 0);
        return usec;
}

static void test_host_events_do_not_delay_a_requested_cycle(void **state)
{
        static const HostPollEvent events[] = { HOST_POLL_LOST, HOST_POLL_CHANGED };
        Error error = ERROR_NULL;
        uint64_t due;

        start(&reporter_config, false);
        run_cycle();
        for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
                assert_int_equal(tracker_sync(world.tracker, TRACKER_SYNC, on_told, NULL), 0);
                due = get_due();
                error_setf(&error, ECONNRESET, "lost");
                tracker_on_host_poll(NULL, events[i], &error, world.tracker);
                assert_int_equal(get_due(), due);
                run_until_told(world.n_told + 1);
        }
}

/* Without a request, a loss begins a cycle after a pause, and a change begins it soon. */
static void test_host_events_begin_a_cycle(void **state)
{
        Error error = ERROR_NULL;
        uint64_t after_loss;

        start(&reporter_config, false);
        run_cycle();
        assert_int_equal(sd_event_source_get_enabled(world.tracker->cycle_timer, NULL), 0);
        error_setf(&error, ECONNRESET, "lost");
        tracker_on_host_poll(NULL, HOST_POLL_LOST, &error, world.tracker);
        after_loss = get_due();
        tracker_on_host_poll(NULL, HOST_POLL_CHANGED, &ERROR_NULL, world.tracker);
        assert_true(get_due() < after_loss);
}

/* The message has the time since the first request without an answer, not the limit of one poll. */
/* Runs the cycle that only the timer begins, and those that follow at once. */
static void run_timer(void)
{
        memset(fake_reporter.did, 0, sizeof(fake_reporter.did));
        tracker_arm_timer(world.tracker, 0);
        do
                assert_true(sd_event_run(fake_reporter.event, USEC_PER_SEC) >= 0);
        while (world.tracker->phase != CYCLE_IDLE ||
               (sd_event_source_get_enabled(world.tracker->cycle_timer, NULL) > 0 &&
                get_due() <= clock_usec(CLOCK_BOOTTIME)));
}

/* While checks are slow, a cycle that only the timer begins does not read Placement, unless it has
 * a reason. quiet: the checks stay slow. */
static void test_slow_checks(void **state)
{
        static const struct {
                const char *about, *comes, *did;
                bool quiet;
        } cases[] = {
                { "nothing new", "", "P", true },
                { "an event of the host", "event", "PRW", true },
                { "a request", "full", "PFRW", false },
                { "another tree", "lost", "PRW", false },
                { "an audit is due", "audit", "PRWA", true },
                { "a question of the claims", "asks", "PPRW", false },
                { "a poll fails", "gone", "P", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                start(&reporter_config, false);
                run_cycle();
                world.tracker->pace.check_at_usec = UINT64_MAX;
                world.tracker->pace.changed_usec = 1;
                let_come(cases[i].comes);
                world.asks = strcmp(cases[i].comes, "asks") == 0;
                if (strcmp(cases[i].comes, "event") == 0)
                        tracker_note_cards(world.tracker);
                run_timer();
                if (strcmp(fake_reporter.did, cases[i].did) != 0 ||
                    (world.tracker->pace.changed_usec == 1) != cases[i].quiet)
                        fail_msg("%s: %s, changed %" PRIu64, cases[i].about, fake_reporter.did,
                                 world.tracker->pace.changed_usec);
                start_over();
        }
}

static void test_message_has_the_time_without_an_answer(void **state)
{
        world.patience_usec = 600 * USEC_PER_MSEC;
        world.poll_answer.type = DRIVER_EVENT_NONE;
        start(&reporter_config, false);
        assert_string_equal(run_cycle()->hypervisor_error.text,
                            "The hypervisor has not answered for 0 s");
        assert_string_equal(run_cycle()->hypervisor_error.text,
                            "The hypervisor has not answered for 1 s");
}

/* If Placement is away at the start, the tree of an earlier run keeps the settings of the operator,
 * until Placement answers. If nova-compute owns the tree, the agent adds nothing to it. */
static void test_without_placement_the_remembered_host_is_used(void **state)
{
        static const struct {
                const char *name;
                const ReporterConfig *reporter;
                bool remembers, edits; /* the tree has the old class, and that of the driver */
        } cases[] = { { "host1", &reporter_config, true, true },
                      { "old", &reporter_config, false, true },
                      { "host1", &observer_config, true, false } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Inventory inventory = INVENTORY_DEFAULT(77);
                const Uuid uuid = { ROOT };
                const Provider *root;
                Provider *remembered;

                start_over();
                assert_int_equal(provider_tree_new(&world.remembered), 0);
                assert_int_equal(provider_tree_add(world.remembered, &uuid, cases[i].name, NULL,
                                                   &remembered, NULL),
                                 0);
                assert_int_equal(provider_set_inventory(remembered, "CUSTOM_X", &inventory), 0);
                fake_reporter.refreshes.results[0] = REPORT_E_UNREACHABLE;
                start(cases[i].reporter, false);
                run_cycle();
                root = tracker_view(world.tracker).tree->providers[0];
                assert_string_equal(root->name, "host1");
                assert_int_equal(!provider_find_inventory(root, "CUSTOM_X"), !cases[i].remembers);
                assert_int_equal(!provider_find_inventory(root, "VCPU"), !cases[i].edits);
                run_cycle();
                root = tracker_view(world.tracker).tree->providers[0];
                assert_null(provider_find_inventory(root, "CUSTOM_X"));
        }
}

static void test_a_root_under_another_name_is_refused(void **state)
{
        Uuid root;

        assert_int_equal(uuid_from_text(ROOT, &root), 0);
        assert_int_equal(provider_tree_new(&fake_reporter.mirror), 0);
        assert_int_equal(provider_tree_add(fake_reporter.mirror, &root, "old", NULL, NULL, NULL),
                         0);
        start(&reporter_config, false);
        assert_int_equal(run_cycle()->sync_state, SYNC_STALE);
        assert_string_equal(fake_reporter.did, "PR");
        assert_non_null(strstr(world.told.text, "old"));
}

static void test_a_cycle_copies_the_tree_twice(void **state)
{
        assert_int_equal(retained_new(&world.retained, "/", true, NULL), 0);
        start(&reporter_config, false);
        run_cycle();
        world.n_copies = 0;
        run_cycle();
        assert_string_equal(fake_reporter.did, "PRW");
        assert_int_equal(world.n_copies, 2); /* after the poll and after the read */
}

/* The claims get the sharing providers beside the tree of the host, each once. One whose name the
 * tree has already is left out. */
static void test_claims_get_the_sharing_providers(void **state)
{
        start(&reporter_config, false);
        fake_reporter.sharing =
                make_tree("nfs DISK_GB=900 +MISC_SHARES_VIA_AGGREGATE @A; host1#2 DISK_GB=1");
        for (int i = 0; i < 2; i++) {
                _cleanup_(provider_tree_freep) ProviderTree *expected = NULL;
                const Provider *pool = provider_tree_find_name(fake_reporter.sharing, "nfs");
                Provider *copy;

                run_cycle();
                assert_int_equal(provider_tree_copy(&expected, tracker_view(world.tracker).tree),
                                 0);
                assert_int_equal(provider_tree_add(expected, &pool->uuid, "nfs", NULL, &copy, NULL),
                                 0);
                assert_int_equal(provider_copy_contents(copy, pool), 0);
                assert_true(provider_tree_equal(world.for_claims, expected));
        }
}

TEST_MAIN_WITH(set_up, tear_down, test_cycles, test_times_and_progress, test_a_known_host_is_served,
               test_a_cycle_waits_for_a_later_poll, test_a_hang_is_noticed_in_spite_of_requests,
               test_a_request_during_a_cycle_gets_its_own,
               test_host_events_do_not_delay_a_requested_cycle, test_host_events_begin_a_cycle,
               test_slow_checks, test_message_has_the_time_without_an_answer,
               test_without_placement_the_remembered_host_is_used,
               test_a_root_under_another_name_is_refused, test_a_cycle_copies_the_tree_twice,
               test_claims_get_the_sharing_providers)
