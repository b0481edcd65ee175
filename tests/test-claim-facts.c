/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/claim-facts.h"

#include <string.h>

#include "tests/host-fixture.h"

#define UUID_1 "11111111-1111-4111-8111-111111111111"
#define UUID_2 "22222222-2222-4222-8222-222222222222"

static void test_facts(void **state)
{
        DriverMdevType types[] = { MDEV_TYPE("A", NULL, "CUSTOM_A", 0) };
        const DriverConfig config = config_make(types, ARRAY_SIZE(types));
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = host_new(
                "\"taken_realtime_usec\": 7, \"devices\": ["
                "{\"name\": \"pci_0000_41_00_0\", \"address\": \"0000:41:00.0\", \"mdev_types\":"
                " [{\"id\": \"A\", \"available_instances\": 3}]},"
                "{\"name\": \"pci_0000_42_00_0\", \"address\": \"0000:42:00.0\"},"
                /* a vGPU, but no mdev can be named for it */
                "{\"name\": \"pci_0000_43_00_4\", \"is_vgpu_function\": true, \"mdev_types\":"
                " [{\"id\": \"A\", \"available_instances\": 1}]}],"
                "\"mdevs\": [{\"uuid\": \"" UUID_1 "\", \"type\": \"A\","
                " \"parent\": \"pci_0000_41_00_0\"}],"
                "\"domains\": [{\"uuid\": \"" UUID_2 "\", \"name\": \"g\", \"state\": \"paused\","
                " \"vcpus\": 3, \"memory_kib\": 1025, \"mdevs\": [\"" UUID_1 "\"]}]");
        _cleanup_(claim_facts_done) HostFacts facts = { 0 };
        const HostDomain *domain;
        Uuid mdev, other;

        assert_int_equal(uuid_from_text(UUID_1, &mdev), 0);
        assert_int_equal(uuid_from_text(UUID_2, &other), 0);
        assert_int_equal(claim_facts_make(&config, snapshot, &facts), 0);
        assert_int_equal(facts.taken_usec, snapshot->taken_realtime_usec);
        assert_int_equal(facts.n_devices, 1);
        assert_string_equal(facts.devices[0].name, "pci_0000_41_00_0");
        assert_string_equal(facts.devices[0].address, "0000:41:00.0");
        assert_string_equal(facts.devices[0].mdev_type, "A");
        assert_string_equal(facts.devices[0].resource_class, "CUSTOM_A");
        assert_int_equal(facts.devices[0].available, 3);
        assert_non_null(host_facts_find_mdev(&facts, &mdev));
        assert_null(host_facts_find_mdev(&facts, &other));
        assert_true(host_facts_mdev_in_use(&facts, &mdev));
        assert_false(host_facts_mdev_in_use(&facts, &other));
        domain = host_facts_find_domain(&facts, &other);
        assert_non_null(domain);
        assert_true(domain->running);
        assert_int_equal(domain->vcpus, 3);
        assert_int_equal(domain->memory_mb, 2); /* rounded up: what a guest has is not less */
        assert_null(host_facts_find_domain(&facts, &mdev));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_facts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
