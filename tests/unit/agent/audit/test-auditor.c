/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests when an audit is due, which consumers it reads, and what follows from its findings. */

#include "agent/audit/auditor.h"

#include "agent/audit/healer.h"
#include "agent/guests/reconcile.h"
#include "base/json.h"
#include "report/consumers.h"
#include "tests/fixtures/audit.h"
#include "tests/fixtures/trace.h"

#define HELD     "VCPU=2@host MEMORY_MB=512@host"
#define N_GUESTS 5000
#define N_HELD   40
#define LOT      16 /* claims that one transaction completes */
#define LATE     (UINT64_C(4000000000) * USEC_PER_SEC)

/* Replaces the functions of other modules that the auditor calls. It is linked before the
 * library. */
static struct {
        ClaimService service;
        sd_event *event;
        ProviderTree *tree;
        const char *held; /* allocations of guest g, for the gathering */
        size_t n_held;    /* number of other consumers with allocations, for the gathering */
        const char *path; /* claim database */
        size_t n_completed;
        int answer;            /* answer to each read */
        const char *read_held; /* allocations of consumer i, for each read */
        const char *waits;     /* AuditInput.waits */
        bool fails;            /* the healer fails for each remedy */
        Auditor *late;  /* auditor that "late" asks to heal during the gathering; NULL: none */
        EventAuthor by; /* author of the last heal */
        bool ended;
        ReporterDone gathered;
        ConsumersDone read;
        void (*healed)(void *userdata);
        void *userdata;
} world;

static const char *make_held_name(size_t i)
{
        static char name[32];

        snprintf(name, sizeof(name), "held%zu", i);
        return name;
}

void claim_service_set_away(ClaimService *service, Uuid *guests, size_t n_guests)
{
        free(guests);
        note('a');
}

/* Changes the claim instead, and checks that only whole lots are on the disk before. */
int claim_complete(Claims *claims, int64_t id, const Consumer *holding, Uuid *ret_completed,
                   Error *reterr)
{
        _cleanup_free_ char *n = run_sql(
                world.path, "SELECT count(*) FROM claims WHERE expires_usec = 4000000000000000");

        assert_int_equal(atoi(n), world.n_completed++ / LOT * LOT);
        return claims_extend(claims, id, LATE, reterr);
}

void claim_log_completed(int64_t id, const Uuid *consumer)
{
}

const ProviderTree *reporter_tree(Reporter *reporter)
{
        return world.tree;
}

Session *reporter_get_session(Reporter *reporter)
{
        return NULL;
}

void reporter_get_progress(const Reporter *reporter, Progress *ret)
{
        *ret = (Progress){ "gathering", 0, 0 };
}

int reporter_gather(Reporter *reporter, const StringSet *classes, const ProviderTree *ahead,
                    ReporterDone done, void *userdata)
{
        note('g');
        world.gathered = done;
        world.userdata = userdata;
        return 0;
}

void reporter_take_gathered(Reporter *reporter, Allocations **ret_consumers,
                            Allocations **ret_others)
{
        assert_int_equal(allocations_new(ret_consumers), 0);
        if (world.late)
                auditor_ask(world.late, true, NULL, &(EventAuthor){ .text = "late" });
        world.late = NULL;
        for (size_t i = 0; i < world.n_held; i++) {
                Uuid uuid = make_uuid(make_held_name(i)), host = make_uuid("host");
                Consumer *consumer;

                assert_int_equal(allocations_ensure(*ret_consumers, &uuid, &consumer), 0);
                assert_int_equal(consumer_add(consumer, &host, "MEMORY_MB", 1), 0);
        }
        if (world.held)
                audit_consumer(*ret_consumers, 'g', "INSTANCE", world.held);
}

int consumers_read(ConsumersCall **ret, Session *session, const Uuid *uuid, ConsumersDone done,
                   void *userdata, Error *reterr)
{
        note('r');
        world.read = done;
        *ret = (ConsumersCall *)&world;
        return 0;
}

ConsumersCall *consumers_cancel(ConsumersCall *call)
{
        return NULL;
}

int healer_begin(Healer **ret, const HealerOrder *order, void (*done)(void *userdata),
                 void *userdata)
{
        note(order->everything ? 'H' : 'h');
        for (size_t i = 0; world.fails && i < order->audit->n_items; i++)
                if (order->audit->items[i].remedy != AUDIT_REMEDY_NONE)
                        order->audit->items[i].outcome = AUDIT_FAILED;
        world.by = order->by ? *order->by : (EventAuthor){ 0 };
        world.healed = done;
        *ret = (Healer *)&world;
        return 0;
}

Healer *healer_free(Healer *healer)
{
        return NULL;
}

static void on_done(void *userdata)
{
        world.ended = true;
        note('d');
}

static void answer_read(Auditor *auditor)
{
        _cleanup_(allocations_freep) Allocations *held = NULL;
        ConsumersAnswer answer = { 0 };
        ConsumersDone read = world.read;
        Error error = ERROR_NULL;

        world.read = NULL;
        assert_int_equal(allocations_new(&held), 0);
        assert_int_equal(consumer_copy(&answer.consumer,
                                       audit_consumer(held, 'i', "INSTANCE", world.read_held)),
                         0);
        answer.consumer->uuid = make_uuid("i");
        read(world.answer, &answer, &error, auditor);
        consumer_free(answer.consumer);
}

/* Runs an audit to its end. With polls, a poll replaces the facts after each turn. */
static void run_beside_polls(Auditor *auditor, int gathered, bool polls)
{
        void (*healed)(void *userdata);

        world.ended = false;
        assert_int_equal(auditor_begin(auditor, NULL, world.waits, on_done, NULL, NULL), 0);
        world.gathered(NULL, gathered, &ERROR_NULL, world.userdata);
        while (!world.ended) {
                if (world.read) {
                        answer_read(auditor);
                } else if ((healed = world.healed)) {
                        world.healed = NULL;
                        healed(auditor);
                } else {
                        assert_true(sd_event_run(world.event, USEC_PER_SEC) > 0);
                        world.service.n_facts += polls;
                }
        }
}

static void run(Auditor *auditor, int gathered)
{
        run_beside_polls(auditor, gathered, false);
}

static void set_up(Fixture *fixture, FactsFixture *facts)
{
        memset(&world, 0, sizeof(world));
        world.read_held = "";
        trace[0] = '\0';
        assert_int_equal(sd_event_new(&world.event), 0);
        make_facts(facts);
        world.service.facts = &facts->facts;
        world.tree = make_tree("host VCPU=8 MEMORY_MB=4096");
        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, "host VCPU=8 MEMORY_MB=4096");
        world.service.claims = fixture->claims;
        world.path = fixture->path;
}

static void tear_down(Fixture *fixture)
{
        provider_tree_free(world.tree);
        sd_event_unref(world.event);
        fixture_close(fixture);
        assert_int_equal(unlink(fixture->path), 0);
}

static void test_runs(void **state)
{
        static const struct {
                const char *about;
                bool at_start, heal, one; /* reason of the audit (one: to heal a consumer alone);
                                             none: a caller requests a look */
                const char *held;         /* allocations of guest g; NULL: none */
                bool guest, running, started_only, claim;
                int gathered, answer;
                const char *trace;
                size_t n_findings;
                bool due; /* still due after the audit */
        } rows[] = {
                { "a look changes nothing", .trace = "gd" },
                { "a start ends claims", .at_start = true, .trace = "gahd" },
                { "healing writes", .heal = true, .trace = "gaHd" },
                { "healing at a start", .at_start = true, .heal = true, .trace = "gaHd" },
                { "healing one consumer", .one = true, .trace = "gaHd" },
                { "the same at a start, which stays due", .at_start = true, .one = true,
                  .trace = "gaHd", .due = true },
                { "a guest that does not run is read", .guest = true, .trace = "grd",
                  .n_findings = 1 },
                { "one that runs is not", .guest = true, .running = true, .trace = "gd",
                  .n_findings = 1 },
                { "nor where it needs no claim", .guest = true, .started_only = true,
                  .trace = "gd" },
                { "nor who was found", .guest = true, .held = HELD, .trace = "gd",
                  .n_findings = 1 },
                { "a claim's consumer is read", .claim = true, .trace = "grd" },
                { "it cannot be gathered", .gathered = REPORT_E_UNREACHABLE, .trace = "gd" },
                { "nor at a start, which stays due", .at_start = true,
                  .gathered = REPORT_E_UNREACHABLE, .trace = "gd", .due = true },
                { "one cannot be read", .claim = true, .answer = REPORT_E_FORBIDDEN,
                  .trace = "grd" },
        };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const AuditorConfig config = { .claims = &world.service,
                                               .root = make_uuid("host"),
                                               .at_start = rows[i].at_start };
                bool failed = rows[i].gathered != 0 || rows[i].answer != 0;
                FactsFixture facts;
                Auditor *auditor;

                set_up(fixture, &facts);
                world.held = rows[i].held;
                world.service.settings.started_only = rows[i].started_only;
                world.answer = rows[i].answer;
                if (rows[i].guest)
                        facts_guest(&facts, 'g', "")->running = rows[i].running;
                if (rows[i].claim)
                        assert_int_equal(fixture_claim(fixture, "i", "VCPU=1", NULL), 0);
                assert_int_equal(auditor_new(&auditor, world.event, &config), 0);
                if (rows[i].heal || rows[i].one || !rows[i].at_start)
                        auditor_ask(auditor, rows[i].heal || rows[i].one,
                                    rows[i].one ? &config.root : NULL, NULL);
                assert_true(auditor_is_due(auditor, NULL));
                run(auditor, rows[i].gathered);
                if (strcmp(trace, rows[i].trace) != 0 ||
                    auditor_get_state(auditor)->findings.n_items != rows[i].n_findings ||
                    auditor_is_due(auditor, NULL) != rows[i].due ||
                    (auditor_get_state(auditor)->error.code != 0) != failed ||
                    (auditor_get_state(auditor)->document == NULL) != failed)
                        fail_msg("%s: \"%s\", findings: %zu, \"%s\"", rows[i].about, trace,
                                 auditor_get_state(auditor)->findings.n_items,
                                 auditor_get_state(auditor)->error.text);
                assert_int_equal(auditor_get_state(auditor)->n_open, rows[i].n_findings);
                auditor_free(auditor);
                tear_down(fixture);
        }
}

/* The audit of a start ends the claim of a guest that is on another host. It keeps that of a guest
 * with allocations from a sharing provider of this host alone. */
static void test_sharing_providers_are_no_other_hosts(void **state)
{
        static const char *const rows[] = { "DISK_GB=2@store", "DISK_GB=2@elsewhere" };
        const AuditorConfig config = { .claims = &world.service,
                                       .root = make_uuid("host"),
                                       .at_start = true };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                FactsFixture facts;
                Auditor *auditor;

                set_up(fixture, &facts);
                fixture_set_host(fixture, "host VCPU=8 MEMORY_MB=4096 @A; "
                                          "store DISK_GB=9 +MISC_SHARES_VIA_AGGREGATE @A");
                assert_int_equal(fixture_claim(fixture, "i", "DISK_GB=2", &claim), 0);
                assert_int_equal(claims_confirm(fixture->claims, claim->id, NULL), 0);
                world.read_held = rows[i];
                assert_int_equal(auditor_new(&auditor, world.event, &config), 0);
                run(auditor, 0);
                assert_string_equal(trace, "grahd");
                assert_int_equal(auditor_get_state(auditor)->findings.n_items, i);
                auditor_free(auditor);
                tear_down(fixture);
        }
}

/* The audit of a start that leaves the claim of an evacuated guest is repeated. The reason can be
 * that Placement does not have the whole tree yet, or a failure of the claim database. */
static void test_an_evacuated_guest_is_not_left(void **state)
{
        const AuditorConfig config = { .claims = &world.service,
                                       .root = make_uuid("host"),
                                       .at_start = true };
        _cleanup_(claim_freep) Claim *claim = NULL;
        Snapshot snapshot = { .guests_unknown = true };
        Fixture *fixture = *state;
        FactsFixture facts;
        Auditor *auditor, *reloaded;

        set_up(fixture, &facts);
        assert_int_equal(fixture_claim(fixture, "i", "VCPU=1", &claim), 0);
        assert_int_equal(claims_confirm(fixture->claims, claim->id, NULL), 0);
        world.read_held = "VCPU=1@elsewhere";
        assert_int_equal(auditor_new(&auditor, world.event, &config), 0);
        world.waits = "waits";
        run(auditor, 0);
        assert_int_equal(auditor_get_state(auditor)->findings.n_items, 1);
        assert_false(auditor_is_due(auditor, "waits"));
        /* Also over a reload. */
        assert_int_equal(auditor_new(&reloaded, world.event, &config), 0);
        auditor_inherit(reloaded, auditor);
        auditor_free(auditor);
        auditor = reloaded;
        assert_false(auditor_is_due(auditor, "waits"));
        assert_true(auditor_is_due(auditor, NULL));
        world.waits = NULL;
        world.fails = true;
        run(auditor, 0);
        assert_true(auditor_is_due(auditor, NULL));
        /* A claim that the agent must not end is not tried again. */
        world.service.comparison.snapshot = &snapshot;
        run(auditor, 0);
        assert_int_equal(auditor_get_state(auditor)->n_open, 1);
        assert_false(auditor_is_due(auditor, NULL));
        world.service.built_usec++;
        assert_true(auditor_is_due(auditor, NULL));
        world.service.comparison.snapshot = NULL;
        world.fails = false;
        run(auditor, 0);
        assert_false(auditor_is_due(auditor, NULL));
        auditor_free(auditor);
        tear_down(fixture);
}

/* An audit is due every heal_cycles cycles, and after the claim database was created again. */
static void test_due(void **state)
{
        const AuditorConfig config = { .claims = &world.service,
                                       .root = make_uuid("host"),
                                       .heal_cycles = 3 };
        Fixture *fixture = *state;
        FactsFixture facts;
        Auditor *auditor;
        Error error;

        set_up(fixture, &facts);
        assert_int_equal(auditor_new(&auditor, world.event, &config), 0);
        for (int i = 1; i <= 6; i++)
                assert_int_equal(auditor_is_due(auditor, NULL), i % 3 == 0);
        run(auditor, 0);
        assert_string_equal(trace, "gaHd");
        world.service.built_usec = 1;
        assert_true(auditor_is_due(auditor, NULL));
        run(auditor, 0);
        assert_string_equal(trace, "gaHdgahd");

        auditor_ask(auditor, true, NULL, NULL);
        error_setf(&error, EBUSY, "no Placement");
        auditor_give_up(auditor, &error);
        assert_string_equal(auditor_get_state(auditor)->error.text, "no Placement");
        assert_false(auditor_is_due(auditor, NULL));
        world.service.facts = NULL;
        assert_int_not_equal(auditor_begin(auditor, NULL, NULL, on_done, NULL, NULL), 0);
        auditor_free(auditor);
        tear_down(fixture);
}

/* An audit of an earlier process replaces that of the start, unless a new claim database needs one.
 */
static void test_an_earlier_audit_replaces_that_of_the_start(void **state)
{
        const AuditorConfig config = { .claims = &world.service,
                                       .root = make_uuid("host"),
                                       .at_start = true };
        Fixture *fixture = *state;
        FactsFixture facts;
        Auditor *auditor;

        set_up(fixture, &facts);
        for (size_t i = 0; i < 2; i++) {
                world.service.built_usec = i;
                assert_int_equal(auditor_new(&auditor, world.event, &config), 0);
                assert_true(auditor_is_due(auditor, NULL));
                auditor_spare(auditor, 7);
                assert_int_equal(auditor_is_due(auditor, NULL), i);
                assert_int_equal(auditor_get_state(auditor)->ended_usec, 7);
                auditor_free(auditor);
        }
        tear_down(fixture);
}

/* After a reload, the new auditor has the results of the old one, and the audit of the start is due
 * only if the old one did not end it. */
static void test_a_reload_keeps_the_results(void **state)
{
        AuditorConfig config = { .claims = &world.service, .root = make_uuid("host") };
        Fixture *fixture = *state;
        FactsFixture facts;
        Auditor *auditors[3];
        AuditorState before;

        set_up(fixture, &facts);
        world.service.built_usec = 1;
        config.at_start = true;
        for (size_t i = 0; i < ARRAY_SIZE(auditors); i++)
                assert_int_equal(auditor_new(&auditors[i], world.event, &config), 0);
        auditor_inherit(auditors[1], auditors[0]);
        assert_true(auditor_is_due(auditors[1], NULL));
        facts_guest(&facts, 'g', "")->running = true;
        run(auditors[1], 0);
        before = *auditor_get_state(auditors[1]);
        assert_true(before.findings.n_items > 0 && before.ended_usec > 0);
        auditor_inherit(auditors[2], auditors[1]);
        assert_int_equal(auditor_get_state(auditors[2])->findings.n_items, before.findings.n_items);
        assert_int_equal(auditor_get_state(auditors[2])->ended_usec, before.ended_usec);
        assert_ptr_equal(auditor_get_state(auditors[2])->document, before.document);
        assert_null(auditor_get_state(auditors[1])->document);
        assert_false(auditor_is_due(auditors[2], NULL));
        for (size_t i = 0; i < ARRAY_SIZE(auditors); i++)
                auditor_free(auditors[i]);
        tear_down(fixture);
}

/* The history names the caller who requested a heal, not one who requests another during it. */
static void test_heal_has_the_author_of_its_request(void **state)
{
        const AuditorConfig config = { .claims = &world.service, .root = make_uuid("host") };
        static const char *const authors[] = { "first", "late", "" };
        Fixture *fixture = *state;
        FactsFixture facts;
        Auditor *auditor;

        set_up(fixture, &facts);
        assert_int_equal(auditor_new(&auditor, world.event, &config), 0);
        auditor_ask(auditor, true, NULL, &(EventAuthor){ .text = "first" });
        world.late = auditor;
        for (size_t i = 0; i < ARRAY_SIZE(authors); i++) {
                run(auditor, 0);
                assert_string_equal(world.by.text, authors[i]);
        }
        auditor_free(auditor);
        tear_down(fixture);
}

/* An audit of many guests takes several turns. It ends, with all findings, also if a poll replaces
 * the facts after each turn. */
static void test_many_guests_beside_polls(void **state)
{
        static HostDomain domains[N_GUESTS];
        const AuditorConfig config = { .claims = &world.service, .root = make_uuid("host") };
        const AuditorState *result;
        Fixture *fixture = *state;
        FactsFixture facts;
        Auditor *auditor;
        json_t *document;

        set_up(fixture, &facts);
        for (size_t i = 0; i < N_GUESTS; i++) {
                const Uuid space = make_guest('g');
                char name[32];

                snprintf(name, sizeof(name), "guest%zu", i);
                domains[i] = (HostDomain){ .uuid = uuid_make_child(&space, name),
                                           .name = "guest",
                                           .running = true };
        }
        facts.facts.domains = domains;
        facts.facts.n_domains = N_GUESTS;
        assert_int_equal(auditor_new(&auditor, world.event, &config), 0);
        for (int polls = 0; polls < 2; polls++) {
                run_beside_polls(auditor, 0, polls);
                result = auditor_get_state(auditor);
                assert_int_equal(result->error.code, 0);
                assert_int_equal(result->findings.n_items, N_GUESTS);
                document = json_loads(result->document, 0, NULL);
                assert_int_equal(json_array_size(json_object_get(document, "findings")), N_GUESTS);
                assert_int_equal(json_array_size(json_object_get(document, "consumers")), 0);
                assert_string_equal(json_string_value(json_object_get(document, "root")),
                                    config.root.text);
                json_decref(document);
        }
        auditor_free(auditor);
        tear_down(fixture);
}

/* Claims that had no allocations, and have some now, are completed. Some claims are one
 * transaction, because each one costs a write to the disk. */
static void test_many_claims_are_completed(void **state)
{
        const AuditorConfig config = { .claims = &world.service, .root = make_uuid("host") };
        const ClaimPlacing placing = { .write_state = CLAIM_WRITE_NONE,
                                       .reported = { .generation = -1,
                                                     .elsewhere = make_uuid("none") } };
        Fixture *fixture = *state;
        FactsFixture facts;
        Auditor *auditor;

        set_up(fixture, &facts);
        for (size_t i = 0; i < N_HELD; i++)
                assert_int_equal(fixture_claim_placed(fixture, make_held_name(i), "MEMORY_MB=1",
                                                      &placing, NULL),
                                 CLAIM_DONE);
        world.n_held = N_HELD;
        assert_int_equal(auditor_new(&auditor, world.event, &config), 0);
        auditor_ask(auditor, false, NULL, NULL);
        run(auditor, 0);
        assert_int_equal(world.n_completed, N_HELD);
        assert_sql(fixture->path,
                   "SELECT count(*) FROM claims WHERE expires_usec = 4000000000000000", "40");
        auditor_free(auditor);
        tear_down(fixture);
}

TEST_MAIN_WITH(fixture_setup, fixture_teardown, test_runs,
               test_sharing_providers_are_no_other_hosts, test_an_evacuated_guest_is_not_left,
               test_due, test_an_earlier_audit_replaces_that_of_the_start,
               test_a_reload_keeps_the_results, test_heal_has_the_author_of_its_request,
               test_many_guests_beside_polls, test_many_claims_are_completed)
