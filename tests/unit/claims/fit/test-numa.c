/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* F7 without Nova: cells, dedicated, shared and mixed CPUs, threads, pages, devices near and far,
 * allocations. The file tests/unit/claims/fit/test-numa-search.c compares with brute force. */

#include "claims/fit/numa.h"

#include "base/text.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/numa.h"
#include "tests/unit/test.h"

/* Two cells of 2 shared and 6 dedicated CPUs, with two threads for each core, and 4096 MiB with 512
 * pages of 2 MiB each. Cell 1 has a page of 1 GiB. */
static const NumaCellSpec two_cells[] = { { 2, 6, 2, 4096, 512, 0, 0 },
                                          { 2, 6, 2, 4096, 512, 1, 1 } };

#define ROOT "host VCPU=4/0/1/4/1/2 PCPU=12 MEMORY_MB=8192/0/1/8192/1/1.5 DISK_GB=100"
#define CELLS                                                                                  \
        "host DISK_GB=100 +ROOT;"                                                              \
        "host_NUMA0<host VCPU=2/0/1/2/1/2 PCPU=6 MEMORY_MB=4096 CUSTOM_HUGEPAGES_2M=512 "      \
        "+HW_NUMA_ROOT; host_NUMA1<host VCPU=2/0/1/2/1/2 PCPU=6 MEMORY_MB=4096 +HW_NUMA_ROOT " \
        "+FAST"
#define GPUS "; host_a<host VGPU=2; host_b<host VGPU=2 +NEAR; host_c<host VGPU=1"

static char *run_placed(const HostView *view, const HostFacts *facts, const char *ask,
                        const Consumer *placed, int *ret_r)
{
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        _cleanup_free_ char *layout = NULL, *pieces = NULL;
        FitEffort effort = fit_effort_begin(0);
        Error error = ERROR_NULL;

        make_request(&request, ask);
        *ret_r = fit_request_numa(view, facts, "host", &request, placed, &effort, &fit, &error);
        if (*ret_r != CLAIM_DONE)
                return strdup(error.text);
        layout = numa_fixture_format(&fit.layout);
        pieces = format_fit(view, &request, &fit);
        return text_format("%s | %s", layout, pieces);
}

static char *run(const HostView *view, const HostFacts *facts, const char *ask, int *ret_r)
{
        return run_placed(view, facts, ask, NULL, ret_r);
}

typedef struct Case {
        const char *ask;
        int r;
        const char *text; /* beginning of the fit or of the error text */
} Case;

static void run_cases(const HostView *view, const HostFacts *facts, const Case *cases, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                int r;
                _cleanup_free_ char *text = run(view, facts, cases[i].ask, &r);

                if (r != cases[i].r || strncmp(text, cases[i].text, strlen(cases[i].text)) != 0)
                        fail_msg("case %zu, %s\n  yields   %d %s\n  expected %d %s", i,
                                 cases[i].ask, r, text, cases[i].r, cases[i].text);
        }
}

static void test_policies(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(ROOT);
        NumaFixture facts;
        const Case cases[] = {
                { "VCPU=2,MEMORY_MB=512 & nodes=1", CLAIM_DONE,
                  "0@0:0-1 0 512; 0=0-1s 1=0-1s | MEMORY_MB=512 on host, VCPU=2 on host" },
                { "VCPU=2,MEMORY_MB=512 & nodes=2", CLAIM_DONE,
                  "0@0:0 0 256, 1@1:1 0 256; 0=0-1s 1=8-9s |" },
                { "PCPU=2,MEMORY_MB=512 &", CLAIM_DONE, "0@0:0-1 0 512; 0=2 1=3 |" },
                { "VCPU=4,MEMORY_MB=512 & cpu_policy=mixed dedicated_mask=^0-1", CLAIM_DONE,
                  "0@0:0-3 0 512; 0=0-1s 1=0-1s 2=2 3=3 | MEMORY_MB=512 on host, PCPU=2 on host, VCPU=2 on host" },
                { "PCPU=3 & thread_policy=isolate", CLAIM_DONE, "0@0:0-2 0 0; 0=2 1=4 2=6" },
                { "PCPU=3 & thread_policy=require", CLAIM_DONE, "0@0:0-2 0 0; 0=2 1=3 2=4" },
                { "PCPU=4 & thread_policy=isolate", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (PCPU) on host cell 0: 4 cores requested (isolate), but 3 are free" },
                { "PCPU=8 & nodes=1", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (PCPU) on host cell 0: 8 dedicated CPUs requested, but 6 are free" },
                { "VCPU=3 & nodes=1", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (VCPU) on host cell 0: 3 shared CPUs requested, but it has 2" },
                { "PCPU=3 & nodes=3", CLAIM_E_NO_CAPACITY,
                  "The guest has 3 cells, but the host has 2" },
                { "PCPU=13 & nodes=1", CLAIM_E_NO_CAPACITY, "PCPU: " },
                { "PCPU=2,CUSTOM_X=1 & nodes=1", CLAIM_E_UNKNOWN_CLASS, "No provider" },
        };
        int r;

        numa_fixture_make(&facts, two_cells, 2);
        run_cases(view, &facts.facts, cases, ARRAY_SIZE(cases));
        free(run(view, NULL, cases[0].ask, &r));
        assert_int_equal(r, CLAIM_E_NO_CAPACITY); /* before the first poll */
}

static void test_pages(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(ROOT);
        NumaFixture facts;
        const Case cases[] = {
                { "VCPU=1,MEMORY_MB=1024 & page_size=2M", CLAIM_DONE, "0@0:0 2048 1024;" },
                { "VCPU=1,MEMORY_MB=1024 & page_size=large", CLAIM_DONE, "0@0:0 2048 1024;" },
                { "VCPU=1,MEMORY_MB=1024 & page_size=1G", CLAIM_DONE, "0@1:0 1048576 1024;" },
                { "VCPU=1,MEMORY_MB=3072 & page_size=any", CLAIM_DONE, "0@0:0 0 3072;" },
                { "VCPU=1,MEMORY_MB=3072 & page_size=small", CLAIM_DONE, "0@0:0 0 3072;" },
                { "VCPU=1,MEMORY_MB=3072 & page_size=4", CLAIM_DONE, "0@0:0 0 3072;" },
                /* no overcommit of pages */
                { "VCPU=1,MEMORY_MB=3073 & page_size=small", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (MEMORY_MB) on host cell 0: 3073 MiB in small pages requested, but 3072 are free" },
                { "VCPU=1,MEMORY_MB=2048 & page_size=large", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (MEMORY_MB) on host cell 0: 2048 MiB in large pages requested, but 1024 are free" },
                { "VCPU=1,MEMORY_MB=1024 & page_size=64", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (MEMORY_MB) on host cell 0: 1024 MiB in 64 KiB pages requested, but 0 are free" },
                { "VCPU=2,MEMORY_MB=2048 & nodes=2 page_size=2M", CLAIM_DONE,
                  "0@0:0 2048 1024, 1@1:1 2048 1024;" },
                /* the memory of one guest is not overcommitted, the sum of all guests can be */
                { "VCPU=1,MEMORY_MB=4097 & nodes=1", CLAIM_E_NO_CAPACITY, "Guest cell 0" },
        };

        numa_fixture_make(&facts, two_cells, 2);
        run_cases(view, &facts.facts, cases, ARRAY_SIZE(cases));
        facts.pages[0][0].reserved = 1;
        free(view->cell_usages);
        view->cell_usages = NULL;
        numa_fixture_use(view, 1, 2048, 2, 0);
        numa_fixture_use(view, 1, 0, 4094, 4);
        {
                const Case more[] = {
                        { "VCPU=1,MEMORY_MB=1024 & page_size=2M", CLAIM_E_NO_CAPACITY,
                          "Guest cell 0 (MEMORY_MB) on host cell 0: 1024 MiB in 2048 KiB pages requested, but 1022 are free" },
                        /* cell 1 can have 6144 MiB by the ratio, but its CPUs are full */
                        { "VCPU=2,MEMORY_MB=4096 & nodes=2", CLAIM_E_NO_CAPACITY,
                          "Every guest NUMA cell fits, but" },
                        /* memory of guests with dedicated CPUs is not overcommitted */
                        { "PCPU=2,MEMORY_MB=4096 & nodes=2", CLAIM_E_NO_CAPACITY,
                          "Every guest NUMA cell fits, but" },
                };

                run_cases(view, &facts.facts, more, ARRAY_SIZE(more));
        }
}

/* Memory in large pages is not available as small pages, and the reverse. */
static void test_memory(void **state)
{
        /* 16 GiB, of which 12 are in pages of 1 GiB */
        static const NumaCellSpec cell = { 4, 4, 2, 16384, 0, 12, 0 };
        _cleanup_(host_view_freep) HostView *view =
                make_view("host VCPU=4/0/1/4/1/4 PCPU=4 MEMORY_MB=16384/0/1/16384/1/1.5");
        NumaFixture facts;
        const Case empty[] = {
                { "VCPU=1,MEMORY_MB=4096 & nodes=1", CLAIM_DONE, "0@0:0 0 4096;" },
                { "VCPU=1,MEMORY_MB=16384 & nodes=1", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (MEMORY_MB) on host cell 0: 16384 MiB requested, but 4096 of 6144 are free" },
                { "VCPU=1,MEMORY_MB=12288 & page_size=1G", CLAIM_DONE, "0@0:0 1048576 12288;" },
        };
        /* 5 GiB of the 4 GiB in small pages are claimed: the ratio of 1.5 allows 6 GiB */
        const Case full[] = {
                { "VCPU=1,MEMORY_MB=1024 & nodes=1", CLAIM_DONE, "0@0:0 0 1024;" },
                { "VCPU=1,MEMORY_MB=1025 & nodes=1", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (MEMORY_MB) on host cell 0: 1025 MiB requested, but 1024 of 6144 are free" },
                { "PCPU=1,MEMORY_MB=4 &", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (MEMORY_MB) on host cell 0: 4 MiB requested, but 0 of 4096 are free" },
                { "PCPU=1,MEMORY_MB=11264 & page_size=1G", CLAIM_DONE, "0@0" },
                { "PCPU=1,MEMORY_MB=12288 & page_size=1G", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (MEMORY_MB) on host cell 0: 12288 MiB requested, but 11264 of 16384 are free" },
                { "VCPU=1,MEMORY_MB=12288 & page_size=1G", CLAIM_DONE, "0@0" },
        };

        numa_fixture_make(&facts, &cell, 1);
        run_cases(view, &facts.facts, empty, ARRAY_SIZE(empty));
        numa_fixture_use(view, 0, 0, 5120, 1);
        run_cases(view, &facts.facts, full, ARRAY_SIZE(full));
}

/* A thread that is for no guest is no neighbour; a thread that guests share is one. */
static void test_isolate(void **state)
{
        static const NumaCellSpec cell = { 0, 6, 2, 4096, 0, 0, 0 };
        _cleanup_(host_view_freep) HostView *view = make_view("host PCPU=6 VCPU=1 MEMORY_MB=4096");
        NumaFixture facts;
        const Case cases[] = {
                { "PCPU=2 & thread_policy=isolate", CLAIM_DONE, "0@0:0-1 0 0; 0=0 1=4 |" },
                { "PCPU=3 & thread_policy=isolate", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (PCPU) on host cell 0: 3 cores requested (isolate), but 2 are free" },
        };

        numa_fixture_make(&facts, &cell, 1);
        facts.cpus[0][1].dedicated = false;
        facts.cpus[0][3].dedicated = false;
        facts.cpus[0][3].shared = true;
        run_cases(view, &facts.facts, cases, ARRAY_SIZE(cases));
}

/* The order of the header: usage of CPUs of the requested kind, memory, id; for spread and pack. */
static void test_order(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(ROOT);
        NumaFixture facts;
        const char *const spread = "PCPU=2,MEMORY_MB=64 & nodes=1",
                          *const pack = "PCPU=2,MEMORY_MB=64 & strategy=pack",
                          *const share = "VCPU=1,MEMORY_MB=64 & nodes=1",
                          *const share_pack = "VCPU=1,MEMORY_MB=64 & strategy=pack";
        const Case empty[] = { { spread, CLAIM_DONE, "0@0" },
                               { pack, CLAIM_DONE, "0@0" },
                               { share, CLAIM_DONE, "0@0" },
                               { share_pack, CLAIM_DONE, "0@0" } };
        const Case memory[] = { { spread, CLAIM_DONE, "0@1" },
                                { pack, CLAIM_DONE, "0@0" },
                                { share, CLAIM_DONE, "0@1" },
                                { share_pack, CLAIM_DONE, "0@0" } };
        /* usage of the requested kind of CPU counts before memory, usage of the other kind does not
         * count */
        const Case shared[] = { { spread, CLAIM_DONE, "0@1" },
                                { pack, CLAIM_DONE, "0@0" },
                                { share, CLAIM_DONE, "0@0" },
                                { share_pack, CLAIM_DONE, "0@1" } };
        const Case held[] = {
                { share, CLAIM_DONE, "0@0" },
                { share_pack, CLAIM_DONE, "0@1" },
                { spread, CLAIM_DONE, "0@0:0-1 0 64; 0=2 1=3" },
                { pack, CLAIM_DONE, "0@1:0-1 0 64; 0=12 1=13" },
                /* the last thread of a core is used last */
                { "PCPU=5 & strategy=pack", CLAIM_DONE, "0@1:0-4 0 0; 0=12 1=13 2=14 3=15 4=11" },
                { "PCPU=5 & strategy=pack thread_policy=require", CLAIM_DONE, "0@0" },
        };

        numa_fixture_make(&facts, two_cells, 2);
        run_cases(view, &facts.facts, empty, ARRAY_SIZE(empty));
        numa_fixture_use(view, 0, 0, 64, 0);
        run_cases(view, &facts.facts, memory, ARRAY_SIZE(memory));
        numa_fixture_use(view, 1, 0, 0, 1);
        run_cases(view, &facts.facts, shared, ARRAY_SIZE(shared));
        assert_int_equal(cpu_set_add(&view->held, 10), 0);
        run_cases(view, &facts.facts, held, ARRAY_SIZE(held));
}

static void test_devices(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(ROOT GPUS);
        NumaFixture facts;
        const Case cases[] = {
                /* cells with devices if devices are requested, the others if not */
                { "PCPU=1 & nodes=1", CLAIM_DONE, "0@0" },
                { "PCPU=1,VGPU=1 & nodes=1", CLAIM_DONE,
                  "0@1:0 0 0; 0=10 | PCPU=1 on host, VGPU=1 on host_b" },
                { "PCPU=1,VGPU=1 & affinity=required", CLAIM_DONE,
                  "0@1:0 0 0; 0=10 | PCPU=1 on host, VGPU=1 on host_b" },
                { "PCPU=1 _1:VGPU=2 _2:VGPU=1 & affinity=legacy", CLAIM_DONE,
                  "0@1:0 0 0; 0=10 | PCPU=1 on host, _1 VGPU=2 on host_b, _2 VGPU=1 on host_c" },
                { "PCPU=1 _1:VGPU=2 _2:VGPU=1 & affinity=required", CLAIM_E_NO_CAPACITY,
                  "VGPU: all groups together ask for 3, but one request can get 2" },
                { "PCPU=1 _1:VGPU=2 _2:VGPU=1 & affinity=preferred", CLAIM_DONE,
                  "0@1:0 0 0; 0=10 |" },
                { "PCPU=1 _1:VGPU=3 & affinity=required", CLAIM_E_NO_CAPACITY,
                  "Group \"_1\": VGPU: " },
                { "PCPU=1 _1:VGPU=2 _2:VGPU=2 & affinity=socket", CLAIM_E_NO_CAPACITY, "" },
                /* A group without resources that a device alone has. */
                { "PCPU=1 _1::NEAR & affinity=required", CLAIM_DONE, "0@1:0 0 0; 0=10 |" },
                { "PCPU=1 _1::ABSENT & affinity=required", CLAIM_E_NO_CAPACITY, "" },
        };

        numa_fixture_make(&facts, two_cells, 2);
        numa_fixture_device(&facts, "b", 1);
        numa_fixture_device(&facts, "c", HOST_CELL_NONE);
        numa_fixture_device(&facts, "a", 7); /* the cell does not exist */
        run_cases(view, &facts.facts, cases, ARRAY_SIZE(cases));
        facts.devices[2].cell = 0;
        facts.cells[1].socket = 0;
        {
                const Case more[] = {
                        { "PCPU=1 _1:VGPU=2 _2:VGPU=2 & affinity=socket", CLAIM_DONE,
                          "0@0:0 0 0; 0=2 |" },
                        { "PCPU=1 _1:VGPU=2 _2:VGPU=2 & affinity=required", CLAIM_E_NO_CAPACITY,
                          "" },
                        { "PCPU=2 _1:VGPU=2 _2:VGPU=2 & nodes=2 affinity=required", CLAIM_DONE,
                          "0@0:0 0 0, 1@1:1 0 0;" },
                };

                run_cases(view, &facts.facts, more, ARRAY_SIZE(more));
        }
        /* the device's cell is full: with "preferred" another one is used */
        for (unsigned cpu = 10; cpu < 16; cpu++)
                assert_int_equal(cpu_set_add(&view->held, cpu), 0);
        use_some(view, "host_a", "VGPU", 2);
        {
                const Case full[] = {
                        { "PCPU=1,VGPU=2 & affinity=required", CLAIM_E_NO_CAPACITY,
                          "VGPU: 2 requested, but 0 of 2 are free on host_a" },
                        { "PCPU=1,VGPU=2 & affinity=preferred", CLAIM_DONE,
                          "0@0:0 0 0; 0=2 | PCPU=1 on host, VGPU=2 on host_b" },
                };

                run_cases(view, &facts.facts, full, ARRAY_SIZE(full));
        }
}

/* numa_in_placement: classes of the cells are taken from their providers. */
static void test_cells_as_providers(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(CELLS);
        NumaFixture facts;
        const Case cases[] = {
                { "PCPU=2,MEMORY_MB=512,DISK_GB=5 & nodes=1", CLAIM_DONE,
                  "0@0:0-1 0 512; 0=2 1=3 | DISK_GB=5 on host, MEMORY_MB=512 on host_NUMA0, PCPU=2 on host_NUMA0" },
                { "VCPU=2,MEMORY_MB=1024 & nodes=2 page_size=2M", CLAIM_DONE,
                  "0@0:0 2048 512, 1@1:1 2048 512; 0=0-1s 1=8-9s | CUSTOM_HUGEPAGES_2M=256 on "
                  "host_NUMA0, MEMORY_MB=512 on host_NUMA0, MEMORY_MB=512 on host_NUMA1, VCPU=1 on "
                  "host_NUMA0, VCPU=1 on host_NUMA1" },
                /* A request for the pages as a class, too, means the same pages. */
                { "VCPU=1,MEMORY_MB=512,CUSTOM_HUGEPAGES_2M=256 & nodes=1 page_size=2M", CLAIM_DONE,
                  "0@0:0 2048 512; 0=0-1s | CUSTOM_HUGEPAGES_2M=256 on host_NUMA0, MEMORY_MB=512 "
                  "on host_NUMA0, VCPU=1 on host_NUMA0" },
                { "PCPU=2:FAST & nodes=1", CLAIM_DONE, "0@1:0-1" },
                { "PCPU=2:!FAST & strategy=pack", CLAIM_DONE, "0@0:0-1" },
                { "PCPU=2:!HW_NUMA_ROOT & nodes=1", CLAIM_E_NO_CAPACITY,
                  "Guest cell 0 (PCPU) on host cell 0: has the forbidden trait HW_NUMA_ROOT" },
                { "PCPU=2,DISK_GB=1:FAST,ROOT & nodes=1", CLAIM_DONE, "0@1:0-1" },
                { "PCPU=2:NONE & nodes=1", CLAIM_E_NO_CAPACITY,
                  "No provider with capacity for the request has the required trait NONE" },
                { "VCPU=1,MEMORY_MB=4097 & nodes=1", CLAIM_E_NO_CAPACITY, "Guest cell 0" },
                { "PCPU=2,CUSTOM_NONE=1:FAST & nodes=1", CLAIM_E_UNKNOWN_CLASS,
                  "No provider of this host has resource class CUSTOM_NONE" },
        };

        numa_fixture_make(&facts, two_cells, 2);
        run_cases(view, &facts.facts, cases, ARRAY_SIZE(cases));
        use_some(view, "host_NUMA0", "PCPU", 5); /* by a consumer that named no CPU */
        {
                const Case used[] = {
                        { "PCPU=4 & nodes=2", CLAIM_E_NO_CAPACITY,
                          "Every guest NUMA cell fits, but not all" },
                        { "PCPU=2 & strategy=pack", CLAIM_DONE, "0@1:0-1" },
                };

                run_cases(view, &facts.facts, used, ARRAY_SIZE(used));
        }
}

/* in_tree also holds for the classes that cells' providers count. */
static void test_in_tree(void **state)
{
        static const struct {
                const char *in_tree;
                int r;
        } cases[] = {
                { "host", CLAIM_DONE },
                { "host_NUMA0", CLAIM_DONE },
                { "store", CLAIM_E_NO_CAPACITY },
                { "unknown", CLAIM_E_NO_CAPACITY },
        };
        _cleanup_(host_view_freep) HostView *view = make_view(CELLS "; store DISK_GB=9");
        NumaFixture facts;

        numa_fixture_make(&facts, two_cells, 2);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
                _cleanup_(fit_done) Fit fit = FIT_NULL;
                FitEffort effort = fit_effort_begin(0);
                Error error = ERROR_NULL;
                int r;

                make_request(&request, "PCPU=2,MEMORY_MB=512 & nodes=1");
                request.groups[0].in_tree = make_uuid(cases[i].in_tree);
                r = fit_request_numa(view, &facts.facts, "host", &request, NULL, &effort, &fit,
                                     &error);
                if (r != cases[i].r)
                        fail_msg("%s: %d %s", cases[i].in_tree, r, error.text);
                if (r != CLAIM_DONE)
                        assert_string_equal(
                                error.text,
                                "Guest cell 0 (PCPU) on host cell 0: is not in the requested tree");
        }
}

/* A size with enough free pages is not taken if its inventory has no capacity. */
static void test_large_pages_need_capacity(void **state)
{
        _cleanup_(host_view_freep) HostView *view =
                make_view("host DISK_GB=100; host_NUMA0<host VCPU=2 MEMORY_MB=4096 "
                          "CUSTOM_HUGEPAGES_2M=512 CUSTOM_HUGEPAGES_1G=1 +HW_NUMA_ROOT");
        static const NumaCellSpec cell = { 2, 6, 2, 4096, 512, 1, 0 };
        NumaFixture facts;
        const Case unused = { "VCPU=1,MEMORY_MB=1024 & page_size=large", CLAIM_DONE,
                              "0@0:0 1048576 1024;" },
                   used = { "VCPU=1,MEMORY_MB=1024 & page_size=large", CLAIM_DONE,
                            "0@0:0 2048 1024;" },
                   full = { "VCPU=1,MEMORY_MB=1024 & page_size=large", CLAIM_E_NO_CAPACITY,
                            "Guest cell 0 (CUSTOM_HUGEPAGES_1G) on host cell 0: " },
                   any = { "VCPU=1,MEMORY_MB=1024 & page_size=any", CLAIM_DONE, "0@0:0 0 1024;" };

        numa_fixture_make(&facts, &cell, 1);
        run_cases(view, &facts.facts, &unused, 1);
        use_some(view, "host_NUMA0", "CUSTOM_HUGEPAGES_1G", 1);
        run_cases(view, &facts.facts, &used, 1);
        use_some(view, "host_NUMA0", "CUSTOM_HUGEPAGES_2M", 1);
        run_cases(view, &facts.facts, &full, 1);
        run_cases(view, &facts.facts, &any, 1);
}

/* The fit takes exactly the allocations, with the ratios, devices and cells of the host. */
static void test_placed(void **state)
{
        static const struct {
                const char *host, *placed, *ask;
                int r;
                const char *text;
        } cases[] = {
                /* both cells have two guest CPUs on two CPUs; the ratio is 2 */
                { ROOT, "host VCPU=2,MEMORY_MB=64", "VCPU=2,MEMORY_MB=64 & nodes=1", CLAIM_DONE,
                  "0@0:0-1 0 64; 0=0-1s 1=0-1s | MEMORY_MB=64 on host, VCPU=2 on host" },
                /* the GPU is in cell 0, and the request has none */
                { ROOT GPUS, "host VCPU=2", "VCPU=2 & nodes=1", CLAIM_DONE,
                  "0@1:0-1 0 0; 0=8-9s 1=8-9s | VCPU=2 on host" },
                { CELLS, "host_NUMA1 VCPU=2,MEMORY_MB=64", "VCPU=2,MEMORY_MB=64 & nodes=1",
                  CLAIM_DONE,
                  "0@1:0-1 0 64; 0=8-9s 1=8-9s | MEMORY_MB=64 on host_NUMA1, VCPU=2 on host_NUMA1" },
                /* pages without an allocation are not counted */
                { CELLS, "host_NUMA0 VCPU=2,MEMORY_MB=64", "VCPU=2,MEMORY_MB=64 & page_size=2M",
                  CLAIM_DONE,
                  "0@0:0-1 2048 64; 0=0-1s 1=0-1s | MEMORY_MB=64 on host_NUMA0, VCPU=2 on host_NUMA0" },
                /* a size with an allocation is taken before a larger one without */
                { "host; host_NUMA1<host VCPU=2/0/1/2/1/2 MEMORY_MB=4096 CUSTOM_HUGEPAGES_2M=512 "
                  "CUSTOM_HUGEPAGES_1G=1 +HW_NUMA_ROOT",
                  "host_NUMA1 VCPU=2,MEMORY_MB=1024,CUSTOM_HUGEPAGES_2M=512",
                  "VCPU=2,MEMORY_MB=1024 & page_size=large", CLAIM_DONE,
                  "0@1:0-1 2048 1024; 0=8-9s 1=8-9s | CUSTOM_HUGEPAGES_2M=512 on host_NUMA1, " },
                { CELLS, "host_NUMA1 VCPU=2", "VCPU=2 & nodes=2", CLAIM_E_NO_CAPACITY,
                  "Every guest NUMA cell fits, but" },
                { CELLS, "host_NUMA0 VCPU=2; host_NUMA1 MEMORY_MB=64",
                  "VCPU=2,MEMORY_MB=64 & nodes=1", CLAIM_E_NO_CAPACITY, "Guest cell 0 (" },
        };
        NumaFixture facts;

        numa_fixture_make(&facts, two_cells, 2);
        numa_fixture_device(&facts, "a", 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(host_view_freep) HostView *view = make_view(cases[i].host);
                _cleanup_(consumer_freep) Consumer *holding =
                        make_holding("consumer", cases[i].placed);
                _cleanup_free_ char *text = NULL;
                int r;

                numa_fixture_use(view, 0, 0, 0, 2);
                numa_fixture_use(view, 1, 0, 0, 2);
                text = run_placed(view, &facts.facts, cases[i].ask, holding, &r);
                if (r != cases[i].r || strncmp(text, cases[i].text, strlen(cases[i].text)) != 0)
                        fail_msg("case %zu yields %d %s", i, r, text);
        }
}

static void test_explain(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(ROOT);
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_verdicts_done) FitVerdicts verdicts = { 0 };
        const char *const ask = "PCPU=7,MEMORY_MB=64 & nodes=1";
        FitEffort effort = fit_effort_begin(0);
        NumaFixture facts;
        const FitVerdict *cell;

        numa_fixture_make(&facts, two_cells, 2);
        assert_int_equal(cpu_set_add(&view->held, 9 + 1), 0);
        make_request(&request, ask);
        assert_int_equal(
                fit_explain_numa(view, &facts.facts, "host", &request, &effort, &verdicts, NULL),
                CLAIM_E_NO_CAPACITY);
        assert_int_equal(verdicts.n_items, 4); /* two classes on the root, two cells */
        cell = &verdicts.items[3];
        assert_string_equal(cell->suffix, "cell 0");
        assert_string_equal(cell->provider_name, "host, cell 1");
        assert_string_equal(cell->term, "pcpus");
        assert_string_equal(cell->resource_class, "PCPU");
        assert_int_equal(cell->missing, 2);
        assert_string_equal(cell->text, "7 dedicated CPUs requested, but 5 are free");
        assert_int_equal(verdicts.items[2].missing, 1);
}

/* A host whose root is gone has only sharing providers: nothing fits, and there are no cells. */
static void test_host_without_root(void **state)
{
        _cleanup_(host_view_freep) HostView *view =
                make_view("store DISK_GB=9 +MISC_SHARES_VIA_AGGREGATE @A");
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_verdicts_done) FitVerdicts verdicts = { 0 };
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        FitEffort effort = fit_effort_begin(0);
        NumaFixture facts;

        numa_fixture_make(&facts, two_cells, 2);
        make_request(&request, "VCPU=2 & nodes=1");
        assert_int_equal(
                fit_request_numa(view, &facts.facts, "host", &request, NULL, &effort, &fit, NULL),
                CLAIM_E_UNKNOWN_CLASS);
        assert_int_equal(
                fit_explain_numa(view, &facts.facts, "host", &request, &effort, &verdicts, NULL),
                CLAIM_E_UNKNOWN_CLASS);
}

/* On this host the search for this guest cannot end soon: it ends at the bound. */
static void test_bound(void **state)
{
        HostCell cells[64] = { 0 };
        HostCpu cpus[64] = { 0 };
        HostFacts facts = { .cells = cells, .n_cells = 64 };
        HostDevice device = {
                .name = "a", .address = "", .mdev_type = "t", .resource_class = "VGPU", .cell = 99
        };
        _cleanup_(host_view_freep) HostView *view = make_view("host PCPU=64; host_a<host VGPU=1");
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        FitEffort effort = fit_effort_begin(0);
        const char *const hard = "PCPU=32,VGPU=1 & nodes=32 affinity=required",
                          *const easy = "PCPU=32,VGPU=1 & nodes=32 affinity=preferred";

        facts.devices = &device;
        facts.n_devices = 1;
        for (unsigned i = 0; i < 64; i++) {
                cpus[i] = (HostCpu){ .id = i, .core = i, .dedicated = true };
                cells[i] = (HostCell){ .id = i, .cpus = &cpus[i], .n_cpus = 1 };
        }
        make_request(&request, hard);
        assert_int_equal(
                fit_request_numa(view, &facts, "host", &request, NULL, &effort, &fit, NULL),
                CLAIM_E_TOO_HARD);
        assert_true(effort.work < 2 * FIT_WORK_MAX);
        resource_request_done(&request);
        effort = fit_effort_begin(0);
        make_request(&request, easy);
        device.cell = HOST_CELL_NONE;
        request.numa.affinity = NUMA_AFFINITY_LEGACY;
        assert_int_equal(
                fit_request_numa(view, &facts, "host", &request, NULL, &effort, &fit, NULL),
                CLAIM_DONE);
        assert_true(effort.work < 100000);
}

/* A guest with one cell too many is refused soon, with the reason: 32 of 64 host cells fit it. */
static void test_too_few_cells(void **state)
{
        HostCell cells[64] = { 0 };
        HostCpu cpus[64] = { 0 };
        HostFacts facts = { .cells = cells, .n_cells = 64 };
        _cleanup_(host_view_freep) HostView *view = make_view("host PCPU=64");
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        FitEffort effort = fit_effort_begin(0);
        Error error = ERROR_NULL;

        for (unsigned i = 0; i < 64; i++) {
                cpus[i] = (HostCpu){ .id = i, .core = i, .dedicated = i % 2 == 0 };
                cells[i] = (HostCell){ .id = i, .cpus = &cpus[i], .n_cpus = 1 };
        }
        make_request(&request, "PCPU=33 & nodes=33");
        assert_int_equal(
                fit_request_numa(view, &facts, "host", &request, NULL, &effort, &fit, &error),
                CLAIM_E_NO_CAPACITY);
        assert_string_equal(error.text,
                            "Every guest NUMA cell fits, but not all on different host cells");
        assert_true(effort.work < 100000);
}

/* The cost of a try of a set of host cells depends on the devices, not on the host: here 4,960
 * sets, and 1,000 providers that are not concerned. */
static void test_many_sets(void **state)
{
        HostCell cells[32] = { 0 };
        HostCpu cpus[32] = { 0 };
        HostDevice device = {
                .name = "a", .address = "", .mdev_type = "t", .resource_class = "VGPU", .cell = 99
        };
        HostFacts facts = { .cells = cells, .n_cells = 32, .devices = &device, .n_devices = 1 };
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(host_view_freep) HostView *view = NULL;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        _cleanup_free_ char *text = NULL;
        const char *const ask = "PCPU=3,VGPU=1 & nodes=3 affinity=required";
        FitEffort effort = fit_effort_begin(0);

        append_text(&text, "host PCPU=64; host_a<host VGPU=1");
        for (unsigned i = 0; i < 1000; i++)
                append_text(&text, "; other%u<host CUSTOM_X=1", i);
        view = make_view(text);
        for (unsigned i = 0; i < 32; i++) {
                cpus[i] = (HostCpu){ .id = i, .core = i, .dedicated = true };
                cells[i] = (HostCell){ .id = i, .cpus = &cpus[i], .n_cpus = 1 };
        }
        make_request(&request, ask);
        assert_int_equal(
                fit_request_numa(view, &facts, "host", &request, NULL, &effort, &fit, NULL),
                CLAIM_E_NO_CAPACITY);
        print_message("%llu steps\n", (unsigned long long)effort.work);
        assert_true(effort.work < 400000);
}

TEST_MAIN(test_policies, test_pages, test_memory, test_isolate, test_order, test_devices,
          test_cells_as_providers, test_in_tree, test_large_pages_need_capacity, test_placed,
          test_host_without_root, test_explain, test_bound, test_too_few_cells, test_many_sets)
