/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* F7 without Nova: cells, dedicated, shared and mixed CPUs, threads, pages, devices near and far;
 * first by hand, then against brute force on small random hosts. */

#include "claims/fit-numa.h"

#include <inttypes.h>

#include "tests/claims-fixture.h"
#include "tests/numa-fixture.h"
#include "tests/test.h"

#define ROUNDS_DEFAULT 20000

/* Two cells of 2 shared and 6 dedicated CPUs, two threads a core, 4096 MiB with 512 pages of 2 MiB
 * each; cell 1 has a page of 1 GiB. */
static const NumaCellSpec two_cells[] = { { 2, 6, 2, 4096, 512, 0, 0 },
                                          { 2, 6, 2, 4096, 512, 1, 1 } };

#define ROOT "host VCPU=4/0/1/4/1/2 PCPU=12 MEMORY_MB=8192/0/1/8192/1/1.5 DISK_GB=100"
#define CELLS                                                                                  \
        "host DISK_GB=100 +ROOT;"                                                              \
        "host_NUMA0<host VCPU=2/0/1/2/1/2 PCPU=6 MEMORY_MB=4096 CUSTOM_HUGEPAGES_2M=512 "      \
        "+HW_NUMA_ROOT; host_NUMA1<host VCPU=2/0/1/2/1/2 PCPU=6 MEMORY_MB=4096 +HW_NUMA_ROOT " \
        "+FAST"
#define GPUS "; host_a<host VGPU=2; host_b<host VGPU=2; host_c<host VGPU=1"

/* A request of the table: amounts and words. */
typedef struct Ask {
        const char *resources; /* as make_request() takes them */
        NumaOptions options;
} Ask;

static void make_ask(ResourceRequest *ret, const Ask *ask)
{
        Error error = ERROR_NULL;

        make_request(ret, ask->resources);
        if (numa_request_make(&ask->options, &ret->groups[0].resources, &ret->numa, &error) < 0)
                fail_msg("%s: %s", ask->resources, error.text);
}

static char *run(const HostView *view, const HostFacts *facts, const Ask *ask, int *ret_r)
{
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        _cleanup_free_ char *layout = NULL, *pieces = NULL;
        Error error = ERROR_NULL;
        char *text;

        make_ask(&request, ask);
        *ret_r = fit_request_numa(view, facts, "host", &request, &fit, &error);
        if (*ret_r != FIT_DONE)
                return strdup(error.text);
        layout = numa_fixture_format(&fit.layout);
        pieces = format_fit(view, &request, &fit);
        assert_true(asprintf(&text, "%s | %s", layout, pieces) > 0);
        return text;
}

typedef struct Case {
        Ask ask;
        int r;
        const char *text; /* its beginning */
} Case;

static void run_cases(const HostView *view, const HostFacts *facts, const Case *cases, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                int r;
                _cleanup_free_ char *text = run(view, facts, &cases[i].ask, &r);

                if (r != cases[i].r || strncmp(text, cases[i].text, strlen(cases[i].text)) != 0)
                        fail_msg("case %zu, %s\n  yields   %d %s\n  expected %d %s", i,
                                 cases[i].ask.resources, r, text, cases[i].r, cases[i].text);
        }
}

static void test_policies(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(ROOT);
        NumaFixture facts;
        const Case cases[] = {
                { { "VCPU=2,MEMORY_MB=512", { .nodes = 1 } },
                  FIT_DONE,
                  "0@0:0-1 0 512; 0=0-1s 1=0-1s | MEMORY_MB=512 on host, VCPU=2 on host" },
                { { "VCPU=2,MEMORY_MB=512", { .nodes = 2 } },
                  FIT_DONE,
                  "0@0:0 0 256, 1@1:1 0 256; 0=0-1s 1=8-9s |" },
                { { "PCPU=2,MEMORY_MB=512", { 0 } }, FIT_DONE, "0@0:0-1 0 512; 0=2 1=3 |" },
                { { "VCPU=4,MEMORY_MB=512", { .cpu_policy = "mixed", .dedicated_mask = "^0-1" } },
                  FIT_DONE,
                  "0@0:0-3 0 512; 0=0-1s 1=0-1s 2=2 3=3 | MEMORY_MB=512 on host, PCPU=2 on "
                  "host, VCPU=2 on host" },
                { { "PCPU=3", { .thread_policy = "isolate" } },
                  FIT_DONE,
                  "0@0:0-2 0 0; 0=2 1=4 2=6" },
                { { "PCPU=3", { .thread_policy = "require" } },
                  FIT_DONE,
                  "0@0:0-2 0 0; 0=2 1=3 2=4" },
                { { "PCPU=4", { .thread_policy = "isolate" } },
                  FIT_E_NO_CAPACITY,
                  "Cell 0 of the guest: PCPU: cell 0 asks for 4 cores (isolate), free are 3" },
                { { "PCPU=8", { .nodes = 1 } },
                  FIT_E_NO_CAPACITY,
                  "Cell 0 of the guest: PCPU: cell 0 asks for 8 dedicated CPUs, free are 6" },
                { { "VCPU=3", { .nodes = 1 } },
                  FIT_E_NO_CAPACITY,
                  "Cell 0 of the guest: VCPU: cell 0 asks for 3 shared CPUs, it has 2" },
                { { "PCPU=3", { .nodes = 3 } },
                  FIT_E_NO_CAPACITY,
                  "The guest has 3 cells, the host 2" },
                { { "PCPU=13", { .nodes = 1 } }, FIT_E_NO_CAPACITY, "PCPU: " },
                { { "PCPU=2,CUSTOM_X=1", { .nodes = 1 } }, FIT_E_UNKNOWN_CLASS, "No provider" },
        };
        int r;

        numa_fixture_make(&facts, two_cells, 2);
        run_cases(view, &facts.facts, cases, ARRAY_SIZE(cases));
        free(run(view, NULL, &cases[0].ask, &r));
        assert_int_equal(r, FIT_E_NO_CAPACITY); /* before the first poll */
}

static void test_pages(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(ROOT);
        NumaFixture facts;
        const Case cases[] = {
                { { "VCPU=1,MEMORY_MB=1024", { .page_size = "2M" } },
                  FIT_DONE,
                  "0@0:0 2048 1024;" },
                { { "VCPU=1,MEMORY_MB=1024", { .page_size = "large" } },
                  FIT_DONE,
                  "0@0:0 2048 1024;" },
                { { "VCPU=1,MEMORY_MB=1024", { .page_size = "1G" } },
                  FIT_DONE,
                  "0@1:0 1048576 1024;" },
                { { "VCPU=1,MEMORY_MB=3072", { .page_size = "any" } }, FIT_DONE, "0@0:0 0 3072;" },
                { { "VCPU=1,MEMORY_MB=3072", { .page_size = "small" } },
                  FIT_DONE,
                  "0@0:0 0 3072;" },
                { { "VCPU=1,MEMORY_MB=3072", { .page_size = "4" } }, FIT_DONE, "0@0:0 0 3072;" },
                /* no overcommit of pages */
                { { "VCPU=1,MEMORY_MB=3073", { .page_size = "small" } },
                  FIT_E_NO_CAPACITY,
                  "Cell 0 of the guest: MEMORY_MB: cell 0 asks for 3073 MiB in small pages, free "
                  "are "
                  "3072" },
                { { "VCPU=1,MEMORY_MB=2048", { .page_size = "large" } },
                  FIT_E_NO_CAPACITY,
                  "Cell 0 of the guest: MEMORY_MB: cell 0 asks for 2048 MiB in large pages, free "
                  "are "
                  "1024" },
                { { "VCPU=1,MEMORY_MB=1024", { .page_size = "64" } },
                  FIT_E_NO_CAPACITY,
                  "Cell 0 of the guest: MEMORY_MB: cell 0 asks for 1024 MiB in 64 KiB pages, free "
                  "are 0" },
                { { "VCPU=2,MEMORY_MB=2048", { .nodes = 2, .page_size = "2M" } },
                  FIT_DONE,
                  "0@0:0 2048 1024, 1@1:1 2048 1024;" },
                /* a guest is not overcommitted against itself, others are */
                { { "VCPU=1,MEMORY_MB=4097", { .nodes = 1 } }, FIT_E_NO_CAPACITY, "Cell 0" },
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
                        { { "VCPU=1,MEMORY_MB=1024", { .page_size = "2M" } },
                          FIT_E_NO_CAPACITY,
                          "Cell 0 of the guest: MEMORY_MB: cell 0 asks for 1024 MiB in 2048 KiB "
                          "pages, free are 1022" },
                        /* cell 1 may hold 6144 MiB by the ratio, and its CPUs are full */
                        { { "VCPU=2,MEMORY_MB=4096", { .nodes = 2 } },
                          FIT_E_NO_CAPACITY,
                          "Each cell of the guest fits a cell of the host, but" },
                        { { "PCPU=2,MEMORY_MB=4096", { .nodes = 2 } },
                          FIT_DONE,
                          "0@0:0 0 2048, 1@1" },
                };

                run_cases(view, &facts.facts, more, ARRAY_SIZE(more));
        }
}

/* The order of the header: free dedicated CPUs, shared use, memory, id; spread and pack. */
static void test_order(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(ROOT);
        NumaFixture facts;
        const Ask spread = { "PCPU=2,MEMORY_MB=64", { .nodes = 1 } },
                  pack = { "PCPU=2,MEMORY_MB=64", { .strategy = "pack" } };
        const Case empty[] = { { spread, FIT_DONE, "0@0" }, { pack, FIT_DONE, "0@0" } };
        const Case pinned[] = { { spread, FIT_DONE, "0@1" }, { pack, FIT_DONE, "0@0" } };

        numa_fixture_make(&facts, two_cells, 2);
        run_cases(view, &facts.facts, empty, 2);
        numa_fixture_use(view, 0, 0, 64, 0);
        run_cases(view, &facts.facts, pinned, 2);
        numa_fixture_use(view, 1, 0, 0, 1); /* sharing counts before memory */
        {
                const Case shared[] = { { spread, FIT_DONE, "0@0" }, { pack, FIT_DONE, "0@1" } };

                run_cases(view, &facts.facts, shared, 2);
        }
        assert_int_equal(cpu_set_add(&view->held, 2), 0); /* and free CPUs before these */
        {
                const Case held[] = {
                        { spread, FIT_DONE, "0@1:0-1 0 64; 0=10 1=11" },
                        { pack, FIT_DONE, "0@0:0-1 0 64; 0=4 1=5" },
                        /* the last thread of a core is the last to be taken */
                        { { "PCPU=5", { .strategy = "pack" } },
                          FIT_DONE,
                          "0@0:0-4 0 0; 0=4 1=5 2=6 3=7 4=3" },
                        { { "PCPU=5", { .strategy = "pack", .thread_policy = "require" } },
                          FIT_DONE,
                          "0@1" },
                };

                run_cases(view, &facts.facts, held, ARRAY_SIZE(held));
        }
}

static void test_devices(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(ROOT GPUS);
        NumaFixture facts;
        const Case cases[] = {
                /* cells with devices when devices are asked for, the others when not */
                { { "PCPU=1", { .nodes = 1 } }, FIT_DONE, "0@0" },
                { { "PCPU=1,VGPU=1", { .nodes = 1 } },
                  FIT_DONE,
                  "0@1:0 0 0; 0=10 | PCPU=1 on host, VGPU=1 on host_b" },
                { { "PCPU=1,VGPU=1", { .affinity = "required" } },
                  FIT_DONE,
                  "0@1:0 0 0; 0=10 | PCPU=1 on host, VGPU=1 on host_b" },
                { { "PCPU=1 _1:VGPU=2 _2:VGPU=1", { .affinity = "legacy" } },
                  FIT_DONE,
                  "0@1:0 0 0; 0=10 | PCPU=1 on host, _1 VGPU=2 on host_b, _2 VGPU=1 on "
                  "host_c" },
                { { "PCPU=1 _1:VGPU=2 _2:VGPU=1", { .affinity = "required" } },
                  FIT_E_NO_CAPACITY,
                  "VGPU: all groups together ask for 3, one request can have 2" },
                { { "PCPU=1 _1:VGPU=2 _2:VGPU=1", { .affinity = "preferred" } },
                  FIT_DONE,
                  "0@1:0 0 0; 0=10 |" },
                { { "PCPU=1 _1:VGPU=3", { .affinity = "required" } },
                  FIT_E_NO_CAPACITY,
                  "Group \"_1\": VGPU: " },
                { { "PCPU=1 _1:VGPU=2 _2:VGPU=2", { .affinity = "socket" } },
                  FIT_E_NO_CAPACITY,
                  "" },
        };

        numa_fixture_make(&facts, two_cells, 2);
        numa_fixture_device(&facts, "b", 1);
        numa_fixture_device(&facts, "c", HOST_CELL_NONE);
        numa_fixture_device(&facts, "a", 7); /* of a cell that is not there */
        run_cases(view, &facts.facts, cases, ARRAY_SIZE(cases));
        facts.devices[2].cell = 0;
        facts.cells[1].socket = 0;
        {
                const Case more[] = {
                        { { "PCPU=1 _1:VGPU=2 _2:VGPU=2", { .affinity = "socket" } },
                          FIT_DONE,
                          "0@0:0 0 0; 0=2 |" },
                        { { "PCPU=1 _1:VGPU=2 _2:VGPU=2", { .affinity = "required" } },
                          FIT_E_NO_CAPACITY,
                          "" },
                        { { "PCPU=2 _1:VGPU=2 _2:VGPU=2", { .nodes = 2, .affinity = "required" } },
                          FIT_DONE,
                          "0@0:0 0 0, 1@1:1 0 0;" },
                };

                run_cases(view, &facts.facts, more, ARRAY_SIZE(more));
        }
        /* the device's cell is full: another one does when it is only preferred */
        for (unsigned cpu = 10; cpu < 16; cpu++)
                assert_int_equal(cpu_set_add(&view->held, cpu), 0);
        use_some(view, "host_a", "VGPU", 2);
        {
                const Case full[] = {
                        { { "PCPU=1,VGPU=2", { .affinity = "required" } },
                          FIT_E_NO_CAPACITY,
                          "VGPU: asks for 2, free are 0 of 2 on host_a" },
                        { { "PCPU=1,VGPU=2", { .affinity = "preferred" } },
                          FIT_DONE,
                          "0@0:0 0 0; 0=2 | PCPU=1 on host, VGPU=2 on host_b" },
                };

                run_cases(view, &facts.facts, full, ARRAY_SIZE(full));
        }
}

/* numa_in_placement: what cells have is taken from their providers. */
static void test_cells_as_providers(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(CELLS);
        NumaFixture facts;
        const Case cases[] = {
                { { "PCPU=2,MEMORY_MB=512,DISK_GB=5", { .nodes = 1 } },
                  FIT_DONE,
                  "0@0:0-1 0 512; 0=2 1=3 | DISK_GB=5 on host, MEMORY_MB=512 on host_NUMA0, PCPU=2 "
                  "on "
                  "host_NUMA0" },
                { { "VCPU=2,MEMORY_MB=1024", { .nodes = 2, .page_size = "2M" } },
                  FIT_DONE,
                  "0@0:0 2048 512, 1@1:1 2048 512; 0=0-1s 1=8-9s | CUSTOM_HUGEPAGES_2M=256 on "
                  "host_NUMA0, MEMORY_MB=512 on host_NUMA0, MEMORY_MB=512 on host_NUMA1, VCPU=1 on "
                  "host_NUMA0, VCPU=1 on host_NUMA1" },
                { { "PCPU=2:FAST", { .nodes = 1 } }, FIT_DONE, "0@1:0-1" },
                { { "PCPU=2:!FAST", { .strategy = "pack" } }, FIT_DONE, "0@0:0-1" },
                { { "PCPU=2:!HW_NUMA_ROOT", { .nodes = 1 } },
                  FIT_E_NO_CAPACITY,
                  "Cell 0 of the guest: PCPU: cell 0 has the forbidden trait HW_NUMA_ROOT" },
                { { "PCPU=2,DISK_GB=1:FAST,ROOT", { .nodes = 1 } }, FIT_DONE, "0@1:0-1" },
                { { "PCPU=2:NONE", { .nodes = 1 } }, FIT_E_NO_CAPACITY, "The providers that have" },
                { { "VCPU=1,MEMORY_MB=4097", { .nodes = 1 } }, FIT_E_NO_CAPACITY, "Cell 0" },
        };

        numa_fixture_make(&facts, two_cells, 2);
        run_cases(view, &facts.facts, cases, ARRAY_SIZE(cases));
        use_some(view, "host_NUMA0", "PCPU", 5); /* by somebody who named no CPU */
        {
                const Case used[] = {
                        { { "PCPU=4", { .nodes = 2 } },
                          FIT_E_NO_CAPACITY,
                          "Each cell of the guest fits a cell of the host, but not each one" },
                        { { "PCPU=2", { .strategy = "pack" } }, FIT_DONE, "0@1:0-1" },
                };

                run_cases(view, &facts.facts, used, ARRAY_SIZE(used));
        }
}

static void test_explain(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(ROOT);
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_verdicts_done) FitVerdicts verdicts = { 0 };
        const Ask ask = { "PCPU=7,MEMORY_MB=64", { .nodes = 1 } };
        NumaFixture facts;
        const FitVerdict *cell;

        numa_fixture_make(&facts, two_cells, 2);
        assert_int_equal(cpu_set_add(&view->held, 9 + 1), 0);
        make_ask(&request, &ask);
        assert_int_equal(fit_explain_numa(view, &facts.facts, "host", &request, &verdicts, NULL),
                         FIT_E_NO_CAPACITY);
        assert_int_equal(verdicts.n_items, 4); /* two classes on the root, two cells */
        cell = &verdicts.items[3];
        assert_string_equal(cell->suffix, "cell 0");
        assert_string_equal(cell->provider_name, "host, cell 1");
        assert_string_equal(cell->term, "pcpus");
        assert_string_equal(cell->resource_class, "PCPU");
        assert_int_equal(cell->missing, 2);
        assert_string_equal(cell->text, "asks for 7 dedicated CPUs, free are 5");
        assert_int_equal(verdicts.items[2].missing, 1);
}

/* Against brute force. */

static uint64_t seed;

static unsigned roll(unsigned n)
{
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned)(seed >> 33) % n;
}

/* One random host and guest. Without overcommit; devices a, b and c in random cells. */
typedef struct Round {
        NumaCellSpec specs[3];
        size_t n_cells;
        NumaFixture facts;
        HostView *view;
        ResourceRequest request;
        uint64_t gpus; /* asked for, in a group of their own */
        size_t room_of[3];
        bool far; /* brute force looks at the second pass of "preferred" */
} Round;

static void round_done(Round *round)
{
        host_view_free(round->view);
        resource_request_done(&round->request);
}

static void make_host(Round *round)
{
        static const char *const names[] = { "a", "b", "c" };

        round->n_cells = 1 + roll(3);
        for (size_t i = 0; i < round->n_cells; i++)
                round->specs[i] = (NumaCellSpec){ .n_shared = 2 * roll(2),
                                                  .n_dedicated = 2 * roll(4),
                                                  .threads = 2,
                                                  .memory_mb = 8,
                                                  .n_2m = roll(4),
                                                  .socket = (int)roll(2) };
        numa_fixture_make(&round->facts, round->specs, round->n_cells);
        round->view = make_view("host VCPU=8 PCPU=32 MEMORY_MB=64; host_a<host VGPU=1;"
                                "host_b<host VGPU=1; host_c<host VGPU=2");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                numa_fixture_device(&round->facts, names[i], (int)roll(4) - 1);
        for (unsigned cpu = 0; cpu < 24; cpu++)
                if (roll(4) == 0)
                        assert_int_equal(cpu_set_add(&round->view->held, cpu), 0);
        for (unsigned i = 0; i < round->n_cells; i++) {
                numa_fixture_use(round->view, i, 2048, 2 * roll(2), 0);
                numa_fixture_use(round->view, i, 0, roll(3), roll(2));
        }
}

static bool make_guest(Round *round)
{
        static const char *const threads[] = { NULL, "isolate", "require" };
        static const char *const affinities[] = { NULL, "required", "preferred", "socket" };
        static const char *const pages[] = { NULL, "small", "large", "any", "2M" };
        NumaOptions options = { .nodes = 1 + roll(3),
                                .affinity = affinities[roll(4)],
                                .page_size = pages[roll(5)],
                                .strategy = roll(2) ? "pack" : NULL };
        unsigned n_cpus = (unsigned)options.nodes * (1 + roll(3));
        RequestGroup *group;

        round->gpus = roll(3);
        assert_int_equal(resource_request_group(&round->request, "", &group, NULL), 0);
        assert_int_equal(resources_set(&group->resources, "VCPU", n_cpus), 0);
        assert_int_equal(
                resources_set(&group->resources, "MEMORY_MB", options.nodes * 2 * (1 + roll(2))),
                0);
        options.cpu_policy = roll(3) == 0 ? "shared" : "dedicated";
        if (strcmp(options.cpu_policy, "dedicated") == 0)
                options.thread_policy = threads[roll(3)];
        assert_int_equal(numa_request_make(&options, &group->resources, &round->request.numa, NULL),
                         0);
        if (round->gpus > 0) {
                assert_int_equal(resource_request_group(&round->request, "_G", &group, NULL), 0);
                assert_int_equal(resources_set(&group->resources, "VGPU", round->gpus), 0);
        }
        return true;
}

/* The rules again, in other words. */

static bool cpu_is_free(const Round *round, const HostCpu *cpu)
{
        return cpu->dedicated && !cpu_set_contains(&round->view->held, cpu->id);
}

static bool cpus_suffice(const Round *round, size_t cell, unsigned n, bool dedicated)
{
        const HostCell *host = &round->facts.cells[cell];
        unsigned n_usable = 0;

        if (!dedicated) {
                const HostCellUsage *usage = &round->view->cell_usages[2 * cell + 1];

                return n <= round->specs[cell].n_shared &&
                       n + usage->n_shared <= round->specs[cell].n_shared;
        }
        /* pairs of threads, one after the other */
        for (size_t i = 0; i + 1 < host->n_cpus; i += 2) {
                unsigned n_free = (unsigned)cpu_is_free(round, &host->cpus[i]) +
                                  (unsigned)cpu_is_free(round, &host->cpus[i + 1]);

                if (round->request.numa.threads == NUMA_THREADS_ISOLATE)
                        n_usable += n_free == 2;
                else if (round->request.numa.threads == NUMA_THREADS_REQUIRE)
                        n_usable += n_free == 2 ? 2 : 0;
                else
                        n_usable += n_free;
        }
        return n <= n_usable;
}

static bool memory_suffices(const Round *round, size_t cell, uint64_t memory_mb)
{
        uint64_t used_2m = round->view->cell_usages[2 * cell].memory_mb,
                 used_small = round->view->cell_usages[2 * cell + 1].memory_mb,
                 in_2m = 2 * round->specs[cell].n_2m;
        bool small = used_small + memory_mb <= 8 - in_2m, large = used_2m + memory_mb <= in_2m;

        switch (round->request.numa.pages) {
        case NUMA_PAGES_SMALL:
                return small;
        case NUMA_PAGES_ANY:
                return small || large;
        case NUMA_PAGES_DEFAULT:
                return used_2m + used_small + memory_mb <= 8;
        default:
                return large;
        }
}

static bool is_in_set(const Round *round, int cell)
{
        for (size_t i = 0; i < round->request.numa.n_cells; i++)
                if ((int)round->room_of[i] == cell)
                        return true;
        return false;
}

static bool device_is_near(const Round *round, const HostDevice *device)
{
        const NumaRequest *numa = &round->request.numa;
        bool known = device->cell >= 0 && (size_t)device->cell < round->n_cells;

        if (numa->affinity == NUMA_AFFINITY_PREFERRED && round->far)
                return true;
        if (!known)
                return device->cell < 0 && numa->affinity == NUMA_AFFINITY_LEGACY;
        if (numa->affinity != NUMA_AFFINITY_SOCKET)
                return is_in_set(round, device->cell);
        for (size_t i = 0; i < numa->n_cells; i++)
                if (round->specs[round->room_of[i]].socket == round->specs[device->cell].socket)
                        return true;
        return false;
}

static bool devices_suffice(const Round *round)
{
        for (size_t i = 0; i < 3; i++)
                if ((round->gpus <= 1 || i == 2) && device_is_near(round, &round->facts.devices[i]))
                        return true;
        return round->gpus == 0;
}

static bool brute_force(Round *round, size_t guest)
{
        const NumaRequest *numa = &round->request.numa;

        if (guest == numa->n_cells)
                return devices_suffice(round);
        for (size_t room = 0; room < round->n_cells; room++) {
                bool taken = false;

                for (size_t i = 0; i < guest; i++)
                        taken = taken || round->room_of[i] == room;
                if (taken ||
                    !cpus_suffice(round, room, cpu_set_count(&numa->cells[guest].vcpus),
                                  cpu_set_count(&numa->dedicated) > 0) ||
                    !memory_suffices(round, room, numa->cells[guest].memory_mb))
                        continue;
                round->room_of[guest] = room;
                if (brute_force(round, guest + 1))
                        return true;
        }
        return false;
}

/* What was found keeps the rules: every host CPU is free and given once, and so on. */
static void check_fit(Round *round, const Fit *fit)
{
        const NumaRequest *numa = &round->request.numa;
        _cleanup_(cpu_set_done) CpuSet given = CPU_SET_INIT;
        bool near = true;

        assert_int_equal(fit->layout.n_cells, numa->n_cells);
        for (size_t i = 0; i < numa->n_cells; i++) {
                const LayoutCell *cell = &fit->layout.cells[i];

                round->room_of[i] = cell->host_cell;
                for (size_t j = 0; j < i; j++)
                        assert_int_not_equal(round->room_of[j], round->room_of[i]);
                assert_true(cpus_suffice(round, cell->host_cell, cpu_set_count(&cell->vcpus),
                                         cpu_set_count(&numa->dedicated) > 0));
                assert_true(memory_suffices(round, cell->host_cell, cell->memory_mb));
                assert_true(cpu_set_equal(&cell->vcpus, &numa->cells[i].vcpus));
        }
        for (size_t i = 0; i < fit->layout.n_cpus; i++) {
                const LayoutCpu *cpu = &fit->layout.cpus[i];
                unsigned first = cpu_set_next(&cpu->cpus, 0);

                assert_int_equal(cpu->vcpu, i);
                assert_int_equal(cpu->dedicated, cpu_set_contains(&numa->dedicated, cpu->vcpu));
                if (!cpu->dedicated)
                        continue;
                assert_int_equal(cpu_set_count(&cpu->cpus), 1);
                assert_false(cpu_set_contains(&given, first));
                assert_false(cpu_set_contains(&round->view->held, first));
                assert_true(cpu_set_contains(&fit->layout.held, first));
                assert_int_equal(cpu_set_add(&given, first), 0);
                if (numa->threads == NUMA_THREADS_ISOLATE)
                        assert_true(cpu_set_contains(&fit->layout.held, first ^ 1) &&
                                    !cpu_set_contains(&given, first ^ 1));
        }
        assert_int_equal(cpu_set_count_common(&fit->layout.held, &round->view->held), 0);
        for (size_t i = 0; i < fit->n_pieces; i++)
                for (size_t j = 0; j < 3; j++) {
                        char name[16];

                        snprintf(name, sizeof(name), "host_%s", round->facts.devices[j].name);
                        if (strcmp(round->view->tree->providers[fit->pieces[i].provider]->name,
                                   name) == 0)
                                near = device_is_near(round, &round->facts.devices[j]);
                }
        if (!near) {
                /* "preferred": only when no place at all is near */
                assert_int_equal(numa->affinity, NUMA_AFFINITY_PREFERRED);
                assert_false(brute_force(round, 0));
        }
}

static void test_against_brute_force(void **state)
{
        const char *wanted = getenv("FIT_NUMA_ROUNDS");
        unsigned n = wanted ? (unsigned)atoi(wanted) : ROUNDS_DEFAULT, n_fits = 0;
        uint64_t most = 0;

        seed = 1;
        for (unsigned i = 0; i < n; i++) {
                _cleanup_(round_done) Round round = { 0 };
                _cleanup_(fit_done) Fit fit = FIT_NULL;
                uint64_t start = seed;
                Error error = ERROR_NULL;
                int r;

                make_host(&round);
                make_guest(&round);
                r = fit_request_numa(round.view, &round.facts.facts, "host", &round.request, &fit,
                                     &error);
                most = MAX(most, fit.work);
                if (r == FIT_DONE) {
                        n_fits++;
                        check_fit(&round, &fit);
                        continue;
                }
                assert_int_equal(r, FIT_E_NO_CAPACITY);
                assert_true(error.text[0] != '\0');
                round.far = true;
                if (brute_force(&round, 0))
                        fail_msg("seed %" PRIu64 " fits, but: %s", start, error.text);
        }
        print_message("%u of %u fit, at most %" PRIu64 " steps\n", n_fits, n, most);
        assert_true(n_fits > n / 10 && n_fits < n);
}

/* A host and a guest on which the search cannot end soon: it says so within the bound. */
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
        const Ask hard = { "PCPU=32,VGPU=1", { .nodes = 32, .affinity = "required" } },
                  easy = { "PCPU=32,VGPU=1", { .nodes = 32, .affinity = "preferred" } };

        facts.devices = &device;
        facts.n_devices = 1;
        for (unsigned i = 0; i < 64; i++) {
                cpus[i] = (HostCpu){ .id = i, .core = i, .dedicated = true };
                cells[i] = (HostCell){ .id = i, .cpus = &cpus[i], .n_cpus = 1 };
        }
        make_ask(&request, &hard);
        assert_int_equal(fit_request_numa(view, &facts, "host", &request, &fit, NULL),
                         FIT_E_TOO_HARD);
        assert_true(fit.work < 2 * FIT_WORK_MAX);
        resource_request_done(&request);
        make_ask(&request, &easy);
        device.cell = HOST_CELL_NONE;
        request.numa.affinity = NUMA_AFFINITY_LEGACY;
        assert_int_equal(fit_request_numa(view, &facts, "host", &request, &fit, NULL), FIT_DONE);
        assert_true(fit.work < 100000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_policies),
                cmocka_unit_test(test_pages),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_devices),
                cmocka_unit_test(test_cells_as_providers),
                cmocka_unit_test(test_explain),
                cmocka_unit_test(test_against_brute_force),
                cmocka_unit_test(test_bound),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
