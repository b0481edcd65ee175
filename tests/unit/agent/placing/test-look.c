/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Claims of devices wait for a look at what guests have; others do not. */

#include "tests/fixtures/placing.h"

static unsigned n_looks;

static int look(void *userdata, Error *reterr)
{
        n_looks++;
        return 0;
}

static void test_looks(void **state)
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

                agent_begin(&agent, *state, CLAIM_MODE_AUTO);
                agent_stop(&agent);
                agent.service.facts = &facts;
                agent.look = look;
                agent_start(&agent);
                make_request(&request.resources, cases[i].request);
                n_looks = 0;
                claim_queue_claim(agent.queue, &request, on_done, &answers[0]);
                claim_queue_look(agent.queue, &request, on_done, &answers[1]);
                assert_int_equal(n_looks, cases[i].waits ? 2 : 0);
                assert_int_equal(answers[1].there, !cases[i].waits);
                /* A poll that began before says nothing. */
                claim_queue_looked(agent.queue, 1, &ERROR_NULL);
                assert_int_equal(answers[1].there, !cases[i].waits);
                if (cases[i].fails)
                        error_setf(&error, EIO, "the reason");
                claim_queue_looked(agent.queue, UINT64_MAX, &error);
                for (size_t j = 0; j < ARRAY_SIZE(answers); j++) {
                        assert_true(wait_for(&agent, &answers[j]));
                        assert_int_equal(answers[j].result, cases[i].fails ? -EBUSY : 0);
                }
                resource_request_done(&request.resources);
                agent_end(&agent);
        }
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_looks)
