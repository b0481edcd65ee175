/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The queue over a claim database and a Placement in memory. Each course of steps is run with each
 * kind of trouble at each of its requests, including a crash of the agent. A step that failed is
 * repeated. At the end, Placement and claims must agree. */

#include "tests/fixtures/placing.h"

/* No course sends this number of requests. */
#define REQUESTS_MAX 40

#define STEPS_MAX 6

typedef struct Course {
        const char *name;
        Step steps[STEPS_MAX];
        const char *instance, *migration; /* their allocations at the end */
        const char *claims;               /* the living claims at the end, with their amounts */
} Course;

static const Course courses[] = {
        { "a claim",
          { { CLAIM, "i", "VCPU=2 _A:VGPU=1" } },
          "host VCPU=2,gpu VGPU=1",
          "",
          "i: VGPU=1 on gpu, VCPU=2 on host" },
        { "a claim that ends", { { CLAIM, "i", "VCPU=2" }, { RELEASE, "i", NULL } }, "", "", "" },
        { "F8 1825537: a start that fails, and another one",
          { { CLAIM, "i", "VCPU=2" }, { RELEASE, "i", NULL }, { CLAIM, "i", "VCPU=3" } },
          "host VCPU=3",
          "",
          "i: VCPU=3 on host" },
        { "F8 1862633: the same again",
          { { CLAIM, "i", "VCPU=2" }, { RELEASE, "i", NULL }, { CLAIM, "i", "VCPU=2" } },
          "host VCPU=2",
          "",
          "i: VCPU=2 on host" },
        { "placed by a scheduler",
          { { PLACE, "i", "host VCPU=2,other VCPU=1" },
            { CLAIM, "i", "VCPU=2" },
            { RELEASE, "i", NULL } },
          "host VCPU=2,other VCPU=1",
          "",
          "" },
        { "placed by a scheduler, and removed by the agent",
          { { PLACE, "i", "host VCPU=2,other VCPU=1" },
            { CLAIM, "i", "VCPU=2" },
            { RELEASE_ALL, "i", NULL } },
          "other VCPU=1",
          "",
          "" },
        { "F8 1896463: evacuated to this host, then the dead one is done",
          { { PLACE, "i", "other VCPU=2" },
            { CLAIM, "i", "VCPU=2" },
            { PLACE, "i", "host VCPU=2" },
            { RELEASE, "i", NULL } },
          "",
          "",
          "" },
        { "F8 1896463: evacuated from this host",
          { { CLAIM, "i", "VCPU=2" },
            { PLACE, "i", "host VCPU=2,other VCPU=2" },
            { RELEASE, "i", NULL } },
          "other VCPU=2",
          "",
          "" },
        { "F8 1879878: resized and confirmed",
          { { CLAIM, "i", "VCPU=1" },
            { MOVE, "i", "m" },
            { CLAIM, "i", "VCPU=2" },
            { RELEASE, "m", NULL } },
          "host VCPU=2",
          "",
          "i: VCPU=2 on host" },
        { "F8 1953359: resized and reverted",
          { { CLAIM, "i", "VCPU=1" },
            { MOVE, "i", "m" },
            { CLAIM, "i", "VCPU=2" },
            { RELEASE, "i", NULL },
            { MOVE, "m", "i" } },
          "host VCPU=1",
          "",
          "i: VCPU=1 on host" },
        { "placed by a scheduler, migrated by the agent",
          { { PLACE, "i", "host VCPU=2" },
            { CLAIM, "i", "VCPU=2" },
            { MOVE, "i", "m" },
            { RELEASE, "m", NULL } },
          "",
          "",
          "" },
        { "moved, and back beside the other host's share",
          { { CLAIM, "i", "VCPU=1" },
            { MOVE, "i", "m" },
            { PLACE, "i", "other VCPU=1" },
            { MOVE, "m", "i" } },
          "host VCPU=1,other VCPU=1",
          "",
          "i: VCPU=1 on host" },
};

static void assert_end(Agent *agent, const Course *course, const char *what)
{
        Uuid instance = make_uuid("i"), migration = make_uuid("m");
        char i[256], m[256], claims[256];

        fake_placement_format(&instance, i);
        fake_placement_format(&migration, m);
        describe(agent, claims);
        if (strcmp(i, course->instance) != 0 || strcmp(m, course->migration) != 0 ||
            strcmp(claims, course->claims) != 0 ||
            fake_placement_count() != (size_t)(i[0] != '\0') + (m[0] != '\0'))
                fail_msg("%s: %s\ninstance:  %s\nmigration: %s\nclaims:    %s", course->name, what,
                         i, m, claims);
        assert_int_equal(count_pending_writes(agent).n_writes, 0);
        assert_int_equal(count_pending_writes(agent).n_moves, 0);
        assert_store_sane(agent->fixture->path);
}

/* The requests that meet the trouble: one of the course, or one of each step; only that one, or
 * also all later ones. */
typedef enum Reach { ONCE, ON, ONCE_IN_EACH_STEP, ON_IN_EACH_STEP, _REACH_MAX } Reach;

static bool goes_on(Reach reach)
{
        return reach == ON || reach == ON_IN_EACH_STEP;
}

/* Runs a course with the trouble. Returns how often the trouble occurred. */
static unsigned take(Fixture *fixture, const Course *course, ClaimMode mode, FakeTrouble trouble,
                     unsigned skip, Reach reach, Arrival arrival)
{
        static const char *const names[_REACH_MAX] = { "once", "and on", "once in each step",
                                                       "and on in each step" };
        unsigned hits = 0;
        char what[100];
        Agent agent;

        snprintf(what, sizeof(what), "mode %d, trouble %d of request %u (%s), arrival %d", mode,
                 trouble, skip, names[reach], arrival);
        agent_begin(&agent, fixture, mode);
        agent.pauses = trouble >= FAKE_TROUBLE_RACE;
        fake_placement_trouble(trouble, skip, goes_on(reach));
        for (size_t i = 0; i < STEPS_MAX && course->steps[i].operation != NOTHING; i++) {
                bool done;

                if (reach >= ONCE_IN_EACH_STEP)
                        fake_placement_trouble(trouble, skip, goes_on(reach));
                done = do_step(&agent, &course->steps[i]);

                if (fake_placement_get_hits() > 0) {
                        hits += fake_placement_get_hits();
                        recover(&agent, arrival);
                        if (!done)
                                done = do_step(&agent, &course->steps[i]);
                }
                if (!done)
                        fail_msg("%s: step %zu: %s", course->name, i, what);
        }
        hits += fake_placement_get_hits();
        recover(&agent, arrival);
        fake_placement_arrive(false);
        settle(&agent);
        assert_end(&agent, course, what);
        agent_end(&agent);
        return hits;
}

/* Returns n if one of n cases runs: all cases take too long. */
static unsigned get_stride(void)
{
        const char *text = getenv("COMPUTE_AGENT_STEP");

        return text && atoi(text) > 0 ? (unsigned)atoi(text) : 13;
}

/* Selects cases by a hash of their number. A plain stride would always select the same request of
 * each course. */
static bool is_taken(unsigned number)
{
        return (number * 2654435761U >> 16) % get_stride() == 0;
}

/* Runs the course with the trouble at each request, until a case meets no trouble. *n counts the
 * cases, including skipped ones. Returns the number of cases that met trouble. */
static unsigned walk(Fixture *fixture, const Course *course, ClaimMode mode, FakeTrouble trouble,
                     Reach reach, unsigned *n)
{
        unsigned n_taken = 0;

        for (Arrival arrival = 0; arrival < _ARRIVAL_MAX; arrival++) {
                for (unsigned skip = 0; skip < REQUESTS_MAX; skip++) {
                        if (!is_taken((*n)++))
                                continue;
                        if (take(fixture, course, mode, trouble, skip, reach, arrival) == 0)
                                break;
                        n_taken++;
                }
                /* Only a late request arrives at different times. */
                if (trouble != FAKE_TROUBLE_LATE)
                        break;
        }
        return n_taken;
}

static void test_claims_with_placement(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(courses); i++)
                for (ClaimMode mode = CLAIM_MODE_AUTO; mode < _CLAIM_MODE_MAX; mode++)
                        if (mode != CLAIM_MODE_VERIFY)
                                (void)take(*state, &courses[i], mode, FAKE_TROUBLE_NONE, 0, ONCE,
                                           AT_ONCE);
}

static void test_trouble_at_every_request(void **state)
{
        unsigned n = 0, n_cases = 0;

        for (size_t i = 0; i < ARRAY_SIZE(courses); i++)
                for (FakeTrouble trouble = FAKE_TROUBLE_LOST; trouble < _FAKE_TROUBLE_MAX;
                     trouble++)
                        for (Reach reach = 0; reach < _REACH_MAX; reach++) {
                                /* The retries would take too long. */
                                if (goes_on(reach) && trouble >= FAKE_TROUBLE_RACE)
                                        continue;
                                n += walk(*state, &courses[i], CLAIM_MODE_AUTO, trouble, reach,
                                          &n_cases);
                                n += walk(*state, &courses[i], CLAIM_MODE_WRITE, trouble, reach,
                                          &n_cases);
                        }
        print_message("%u requests met trouble\n", n);
        assert_true(n > ARRAY_SIZE(courses) * _FAKE_TROUBLE_MAX / get_stride());
}

/* A request that is repeated while its task runs gets the result of that task. */
static void test_twice_at_once(void **state)
{
        ClaimRequest request = { .consumer = make_uuid("i") };
        Answer answers[3] = { { 0 } };
        Agent agent;
        unsigned n;

        agent_begin(&agent, *state, CLAIM_MODE_AUTO);
        make_request(&request.resources, "VCPU=2");
        n = fake_placement_get_n_requests();
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
                claim_queue_claim(agent.queue, &request, on_done, &answers[i]);
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                assert_true(wait_for(&agent, &answers[i]));
                assert_int_equal(answers[i].result, 0);
                assert_int_equal(answers[i].claim, answers[0].claim);
                assert_int_equal(answers[i].is_new, i == 0);
        }
        /* One read and one write */
        assert_int_equal(fake_placement_get_n_requests() - n, 2);
        resource_request_done(&request.resources);
        agent_end(&agent);
}

/* A move waits for the claim of its consumer, and a claim for the move. */
static void test_one_after_the_other(void **state)
{
        Uuid instance = make_uuid("i"), migration = make_uuid("m");
        ClaimRequest small = { .consumer = instance }, large = { .consumer = instance };
        Answer answers[3] = { { 0 } };
        char text[256];
        Agent agent;

        agent_begin(&agent, *state, CLAIM_MODE_AUTO);
        make_request(&small.resources, "VCPU=1");
        make_request(&large.resources, "VCPU=2");
        claim_queue_claim(agent.queue, &small, on_done, &answers[0]);
        claim_queue_move(agent.queue, &instance, &migration, "MIGRATION", NULL, on_done,
                         &answers[1]);
        claim_queue_claim(agent.queue, &large, on_done, &answers[2]);
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                assert_true(wait_for(&agent, &answers[i]));
                assert_int_equal(answers[i].result, 0);
        }
        describe(&agent, text);
        assert_string_equal(text, "m: VCPU=1 on host; i: VCPU=2 on host");
        fake_placement_format(&migration, text);
        assert_string_equal(text, "host VCPU=1");
        resource_request_done(&small.resources);
        resource_request_done(&large.resources);
        agent_end(&agent);
}

/* The session ends: waiting callers get an error, and the next session completes the work that has
 * begun. */
static void test_dismissed(void **state)
{
        ClaimRequest request = { .consumer = make_uuid("i") };
        Uuid instance = make_uuid("i");

        for (unsigned n = 0; n < 3; n++) {
                Answer answers[2] = { { 0 } };
                char text[256];
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                make_request(&request.resources, "VCPU=2");
                claim_queue_claim(agent.queue, &request, on_done, &answers[0]);
                claim_queue_claim(agent.queue, &request, on_done, &answers[1]);
                for (unsigned i = 0; i < n; i++)
                        assert_true(sd_event_run(agent.event, USEC_PER_SEC) > 0);
                claim_queue_dismiss(agent.queue, "the reason");
                assert_true(answers[0].there && answers[1].there);
                assert_int_equal(answers[1].result, n < 2 ? -EBUSY : answers[1].result);
                settle(&agent);
                describe(&agent, text);
                assert_string_equal(text, n < 2 ? "" : "i: VCPU=2 on host");
                fake_placement_format(&instance, text);
                assert_string_equal(text, n < 2 ? "" : "host VCPU=2");
                resource_request_done(&request.resources);
                agent_end(&agent);
        }
}

/* The agent ends: each waiting caller is called once, so that it can free what the call has. */
static void test_freed(void **state)
{
        Uuid instance = make_uuid("i"), migration = make_uuid("m");
        ClaimRequest request = { .consumer = instance };
        Answer answers[3] = { { 0 } };
        Agent agent;

        agent_begin(&agent, *state, CLAIM_MODE_AUTO);
        make_request(&request.resources, "VCPU=2");
        claim_queue_claim(agent.queue, &request, on_done, &answers[0]);
        claim_queue_claim(agent.queue, &request, on_done, &answers[1]);
        claim_queue_move(agent.queue, &instance, &migration, NULL, NULL, on_done, &answers[2]);
        agent_end(&agent);
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                assert_true(answers[i].there);
                assert_int_equal(answers[i].result, -EBUSY);
        }
        resource_request_done(&request.resources);
}

/* Until there is a session, a claim is made by the known state with CLAIM_MODE_AUTO, so nothing is
 * written before the answer. */
static void test_writes_before_the_answer(void **state)
{
        static const struct {
                ClaimMode mode;
                bool away, has_session, writes;
        } cases[] = {
                { CLAIM_MODE_AUTO, false, true, true },    { CLAIM_MODE_AUTO, false, false, false },
                { CLAIM_MODE_AUTO, true, true, false },    { CLAIM_MODE_WRITE, false, false, true },
                { CLAIM_MODE_VERIFY, false, true, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Agent agent;

                agent_begin(&agent, *state, cases[i].mode);
                claim_queue_tend(agent.queue, cases[i].away, false);
                agent.has_no_session = !cases[i].has_session;
                if (claim_queue_writes(agent.queue) != cases[i].writes)
                        fail_msg("case %zu", i);
                agent_end(&agent);
        }
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_claims_with_placement,
                test_trouble_at_every_request, test_twice_at_once, test_one_after_the_other,
                test_dismissed, test_freed, test_writes_before_the_answer)
