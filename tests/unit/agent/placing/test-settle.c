/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Pending work of single claims, settled over a Placement in memory. */

#include "agent/placing/task.h"
#include "base/message-ids.h"
#include "tests/fixtures/placing.h"

static unsigned n_logged; /* messages that all claims are reported */

void __wrap_log_write(int level, const char *file, int line, const char *func,
                      const char *message_id, const char *const fields[], const char *format, ...)
        _printf_(7, 8);

void __wrap_log_write(int level, const char *file, int line, const char *func,
                      const char *message_id, const char *const fields[], const char *format, ...)
{
        n_logged += message_id && strcmp(message_id, MESSAGE_PLACEMENT_SETTLED) == 0;
}

/* Another writer places the consumer on this host while the removal of the agent's allocations is
 * pending. */
static void test_placed_behind_a_release(void **state)
{
        static const struct {
                const char *placed; /* placed after the release; the agent left VCPU=2 */
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
                        assert_false(is_owing(&agent));
                        agent_end(&agent);
                }
}

/* Another claim is created from the guest. It has the allocations that the first one left, or its
 * own. */
static void test_released_though_its_guest_lives(void **state)
{
        static const char *const again[] = { "VCPU=2", "VCPU=4", "VCPU=2,VGPU=1" };
        static const char *const held[] = { "host VCPU=2", "host VCPU=4",
                                            "host VCPU=2,gpu VGPU=1" };

        for (size_t i = 0; i < ARRAY_SIZE(again); i++) {
                const ClaimPlacing unsent = { .write_state = CLAIM_WRITE_UNSENT };
                ClaimRequest request = { .consumer = make_uuid("i"),
                                         .consumer_type = CLAIM_TYPE_GUEST };
                _cleanup_(claim_freep) Claim *claim = NULL;
                uint64_t n_removals;
                char text[256];
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
                agent.has_guest = true;
                assert_int_equal(release(&agent, &(Step){ RELEASE, "i", NULL }), 0);
                claim_queue_tend(agent.queue, false, true);
                assert_true(holds_always(&agent));
                assert_int_equal(count_pending_writes(&agent).n_removals, 1);

                agent.has_guest = false;
                make_request(&request.resources, again[i]);
                assert_int_equal(
                        claims_claim(agent.fixture->claims, &request, &unsent, &claim, NULL, NULL),
                        0);
                n_removals = agent.queue->n_removals;
                claim_queue_tend(agent.queue, false, true);
                assert_true(holds_always(&agent));
                /* The write can have freed capacity, so a refused claim is tried again. */
                assert_int_equal(agent.queue->n_removals, n_removals + 1);
                claim_queue_tend(agent.queue, false, true);
                assert_true(holds_always(&agent));
                fake_placement_format(&request.consumer, text);
                assert_string_equal(text, held[i]);
                assert_false(is_owing(&agent));

                /* The allocations still belong to the agent. */
                assert_true(do_step(&agent, &(Step){ RELEASE, "i", NULL }));
                settle(&agent);
                assert_int_equal(fake_placement_count(), 0);
                resource_request_done(&request.resources);
                agent_end(&agent);
        }
}

/* One request replaces the allocations of an ended claim by those of the next one, and meets
 * trouble, or the read before it does. The next claim stays pending until it is written, and its
 * end removes its allocations. */
static void replace_in_trouble(Fixture *fixture, const char *first, const char *again,
                               const char *held, FakeTrouble trouble, unsigned skip,
                               Arrival arrival)
{
        const ClaimPlacing unsent = { .write_state = CLAIM_WRITE_UNSENT };
        ClaimRequest request = { .consumer = make_uuid("i"), .consumer_type = CLAIM_TYPE_GUEST };
        _cleanup_(claim_freep) Claim *claim = NULL;
        char text[256];
        Agent agent;

        agent_begin(&agent, fixture, CLAIM_MODE_AUTO);
        agent.pauses = trouble >= FAKE_TROUBLE_RACE;
        assert_true(do_step(&agent, &(Step){ CLAIM, "i", first }));
        assert_int_equal(release(&agent, &(Step){ RELEASE, "i", NULL }), 0);
        make_request(&request.resources, again);
        assert_int_equal(claims_claim(agent.fixture->claims, &request, &unsent, &claim, NULL, NULL),
                         0);
        fake_placement_trouble(trouble, skip, false);
        settle(&agent);
        assert_int_equal(fake_placement_get_hits(), 1);
        if (fake_placement_hangs())
                agent_stop(&agent);
        recover(&agent, arrival);
        settle(&agent);
        fake_placement_format(&request.consumer, text);
        if (strcmp(text, held) != 0 || is_owing(&agent))
                fail_msg("%s, then %s: trouble %d of request %u, arrival %d: %s", first, again,
                         trouble, skip, arrival, text);

        assert_true(do_step(&agent, &(Step){ RELEASE, "i", NULL }));
        settle(&agent);
        if (fake_placement_count() != 0)
                fail_msg("%s, then %s: trouble %d of request %u, arrival %d: not removed", first,
                         again, trouble, skip, arrival);
        resource_request_done(&request.resources);
        agent_end(&agent);
}

static void test_replaced_in_trouble(void **state)
{
        static const struct {
                const char *first, *again, *held;
        } cases[] = {
                { "VCPU=2", "VCPU=4", "host VCPU=4" },
                { "VCPU=4", "VCPU=2", "host VCPU=2" },
                { "VCPU=2", "VCPU=2", "host VCPU=2" },
                { "VCPU=2,VGPU=1", "VCPU=2", "host VCPU=2" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (FakeTrouble trouble = FAKE_TROUBLE_LOST; trouble < _FAKE_TROUBLE_MAX;
                     trouble++)
                        for (unsigned skip = 0; skip < 2; skip++)
                                for (Arrival arrival = 0; arrival < _ARRIVAL_MAX; arrival++)
                                        replace_in_trouble(*state, cases[i].first, cases[i].again,
                                                           cases[i].held, trouble, skip, arrival);
}

/* The write is pending because Placement was away, and the guest was evacuated to another host
 * before it was settled. An unread guest is no evidence of that, so its write waits. The trouble
 * with Placement is over then, but not all claims are reported. */
static void test_evacuated_claim_is_not_written(void **state)
{
        static const struct {
                bool confirmed, was_polled, is_listed, unread, guests_unknown;
                bool is_process; /* the guest is a process, which is alive */
                const char *held;
                bool owes;
        } cases[] = {
                { true, true, false, false, false, false, "other VCPU=2", false },
                /* A guest that has not run here might still be on its way. */
                { false, true, false, false, false, false, "host VCPU=2,other VCPU=2", false },
                { true, false, false, false, false, false, "other VCPU=2", true },
                { true, true, true, true, false, false, "other VCPU=2", true },
                { true, true, true, false, false, false, "other VCPU=2", false },
                { true, true, false, false, true, false, "host VCPU=2,other VCPU=2", false },
                { true, true, false, false, false, true, "host VCPU=2,other VCPU=2", false },
        };
        Uuid instance = make_uuid("i");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HostDomain domain = { .uuid = instance, .unread = cases[i].unread };
                const HostFacts facts = { .domains = &domain, .n_domains = cases[i].is_listed },
                                none = { 0 };
                Snapshot snapshot = { .guests_unknown = cases[i].guests_unknown };
                PendingWrites pending_writes;
                const char *trouble;
                _cleanup_(claim_freep) Claim *claim = NULL;
                char text[256];
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                fake_placement_trouble(FAKE_TROUBLE_ERROR, 0, true);
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
                assert_int_equal(claims_find(agent.fixture->claims, &instance, false, &claim, NULL),
                                 0);
                if (cases[i].is_process)
                        /* A text that cannot be parsed counts as alive. */
                        free(run_sql(agent.fixture->path, "UPDATE claims SET life = 'process'"));
                if (cases[i].confirmed)
                        assert_int_equal(claims_confirm(agent.fixture->claims, claim->id, NULL), 0);
                fake_placement_put(&instance, "other VCPU=2");
                agent.service.facts = cases[i].was_polled ? &facts : NULL;
                agent.service.comparison.snapshot = &snapshot;
                settle(&agent);
                n_logged = 0;
                recover(&agent, AT_ONCE);
                fake_placement_format(&instance, text);
                trouble = claim_queue_count_pending_writes(agent.queue, &pending_writes);
                if (strcmp(text, cases[i].held) != 0 || is_owing(&agent) != cases[i].owes ||
                    trouble[0] || n_logged != !cases[i].owes)
                        fail_msg("case %zu: %s, %d, \"%s\", %u", i, text, is_owing(&agent), trouble,
                                 n_logged);
                /* The next poll reads the guest. */
                agent.service.facts = &none;
                settle(&agent);
                settle(&agent);
                assert_int_equal(n_logged, 1);
                agent.service.facts = NULL;
                agent_end(&agent);
        }
}

/* During a round, Placement shows that the root is another host's. The next removal waits, in each
 * claim_mode. */
static void test_a_round_stops_without_the_root(void **state)
{
        static const ClaimMode modes[] = { CLAIM_MODE_AUTO, CLAIM_MODE_VERIFY };

        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
                assert_true(do_step(&agent, &(Step){ CLAIM, "j", "VCPU=2" }));
                claim_queue_set_mode(agent.queue, modes[i], NOVA_NONE, true);
                assert_int_equal(release(&agent, &(Step){ RELEASE, "i", NULL }), 0);
                assert_int_equal(release(&agent, &(Step){ RELEASE, "j", NULL }), 0);
                claim_queue_tend(agent.queue, false, true);
                agent.only_reads = true;
                while (sd_event_run(agent.event, 0) > 0)
                        ;
                assert_int_equal(fake_placement_count(), 1);
                assert_int_equal(count_pending_writes(&agent).n_removals, 1);
                agent_end(&agent);
        }
}

/* The claim of a guest that starts is pending while a healer removes the allocations of the guest's
 * ended server. It is written after that, and does not count as placed by them. */
static void test_write_waits_for_a_healer(void **state)
{
        const ClaimPlacing unsent = { .write_state = CLAIM_WRITE_UNSENT };
        ClaimRequest request = { .consumer = make_uuid("i"), .consumer_type = CLAIM_TYPE_GUEST };
        _cleanup_(claim_freep) Claim *claim = NULL;
        char text[256];
        Agent agent;

        agent_begin(&agent, *state, CLAIM_MODE_AUTO);
        fake_placement_put(&request.consumer, "host VCPU=4");
        make_request(&request.resources, "VCPU=2");
        assert_int_equal(claims_claim(agent.fixture->claims, &request, &unsent, &claim, NULL, NULL),
                         0);
        agent.n_healed = 30;
        settle(&agent);
        fake_placement_put(&request.consumer, "");
        agent.n_healed = 0;
        while (is_owing(&agent) && sd_event_run(agent.event, USEC_PER_SEC) > 0)
                ;
        fake_placement_format(&request.consumer, text);
        assert_string_equal(text, "host VCPU=2");
        assert_false(is_owing(&agent));
        resource_request_done(&request.resources);
        agent_end(&agent);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown,
                test_placed_behind_a_release, test_released_though_its_guest_lives,
                test_replaced_in_trouble, test_write_waits_for_a_healer,
                test_evacuated_claim_is_not_written, test_a_round_stops_without_the_root)
