/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Layouts in the store: written, read, held once, ended, adopted, found. */

#include "tests/fixtures/claims.h"
#include "tests/fixtures/numa.h"
#include "tests/unit/test.h"

static const NumaCellSpec specs[] = { { 2, 4, 2, 4096, 64, 0, 0 }, { 2, 4, 2, 4096, 64, 0, 1 } };

#define HOST "host VCPU=4/0/1/4/1/4 PCPU=8 MEMORY_MB=8192; host_0000:05:00.0<host CUSTOM_NIC=2"
#define CELLS                                                                                      \
        "host; host_NUMA0<host VCPU=2 PCPU=4 MEMORY_MB=4096 CUSTOM_HUGEPAGES_2M=64 +HW_NUMA_ROOT;" \
        "host_NUMA1<host VCPU=2 PCPU=4 MEMORY_MB=4096 CUSTOM_HUGEPAGES_2M=64 +HW_NUMA_ROOT"

static NumaFixture facts;
static HostDomain domain;

static void start(Fixture *fixture, const char *host)
{
        numa_fixture_make(&facts, specs, 2);
        numa_fixture_nic(&facts, "pci_0000_05_00_1", "0000:05:00.1", 1);
        numa_fixture_nic(&facts, "pci_0000_05_00_2", "0000:05:00.2", 1);
        fixture_create(fixture, host);
        claims_set_facts(fixture->claims, &facts.facts);
}

static void assert_layout(const Claim *claim, const char *expected)
{
        _cleanup_free_ char *text = numa_fixture_format(&claim->layout);

        assert_string_equal(text, expected);
}

static void test_claim(void **state)
{
        static const char asked[] = "PCPU=2,MEMORY_MB=128 & nodes=2 page_size=2M";
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *again = NULL, *read = NULL;
        const char *layout = "0@0:0 2048 64, 1@1:1 2048 64; 0=2 1=8";

        start(fixture, HOST);
        assert_int_equal(fixture_claim_placed(fixture, "a", asked, NULL, &claim), 0);
        assert_layout(claim, layout);
        assert_string_equal(claim->consumer_type, "INSTANCE");
        assert_int_equal(fixture_claim_placed(fixture, "a", asked, NULL, &again), 0);
        assert_int_equal(again->id, claim->id);
        assert_sql(fixture->path, "SELECT group_concat(cpu) FROM claim_pins", "2,8");
        assert_sql(
                fixture->path,
                "SELECT group_concat(host_cell || ':' || page_kib || ':' || memory_mb) FROM cell_usages",
                "0:2048:64,1:2048:64");
        /* all of it survives a restart, and is kept in the history */
        fixture_close(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        claims_set_facts(fixture->claims, &facts.facts);
        assert_int_equal(claims_get(fixture->claims, claim->id, &read, NULL), 0);
        assert_layout(read, layout);
        assert_true(cpu_set_contains(&read->layout.held, 8));
        assert_int_equal(
                fixture_claim(fixture, "b", "PCPU=2,MEMORY_MB=192 & nodes=2 page_size=2M", NULL),
                CLAIM_E_NO_CAPACITY);
        assert_text(fixture->error.text, "2048 KiB pages requested, but 64 are free");
        assert_int_equal(claims_release(fixture->claims, claim->id, "done", NULL), 0);
        read = claim_free(read);
        assert_int_equal(claims_get(fixture->claims, claim->id, &read, NULL), 0);
        assert_layout(read, layout);
        assert_string_equal(read->consumer_type, "INSTANCE");
        assert_sql(fixture->path,
                   "SELECT (SELECT count(*) FROM claim_pins) + (SELECT count(*) FROM cell_usages)"
                   " + (SELECT count(*) FROM claim_cells) + (SELECT count(*) FROM claim_cpus)",
                   "0");
        assert_store_sane(fixture->path);
}

/* numa_in_placement: a scheduler allocated hugepages as a class of the cells' providers. The
 * request names that class, or only the size of the pages. */
static void test_placed_hugepages(void **state)
{
        static const struct {
                const char *request, *holding;
                int r;
        } cases[] = {
                { "VCPU=1,MEMORY_MB=64 & nodes=1 page_size=2M",
                  "host_NUMA1 VCPU=1,MEMORY_MB=64,CUSTOM_HUGEPAGES_2M=32", CLAIM_DONE },
                { "VCPU=1,MEMORY_MB=64,CUSTOM_HUGEPAGES_2M=32 & nodes=1 page_size=2M",
                  "host_NUMA1 VCPU=1,MEMORY_MB=64,CUSTOM_HUGEPAGES_2M=32", CLAIM_DONE },
                { "VCPU=1,MEMORY_MB=64 & nodes=1 page_size=2M",
                  "host_NUMA1 VCPU=1,MEMORY_MB=64,CUSTOM_HUGEPAGES_2M=16", CLAIM_E_NO_CAPACITY },
        };
        Fixture *fixture = *state;

        start(fixture, CELLS);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(consumer_freep) Consumer *holding = make_holding("a", cases[i].holding);
                _cleanup_(claim_freep) Claim *claim = NULL;
                const ClaimPlacing placing = { .holding = holding };
                int r = fixture_claim_placed(fixture, "a", cases[i].request, &placing, &claim);

                if (r != cases[i].r)
                        fail_msg("case %zu: %d %s", i, r, fixture->error.text);
                if (r == 0) {
                        assert_layout(claim, "0@1:0 2048 64; 0=6-7s");
                        assert_int_equal(fixture_used(fixture, "host_NUMA1", "CUSTOM_HUGEPAGES_2M"),
                                         32);
                        assert_int_equal(claims_release(fixture->claims, claim->id, "", NULL), 0);
                }
        }
}

/* Claims until no CPU is free: each host CPU is used once, also those that "isolate" keeps free. */
static void test_cpus_are_held_once(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(cpu_set_done) CpuSet given = CPU_SET_INIT;
        unsigned n = 0;

        start(fixture, HOST);
        for (int r = 0; r == 0; n += r == 0) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                char name[8];

                snprintf(name, sizeof(name), "g%u", n);
                r = fixture_claim(fixture, name,
                                  n == 0 ? "PCPU=1 & thread_policy=isolate" : "PCPU=1 &", &claim);
                for (size_t i = 0; r == 0 && i < claim->layout.n_cpus; i++) {
                        unsigned cpu = cpu_set_next(&claim->layout.cpus[i].cpus, 0);

                        assert_false(cpu_set_contains(&given, cpu));
                        assert_int_equal(cpu_set_add(&given, cpu), 0);
                }
        }
        assert_int_equal(n, 7);
        assert_false(cpu_set_contains(&given, 3)); /* the other thread of the first one's core */
        assert_sql(fixture->path, "SELECT count(*) FROM claim_pins", "8");
        assert_store_sane(fixture->path);
}

/* H5: whole devices, each used once, and none that a guest has already. */
static void test_pci(void **state)
{
        static const char addresses[1][HOST_ADDRESS_SIZE] = { "0000:05:00.1" };
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *second = NULL;

        start(fixture, HOST);
        domain = (HostDomain){ .uuid = make_uuid("x"), .name = "x", .pci = addresses, .n_pci = 1 };
        facts.facts.domains = &domain;
        facts.facts.n_domains = 1;
        assert_int_equal(fixture_claim(fixture, "a", "CUSTOM_NIC=1", &first), CLAIM_DONE);
        assert_int_equal(first->n_devices, 1);
        assert_string_equal(first->devices[0].address, "0000:05:00.2");
        assert_true(claim_has_pci(first, "0000:05:00.2") && !claim_has_pci(first, "0000:05:00.1"));
        assert_int_equal(fixture_claim(fixture, "b", "CUSTOM_NIC=1", NULL), CLAIM_E_NO_CAPACITY);
        assert_text(fixture->error.text, "0 of 2 are free; guests have 1 on");
        facts.facts.n_domains = 0;
        assert_int_equal(fixture_claim(fixture, "b", "CUSTOM_NIC=1", &second), CLAIM_DONE);
        assert_string_equal(second->devices[0].address, "0000:05:00.1");
}

static void make_domain(const char *name, unsigned cpu)
{
        static const char addresses[1][HOST_ADDRESS_SIZE] = { "0000:05:00.1" };
        LayoutCell *cell;
        LayoutCpu *pin;

        domain = (HostDomain){ .uuid = make_uuid(name),
                               .name = "g",
                               .running = true,
                               .vcpus = 2,
                               .memory_mb = 64,
                               .pci = addresses,
                               .n_pci = 1 };
        assert_int_equal(layout_reserve(&domain.layout, 1, 1), 0);
        cell = &domain.layout.cells[domain.layout.n_cells++];
        cell->host_cell = 1;
        cell->memory_mb = 64;
        cell->page_kib = 2048;
        cell->n_shared = 1;
        assert_int_equal(cpu_set_parse("0-1", &cell->vcpus, NULL), 0);
        pin = &domain.layout.cpus[domain.layout.n_cpus++];
        pin->dedicated = true;
        assert_int_equal(cpu_set_add(&pin->cpus, cpu), 0);
        assert_int_equal(cpu_set_add(&domain.layout.held, cpu), 0);
}

static void test_adopt(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *other = NULL;
        Error error = ERROR_NULL;

        start(fixture, CELLS "; host_0000:05:00.0<host CUSTOM_NIC=2");
        make_domain("g", 8);
        assert_int_equal(claims_adopt(fixture->claims, &domain, &claim, NULL), CLAIM_DONE);
        layout_done(&domain.layout);
        assert_layout(claim, "0@1:0-1 2048 64; 0=8");
        assert_string_equal(claim->devices[0].address, "0000:05:00.1");
        assert_int_equal(fixture_used(fixture, "host_NUMA1", "PCPU"), 1);
        assert_int_equal(fixture_used(fixture, "host_NUMA1", "VCPU"), 1);
        assert_int_equal(fixture_used(fixture, "host_NUMA1", "MEMORY_MB"), 64);
        assert_int_equal(fixture_used(fixture, "host_NUMA1", "CUSTOM_HUGEPAGES_2M"), 32);
        assert_int_equal(fixture_used(fixture, "host_NUMA0", "MEMORY_MB"), 0);
        assert_int_equal(fixture_used(fixture, "host_0000:05:00.0", "CUSTOM_NIC"), 1);
        /* a second guest on the same CPU and device is counted, and the error text names the
         * problem */
        make_domain("h", 8);
        assert_int_equal(claims_adopt(fixture->claims, &domain, &other, &error), CLAIM_E_CONFLICT);
        layout_done(&domain.layout);
        assert_text(error.text, "belongs to another claim");
        assert_layout(other, "0@1:0-1 2048 64; 0=8");
        assert_int_equal(cpu_set_count(&other->layout.held), 0);
        assert_int_equal(other->n_devices, 0);
        assert_int_equal(fixture_used(fixture, "host_NUMA1", "PCPU"), 2);
        assert_store_sane(fixture->path);
}

/* A claim of an older program gets the layout of its guest. */
static void test_check_again(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *read = NULL;
        bool changed;

        start(fixture, HOST);
        assert_int_equal(fixture_claim(fixture, "g", "VCPU=1,PCPU=1,CUSTOM_NIC=1", &claim), 0);
        assert_int_equal(claim->layout.n_cells, 0);
        make_domain("g", 8);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(
                        claims_check_again(fixture->claims, claim->id, &domain, &changed, NULL), 0);
                assert_int_equal(changed, i == 0);
        }
        layout_done(&domain.layout);
        assert_int_equal(claims_get(fixture->claims, claim->id, &read, NULL), 0);
        assert_layout(read, "0@1:0-1 2048 64; 0=8");
        assert_sql(fixture->path, "SELECT group_concat(cpu) FROM claim_pins", "8");
        assert_store_sane(fixture->path);
}

/* A guest with two claims has the layout of one of them. A check for another reason, such as a new
 * boot, gives it to neither. */
static void test_check_again_of_two_claims(void **state)
{
        static const char *const others[] = {
                "UPDATE claims SET boot_id = 'old', resize_target = id = 2",
                "UPDATE claims SET boot_id = 'old', guest = iif(id = 2, (SELECT instance_uuid"
                " FROM claims WHERE id = 1), '')",
        };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                start(fixture, HOST);
                assert_int_equal(fixture_claim(fixture, "g", "VCPU=1,PCPU=1", NULL), 0);
                if (i == 0)
                        assert_int_equal(fixture_claim_target(fixture, "g", "VCPU=1,PCPU=2", NULL),
                                         0);
                else
                        assert_int_equal(fixture_claim(fixture, "m", "VCPU=1,PCPU=2", NULL), 0);
                free(run_sql(fixture->path, others[i]));
                make_domain("g", 8);
                for (int id = 1; id <= 2; id++) {
                        _cleanup_(claim_freep) Claim *read = NULL;
                        bool changed;

                        assert_int_equal(
                                claims_check_again(fixture->claims, id, &domain, &changed, NULL),
                                0);
                        assert_true(changed);
                        assert_int_equal(claims_get(fixture->claims, id, &read, NULL), 0);
                        assert_int_equal(read->layout.n_cells, 0);
                        assert_string_equal(read->boot_id, claims_boot_id(fixture->claims));
                }
                layout_done(&domain.layout);
                assert_sql(fixture->path, "SELECT count(*) FROM claim_pins", "0");
                assert_store_sane(fixture->path);
                fixture_close(fixture);
                assert_int_equal(unlink(fixture->path), 0);
        }
}

/* A list of claims with gaps: among many without parts, next to ended ones, and far from the last
 * id. Each claim of the list has its own parts only. */
static void test_list_has_parts_of_each_claim(void **state)
{
        static const unsigned laid_out[] = { 1, 2, 40, 59 }, with_device[] = { 2, 41 };
        Fixture *fixture = *state;
        _cleanup_(claim_list_done) ClaimList list = { 0 }, ended = { 0 };
        size_t n_cells = 0, n_devices = 0;

        start(fixture, HOST);
        for (unsigned i = 0; i < 60; i++) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                bool cell = false, device = false;
                char name[8];

                for (size_t j = 0; j < ARRAY_SIZE(laid_out); j++)
                        cell |= laid_out[j] == i;
                for (size_t j = 0; j < ARRAY_SIZE(with_device); j++)
                        device |= with_device[j] == i;
                snprintf(name, sizeof(name), "%u", i);
                assert_int_equal(fixture_claim(fixture, name,
                                               cell ? "PCPU=1,MEMORY_MB=2 & nodes=1 page_size=2M"
                                               : device ? "CUSTOM_NIC=1"
                                                        : "MEMORY_MB=1",
                                               &claim),
                                 0);
                if (i >= 4 && i < 35)
                        assert_int_equal(claims_release(fixture->claims, claim->id, "done", NULL),
                                         0);
        }
        assert_int_equal(claims_list(fixture->claims, CLAIMS_LIVING, NULL, &list, NULL), 0);
        assert_int_equal(list.n_claims, 60 - 31);
        for (size_t i = 0; i < list.n_claims; i++) {
                _cleanup_(claim_freep) Claim *alone = NULL;
                _cleanup_free_ char *text = numa_fixture_format(&list.claims[i]->layout);

                assert_int_equal(claims_get(fixture->claims, list.claims[i]->id, &alone, NULL), 0);
                assert_layout(alone, text);
                assert_int_equal(alone->n_devices, list.claims[i]->n_devices);
                n_cells += list.claims[i]->layout.n_cells;
                n_devices += list.claims[i]->n_devices;
        }
        assert_int_equal(n_cells, 4);
        assert_int_equal(n_devices, 1);
        assert_int_equal(claims_list(fixture->claims, CLAIMS_ENDED, NULL, &ended, NULL), 0);
        assert_int_equal(ended.n_claims, 31);
        for (size_t i = 0; i < ended.n_claims; i++)
                assert_int_equal(ended.claims[i]->layout.n_cells + ended.claims[i]->n_devices, 0);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_claim,
                test_placed_hugepages, test_cpus_are_held_once, test_pci, test_adopt,
                test_check_again, test_check_again_of_two_claims, test_list_has_parts_of_each_claim)
