/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/facts.h"

#include <string.h>

#include "base/clock.h"
#include "tests/fixtures/host.h"
#include "tests/fixtures/numa.h"

#define UUID_1 "11111111-1111-4111-8111-111111111111"
#define UUID_2 "22222222-2222-4222-8222-222222222222"

static void test_facts(void **state)
{
        HostMdevType types[] = { MDEV_TYPE("A", NULL, "CUSTOM_A", 0) };
        const HostConfig config = config_make(types, ARRAY_SIZE(types));
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = host_new(
                "\"devices\": ["
                "{\"name\": \"pci_0000_41_00_0\", \"address\": \"0000:41:00.0\", \"mdev_types\":"
                " [{\"id\": \"A\", \"available_instances\": 3}]},"
                "{\"name\": \"pci_0000_42_00_0\", \"address\": \"0000:42:00.0\"},"
                /* This is a vGPU function, for which no mdev can be named. */
                "{\"name\": \"pci_0000_43_00_4\", \"is_vgpu_function\": true, \"mdev_types\":"
                " [{\"id\": \"A\", \"available_instances\": 1}]}],"
                "\"mdevs\": [{\"uuid\": \"" UUID_1 "\", \"type\": \"A\","
                " \"parent\": \"pci_0000_41_00_0\"}],"
                "\"domains\": [{\"uuid\": \"" UUID_2 "\", \"name\": \"g\", \"state\": \"paused\","
                " \"vcpus\": 3, \"memory_kib\": 1025, \"mdevs\": [\"" UUID_1 "\"]}],"
                "\"instance_folders\": [\"" UUID_2 "\"]");
        _cleanup_(claim_facts_done) HostFacts facts = { 0 };
        const HostDomain *domain;
        Uuid mdev, other;

        assert_int_equal(uuid_from_text(UUID_1, &mdev), 0);
        assert_int_equal(uuid_from_text(UUID_2, &other), 0);
        snapshot->began_usec = clock_usec(CLOCK_MONOTONIC) - 60 * USEC_PER_SEC;
        assert_int_equal(claim_facts_make(&config, snapshot, snapshot, NULL, &facts), 0);
        assert_in_range(clock_usec(CLOCK_REALTIME) - facts.taken_usec, 59 * USEC_PER_SEC,
                        61 * USEC_PER_SEC);
        assert_int_equal(facts.n_devices, 1);
        assert_string_equal(facts.devices[0].name, "pci_0000_41_00_0");
        assert_string_equal(facts.devices[0].address, "0000:41:00.0");
        assert_string_equal(facts.devices[0].mdev_type, "A");
        assert_string_equal(facts.devices[0].resource_class, "CUSTOM_A");
        assert_int_equal(facts.devices[0].available, 3);
        assert_non_null(host_facts_find_mdev(&facts, &mdev));
        assert_null(host_facts_find_mdev(&facts, &other));
        assert_int_equal(facts.domains[0].n_mdevs, 1);
        assert_true(uuid_equal(&facts.domains[0].mdevs[0], &mdev));
        domain = host_facts_find_domain(&facts, &other);
        assert_non_null(domain);
        assert_true(domain->running);
        assert_int_equal(domain->vcpus, 3);
        assert_int_equal(domain->memory_mb, 2); /* rounded up, because the guest has no less */
        assert_null(host_facts_find_domain(&facts, &mdev));
        assert_true(host_facts_has_folder(&facts, &other));
        assert_false(host_facts_has_folder(&facts, &mdev));
        assert_null(facts.folders_unknown);
}

static void test_folders_that_cannot_be_read(void **state)
{
        const HostConfig config = config_make(NULL, 0);
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = host_new("\"devices\": []");
        _cleanup_(claim_facts_done) HostFacts facts = { 0 };

        error_setf(&snapshot->folders_error, EIO, "it hangs");
        assert_int_equal(claim_facts_make(&config, snapshot, snapshot, NULL, &facts), 0);
        assert_string_equal(facts.folders_unknown, "it hangs");
}

/* A reload frees the configuration long before the next poll ends. */
static void test_the_configuration_goes_first(void **state)
{
        char type[] = "A", class[] = "CUSTOM_A";
        HostMdevType types[] = { MDEV_TYPE(type, NULL, class, 0) };
        const HostConfig config = config_make(types, ARRAY_SIZE(types));
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = host_new(
                "\"devices\": [{\"name\": \"pci_0000_41_00_0\", \"address\": \"0000:41:00.0\","
                " \"mdev_types\": [{\"id\": \"A\", \"available_instances\": 3}]}]");
        _cleanup_(claim_facts_done) HostFacts facts = { 0 };

        assert_int_equal(claim_facts_make(&config, snapshot, snapshot, NULL, &facts), 0);
        strcpy(type, "?");
        strcpy(class, "?");
        assert_string_equal(facts.devices[0].mdev_type, "A");
        assert_string_equal(facts.devices[0].resource_class, "CUSTOM_A");
}

/* C3, C7: cells with CPUs and pages, and devices that are assigned as a whole. */
static void test_host(void **state)
{
        HostConfig config = config_make(NULL, 0);
        char *reserved[] = { (char *)"node:0,size:2048,count:16", NULL };
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = host_new(
                "\"online_cpus\": \"0-3\", \"cells\": [{\"id\": 0, \"memory_kib\": 4194304,"
                " \"cpus\": [{\"id\": 3, \"socket_id\": 1, \"siblings\": \"1,3\"},"
                "  {\"id\": 1, \"socket_id\": 1, \"siblings\": \"1,3\"}],"
                " \"pages\": [{\"size_kib\": 2048, \"count\": 64}, {\"size_kib\": 4, \"count\": "
                "9}]},"
                " {\"id\": 4, \"cpus\": [{\"id\": 0, \"socket_id\": 0}, {\"id\": 2, \"socket_id\": "
                "1}]}],"
                " \"devices\": [{\"name\": \"pci_0000_05_00_0\", \"address\": \"0000:05:00.0\","
                " \"vendor_id\": 32902, \"product_id\": 5522, \"is_physical_function\": true,"
                " \"max_virtual_functions\": 2}, {\"name\": \"pci_0000_05_00_1\","
                " \"address\": \"0000:05:00.1\", \"vendor_id\": 32902, \"product_id\": 5420,"
                " \"numa_node\": 4, \"physical_function\": \"0000:05:00.0\"}]");
        _cleanup_(claim_facts_done) HostFacts facts = { 0 };
        const HostCell *cell;

        config.cpu_shared_set = "0-1";
        config.cpu_dedicated_set = "3";
        config.reserved_huge_pages = reserved;
        config.report_in_placement = true;
        assert_int_equal(pci_specs_add(&config.pci_specs,
                                       "{\"vendor_id\": \"8086\", \"product_id\": \"152c\"}", NULL),
                         0);
        assert_int_equal(claim_facts_make(&config, snapshot, snapshot, NULL, &facts), 0);
        assert_int_equal(facts.small_page_kib, 4);
        assert_int_equal(facts.n_cells, 2);
        cell = host_facts_find_cell(&facts, 0);
        assert_int_equal(cell->memory_mb, 4096);
        assert_int_equal(cell->socket, 1);
        assert_int_equal(cell->cpus[0].id, 1); /* sorted by id */
        assert_true(cell->cpus[0].shared && !cell->cpus[0].dedicated);
        assert_int_equal(cell->cpus[1].core, 1);
        assert_true(cell->cpus[1].dedicated);
        assert_int_equal(cell->n_pages, 1);
        assert_int_equal(cell->pages[0].total, 64);
        assert_int_equal(cell->pages[0].reserved, 16);
        assert_string_equal(cell->pages[0].resource_class, "CUSTOM_HUGEPAGES_2M");
        assert_int_equal(host_facts_find_cell(&facts, 4)->socket,
                         -1); /* its CPUs have two sockets */
        assert_true(host_facts_lists_function(&facts, "0000:05:00.1"));
        assert_false(host_facts_lists_function(&facts, "0000:05:00.7"));
        assert_int_equal(facts.n_pci, 1);
        assert_string_equal(facts.pci[0].address, "0000:05:00.1");
        assert_string_equal(facts.pci[0].provider, "0000:05:00.0");
        assert_string_equal(facts.pci[0].resource_class, "CUSTOM_PCI_8086_152C");
        assert_int_equal(facts.pci[0].cell, 4);
        pci_specs_done(&config.pci_specs);
}

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
                _cleanup_free_ char *text = NULL, *held = NULL;
                HostDomain domain;

                assert_int_equal(
                        claim_facts_make_domain(&snapshot->domains[0], &facts.facts, &domain), 0);
                text = numa_fixture_format(&domain.layout);
                held = cpu_set_format(&domain.layout.held);
                if (strcmp(text, cases[i].layout) != 0 || strcmp(held, cases[i].held) != 0)
                        fail_msg("case %zu: \"%s\" held %s", i, text, held);
                layout_done(&domain.layout);
        }
}

TEST_MAIN(test_host, test_facts, test_folders_that_cannot_be_read,
          test_the_configuration_goes_first, test_layouts)
