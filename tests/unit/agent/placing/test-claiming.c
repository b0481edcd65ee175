/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Claims from the request to the answer, over a Placement in memory. */

#include <unistd.h>

#include "agent/guests/process.h"
#include "tests/fixtures/placing.h"

/* A claim for everything succeeds while the release of everything is being written to Placement,
 * whenever it is requested. */
static void test_claimed_behind_a_release(void **state)
{
        for (int n = 0; n < 8; n++) {
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VGPU=2" }));
                assert_int_equal(release(&agent, &(Step){ RELEASE, "i", NULL }), 0);
                claim_queue_tend(agent.queue, false, true);
                for (int i = 0; i < n; i++)
                        assert_true(sd_event_run(agent.event, 0) >= 0);
                if (!do_step(&agent, &(Step){ CLAIM, "j", "VGPU=2" }))
                        fail_msg("claimed after %d events: refused", n);
                agent_end(&agent);
        }
}

/* A consumer is claimed again before the release of its first claim is settled. At each moment it
 * has the allocations of one claim or the other. */
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
        claim_queue_claim(agent.queue, &request, on_done, &answer);
        assert_true(holds_always(&agent));
        assert_true(answer.there);
        assert_int_equal(answer.result, 0);
        settle(&agent);
        fake_placement_format(&instance, text);
        assert_string_equal(text, "host VCPU=4");
        resource_request_done(&request.resources);
        agent_end(&agent);
}

/* While [agent] nova forbids removals, a consumer claims again what its ended claim left, and its
 * guest starts. Then removals are permitted. */
static int64_t begin_with_left_allocations(Agent *agent, Fixture *fixture)
{
        Answer answer = { 0 };

        agent_begin(agent, fixture, CLAIM_MODE_AUTO);
        assert_true(do_step(agent, &(Step){ CLAIM, "i", "VCPU=2" }));
        assert_int_equal(release(agent, &(Step){ RELEASE, "i", NULL }), 0);
        claim_queue_set_mode(agent->queue, agent->mode, NOVA_OBSERVE, true);
        assert_true(do_claim(agent, &(Step){ CLAIM, "i", "VCPU=2" }, &answer));
        assert_int_equal(answer.result, 0);
        assert_int_equal(claims_confirm(agent->fixture->claims, answer.claim, NULL), 0);
        assert_int_equal(count_pending_writes(agent).n_removals, 1);
        claim_queue_set_mode(agent->queue, agent->mode, NOVA_NONE, true);
        return answer.claim;
}

static void assert_left_allocations_stay(Agent *agent)
{
        Uuid instance = make_uuid("i");
        char text[256];

        fake_placement_trouble(FAKE_TROUBLE_NONE, 0, false);
        settle(agent);
        assert_false(is_owing(agent));
        describe(agent, text);
        assert_string_equal(text, "i: VCPU=2 on host");
        fake_placement_format(&instance, text);
        assert_string_equal(text, "host VCPU=2");
        agent_end(agent);
}

/* Nothing is written, so no trouble of a write ends the claim. */
static void test_a_repeated_claim_of_left_allocations(void **state)
{
        static const FakeTrouble troubles[] = { FAKE_TROUBLE_NONE, FAKE_TROUBLE_LOST,
                                                FAKE_TROUBLE_CUT, FAKE_TROUBLE_RACE,
                                                FAKE_TROUBLE_NO_CAPACITY };

        for (size_t i = 0; i < ARRAY_SIZE(troubles); i++) {
                Answer answer = { 0 };
                Agent agent;
                int64_t claim = begin_with_left_allocations(&agent, *state);

                fake_placement_trouble(troubles[i], 1, false);
                assert_true(do_claim(&agent, &(Step){ CLAIM, "i", "VCPU=2" }, &answer));
                if (answer.result != 0 || answer.claim != claim || answer.is_new)
                        fail_msg("case %zu: %d, claim %d", i, answer.result, (int)answer.claim);
                assert_left_allocations_stay(&agent);
        }
}

/* The claim of a resize does not replace the allocations of the running guest. */
static void test_a_resize_beside_left_allocations(void **state)
{
        ClaimRequest request = { .consumer = make_uuid("i"), .resize_target = true };
        Answer answer = { 0 };
        Agent agent;

        (void)begin_with_left_allocations(&agent, *state);
        make_request(&request.resources, "VCPU=3");
        claim_queue_claim(agent.queue, &request, on_done, &answer);
        assert_true(wait_for(&agent, &answer));
        assert_int_equal(answer.result, CLAIM_E_OTHER);
        resource_request_done(&request.resources);
        assert_left_allocations_stay(&agent);
}

/* The consumer gets a claim, which its guest confirms, while the agent reads it from Placement.
 * That claim is the answer, and no trouble of a write ends it. */
static void test_claimed_during_the_read(void **state)
{
        static const FakeTrouble troubles[] = { FAKE_TROUBLE_NONE, FAKE_TROUBLE_LOST };

        for (size_t i = 0; i < ARRAY_SIZE(troubles); i++) {
                ClaimRequest request = { .consumer = make_uuid("i") };
                _cleanup_(claim_freep) Claim *claim = NULL;
                Answer answer = { 0 };
                char text[256];
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                make_request(&request.resources, "VCPU=2");
                fake_placement_trouble(troubles[i], 1, false);
                claim_queue_claim(agent.queue, &request, on_done, &answer);
                assert_int_equal(fixture_claim(agent.fixture, "i", "VCPU=2", &claim), 0);
                assert_int_equal(claims_confirm(agent.fixture->claims, claim->id, NULL), 0);
                assert_true(wait_for(&agent, &answer));
                describe(&agent, text);
                if (answer.result != 0 || answer.claim != claim->id || answer.is_new ||
                    strcmp(text, "i: VCPU=2 on host") != 0)
                        fail_msg("case %zu: %d, claim %d, %s", i, answer.result, (int)answer.claim,
                                 text);
                resource_request_done(&request.resources);
                agent_end(&agent);
        }
}

/* With claim_mode verify, allocations that an ended claim left are written, but not before
 * Placement has confirmed the root. */
static void test_left_allocations_wait_for_the_root(void **state)
{
        for (int only_reads = 0; only_reads < 2; only_reads++) {
                Answer answer = { 0 };
                Agent agent;
                unsigned n;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
                assert_int_equal(release(&agent, &(Step){ RELEASE, "i", NULL }), 0);
                claim_queue_set_mode(agent.queue, CLAIM_MODE_VERIFY, NOVA_NONE, true);
                agent.only_reads = only_reads;
                n = fake_placement_get_n_requests();
                assert_true(do_claim(&agent, &(Step){ CLAIM, "i", "VCPU=2" }, &answer));
                assert_int_equal(answer.result, only_reads ? CLAIM_QUEUE_E_PLACEMENT : 0);
                assert_int_equal(fake_placement_get_n_requests() - n, only_reads ? 1 : 2);
                assert_int_equal(count_pending_writes(&agent).n_removals, 1);
                agent_end(&agent);
        }
}

/* The clock was set back after the claim was made. */
static void test_a_repeated_claim_is_not_new(void **state)
{
        Answer answers[2] = { { 0 } };
        Agent agent;

        agent_begin(&agent, *state, CLAIM_MODE_AUTO);
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                assert_true(do_claim(&agent, &(Step){ CLAIM, "i", "VCPU=2" }, &answers[i]));
                assert_int_equal(answers[i].result, 0);
                assert_int_equal(answers[i].is_new, i == 0);
                free(run_sql(agent.fixture->path,
                             "UPDATE claims SET created_usec = created_usec + 3600000000"));
        }
        agent_end(&agent);
}

/* A consumer that a healer uses is not read, because the healer might remove the allocations that
 * the task verifies. */
static void test_behind_a_healer(void **state)
{
        ClaimRequest request = { .consumer = make_uuid("i") };
        unsigned held[] = { 1, 1000 };

        make_request(&request.resources, "VCPU=1");
        for (size_t i = 0; i < ARRAY_SIZE(held); i++) {
                Answer answer = { 0 };
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                agent.n_healed = held[i];
                claim_queue_claim(agent.queue, &request, on_done, &answer);
                assert_false(answer.there);
                assert_true(wait_for(&agent, &answer));
                assert_int_equal(answer.result, held[i] == 1 ? 0 : -EBUSY);
                agent_end(&agent);
        }
        resource_request_done(&request.resources);
}

/* Other consumers have allocations without claims. The refused write shows it, and the fit chooses
 * from the free capacity. */
static void test_fit_skips_capacity_of_other_consumers(void **state)
{
#define SHARING                                                              \
        "host VCPU=8 @A; gpu<host VGPU=2; nic<host VGPU=2; disk DISK_GB=100" \
        " +MISC_SHARES_VIA_AGGREGATE @A"
        static const struct {
                const char *others, *request;
                int result;
                unsigned n_requests; /* one read, and for each choice a write and a read of the free
                                        capacity */
                const char *held;
        } cases[] = {
                { "", "_A:VGPU=1", 0, 2, "gpu VGPU=1" },
                { "gpu VGPU=1", "_A:VGPU=1", 0, 2, "gpu VGPU=1" },
                { "gpu VGPU=2", "VCPU=1 _A:VGPU=1", 0, 4, "host VCPU=1,nic VGPU=1" },
                { "gpu VGPU=2", "_A:VGPU=1 _B:VGPU=1", 0, 4, "nic VGPU=2" },
                { "gpu VGPU=2,nic VGPU=1", "_A:VGPU=1 _B:VGPU=1", CLAIM_E_NO_CAPACITY, 3, "" },
                { "gpu VGPU=2,nic VGPU=2", "_A:VGPU=1", CLAIM_E_NO_CAPACITY, 3, "" },
                { "host VCPU=7", "VCPU=2 _A:VGPU=1", CLAIM_E_NO_CAPACITY, 3, "" },
                /* The free capacity of a sharing provider is unknown: a refusal without another
                 * reason must come from it. */
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

/* The result of each mode if Placement is away, or has not placed the consumer. */
static void test_modes(void **state)
{
        static const struct {
                ClaimMode mode;
                bool away;
                int result;
                ClaimWriteState write_state;
        } cases[] = {
                { CLAIM_MODE_AUTO, true, 0, CLAIM_WRITE_UNSENT },
                { CLAIM_MODE_WRITE, true, CLAIM_QUEUE_E_PLACEMENT, 0 },
                { CLAIM_MODE_VERIFY, true, CLAIM_QUEUE_E_PLACEMENT, 0 },
                { CLAIM_MODE_AUTO, false, 0, CLAIM_WRITE_WRITTEN },
                { CLAIM_MODE_WRITE, false, 0, CLAIM_WRITE_WRITTEN },
                { CLAIM_MODE_VERIFY, false, CLAIM_QUEUE_E_NOT_PLACED, 0 },
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
                        assert_int_equal(claim->write_state, cases[i].write_state);
                }
                agent_end(&agent);
        }
}

static unsigned n_refreshes[CLAIM_REFRESH_HOST + 1];

static int refresh(ClaimRefresh what, void *userdata, Error *reterr)
{
        n_refreshes[what]++;
        return what == CLAIM_REFRESH_HOST && n_refreshes[what] > 1
                       ? error_setf(reterr, EAGAIN, "the reason")
                       : 0;
}

static void begin_refreshing(Agent *agent, Fixture *fixture, const HostFacts *facts)
{
        agent_begin(agent, fixture, CLAIM_MODE_AUTO);
        agent_stop(agent);
        agent->service.facts = facts;
        agent->refresh = refresh;
        agent_start(agent);
        memset(n_refreshes, 0, sizeof(n_refreshes));
}

/* A claim of a device waits for a poll of all guests that begins after it. Other claims do not
 * wait. */
static void test_devices_wait_for_guests(void **state)
{
        static const struct {
                const char *request;
                bool waits, fails;
        } cases[] = {
                { "VCPU=1", false, false },
                { "_A:VGPU=1", true, false },
                { "_A:VGPU=1", true, true },
        };
        HostDevice device = { .name = "gpu", .resource_class = "VGPU", .available = 2 };
        const HostFacts facts = { .devices = &device, .n_devices = 1 };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimRequest request = { .consumer = make_uuid("i") };
                Answer answers[2] = { { 0 } };
                Error error = ERROR_NULL;
                Agent agent;

                begin_refreshing(&agent, *state, &facts);
                make_request(&request.resources, cases[i].request);
                claim_queue_claim(agent.queue, &request, on_done, &answers[0]);
                claim_queue_refresh(agent.queue, &request, on_done, &answers[1]);
                assert_int_equal(n_refreshes[CLAIM_REFRESH_GUESTS], cases[i].waits ? 2 : 0);
                assert_int_equal(answers[1].there, !cases[i].waits);
                claim_queue_refreshed(agent.queue, CLAIM_REFRESH_HOST, UINT64_MAX, &ERROR_NULL);
                claim_queue_refreshed(agent.queue, CLAIM_REFRESH_GUESTS, 1, &ERROR_NULL);
                assert_int_equal(answers[1].there, !cases[i].waits);
                if (cases[i].fails)
                        error_setf(&error, EIO, "the reason");
                claim_queue_refreshed(agent.queue, CLAIM_REFRESH_GUESTS, UINT64_MAX, &error);
                for (size_t j = 0; j < ARRAY_SIZE(answers); j++) {
                        assert_true(wait_for(&agent, &answers[j]));
                        assert_int_equal(answers[j].result, cases[i].fails ? -EBUSY : 0);
                }
                resource_request_done(&request.resources);
                agent_end(&agent);
        }
}

/* A placed guest that does not fit waits once for a cycle, which can end the claim of another
 * guest. */
static void test_refused_guests_wait_for_the_host(void **state)
{
        for (int ends = 0; ends < 2; ends++) {
                ClaimRequest request = { .consumer = make_uuid("i") };
                Answer answers[2] = { { 0 } };
                Agent agent;

                begin_refreshing(&agent, *state, NULL);
                assert_true(do_step(&agent, &(Step){ CLAIM, "j", "VCPU=8" }));
                assert_true(do_step(&agent, &(Step){ PLACE, "i", "host VCPU=2" }));
                make_request(&request.resources, "VCPU=2");
                claim_queue_claim(agent.queue, &request, on_done, &answers[0]);
                while (n_refreshes[CLAIM_REFRESH_HOST] == 0)
                        assert_true(sd_event_run(agent.event, USEC_PER_SEC) > 0);
                if (ends)
                        assert_int_equal(release(&agent, &(Step){ RELEASE, "j", NULL }), 0);
                claim_queue_refreshed(agent.queue, CLAIM_REFRESH_HOST, 1, &ERROR_NULL);
                assert_false(answers[0].there);
                claim_queue_refreshed(agent.queue, CLAIM_REFRESH_HOST, UINT64_MAX, &ERROR_NULL);
                assert_true(wait_for(&agent, &answers[0]));
                assert_int_equal(answers[0].result, ends ? 0 : CLAIM_E_NO_CAPACITY);
                /* Without a possible refresh, the claim does not wait. */
                claim_queue_claim(agent.queue, &request, on_done, &answers[1]);
                assert_true(wait_for(&agent, &answers[1]));
                assert_int_equal(answers[1].result, answers[0].result);
                resource_request_done(&request.resources);
                agent_end(&agent);
        }
}

/* While guests are being adopted, no claim is fitted: their amounts look free. A claim that arrives
 * waits, and so does one that has read its consumer, or the guests. */
static void test_claims_wait_for_the_adoption_of_guests(void **state)
{
        HostDevice device = { .name = "gpu", .resource_class = "VGPU", .available = 2 };
        const HostFacts facts = { .devices = &device, .n_devices = 1 };
        static const char *const requests[] = { "VCPU=1", "_A:VGPU=1" };

        for (size_t i = 0; i < 2 * ARRAY_SIZE(requests); i++) {
                ClaimRequest request = { .consumer = make_uuid("i") };
                Answer answers[2] = { { 0 } };
                bool begun = i % 2; /* the adoption begins after the claim */
                Agent agent;

                begin_refreshing(&agent, *state, &facts);
                agent.service.is_adopting = !begun;
                make_request(&request.resources, requests[i / 2]);
                claim_queue_claim(agent.queue, &request, on_done, &answers[0]);
                agent.service.is_adopting = true;
                claim_queue_refresh(agent.queue, &request, on_done, &answers[1]);
                claim_queue_refreshed(agent.queue, CLAIM_REFRESH_GUESTS, UINT64_MAX, &ERROR_NULL);
                while (sd_event_run(agent.event, 10 * USEC_PER_MSEC) > 0)
                        ;
                assert_false(answers[0].there);
                assert_false(answers[1].there);
                /* The adopted guest has all CPUs. */
                assert_int_equal(fixture_claim(agent.fixture, "guest", "VCPU=8", NULL), 0);
                agent.service.is_adopting = false;
                agent.service.adopted(agent.service.adopted_userdata);
                for (int n = 0; n < 10; n++) {
                        claim_queue_refreshed(agent.queue, CLAIM_REFRESH_GUESTS, UINT64_MAX,
                                              &ERROR_NULL);
                        (void)sd_event_run(agent.event, 0);
                }
                assert_true(wait_for(&agent, &answers[0]));
                assert_true(wait_for(&agent, &answers[1]));
                assert_int_equal(answers[0].result, i / 2 == 0 ? CLAIM_E_NO_CAPACITY : 0);
                resource_request_done(&request.resources);
                agent_end(&agent);
        }
}

/* Another writer changes the allocations of a guest that no driver lists, and its client repeats
 * the claim. The claim stays unless the guest has certainly ended. */
static void test_a_guest_that_can_live_keeps_its_claim(void **state)
{
        static const struct {
                bool named, ended, unknown; /* the claim names its process, which has ended; the
                                               driver does not know the guests */
                bool named_again;           /* the repeated request names the process */
                bool stays;
        } cases[] = {
                { true, false, false, true, true },  { true, true, false, true, false },
                { true, true, true, true, false },   { false, false, true, false, true },
                { false, false, false, true, true }, { false, false, false, false, false },
        };
        const HostFacts facts = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimRequest request = { .consumer = make_uuid("i") };
                Snapshot snapshot = { .guests_unknown = cases[i].unknown };
                char process[CLAIM_PROCESS_SIZE];
                Answer answers[2] = { { 0 } };
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                agent.service.facts = &facts;
                agent.service.comparison.snapshot = &snapshot;
                assert_int_equal(process_identify((uint64_t)getpid(), process, NULL), 0);
                if (cases[i].named)
                        strcpy(request.process, process);
                make_request(&request.resources, "VCPU=2");
                assert_true(do_step(&agent, &(Step){ PLACE, "i", "host VCPU=2" }));
                claim_queue_claim(agent.queue, &request, on_done, &answers[0]);
                assert_true(wait_for(&agent, &answers[0]));
                assert_int_equal(answers[0].result, 0);
                assert_int_equal(claims_confirm(agent.fixture->claims, answers[0].claim, NULL), 0);
                /* Another start time: the process with this number is another one. */
                if (cases[i].ended)
                        free(run_sql(agent.fixture->path,
                                     "UPDATE claims SET life = replace(life, 'at ', 'at 1')"));
                assert_true(do_step(&agent, &(Step){ PLACE, "i", "host VCPU=4" }));
                strcpy(request.process, cases[i].named_again ? process : "");
                claim_queue_claim(agent.queue, &request, on_done, &answers[1]);
                assert_true(wait_for(&agent, &answers[1]));
                if ((answers[1].result == 0 && answers[1].claim == answers[0].claim) !=
                    cases[i].stays)
                        fail_msg("case %zu: %d", i, answers[1].result);
                agent.service.facts = NULL;
                agent.service.comparison.snapshot = NULL;
                resource_request_done(&request.resources);
                agent_end(&agent);
        }
}

/* A crash leaves a pending claim, and the next start has no [placement]. The claim is released
 * before its consumer claims again, and at the end of a cycle. */
static void test_pending_claims_end_without_placement(void **state)
{
        for (int claims_again = 0; claims_again < 2; claims_again++) {
                Answer answer = { 0 };
                char text[256];
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_WRITE);
                fake_placement_trouble(FAKE_TROUBLE_HANG, 1, false);
                assert_false(do_claim(&agent, &(Step){ CLAIM, "i", "VCPU=2" }, &answer));
                agent_start(&agent);
                answer = (Answer){ 0 }; /* the end of the first agent answered the call */
                claim_queue_set_mode(agent.queue, agent.mode, NOVA_NONE, false);
                describe(&agent, text);
                assert_string_equal(text, "i: VCPU=2 on host");
                if (claims_again) {
                        assert_true(do_claim(&agent, &(Step){ CLAIM, "i", "VCPU=2" }, &answer));
                        assert_int_equal(answer.result, 0);
                        assert_int_equal(claims_confirm(agent.fixture->claims, answer.claim, NULL),
                                         0);
                } else {
                        claim_queue_tend(agent.queue, false, true);
                        describe(&agent, text);
                        assert_string_equal(text, "");
                }
                agent_end(&agent);
        }
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown,
                test_claims_wait_for_the_adoption_of_guests, test_claimed_behind_a_release,
                test_released_and_claimed_otherwise, test_a_repeated_claim_is_not_new,
                test_a_repeated_claim_of_left_allocations, test_a_resize_beside_left_allocations,
                test_claimed_during_the_read, test_left_allocations_wait_for_the_root,
                test_behind_a_healer, test_fit_skips_capacity_of_other_consumers, test_modes,
                test_devices_wait_for_guests, test_refused_guests_wait_for_the_host,
                test_a_guest_that_can_live_keeps_its_claim,
                test_pending_claims_end_without_placement)
