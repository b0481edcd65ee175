/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moves of a claim to another consumer, over a Placement in memory. */

#include "agent/placing/task.h"
#include "tests/fixtures/placing.h"

/* Allocations of the target on this host are not overwritten. A repeated move has the same
 * answer. */
static void test_moves(void **state)
{
        static const struct {
                const char *placed; /* allocations of the migration before the move */
                bool twice;
                int result;
                const char *instance, *migration;
        } cases[] = {
                { NULL, false, 0, "", "host VCPU=2" },
                { NULL, true, 0, "", "host VCPU=2" },
                { "other VCPU=1", false, 0, "", "host VCPU=2,other VCPU=1" },
                { "host VCPU=1", false, CLAIM_E_CONFLICT, "host VCPU=2", "host VCPU=1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Uuid instance = make_uuid("i"), migration = make_uuid("m");
                Answer answers[2] = { { 0 } };
                char from[256], to[256];
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
                if (cases[i].placed)
                        fake_placement_put(&migration, cases[i].placed);
                for (int n = 0; n <= cases[i].twice; n++) {
                        claim_queue_move(agent.queue, &instance, &migration, NULL, NULL, on_done,
                                         &answers[n]);
                        assert_true(wait_for(&agent, &answers[n]));
                        assert_int_equal(answers[n].result, cases[i].result);
                        assert_int_equal(answers[n].is_new, n == 0 && cases[i].result == 0);
                }
                fake_placement_format(&instance, from);
                fake_placement_format(&migration, to);
                if (strcmp(from, cases[i].instance) != 0 || strcmp(to, cases[i].migration) != 0)
                        fail_msg("case %zu: \"%s\", \"%s\"", i, from, to);
                assert_false(is_owing(&agent));
                agent_end(&agent);
        }
}

/* A consumer without a claim cannot be moved. */
static void test_nothing_to_move(void **state)
{
        Uuid instance = make_uuid("i"), migration = make_uuid("m");
        Answer answer = { 0 };
        Agent agent;

        agent_begin(&agent, *state, CLAIM_MODE_AUTO);
        claim_queue_move(agent.queue, &instance, &migration, NULL, NULL, on_done, &answer);
        assert_true(wait_for(&agent, &answer));
        assert_int_equal(answer.result, CLAIM_E_NOT_FOUND);
        agent_end(&agent);
}

/* A move is lost, or only its answer, and the target gets a claim or allocations of its own before
 * the move is settled. The move ends, and the same round sends later pending writes. */
static void test_the_target_has_resources_meanwhile(void **state)
{
        static const struct {
                FakeTrouble trouble;
                Step step;
                const char *claims;
        } cases[] = {
                { FAKE_TROUBLE_CUT,
                  { CLAIM, "m", "VCPU=2" },
                  "i: VCPU=2 on host; m: VCPU=2 on host; m: VCPU=1 on host" },
                { FAKE_TROUBLE_LOST,
                  { PLACE, "m", "host VCPU=2" },
                  "i: VCPU=2 on host; m: VCPU=1 on host" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                PendingWrites pending_writes;
                Agent agent;
                char text[256];

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
                fake_placement_trouble(cases[i].trouble, 2, false);
                assert_false(do_step(&agent, &(Step){ MOVE, "i", "m" }));
                assert_int_equal(count_pending_writes(&agent).n_moves, 1);
                fake_placement_trouble(FAKE_TROUBLE_NONE, 0, false);
                assert_true(do_step(&agent, &cases[i].step));
                claim_queue_tend(agent.queue, true, false);
                assert_true(do_step(&agent, &(Step){ CLAIM, "x", "VCPU=1" }));
                claim_queue_tend(agent.queue, false, false);
                assert_int_equal(count_pending_writes(&agent).n_writes, 1);
                settle(&agent);
                assert_string_equal(claim_queue_count_pending_writes(agent.queue, &pending_writes),
                                    "");
                assert_false(is_owing(&agent));
                describe(&agent, text);
                assert_string_equal(text, cases[i].claims);
                agent_end(&agent);
        }
}

/* A consumer cannot be read, so nothing is sent. Then a scheduler moves the allocations, and the
 * caller repeats the move. The end of the claim keeps the allocations of the scheduler. */
static void test_a_scheduler_moves_after_a_failed_read(void **state)
{
        for (unsigned skip = 0; skip < 2; skip++) {
                Uuid migration = make_uuid("m");
                char text[256];
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                assert_true(do_step(&agent, &(Step){ PLACE, "i", "host VCPU=2" }));
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
                fake_placement_trouble(FAKE_TROUBLE_ERROR, skip, false);
                assert_false(do_step(&agent, &(Step){ MOVE, "i", "m" }));
                fake_placement_put(&migration, "host VCPU=2");
                assert_true(do_step(&agent, &(Step){ PLACE, "i", "" }));
                settle(&agent);
                assert_true(do_step(&agent, &(Step){ MOVE, "i", "m" }));
                assert_true(do_step(&agent, &(Step){ RELEASE, "m", NULL }));
                fake_placement_format(&migration, text);
                assert_string_equal(text, "host VCPU=2");
                assert_false(is_owing(&agent));
                agent_end(&agent);
        }
}

/* Adds a confirmed resize target of the consumer. */
static void add_target(Agent *agent, const char *consumer)
{
        _cleanup_(claim_freep) Claim *target = NULL;

        assert_int_equal(fixture_claim_target(agent->fixture, consumer, "VCPU=1", &target),
                         CLAIM_DONE);
        assert_int_equal(claims_confirm(agent->fixture->claims, target->id, NULL), 0);
}

/* Checks that only the claim of add_target() is left, and ends the agent. */
static void end_with_target(Agent *agent)
{
        char text[256];

        assert_false(is_owing(agent));
        describe(agent, text);
        assert_string_equal(text, "i: VCPU=1 on host");
        agent_end(agent);
}

/* The first claim of the source ends during the reads, or between two attempts. A resize target is
 * not moved in its place. */
static void test_the_claim_ends_meanwhile(void **state)
{
        for (unsigned n_attempts = 0; n_attempts < 2; n_attempts++) {
                Uuid instance = make_uuid("i"), migration = make_uuid("m");
                Answer answer = { 0 };
                char text[256];
                unsigned before;
                Agent agent;

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
                add_target(&agent, "i");
                if (n_attempts > 0)
                        fake_placement_trouble(FAKE_TROUBLE_RACE, 0, true);
                before = fake_placement_get_n_requests();
                claim_queue_move(agent.queue, &instance, &migration, NULL, NULL, on_done, &answer);
                while (fake_placement_get_n_requests() < before + 3 * n_attempts + 1)
                        assert_true(sd_event_run(agent.event, USEC_PER_SEC) > 0);
                fake_placement_trouble(FAKE_TROUBLE_NONE, 0, false);
                assert_int_equal(release(&agent, &(Step){ RELEASE, "i", NULL }), 0);
                assert_true(wait_for(&agent, &answer));
                assert_int_equal(answer.result, CLAIM_E_NOT_FOUND);
                fake_placement_format(&migration, text);
                assert_string_equal(text, "");
                settle(&agent);
                end_with_target(&agent);
        }
}

/* The answer of a move is lost, and its claim ends. While the move cannot be settled, a resize
 * target is the first claim already. It is not moved later. */
static void test_the_claim_ends_without_placement(void **state)
{
        Agent agent;

        agent_begin(&agent, *state, CLAIM_MODE_AUTO);
        assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
        fake_placement_trouble(FAKE_TROUBLE_LOST, 2, false);
        assert_false(do_step(&agent, &(Step){ MOVE, "i", "m" }));
        fake_placement_trouble(FAKE_TROUBLE_NONE, 0, false);
        add_target(&agent, "i");
        claim_queue_set_mode(agent.queue, CLAIM_MODE_AUTO, NOVA_NONE, false);
        assert_true(do_step(&agent, &(Step){ RELEASE, "i", NULL }));
        settle(&agent);
        assert_int_equal(count_pending_writes(&agent).n_moves, 1);
        for (int placement = 0; placement < 2; placement++) {
                _cleanup_(claim_freep) Claim *first = NULL;
                Uuid instance = make_uuid("i");

                assert_int_equal(claims_find(agent.fixture->claims, &instance, false, &first, NULL),
                                 0);
                claim_queue_set_mode(agent.queue, CLAIM_MODE_AUTO, NOVA_NONE, true);
                settle(&agent);
        }
        end_with_target(&agent);
}

/* A scheduler has moved the allocations, so nothing is sent, and the database cannot store that the
 * claim follows. It follows later, and its end keeps the allocations of the scheduler. */
static void test_an_end_that_cannot_be_stored(void **state)
{
        Uuid migration = make_uuid("m");
        Fixture *fixture = *state;
        char text[256];
        Agent agent;

        agent_begin(&agent, fixture, CLAIM_MODE_AUTO);
        assert_true(do_step(&agent, &(Step){ PLACE, "i", "host VCPU=2" }));
        assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
        assert_true(do_step(&agent, &(Step){ PLACE, "i", "" }));
        fake_placement_put(&migration, "host VCPU=2");
        free(run_sql(fixture->path, "CREATE TRIGGER no BEFORE UPDATE OF instance_uuid ON claims"
                                    " BEGIN DELETE FROM missing; END"));
        assert_false(do_step(&agent, &(Step){ MOVE, "i", "m" }));
        free(run_sql(fixture->path, "DROP TRIGGER no"));
        settle(&agent);
        assert_true(do_step(&agent, &(Step){ MOVE, "i", "m" }));
        assert_true(do_step(&agent, &(Step){ RELEASE, "m", NULL }));
        fake_placement_format(&migration, text);
        assert_string_equal(text, "host VCPU=2");
        assert_false(is_owing(&agent));
        agent_end(&agent);
}

/* curl sends the last attempt twice, so Placement does the move and answers with a conflict. The
 * claim follows when the move is settled. */
static void test_the_last_conflict_was_done(void **state)
{
        Uuid instance = make_uuid("i"), migration = make_uuid("m");
        Answer answer = { 0 };
        char text[256];
        Agent agent;

        agent_begin(&agent, *state, CLAIM_MODE_AUTO);
        assert_true(do_step(&agent, &(Step){ CLAIM, "i", "VCPU=2" }));
        fake_placement_trouble(FAKE_TROUBLE_RACE, 0, true);
        claim_queue_move(agent.queue, &instance, &migration, NULL, NULL, on_done, &answer);
        /* Each attempt has two reads and a write. */
        while (fake_placement_get_hits() < 3 * (CLAIM_TASK_ATTEMPTS_MAX - 1))
                assert_true(sd_event_run(agent.event, USEC_PER_SEC) > 0);
        fake_placement_trouble(FAKE_TROUBLE_TWICE, 2, false);
        assert_true(wait_for(&agent, &answer));
        assert_int_equal(answer.result, CLAIM_QUEUE_E_PLACEMENT);
        fake_placement_format(&migration, text);
        assert_string_equal(text, "host VCPU=2");
        settle(&agent);
        describe(&agent, text);
        assert_string_equal(text, "m: VCPU=2 on host");
        assert_false(is_owing(&agent));
        agent_end(&agent);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_moves,
                test_nothing_to_move, test_the_target_has_resources_meanwhile,
                test_a_scheduler_moves_after_a_failed_read, test_the_claim_ends_meanwhile,
                test_the_claim_ends_without_placement, test_an_end_that_cannot_be_stored,
                test_the_last_conflict_was_done)
