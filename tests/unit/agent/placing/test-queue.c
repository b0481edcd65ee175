/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The desk over a claim database and a Placement in memory. Courses of what the layer above does
 * are walked over every request of theirs: each meets every kind of trouble, a crash of the agent
 * among them; a step that failed is done again. In the end Placement and claims have to agree. */

#include "agent/placing/queue.h"

#include "claims/claims-placement.h"
#include "tests/fakes/placement.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define HOST     "host VCPU=8; gpu<host VGPU=2"
#define ALL      HOST "; other VCPU=8"
#define WAIT_MAX 400

/* No course sends as many. */
#define REQUESTS_MAX 40

/* What the desk asks of agent/guests/database.c, linked before the library. */
struct ClaimService {
        Claims *claims;
        Error error;
        size_t n_in_hand;
        unsigned n_healed; /* so many times a healer has the consumer */
        bool has_guest;    /* each consumer, and no claim of it */
};

Claims *claim_service_get(ClaimService *service)
{
        return service->claims;
}

const Error *claim_service_error(const ClaimService *service)
{
        return &service->error;
}

void claim_service_check(ClaimService *service, int result)
{
}

const HostFacts *claim_service_facts(const ClaimService *service)
{
        return NULL;
}

bool claim_service_has_guest(ClaimService *service, const Uuid *consumer)
{
        return service->has_guest;
}

void claim_service_touch(ClaimService *service, int64_t claim)
{
}

bool claim_service_take_in_hand(ClaimService *service, const Uuid *consumer)
{
        if (service->n_healed > 0) {
                service->n_healed--;
                return false;
        }
        service->n_in_hand++;
        return true;
}

void claim_service_let_go(ClaimService *service, const Uuid *consumer)
{
        assert_true(service->n_in_hand > 0);
        service->n_in_hand--;
}

typedef struct Answer {
        bool there;
        int result;
        int64_t claim;
        bool told;
} Answer;

typedef struct Agent {
        Fixture *fixture;
        ProviderTree *all;
        sd_event *event;
        ClaimService service;
        ClaimDesk *desk;
        ClaimMode mode;
        const char *host; /* as the agent knows it */
        bool pauses;      /* some request is tried again in a moment */
} Agent;

/* The fake looks at no session. */
static Session *get_session(void *userdata)
{
        return userdata;
}

static void agent_start(Agent *agent)
{
        Uuid root = make_uuid("host");

        fixture_open(agent->fixture);
        fixture_set_host(agent->fixture, agent->host);
        agent->service.claims = agent->fixture->claims;
        assert_int_equal(claim_desk_new(&agent->desk, agent->event, &agent->service, &root,
                                        get_session, agent),
                         0);
        claim_desk_set_mode(agent->desk, agent->mode, NOVA_NONE, true);
}

/* As a crash would do it: nobody is told anything. */
static void agent_stop(Agent *agent)
{
        agent->desk = claim_desk_free(agent->desk);
        assert_int_equal(agent->service.n_in_hand, 0);
        fixture_close(agent->fixture);
        agent->service.claims = NULL;
}

/* all: what Placement has. */
static void agent_begin_on(Agent *agent, Fixture *fixture, ClaimMode mode, const char *host,
                           const char *all)
{
        *agent = (Agent){ .fixture = fixture, .all = make_tree(all), .mode = mode, .host = host };
        assert_true(sd_event_new(&agent->event) >= 0);
        fake_placement_begin(agent->event, agent->all);
        agent_start(agent);
}

static void agent_begin(Agent *agent, Fixture *fixture, ClaimMode mode)
{
        agent_begin_on(agent, fixture, mode, HOST, ALL);
}

static void agent_end(Agent *agent)
{
        agent_stop(agent);
        fake_placement_end();
        provider_tree_free(agent->all);
        sd_event_unref(agent->event);
        assert_int_equal(unlink(agent->fixture->path), 0);
}

static bool has_debts(const Agent *agent)
{
        ClaimDebts debts = claim_desk_count_debts(agent->desk);

        return debts.n_claims + debts.n_departures + debts.n_handovers > 0;
}

/* Until nothing is owed or nothing happens any more. */
static void settle(Agent *agent)
{
        claim_desk_settle(agent->desk);
        while (agent->pauses && has_debts(agent) &&
               sd_event_run(agent->event, 40 * USEC_PER_MSEC) > 0)
                ;
        while (sd_event_run(agent->event, 0) > 0)
                ;
}

static void on_done(int result, const Claim *claim, bool told, const Error *error, void *userdata)
{
        Answer *answer = userdata;

        assert_false(answer->there);
        *answer = (Answer){
                .there = true, .result = result, .claim = claim ? claim->id : 0, .told = told
        };
}

/* False: the agent hangs, to crash. */
static bool wait_for(Agent *agent, const Answer *answer)
{
        for (int i = 0; i < WAIT_MAX && !answer->there; i++) {
                if (fake_placement_hangs())
                        return false;
                assert_true(sd_event_run(agent->event, USEC_PER_SEC) >= 0);
        }
        assert_true(answer->there || fake_placement_hangs());
        return answer->there;
}

typedef enum Operation {
        NOTHING,
        CLAIM,       /* who asks for what */
        RELEASE,     /* the claim of who ends */
        RELEASE_ALL, /* with what a scheduler wrote */
        MOVE,        /* who hands it to what */
        PLACE,       /* a scheduler lets who hold what */
} Operation;

typedef struct Step {
        Operation operation;
        const char *who, *what;
} Step;

static bool do_claim(Agent *agent, const Step *step, Answer *answer)
{
        ClaimRequest request = { .consumer = make_uuid(step->who), .consumer_type = "INSTANCE" };
        bool answered;

        make_request(&request.resources, step->what);
        claim_desk_claim(agent->desk, &request, on_done, answer);
        answered = wait_for(agent, answer);
        /* The task borrows the request. */
        if (!answered)
                agent_stop(agent);
        resource_request_done(&request.resources);
        return answered;
}

static int release(Agent *agent, const Step *step)
{
        Uuid who = make_uuid(step->who);
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = claims_find(agent->fixture->claims, &who, false, &claim, NULL);

        if (r == 0)
                r = claim_desk_release(agent->desk, claim->id, "", step->operation == RELEASE_ALL,
                                       NULL);
        return r;
}

/* False: it was not done, and the agent may have to be started again. */
static bool do_step(Agent *agent, const Step *step)
{
        Uuid who = make_uuid(step->who), what;
        Answer answer = { 0 };

        switch (step->operation) {
        case NOTHING:
                break;
        case CLAIM:
                return do_claim(agent, step, &answer) && answer.result == 0;
        case MOVE:
                what = make_uuid(step->what);
                claim_desk_move(agent->desk, &who, &what, NULL, on_done, &answer);
                if (wait_for(agent, &answer))
                        return answer.result == 0;
                agent_stop(agent);
                return false;
        case PLACE:
                fake_placement_put(&who, step->what);
                return true;
        case RELEASE:
        case RELEASE_ALL:
                assert_int_equal(release(agent, step), 0);
                settle(agent);
                if (fake_placement_hangs())
                        agent_stop(agent);
                return true;
        }
        return false;
}

#define STEPS_MAX 6

typedef struct Course {
        const char *name;
        Step steps[STEPS_MAX];
        const char *instance, *migration; /* what they hold in the end */
        const char *claims;               /* whose claims live, and what they have */
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

/* When a write that was given up arrives. */
typedef enum Arrival { AT_ONCE, AFTER_SETTLING, IN_THE_END, _ARRIVAL_MAX } Arrival;

static void recover(Agent *agent, Arrival arrival)
{
        fake_placement_trouble(FAKE_TROUBLE_NONE, 0, false);
        if (!agent->desk)
                agent_start(agent);
        if (arrival == AT_ONCE)
                fake_placement_arrive(true);
        settle(agent);
        if (arrival == AFTER_SETTLING)
                fake_placement_arrive(true);
}

static void describe(Agent *agent, char text[static 256])
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        size_t n = 0;

        text[0] = '\0';
        assert_int_equal(claims_list(agent->fixture->claims, false, &list, NULL), 0);
        for (size_t i = 0; i < list.n_claims; i++) {
                Uuid instance = make_uuid("i");
                _cleanup_free_ char *held = format_claim(list.claims[i]);

                n += (size_t)snprintf(text + n, 256 - n, "%s%s: %s", i > 0 ? "; " : "",
                                      uuid_equal(&list.claims[i]->consumer, &instance) ? "i" : "m",
                                      held);
        }
}

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
        assert_int_equal(claim_desk_count_debts(agent->desk).n_claims, 0);
        assert_int_equal(claim_desk_count_debts(agent->desk).n_handovers, 0);
        assert_store_sane(agent->fixture->path);
}

/* Of which request the trouble is: one of the course, or one of each step; and of all behind it? */
typedef enum Reach { ONCE, ON, ONCE_IN_EACH_STEP, ON_IN_EACH_STEP, _REACH_MAX } Reach;

static bool goes_on(Reach reach)
{
        return reach == ON || reach == ON_IN_EACH_STEP;
}

/* How often the trouble came. */
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

/* Every how many-th case is taken: all of them need a while. */
static unsigned get_stride(void)
{
        const char *text = getenv("COMPUTE_AGENT_STEP");

        return text && atoi(text) > 0 ? (unsigned)atoi(text) : 13;
}

/* Spread over all numbers: every stride-th would be the same request of each course. */
static bool is_taken(unsigned number)
{
        return (number * 2654435761U >> 16) % get_stride() == 0;
}

/* *n counts the cases. Whether the trouble comes is known of those that are taken; the last one is.
 */
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
                /* The others are the same. */
                if (trouble != FAKE_TROUBLE_LATE)
                        break;
        }
        return n_taken;
}

static void test_courses(void **state)
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
                                /* It would be tried for too long. */
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

/* Somebody else places the consumer here, while what the agent left is still to be removed. */
static void test_placed_behind_a_release(void **state)
{
        static const struct {
                const char *placed; /* behind what the agent left: VCPU=2 */
                const char *left;
        } cases[] = {
                { "host VCPU=2", "host VCPU=2" },
                { "host VCPU=4", "host VCPU=4" },
                { "host VCPU=2,gpu VGPU=1", "host VCPU=2,gpu VGPU=1" },
                { "host VCPU=2,other VCPU=2", "other VCPU=2" },
                { NULL, "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (int restart = 0; restart < 2; restart++) {
                        Uuid instance = make_uuid("i");
                        char text[256];
                        Agent agent;

                        agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                        assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
                        fake_placement_trouble(FAKE_TROUBLE_LOST, 0, true);
                        assert_true(do_step(&agent, &(Step){ RELEASE, "i", NULL }));
                        if (cases[i].placed)
                                fake_placement_put(&instance, cases[i].placed);
                        if (restart)
                                agent_stop(&agent);
                        recover(&agent, AT_ONCE);
                        fake_placement_format(&instance, text);
                        if (strcmp(text, cases[i].left) != 0)
                                fail_msg("case %zu: %s", i, text);
                        assert_false(has_debts(&agent));
                        agent_end(&agent);
                }
}

/* Whenever it asks: a release of all is on its way to Placement, which finds room after it. */
static void test_claimed_behind_a_release(void **state)
{
        for (int n = 0; n < 8; n++) {
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VGPU=2" }));
                assert_int_equal(release(&agent, &(Step){ RELEASE, "i", NULL }), 0);
                claim_desk_settle(agent.desk);
                for (int i = 0; i < n; i++)
                        assert_true(sd_event_run(agent.event, 0) >= 0);
                if (!do_step(&agent, &(Step){ CLAIM, "j", "VGPU=2" }))
                        fail_msg("claimed after %d events: refused", n);
                agent_end(&agent);
        }
}

/* The same request while one is under way is answered with what that one gets. */
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
                claim_desk_claim(agent.desk, &request, on_done, &answers[i]);
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                assert_true(wait_for(&agent, &answers[i]));
                assert_int_equal(answers[i].result, 0);
                assert_int_equal(answers[i].claim, answers[0].claim);
                assert_int_equal(answers[i].told, i == 0);
        }
        /* Read, write. */
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
        claim_desk_claim(agent.desk, &small, on_done, &answers[0]);
        claim_desk_move(agent.desk, &instance, &migration, "MIGRATION", on_done, &answers[1]);
        claim_desk_claim(agent.desk, &large, on_done, &answers[2]);
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

/* Nothing is read of a consumer that a healer has: it may be about to take what would be verified.
 */
static void test_behind_a_healer(void **state)
{
        ClaimRequest request = { .consumer = make_uuid("i") };
        unsigned held[] = { 1, 1000 };

        make_request(&request.resources, "VCPU=1");
        for (size_t i = 0; i < ARRAY_SIZE(held); i++) {
                Answer answer = { 0 };
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                agent.service.n_healed = held[i];
                claim_desk_claim(agent.desk, &request, on_done, &answer);
                assert_false(answer.there);
                assert_true(wait_for(&agent, &answer));
                assert_int_equal(answer.result, held[i] == 1 ? 0 : -EBUSY);
                agent_end(&agent);
        }
        resource_request_done(&request.resources);
}

/* Others hold what no claim tells of: the write tells, and what is left is taken. */
static void test_what_others_hold(void **state)
{
#define SHARING                                                              \
        "host VCPU=8 @A; gpu<host VGPU=2; nic<host VGPU=2; disk DISK_GB=100" \
        " +MISC_SHARES_VIA_AGGREGATE @A"
        static const struct {
                const char *others, *request;
                int result;
                unsigned n_requests; /* read, and for each choice: write, look */
                const char *held;
        } cases[] = {
                { "", "_A:VGPU=1", 0, 2, "gpu VGPU=1" },
                { "gpu VGPU=1", "_A:VGPU=1", 0, 2, "gpu VGPU=1" },
                { "gpu VGPU=2", "VCPU=1 _A:VGPU=1", 0, 4, "host VCPU=1,nic VGPU=1" },
                { "gpu VGPU=2", "_A:VGPU=1 _B:VGPU=1", 0, 4, "nic VGPU=2" },
                { "gpu VGPU=2,nic VGPU=1", "_A:VGPU=1 _B:VGPU=1", CLAIM_E_NO_CAPACITY, 3, "" },
                { "gpu VGPU=2,nic VGPU=2", "_A:VGPU=1", CLAIM_E_NO_CAPACITY, 3, "" },
                { "host VCPU=7", "VCPU=2 _A:VGPU=1", CLAIM_E_NO_CAPACITY, 3, "" },
                /* A sharing provider is not told of: what does not fit can only be there. */
                { "disk DISK_GB=50", "VCPU=1,DISK_GB=60", CLAIM_E_NO_CAPACITY, 3, "" },
                { "gpu VGPU=2,disk DISK_GB=10", "DISK_GB=60 _A:VGPU=2", 0, 4,
                  "nic VGPU=2,disk DISK_GB=60" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Uuid others = make_uuid("others"), instance = make_uuid("i");
                Answer answer = { 0 };
                char text[256];
                Agent agent;
                unsigned n;

                agent_begin_on(&agent, *state, CLAIM_MODE_WRITE, SHARING, SHARING);
                fake_placement_put(&others, cases[i].others);
                n = fake_placement_get_n_requests();
                assert_true(do_claim(&agent, &(Step){ CLAIM, "i", cases[i].request }, &answer));
                fake_placement_format(&instance, text);
                if (answer.result != cases[i].result || strcmp(text, cases[i].held) != 0 ||
                    fake_placement_get_n_requests() - n != cases[i].n_requests)
                        fail_msg("case %zu: %d, %u requests, holds \"%s\"", i, answer.result,
                                 fake_placement_get_n_requests() - n, text);
                agent_end(&agent);
        }
}

/* The session goes away: who waits is told, and what was begun is finished with the next one. */
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
                claim_desk_claim(agent.desk, &request, on_done, &answers[0]);
                claim_desk_claim(agent.desk, &request, on_done, &answers[1]);
                for (unsigned i = 0; i < n; i++)
                        assert_true(sd_event_run(agent.event, USEC_PER_SEC) > 0);
                claim_desk_dismiss(agent.desk, "the reason");
                assert_true(answers[0].there && answers[1].there);
                assert_int_equal(answers[1].result, n < 2 ? CLAIM_E_BUSY : answers[1].result);
                settle(&agent);
                describe(&agent, text);
                assert_string_equal(text, n < 2 ? "" : "i: VCPU=2 on host");
                fake_placement_format(&instance, text);
                assert_string_equal(text, n < 2 ? "" : "host VCPU=2");
                resource_request_done(&request.resources);
                agent_end(&agent);
        }
}

/* Runs the loop until nothing happens; false when the instance held nothing in between. */
static bool holds_always(Agent *agent)
{
        Uuid instance = make_uuid("i");
        char held[256];
        bool always = true;

        do {
                fake_placement_format(&instance, held);
                always = always && held[0];
        } while (sd_event_run(agent->event, 0) > 0);
        return always;
}

/* Another claim is made of the guest, and has what the first one left, or what it says itself. */
static void test_released_though_its_guest_lives(void **state)
{
        static const char *const again[] = { "VCPU=2", "VCPU=4", "VCPU=2,VGPU=1" };
        static const char *const held[] = { "host VCPU=2", "host VCPU=4",
                                            "host VCPU=2,gpu VGPU=1" };

        for (size_t i = 0; i < ARRAY_SIZE(again); i++) {
                const ClaimPlacing owed = { .standing = CLAIM_STANDING_OWED };
                ClaimRequest request = { .consumer = make_uuid("i"),
                                         .consumer_type = CLAIM_TYPE_GUEST };
                _cleanup_(claim_freep) Claim *claim = NULL;
                char text[256];
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
                agent.service.has_guest = true;
                assert_int_equal(release(&agent, &(Step){ RELEASE, "i", NULL }), 0);
                claim_desk_settle(agent.desk);
                assert_true(holds_always(&agent));
                assert_int_equal(claim_desk_count_debts(agent.desk).n_departures, 1);

                agent.service.has_guest = false;
                make_request(&request.resources, again[i]);
                assert_int_equal(claims_claim_placed(agent.fixture->claims, &request, &owed, &claim,
                                                     NULL, NULL),
                                 0);
                claim_desk_settle(agent.desk);
                assert_true(holds_always(&agent));
                claim_desk_settle(agent.desk);
                assert_true(holds_always(&agent));
                fake_placement_format(&request.consumer, text);
                assert_string_equal(text, held[i]);
                assert_false(has_debts(&agent));

                /* It is the agent's own still. */
                assert_true(do_step(&agent, &(Step){ RELEASE, "i", NULL }));
                settle(&agent);
                assert_int_equal(fake_placement_count(), 0);
                resource_request_done(&request.resources);
                agent_end(&agent);
        }
}

/* Who asks again before that was told: it has one share or the other at each moment. */
static void test_released_and_claimed_otherwise(void **state)
{
        Uuid instance = make_uuid("i");
        Answer answer = { 0 };
        ClaimRequest request = { .consumer = instance, .consumer_type = "INSTANCE" };
        char text[256];
        Agent agent;

        agent_begin(&agent, *state, CLAIM_MODE_AUTO);
        assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
        assert_int_equal(release(&agent, &(Step){ RELEASE, "i", NULL }), 0);
        make_request(&request.resources, "VCPU=4");
        claim_desk_claim(agent.desk, &request, on_done, &answer);
        assert_true(holds_always(&agent));
        assert_true(answer.there);
        assert_int_equal(answer.result, 0);
        settle(&agent);
        fake_placement_format(&instance, text);
        assert_string_equal(text, "host VCPU=4");
        resource_request_done(&request.resources);
        agent_end(&agent);
}

/* Owed since Placement was away; the guest was here, and is on another host meanwhile. */
static void test_what_was_evacuated_is_owed_no_more(void **state)
{
        Uuid instance = make_uuid("i");

        for (int confirmed = 0; confirmed < 2; confirmed++) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                char text[256];
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                fake_placement_trouble(FAKE_TROUBLE_ERROR, 0, true);
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
                assert_int_equal(claims_find(agent.fixture->claims, &instance, false, &claim, NULL),
                                 0);
                if (confirmed)
                        assert_int_equal(claims_confirm(agent.fixture->claims, claim->id, NULL), 0);
                fake_placement_put(&instance, "other VCPU=2");
                recover(&agent, AT_ONCE);
                fake_placement_format(&instance, text);
                /* Who was not here yet may be on its way. */
                assert_string_equal(text, confirmed ? "other VCPU=2" : "host VCPU=2,other VCPU=2");
                assert_false(has_debts(&agent));
                agent_end(&agent);
        }
}

/* Each mode's word for a Placement that is away, or has not placed it. */
static void test_modes(void **state)
{
        static const struct {
                ClaimMode mode;
                bool away;
                int result;
                ClaimStanding standing;
        } cases[] = {
                { CLAIM_MODE_AUTO, true, 0, CLAIM_STANDING_OWED },
                { CLAIM_MODE_WRITE, true, CLAIM_DESK_E_PLACEMENT, 0 },
                { CLAIM_MODE_VERIFY, true, CLAIM_DESK_E_PLACEMENT, 0 },
                { CLAIM_MODE_AUTO, false, 0, CLAIM_STANDING_WRITTEN },
                { CLAIM_MODE_WRITE, false, 0, CLAIM_STANDING_WRITTEN },
                { CLAIM_MODE_VERIFY, false, CLAIM_DESK_E_NOT_PLACED, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Uuid instance = make_uuid("i");
                Step step = { CLAIM, "i", "VCPU=2" };
                _cleanup_(claim_freep) Claim *claim = NULL;
                Answer answer = { 0 };
                Agent agent;

                agent_begin(&agent, *state, cases[i].mode);
                if (cases[i].away)
                        fake_placement_trouble(FAKE_TROUBLE_ERROR, 0, true);
                assert_true(do_claim(&agent, &step, &answer));
                assert_int_equal(answer.result, cases[i].result);
                if (answer.result == 0) {
                        assert_int_equal(
                                claims_find(agent.fixture->claims, &instance, false, &claim, NULL),
                                0);
                        assert_int_equal(claim->standing, cases[i].standing);
                }
                agent_end(&agent);
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_courses),
                TEST(test_trouble_at_every_request),
                TEST(test_claimed_behind_a_release),
                TEST(test_placed_behind_a_release),
                TEST(test_released_though_its_guest_lives),
                TEST(test_released_and_claimed_otherwise),
                TEST(test_what_was_evacuated_is_owed_no_more),
                TEST(test_twice_at_once),
                TEST(test_one_after_the_other),
                TEST(test_behind_a_healer),
                TEST(test_what_others_hold),
                TEST(test_dismissed),
                TEST(test_modes),
        };

        use_vfs_without_sync();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
