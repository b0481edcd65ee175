/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the fit of guests with a layout with brute force, on small random hosts. */

#include <inttypes.h>

#include "claims/fit/numa.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/numa.h"
#include "tests/unit/test.h"

#define ROUNDS_DEFAULT 20000

/* One random host and guest, with devices a, b and c in random cells. */
typedef struct Round {
        NumaCellSpec specs[3];
        size_t n_cells;
        NumaFixture facts;
        HostView *view;
        ResourceRequest request;
        uint64_t gpus; /* requested, in a group of their own */
        bool by_cell;  /* cells are providers */
        double cpu_ratio, ram_ratio;
        Consumer *placed;         /* NULL: none */
        uint64_t placed_on[3][3]; /* by cell: shared and dedicated CPUs, MiB */
        size_t placed_gpu;
        size_t capacity_of[3];
        bool far; /* brute force also tries the second pass of "preferred" */
} Round;

static void round_done(Round *round)
{
        host_view_free(round->view);
        resource_request_done(&round->request);
        consumer_free(round->placed);
}

/* If cells are providers, the root lacks the classes of the cells. */
static HostView *make_round_view(const Round *round)
{
        char text[1000], amounts[200];
        size_t n;

        snprintf(amounts, sizeof(amounts),
                 "VCPU=99/0/1/99/1/%.1f PCPU=99 MEMORY_MB=99/0/1/99/1/%.1f", round->cpu_ratio,
                 round->ram_ratio);
        n = (size_t)snprintf(text, sizeof(text), "host DISK_GB=1 %s",
                             round->by_cell ? "" : amounts);
        for (size_t i = 0; i < round->n_cells && round->by_cell; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n,
                                      "; host_NUMA%zu<host %s +HW_NUMA_ROOT", i, amounts);
        snprintf(text + n, sizeof(text) - n,
                 "; host_a<host VGPU=1; host_b<host VGPU=1; host_c<host VGPU=2");
        return make_view(text);
}

static void make_host(Round *round)
{
        static const char *const names[] = { "a", "b", "c" };

        round->n_cells = 1 + roll(3);
        for (size_t i = 0; i < round->n_cells; i++)
                round->specs[i] = (NumaCellSpec){ .n_shared = roll(6),
                                                  .n_dedicated = 1 + roll(8),
                                                  .threads = 2,
                                                  .memory_mb = 12,
                                                  .n_2m = roll(4),
                                                  .n_1g = roll(2),
                                                  .socket = (int)roll(2) };
        numa_fixture_make(&round->facts, round->specs, round->n_cells);
        for (size_t i = 0; i < round->n_cells; i++) {
                round->facts.pages[i][1].size_kib = 4096;
                /* some CPUs are for no guest */
                for (size_t j = 0; j < round->facts.cells[i].n_cpus; j++)
                        if (roll(8) == 0)
                                round->facts.cpus[i][j].shared = round->facts.cpus[i][j].dedicated =
                                        false;
                for (size_t j = 0; j < 2 && round->facts.pages[i][j].total > 0; j++)
                        round->facts.pages[i][j].reserved = roll(4) == 0;
        }
        round->by_cell = roll(2);
        round->cpu_ratio = 1 + roll(2);
        round->ram_ratio = roll(2) ? 1.5 : 1;
        round->view = make_round_view(round);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                numa_fixture_device(&round->facts, names[i], (int)roll(4) - 1);
        for (unsigned cpu = 0; cpu < 39; cpu++)
                if (roll(6) == 0)
                        assert_int_equal(cpu_set_add(&round->view->held, cpu), 0);
        for (unsigned i = 0; i < round->n_cells; i++) {
                numa_fixture_use(round->view, i, 2048, 2 * roll(2), 0);
                numa_fixture_use(round->view, i, 4096, 4 * (roll(4) == 0), 0);
                numa_fixture_use(round->view, i, 0, roll(7), roll(4));
        }
}

static bool make_guest(Round *round)
{
        static const char *const threads[] = { NULL, "isolate", "require" };
        static const char *const affinities[] = { NULL, "required", "preferred", "socket" };
        static const char *const pages[] = { NULL, NULL, "small", "large", "any", "2M", "4M" };
        static const char *const policies[] = { "shared", "dedicated", "dedicated", "mixed" };
        NumaOptions options = { .nodes = 1 + roll(3),
                                .affinity = affinities[roll(4)],
                                .page_size = pages[roll(7)],
                                .strategy = roll(2) ? "pack" : NULL };
        unsigned n_cpus = (unsigned)options.nodes * (1 + roll(3));
        RequestGroup *group;

        round->gpus = roll(3);
        assert_int_equal(resource_request_group(&round->request, "", &group, NULL), 0);
        assert_int_equal(resources_set(&group->resources, "VCPU", n_cpus), 0);
        assert_int_equal(
                resources_set(&group->resources, "MEMORY_MB", options.nodes * 2 * (1 + roll(2))),
                0);
        options.cpu_policy = policies[roll(n_cpus > 1 ? 4 : 3)];
        if (strcmp(options.cpu_policy, "mixed") == 0)
                options.dedicated_mask = roll(2) ? "0" : "^0";
        if (strcmp(options.cpu_policy, "shared") != 0)
                options.thread_policy = threads[roll(3)];
        /* invalid, for example memory that is no whole number of pages */
        if (numa_request_make(&options, &group->resources, &round->request.numa, NULL) < 0)
                return false;
        if (round->gpus > 0) {
                assert_int_equal(resource_request_group(&round->request, "_G", &group, NULL), 0);
                assert_int_equal(resources_set(&group->resources, "VGPU", round->gpus), 0);
        }
        return true;
}

/* A second implementation of the rules. */

static bool cpu_is_free(const Round *round, const HostCpu *cpu)
{
        return cpu->dedicated && !cpu_set_contains(&round->view->held, cpu->id);
}

static void count_guest_cpus(const Round *round, size_t guest, unsigned *ret_shared,
                             unsigned *ret_dedicated)
{
        const NumaRequest *numa = &round->request.numa;

        *ret_dedicated = cpu_set_count_common(&numa->cells[guest].vcpus, &numa->dedicated);
        *ret_shared = cpu_set_count(&numa->cells[guest].vcpus) - *ret_dedicated;
}

static bool cpus_suffice(const Round *round, size_t cell, size_t guest)
{
        const HostCell *host = &round->facts.cells[cell];
        unsigned n_usable = 0, n_for_sharing = 0, n_shared, n;

        count_guest_cpus(round, guest, &n_shared, &n);
        for (size_t i = 0; i < host->n_cpus; i++)
                n_for_sharing += host->cpus[i].shared;
        if (n_shared > n_for_sharing)
                return false;
        if (n_shared > 0 && n_shared + round->view->cell_usages[3 * cell + 2].n_shared >
                                    round->cpu_ratio * n_for_sharing)
                return false;
        /* core by core: two threads, or one that is left */
        for (size_t i = 0; i < host->n_cpus; i++) {
                unsigned n_free = 0, n_all = 0;

                for (size_t j = 0; j < host->n_cpus; j++)
                        if (host->cpus[j].core == host->cpus[i].id) {
                                n_free += cpu_is_free(round, &host->cpus[j]);
                                n_all += host->cpus[j].shared || host->cpus[j].dedicated;
                        }
                if (round->request.numa.threads == NUMA_THREADS_ISOLATE)
                        n_usable += n_free > 0 && n_free == n_all;
                else if (round->request.numa.threads == NUMA_THREADS_REQUIRE)
                        n_usable += n_free == 2 ? 2 : 0;
                else
                        n_usable += n_free;
        }
        return n <= n_usable;
}

/* Returns true if the guest's memory fits in pages of page_mb MiB; 0: small pages. */
static bool pages_suffice(const Round *round, size_t cell, uint64_t page_mb, uint64_t memory_mb)
{
        const HostCellUsage *used = &round->view->cell_usages[3 * cell];
        const HostPages *pages = round->facts.pages[cell];

        if (page_mb == 0)
                return used[2].memory_mb + memory_mb + 2 * pages[0].total + 4 * pages[1].total <=
                       12;
        pages += page_mb == 4;
        return memory_mb % page_mb == 0 &&
               used[page_mb == 4].memory_mb + memory_mb + page_mb * pages->reserved <=
                       page_mb * pages->total;
}

static bool memory_suffices(const Round *round, size_t cell, size_t guest)
{
        const HostCellUsage *used = &round->view->cell_usages[3 * cell];
        const HostPages *pages = round->facts.pages[cell];
        uint64_t memory_mb = round->request.numa.cells[guest].memory_mb,
                 in_all = used[0].memory_mb + used[1].memory_mb + used[2].memory_mb + memory_mb,
                 small_mb = 12 - 2 * pages[0].total - 4 * pages[1].total;
        unsigned n_shared, n_dedicated;
        double ratio;

        count_guest_cpus(round, guest, &n_shared, &n_dedicated);
        ratio = n_dedicated > 0 ? 1 : round->ram_ratio;
        if ((double)in_all > 12 * ratio)
                return false;
        switch (round->request.numa.pages) {
        case NUMA_PAGES_SMALL:
                return pages_suffice(round, cell, 0, memory_mb);
        case NUMA_PAGES_ANY:
                return pages_suffice(round, cell, 0, memory_mb) ||
                       pages_suffice(round, cell, 2, memory_mb) ||
                       pages_suffice(round, cell, 4, memory_mb);
        case NUMA_PAGES_LARGE:
                return pages_suffice(round, cell, 2, memory_mb) ||
                       pages_suffice(round, cell, 4, memory_mb);
        case NUMA_PAGES_SIZE:
                return pages_suffice(round, cell, round->request.numa.page_kib / 1024, memory_mb);
        default:
                return memory_mb <= small_mb &&
                       (double)(used[2].memory_mb + memory_mb) <= (double)small_mb * ratio;
        }
}

/* Returns true if the allocations on the cell are enough for the guest cell. */
static bool placing_suffices(const Round *round, size_t cell, size_t guest)
{
        unsigned n_shared, n_dedicated;

        count_guest_cpus(round, guest, &n_shared, &n_dedicated);
        return !round->placed || !round->by_cell ||
               (n_shared <= round->placed_on[cell][0] && n_dedicated <= round->placed_on[cell][1] &&
                round->request.numa.cells[guest].memory_mb <= round->placed_on[cell][2]);
}

static bool cell_suffices(const Round *round, size_t cell, size_t guest)
{
        return cpus_suffice(round, cell, guest) && memory_suffices(round, cell, guest) &&
               placing_suffices(round, cell, guest);
}

static bool is_in_set(const Round *round, int cell)
{
        for (size_t i = 0; i < round->request.numa.n_cells; i++)
                if ((int)round->capacity_of[i] == cell)
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
                if (round->specs[round->capacity_of[i]].socket == round->specs[device->cell].socket)
                        return true;
        return false;
}

static bool devices_suffice(const Round *round)
{
        for (size_t i = 0; i < 3; i++)
                if ((round->gpus <= 1 || i == 2) && (!round->placed || i == round->placed_gpu) &&
                    device_is_near(round, &round->facts.devices[i]))
                        return true;
        return round->gpus == 0;
}

static bool brute_force(Round *round, size_t guest)
{
        const NumaRequest *numa = &round->request.numa;

        if (guest == numa->n_cells)
                return devices_suffice(round);
        for (size_t capacity = 0; capacity < round->n_cells; capacity++) {
                bool taken = false;

                for (size_t i = 0; i < guest; i++)
                        taken = taken || round->capacity_of[i] == capacity;
                if (taken || !cell_suffices(round, capacity, guest))
                        continue;
                round->capacity_of[guest] = capacity;
                if (brute_force(round, guest + 1))
                        return true;
        }
        return false;
}

/* No other guest gets the other threads of its core. */
static void check_isolated(const Round *round, unsigned id, const CpuSet *held, const CpuSet *given)
{
        const HostCpu *cpu = NULL;

        for (size_t i = 0; i < round->n_cells; i++)
                for (size_t j = 0; j < round->facts.cells[i].n_cpus; j++)
                        if (round->facts.cpus[i][j].id == id)
                                cpu = &round->facts.cpus[i][j];
        assert_non_null(cpu);
        for (unsigned other = cpu->core; other < cpu->core + 2; other++)
                for (size_t i = 0; i < round->n_cells; i++)
                        for (size_t j = 0; j < round->facts.cells[i].n_cpus; j++) {
                                const HostCpu *thread = &round->facts.cpus[i][j];

                                if (thread->id != other || other == id || thread->core != cpu->core)
                                        continue;
                                assert_false(cpu_set_contains(given, other));
                                assert_int_equal(cpu_set_contains(held, other), thread->dedicated);
                        }
}

/* The fit obeys the rules: every host CPU is free and used once, and so on. */
static void check_fit(Round *round, const Fit *fit)
{
        const NumaRequest *numa = &round->request.numa;
        _cleanup_(cpu_set_done) CpuSet given = CPU_SET_INIT;
        bool near = true;

        assert_int_equal(fit->layout.n_cells, numa->n_cells);
        for (size_t i = 0; i < numa->n_cells; i++) {
                const LayoutCell *cell = &fit->layout.cells[i];

                round->capacity_of[i] = cell->host_cell;
                for (size_t j = 0; j < i; j++)
                        assert_int_not_equal(round->capacity_of[j], round->capacity_of[i]);
                assert_true(cell_suffices(round, cell->host_cell, i));
                if (numa->pages != NUMA_PAGES_DEFAULT)
                        assert_true(pages_suffice(round, cell->host_cell, cell->page_kib / 1024,
                                                  cell->memory_mb));
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
                        check_isolated(round, first, &fit->layout.held, &given);
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
                /* "preferred": far devices only if no set has near ones */
                assert_int_equal(numa->affinity, NUMA_AFFINITY_PREFERRED);
                assert_false(brute_force(round, 0));
        }
}

/* Makes allocations as a scheduler: each guest cell on the provider of some host cell, or all on
 * the root, and the devices on one provider. */
static void place_guest(Round *round)
{
        static const char *const classes[] = { "VCPU", "PCPU", "MEMORY_MB" };
        const Resources *asked = &round->request.groups[0].resources;
        Uuid consumer = make_uuid("consumer"), root = make_uuid("host");
        size_t first = roll((unsigned)round->n_cells);
        char name[32];
        Uuid uuid;

        assert_int_equal(consumer_new(&round->placed, &consumer), 0);
        for (size_t i = 0; i < asked->n_items && !round->by_cell; i++)
                assert_int_equal(consumer_add(round->placed, &root, asked->items[i].resource_class,
                                              asked->items[i].amount),
                                 0);
        for (size_t i = 0; i < round->request.numa.n_cells && round->by_cell; i++) {
                size_t cell = (first + i) % round->n_cells;
                unsigned n_shared, n_dedicated;

                count_guest_cpus(round, i, &n_shared, &n_dedicated);
                round->placed_on[cell][0] += n_shared;
                round->placed_on[cell][1] += n_dedicated;
                round->placed_on[cell][2] += round->request.numa.cells[i].memory_mb;
        }
        for (size_t i = 0; i < round->n_cells; i++)
                for (size_t j = 0; j < 3; j++) {
                        snprintf(name, sizeof(name), "host_NUMA%zu", i);
                        uuid = make_uuid(name);
                        assert_int_equal(consumer_add(round->placed, &uuid, classes[j],
                                                      round->placed_on[i][j]),
                                         0);
                }
        round->placed_gpu = roll(3);
        snprintf(name, sizeof(name), "host_%s", round->facts.devices[round->placed_gpu].name);
        uuid = make_uuid(name);
        assert_int_equal(consumer_add(round->placed, &uuid, "VGPU", round->gpus), 0);
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
                FitEffort effort = fit_effort_begin(0);
                uint64_t start = seed;
                Error error = ERROR_NULL;
                int r;

                make_host(&round);
                if (!make_guest(&round))
                        continue;
                if (roll(3) == 0)
                        place_guest(&round);
                r = fit_request_numa(round.view, &round.facts.facts, "host", &round.request,
                                     round.placed, &effort, &fit, &error);
                most = MAX(most, effort.work);
                if (r == CLAIM_DONE) {
                        n_fits++;
                        check_fit(&round, &fit);
                        continue;
                }
                assert_int_equal(r, CLAIM_E_NO_CAPACITY);
                assert_true(error.text[0] != '\0');
                round.far = true;
                if (brute_force(&round, 0))
                        fail_msg("seed %" PRIu64 " fits, but: %s", start, error.text);
        }
        print_message("%u of %u fit, at most %" PRIu64 " steps\n", n_fits, n, most);
        assert_true(n_fits > n / 10 && n_fits < n);
}

TEST_MAIN(test_against_brute_force)
