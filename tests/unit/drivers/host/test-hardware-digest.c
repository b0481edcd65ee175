/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Digests of hosts that differ from one host in one part. */

#include "drivers/host/hardware-digest.h"
#include "tests/fixtures/json.h"

/* A host with two equal GPUs, a vGPU and a guest. A case replaces one part of this text. */
static const char host[] =
        "{'format': 'compute-agent-host/1', 'driver': 'libvirt', 'nodename': 'cn1',"
        " 'arch': 'x86_64', 'cpu_model': 'EPYC', 'hypervisor_version': 7002011,"
        " 'memory_kib': 4194304, 'online_cpus': '0-3', 'present_cpus': '0-7',"
        " 'cells': [{'id': 0, 'memory_kib': 4194304, 'cpus': [{'id': 0}],"
        "   'pages': [{'size_kib': 4, 'count': 524288}]}],"
        " 'cpu_features': ['avx', 'sse2'],"
        " 'devices': [{'name': 'pci_0000_41_00_0', 'driver': 'nvidia', 'address': '0000:41:00.0',"
        "   'vendor_id': 4318, 'product_id': 5053, 'class_code': 197120, 'numa_node': 0,"
        "   'mdev_types': [{'id': 'nvidia-35', 'name': '', 'available_instances': 3}]},"
        "  {'name': 'pci_0000_42_00_0', 'address': '0000:42:00.0',"
        "   'vendor_id': 4318, 'product_id': 5054, 'class_code': 197120, 'numa_node': 0}]}";

/* Makes the digest of the host with one part replaced; from NULL: none. */
static Digest make_digest(const char *from, const char *to)
{
        char text[2048];
        const char *at = from ? strstr(host, from) : NULL;
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *json = NULL;
        Digest digest;
        Error error = ERROR_NULL;

        assert_true(!from || at);
        snprintf(text, sizeof(text), "%.*s%s%s", at ? (int)(at - host) : 0, host, at ? to : "",
                 at ? at + strlen(from) : host);
        json = fixture_json(text);
        if (snapshot_from_json(json, &snapshot, &error) < 0)
                fail_msg("%s: %s", to, error.text);
        assert_int_equal(hardware_make_digest(snapshot, &digest), 0);
        return digest;
}

static void test_parts(void **state)
{
        static const struct {
                const char *from, *to;
                bool equal;
        } cases[] = {
                { "cn1", "cn2", true },
                { "7002011", "8000000", true },
                { "'driver': 'nvidia', 'address'", "'driver': 'vfio-pci', 'address'", true },
                { "'driver': 'nvidia', 'address'", "'serial': '17', 'address'", true },
                { "'pci_0000_41_00_0', 'driver': 'nvidia', 'address': '0000:41:00.0'",
                  "'pci_0000_81_00_0', 'driver': 'nvidia', 'address': '0000:81:00.0'", true },
                { "'available_instances': 3", "'available_instances': 0", true },
                { "'memory_kib': 4194304, 'online", "'memory_kib': 4194000, 'online", true },
                { "'count': 524288", "'count': 1", true },
                { "'online_cpus': '0-3'", "'online_cpus': '0'", true },
                { "'present_cpus': '0-7'", "'present_cpus': '0-8'", false },
                { "'memory_kib': 4194304, 'online", "'memory_kib': 8388608, 'online", false },
                { "'memory_kib': 4194304, 'cpus", "'memory_kib': 2097152, 'cpus", false },
                { "EPYC", "EPYC-Rome", false },
                { "'avx', ", "", false },
                { "5054", "5053", false },
                { "'class_code': 197120, 'numa_node': 0}", "'class_code': 1, 'numa_node': 0}",
                  false },
                { "'numa_node': 0}", "'numa_node': 0, 'is_physical_function': true}", false },
                { "{'name': 'pci_0000_42_00_0'",
                  "{'name': 'pci_0000_43_00_0', 'address': '0000:43:00.0',"
                  " 'vendor_id': 4318, 'product_id': 5054, 'class_code': 197120, 'numa_node': 0},"
                  "{'name': 'pci_0000_42_00_0'",
                  false },
        };
        Digest first = make_digest(NULL, "");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Digest other = make_digest(cases[i].from, cases[i].to);

                if ((memcmp(first.hash, other.hash, sizeof(first.hash)) == 0) != cases[i].equal)
                        fail_msg("%s", cases[i].to);
        }
}

TEST_MAIN(test_parts)
