/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/layout.h"

#include "tests/fixtures/host.h"
#include "tests/fixtures/numa.h"

/* Two cells. CPUs 0-1 and 4-5 are shared, CPUs 2-3 and 6-7 are dedicated. */
static const NumaCellSpec specs[] = { { 2, 2, 2, 4096, 64, 0, 0 }, { 2, 2, 2, 4096, 64, 0, 0 } };

#define GUEST(members)                                                                         \
        "\"domains\": [{\"uuid\": \"22222222-2222-4222-8222-222222222222\", \"name\": \"g\", " \
        "\"state\": \"running\", \"vcpus\": 2, \"memory_kib\": 2048" members "}]"

static void test_layouts(void **state)
{
        static const struct {
                const char *domain, *layout, *held;
        } cases[] = {
                { GUEST(""), ";", "" },
                /* The memory is bound to several cells. */
                { GUEST(", \"memory_cells\": \"0-1\""), ";", "" },
                { GUEST(", \"memory_cells\": \"9\""), ";", "" },
                { GUEST(", \"memory_cells\": \"1\""), "0@1:0-1 0 2;", "" },
                { GUEST(", \"cpus\": \"0-1\""), "0@0:0-1 0 2; 0=0-1s 1=0-1s", "" },
                { GUEST(", \"page_kib\": 2048, \"pins\": [{\"vcpu\": 0, \"cpus\": \"6\"}, {\"vcpu\": 1, \"cpus\": \"4-5\"}]"),
                  "0@1:0-1 2048 2; 0=6 1=4-5s", "6" },
                /* The guest CPU is pinned to one host CPU that is not dedicated. */
                { GUEST(", \"pins\": [{\"vcpu\": 0, \"cpus\": \"1\"}]"), "0@0:0 0 1; 0=1s", "" },
                { GUEST(", \"pins\": [{\"vcpu\": 0, \"cpus\": \"77\"}]"), ";", "" },
                { GUEST(", \"cells\": [{\"id\": 0, \"memory_kib\": 1024, \"vcpus\": \"1\","
                        " \"host_cells\": \"1\"}, {\"id\": 1, \"memory_kib\": 1, \"vcpus\": \"0\","
                        " \"host_cells\": \"0\", \"page_kib\": 2048}],"
                        " \"pins\": [{\"vcpu\": 0, \"cpus\": \"2\"}, {\"vcpu\": 1, \"cpus\": \"7\"}]"),
                  "0@1:1 0 1, 1@0:0 2048 1; 0=2 1=7", "2,7" },
                /* Nova's guest without a topology, if cpu_shared_set is set, floats. */
                { GUEST(", \"cpus\": \"0-1,4-5\""), ";", "" },
                { GUEST(", \"cpus\": \"0-1,4-5\", \"memory_cells\": \"1\""),
                  "0@1:0-1 0 2; 0=0-1,4-5s 1=0-1,4-5s", "" },
                /* The guest is spread over cells. Each part is in the cell that it is bound to. */
                { GUEST(", \"pins\": [{\"vcpu\": 0, \"cpus\": \"2\"}, {\"vcpu\": 1, \"cpus\": \"6\"}]"),
                  "0@0:0 0 1, 1@1:1 0 1; 0=2 1=6", "2,6" },
                { GUEST(", \"cpus\": \"0-1,4-5\", \"pins\": [{\"vcpu\": 1, \"cpus\": \"6\"}]"),
                  "0@1:1 0 1; 0=0-1,4-5s 1=6", "6" },
                { GUEST(", \"memory_cells\": \"0\", \"pins\": [{\"vcpu\": 1, \"cpus\": \"6\"}]"),
                  "0@0:0 0 2, 1@1:1 0 0; 1=6", "6" },
                /* These threads run no guest CPU. Only their CPUs 2-3 and 6-7 are dedicated. */
                { GUEST(", \"emulator_cpus\": \"0,3,6,77\""), ";", "3,6" },
                { GUEST(", \"emulator_cpus\": \"3\", \"iothread_cpus\": \"0,6\""), ";", "3,6" },
                { GUEST(", \"emulator_cpus\": \"2-3\", \"pins\": [{\"vcpu\": 0, \"cpus\": \"2\"}]"),
                  "0@0:0 0 1; 0=2", "2-3" },
                { GUEST(", \"emulator_cpus\": \"4\", \"cpus\": \"0-1\""),
                  "0@0:0-1 0 2; 0=0-1s 1=0-1s", "" },
                /* One of its cells is not bound. */
                { GUEST(", \"cells\": [{\"id\": 0, \"vcpus\": \"0\", \"host_cells\": \"1\"}, {\"id\": 1, \"vcpus\": \"1\"}]"),
                  "0@1:0 0 0;", "" },
        };
        NumaFixture facts;

        numa_fixture_make(&facts, specs, 2);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = host_new(cases[i].domain);
                _cleanup_(layout_done) Layout layout = LAYOUT_INIT;
                _cleanup_free_ char *text = NULL, *held = NULL;

                assert_int_equal(claim_layout_make(&snapshot->domains[0], &facts.facts, &layout),
                                 0);
                text = numa_fixture_format(&layout);
                held = cpu_set_format(&layout.held);
                if (strcmp(text, cases[i].layout) != 0 || strcmp(held, cases[i].held) != 0)
                        fail_msg("case %zu: \"%s\" held %s", i, text, held);
        }
}

TEST_MAIN(test_layouts)
