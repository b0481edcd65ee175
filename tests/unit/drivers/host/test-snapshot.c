/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the JSON form, the copies and the searches of snapshots. whole_host has every member of
 * the JSON form, so a copy that loses a member is noticed. */
#include "drivers/host/snapshot.h"
#include "tests/fixtures/json.h"

#define UUID_A "11111111-1111-4111-8111-111111111111"
#define UUID_B "22222222-2222-4222-8222-222222222222"

/* A host with every member, and lists that are not sorted. */
static const char whole_host[] =
        "{'format': 'compute-agent-host/1', 'driver': 'libvirt', 'nodename': 'cn1',"
        " 'arch': 'x86_64', 'cpu_model': 'EPYC', 'hypervisor': 'QEMU',"
        " 'hypervisor_version': 7002011, 'memory_kib': 4194304, 'online_cpus': '0-3,8',"
        " 'instance_folders': ['11111111-2222-4333-8444-555555555555'],"
        " 'disk_total_bytes': 107374182400, 'taken_realtime_usec': 1700000000000000,"
        " 'cells': [{'id': 2, 'memory_kib': 2097152},"
        "  {'id': 0, 'memory_kib': 2097152,"
        "   'cpus': [{'id': 0, 'socket_id': 0, 'siblings': '0,2'}, {'id': 2}],"
        "   'pages': [{'size_kib': 4, 'count': 524288}, {'size_kib': 2048, 'count': 8}]}],"
        " 'libvirt_version': 9000000, 'present_cpus': '0-9',"
        " 'cpu_features': ['sse2', 'avx', 'sse2'], 'problems': ['b', 'a', 'b'],"
        " 'emulators': [{'arch': 'x86_64', 'machine': 'pc-q35-7.2',"
        "   'disk_buses': ['virtio', 'sata'], 'video_models': ['vga'],"
        "   'filesystem_drivers': ['virtiofs'], 'tpm_models': ['tpm-crb'],"
        "   'tpm_backends': ['emulator'], 'tpm_versions': ['2.0'],"
        "   'secure_boot': true, 'sev': true, 'sev_es': true, 'sev_snp': true,"
        "   'sev_max_guests': 15, 'sev_es_max_guests': 500},"
        "  {'arch': 'i686', 'machine': 'pc'}],"
        " 'devices': [{'name': 'mtty_mtty'},"
        "  {'name': 'pci_0000_41_00_0', 'parent': 'computer', 'driver': 'nvidia',"
        "   'address': '0000:41:00.0', 'vendor_id': 4318, 'product_id': 5053,"
        "   'class_code': 197120, 'vendor': 'NVIDIA', 'product': 'Tesla \\\"M10\\\"',"
        "   'numa_node': 2, 'physical_function': '0000:40:00.0',"
        "   'is_physical_function': true, 'max_virtual_functions': 16, 'is_vdpa_parent': true,"
        "   'is_vgpu_function': true, 'vgpu_unread': true,"
        "   'mdev_types': [{'id': 'nvidia-35', 'name': 'GRID', 'available_instances': 3,"
        "                   'created_instances': 1}]}],"
        " 'mdevs': [{'uuid': '" UUID_B "', 'type': 'nvidia-35', 'parent': 'pci_0000_41_00_0'},"
        "           {'uuid': '" UUID_A "', 'type': 'nvidia-35', 'parent': 'pci_0000_41_00_0'}],"
        " 'domains': [{'uuid': '" UUID_B "', 'name': 'b', 'state': 'paused',"
        "  'vcpus': 2, 'memory_kib': 32768,"
        "  'mdevs': ['" UUID_A "'], 'pci_addresses': ['0000:05:00.1'],"
        "  'config_mdevs': ['" UUID_B "'], 'config_pci_addresses': ['0000:05:00.2'],"
        "  'config_cpus': '7',"
        "  'cpus': '0-3', 'emulator_cpus': '4-5', 'iothread_cpus': '6', 'memory_cells': '0,2',"
        "  'page_kib': 2048,"
        "  'pins': [{'vcpu': 1, 'cpus': '2'}, {'vcpu': 0, 'cpus': '0-1'}],"
        "  'cells': [{'id': 1, 'memory_kib': 16384, 'vcpus': '1', 'page_kib': 1048576,"
        "              'host_cells': '2'}, {'id': 0, 'vcpus': '0'}]},"
        "  {'uuid': '" UUID_A "', 'state': 'shutoff'}]}";

static int parse_host(const char *text, Snapshot **ret, Error *reterr)
{
        _cleanup_json_ json_t *json = fixture_json(text);

        return snapshot_from_json(json, ret, reterr);
}

static void test_whole_host(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
        const SnapshotDevice *gpu;

        assert_int_equal(parse_host(whole_host, &host, NULL), 0);
        assert_string_equal(host->nodename, "cn1");
        assert_int_equal(host->hypervisor_version, 7002011);
        assert_int_equal(cpu_set_count(&host->online_cpus), 5);
        assert_int_equal(host->cpu_features.n_items, 2); /* without duplicates */
        assert_true(string_set_contains(&host->cpu_features, "avx"));
        assert_int_equal(host->problems.n_items, 2);
        assert_true(string_set_contains(&host->problems, "a"));
        assert_int_equal(host->n_emulators, 2);
        assert_string_equal(host->emulators[0].arch, "i686"); /* sorted */
        assert_int_equal(host->emulators[1].sev_es_max_guests, 500);
        assert_true(string_set_contains(&host->emulators[1].disk_buses, "sata"));
        assert_int_equal(host->n_cells, 2);
        assert_int_equal(host->cells[0].id, 0); /* sorted */
        assert_true(cpu_set_contains(&host->cells[0].cpus[0].siblings, 2));
        assert_int_equal(host->cells[0].cpus[1].socket_id, -1);
        assert_int_equal(host->cells[0].pages[1].count, 8);
        assert_int_equal(host->cells[1].n_cpus, 0);

        gpu = snapshot_find_device(host, "pci_0000_41_00_0");
        assert_non_null(gpu);
        assert_true(gpu->is_pci);
        assert_string_equal(gpu->product, "Tesla \"M10\"");
        assert_string_equal(gpu->mdev_types[0].id, "nvidia-35");
        assert_int_equal(gpu->mdev_types[0].available_instances, 3);
        assert_int_equal(gpu->mdev_types[0].created_instances, 1);
        assert_true(gpu->is_vgpu_function);
        assert_false(host->devices[0].is_vgpu_function);
        assert_false(host->devices[0].is_pci);
        assert_int_equal(host->devices[0].numa_node, NUMA_NODE_NONE);
        assert_string_equal(host->devices[0].driver, "");
        assert_null(snapshot_find_device(host, "pci"));

        assert_string_equal(host->mdevs[0].uuid.text, UUID_A);
        assert_non_null(snapshot_find_mdev(host, &host->mdevs[1].uuid));
        assert_int_equal(snapshot_find_domain(host, &host->mdevs[1].uuid)->state, DOMAIN_PAUSED);
        assert_string_equal(host->domains[1].pci_addresses[0], "0000:05:00.1");
        assert_string_equal(host->domains[1].mdevs[0].text, UUID_A);
}

/* F7: the CPUs and memory of a guest, and their order. */
static void test_placement(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
        _cleanup_(snapshot_domain_done) SnapshotDomain copy = { 0 };
        const SnapshotDomain *placed;

        assert_int_equal(parse_host(whole_host, &host, NULL), 0);
        assert_int_equal(host->domains[0].n_pins + host->domains[0].n_cells, 0);
        assert_int_equal(snapshot_domain_copy(&copy, &host->domains[1]), 0);
        for (unsigned i = 0; i < 2; i++) {
                placed = i == 0 ? &host->domains[1] : &copy;
                assert_int_equal(cpu_set_count(&placed->cpus), 4);
                assert_int_equal(cpu_set_count(&placed->emulator_cpus), 2);
                assert_true(cpu_set_contains(&placed->iothread_cpus, 6));
                assert_true(cpu_set_contains(&placed->memory_cells, 2));
                assert_int_equal(placed->page_kib, 2048);
                assert_int_equal(placed->n_pins, 2);
                assert_int_equal(placed->pins[0].vcpu, 0);
                assert_int_equal(cpu_set_count(&placed->pins[0].cpus), 2);
                assert_true(cpu_set_contains(&placed->pins[1].cpus, 2));
                assert_int_equal(placed->n_cells, 2);
                assert_int_equal(placed->cells[0].id, 0);
                assert_int_equal(placed->cells[0].page_kib, 0);
                assert_int_equal(placed->cells[1].memory_kib, 16384);
                assert_int_equal(placed->cells[1].page_kib, 1048576);
                assert_true(cpu_set_contains(&placed->cells[1].vcpus, 1));
                assert_true(cpu_set_contains(&placed->cells[1].host_cells, 2));
        }
        assert_ptr_not_equal(copy.pins[0].cpus.words, host->domains[1].pins[0].cpus.words);
}

static void test_round_trip(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL, *again = NULL;
        _cleanup_json_ json_t *first = NULL, *second = NULL;

        assert_int_equal(parse_host(whole_host, &host, NULL), 0);
        first = snapshot_to_json(host);
        assert_non_null(first);
        assert_int_equal(snapshot_from_json(first, &again, NULL), 0);
        second = snapshot_to_json(again);
        assert_true(json_equal(first, second));

        /* No member of the source was lost. */
        assert_int_equal(json_object_size(first), 23);
        assert_int_equal(json_object_size(json_array_get(json_object_get(first, "devices"), 0)),
                         19);
        assert_int_equal(json_object_size(json_array_get(json_object_get(first, "domains"), 1)),
                         18);
        assert_int_equal(json_object_size(json_array_get(json_object_get(first, "emulators"), 0)),
                         14);
}

static void test_empty(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL, *read = NULL;
        _cleanup_json_ json_t *json = NULL;
        Snapshot *second;

        assert_int_equal(snapshot_new(&host), 0);
        second = snapshot_ref(host);
        assert_ptr_equal(second, host);
        assert_null(snapshot_unref(second));
        assert_null(snapshot_unref(NULL));
        assert_string_equal(host->arch, "");
        json = snapshot_to_json(host);
        assert_non_null(json);
        assert_int_equal(snapshot_from_json(json, &read, NULL), -EBADMSG); /* a host has a name */
        assert_null(read);
}

#define HOST(members)   "{'format': 'compute-agent-host/1', 'nodename': 'n'" members "}"
#define DEVICE(members) HOST(", 'devices': [{'name': 'd'" members "}]")

#define GUEST(members) \
        HOST(", 'domains': [{'uuid': '" UUID_A "', 'state': 'running', " members "}]")

static void test_hostile(void **state)
{
        static const struct {
                const char *text;
                const char *words; /* NULL: valid */
        } cases[] = {
                { HOST(""), NULL },
                { HOST(", 'unknown': {'x': [1]}"), NULL },
                { "[]", "object" },
                { "{}", "\"format\" is missing" },
                { "{'format': 1}", "format" },
                { "{'format': 'compute-agent-host/2', 'nodename': 'n'}", "format" },
                { "{'format': 'compute-agent-host/1'}", "\"nodename\" is missing" },
                { "{'format': 'compute-agent-host/1', 'nodename': ''}", "nodename: empty" },
                { HOST(", 'arch': 5"), "arch: not a string" },
                { HOST(", 'memory_kib': -1"), "memory_kib: out of range" },
                { HOST(", 'memory_kib': 1.5"), "memory_kib: not an integer" },
                { HOST(", 'memory_kib': '4'"), "memory_kib: not an integer" },
                { HOST(", 'memory_kib': null"), "memory_kib: not an integer" },
                { HOST(", 'online_cpus': '0-99999999'"), "online_cpus" },
                { HOST(", 'online_cpus': [0]"), "online_cpus: not a string" },
                { HOST(", 'cells': {}"), "cells: not an array" },
                { HOST(", 'cells': [3]"), "cells: item 0: not an object" },
                { HOST(", 'cells': [{'id': 0}, {}]"), "cells: item 1: \"id\" is missing" },
                { HOST(", 'cells': [{'id': 4294967296}]"), "cells: item 0: id: out of range" },
                { HOST(", 'cells': [{'id': 1}, {'id': 1}]"), "NUMA cell 1 is listed twice" },
                { HOST(", 'cells': [{'id': 0, 'cpus': [{'id': 65536}]}]"),
                  "cells: item 0: cpus: item 0: id: out of range" },
                { HOST(", 'cells': [{'id': 0, 'cpus': [{'id': 1, 'socket_id': -2}]}]"),
                  "socket_id: out of range" },
                { HOST(", 'cells': [{'id': 0, 'pages': [{'size_kib': 4}]}]"),
                  "\"count\" is missing" },
                { DEVICE(""), NULL },
                { DEVICE(", 'address': ''"), NULL },
                { DEVICE(", 'address': '0000:00:00.9'"), "address: not a PCI address" },
                { DEVICE(", 'physical_function': '0000:41:00.0 and more'"),
                  "physical_function: not a PCI address" },
                { DEVICE(", 'vendor_id': 4294967296"), "vendor_id: out of range" },
                { DEVICE(", 'numa_node': 2147483648"), "numa_node: out of range" },
                { DEVICE(", 'is_vdpa_parent': 1"), "is_vdpa_parent: not true or false" },
                { DEVICE(", 'driver': 'a\\u0000b'"), "" /* malformed JSON, or a NUL in it */ },
                { DEVICE(", 'mdev_types': [{'id': 't'}]"), "available_instances" },
                { DEVICE(", 'mdev_types': [{'id': '', 'available_instances': 1}]"), "id: empty" },
                { HOST(", 'devices': [{'name': 'd'}, {'name': 'd'}]"), "twice" },
                { DEVICE(", 'mdev_types': [{'id': 't', 'available_instances': 1}, {'id': 't', "
                         "'available_instances': 1}]"),
                  "Device \"d\" lists mdev type t twice" },
                { HOST(", 'mdevs': [{'uuid': 'x', 'type': 't', 'parent': 'd'}]"),
                  "mdevs: item 0: uuid: not a uuid" },
                { HOST(", 'domains': [{'uuid': '" UUID_A "', 'state': 'on'}]"),
                  "not a domain state" },
                { HOST(", 'domains': [{'uuid': '" UUID_A "', 'state': 'running', 'mdevs': ['" UUID_A
                       "', 3]}]"),
                  "mdevs: item 1: not a string" },
                { HOST(", 'domains': [{'uuid': '" UUID_A
                       "', 'state': 'running', 'pci_addresses': ['../../x']}]"),
                  "pci_addresses: item 0: not a PCI address" },
                { GUEST("'cpus': '1-'"), "cpus: Not a list" },
                { GUEST("'pins': [{'vcpu': 0}]"), "pins: item 0: \"cpus\" is missing" },
                { GUEST("'pins': [{'vcpu': 65536, 'cpus': '1'}]"), "vcpu: out of range" },
                { GUEST("'pins': [{'vcpu': 7, 'cpus': '1'}, {'vcpu': 7, 'cpus': '1'}]"),
                  UUID_A " pins guest CPU 7 twice" },
                { GUEST("'cells': [{'id': 3}, {'id': 3}]"), UUID_A " lists cell 3 twice" },
                { GUEST("'cells': [{'id': 3, 'page_kib': -2}]"), "page_kib: out of range" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
                _cleanup_json_ json_t *json = NULL;
                _cleanup_free_ char *text = strdup(cases[i].text);
                Error error = ERROR_NULL;
                int r = json_parse(with_quotes(text), strlen(text), &json, &error);

                if (r == 0)
                        r = snapshot_from_json(json, &host, &error);
                if (r != (cases[i].words ? -EBADMSG : 0))
                        fail_msg("%s: %d (%s)", cases[i].text, r, error.text);
                if (cases[i].words && !strstr(error.text, cases[i].words))
                        fail_msg("%s: \"%s\"", cases[i].text, error.text);
                if (r < 0) {
                        assert_int_equal(error.code, EBADMSG);
                        assert_null(host);
                }
        }
}

static void test_limits(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
        _cleanup_json_ json_t *json = fixture_json(HOST(""));
        _cleanup_free_ char *text = calloc(1, SNAPSHOT_TEXT_MAX + 2);
        json_t *cells = json_array();
        Error error = ERROR_NULL;

        memset(text, 'x', SNAPSHOT_TEXT_MAX + 1);
        json_object_set_new(json, "arch", json_string(text));
        assert_int_equal(snapshot_from_json(json, &host, &error), -EBADMSG);
        assert_string_equal(error.text, "arch: longer than 4096 bytes");
        text[SNAPSHOT_TEXT_MAX] = '\0';
        json_object_set_new(json, "arch", json_string(text));
        assert_int_equal(snapshot_from_json(json, &host, &error), 0);
        host = snapshot_unref(host);

        for (size_t i = 0; i <= SNAPSHOT_LIST_MAX; i++)
                json_array_append_new(cells, json_object());
        json_object_set_new(json, "cells", cells);
        assert_int_equal(snapshot_from_json(json, &host, &error), -EBADMSG);
        assert_string_equal(error.text, "cells: more than 65536 items");
}

static void test_domain_states(void **state)
{
        for (DomainState i = 0; i < _DOMAIN_STATE_MAX; i++) {
                _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
                char text[256];

                snprintf(text, sizeof(text),
                         HOST(", 'domains': [{'uuid': '" UUID_A "', 'state': '%s'}]"),
                         domain_state_to_text(i));
                assert_int_equal(parse_host(text, &host, NULL), 0);
                assert_int_equal(host->domains[0].state, i);
        }
        assert_null(domain_state_to_text(_DOMAIN_STATE_MAX));
        assert_null(domain_state_to_text(_DOMAIN_STATE_INVALID));
}

static void test_pci_addresses(void **state)
{
        static const struct {
                const char *text, *address; /* NULL: rejected */
        } cases[] = {
                { "0000:41:00.0", "0000:41:00.0" },
                { "ABCD:EF:1f.7", "abcd:ef:1f.7" },
                { "", NULL },
                { "0000:41:00", NULL },
                { "0000:41:00.8", NULL },
                { "0000:41:20.0", NULL },
                { "0000:41:00.00", NULL },
                { "10000:41:00.0", NULL },
                { "0000-41-00.0", NULL },
                { "0000:41:00.g", NULL },
                { "0000:41:00,0", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char address[PCI_ADDRESS_SIZE] = "untouched";
                int r = pci_address_parse(cases[i].text, address);

                assert_int_equal(r, cases[i].address ? 0 : -EINVAL);
                assert_string_equal(address, cases[i].address ? cases[i].address : "untouched");
        }
}

TEST_MAIN(test_whole_host, test_round_trip, test_empty, test_hostile, test_limits,
          test_domain_states, test_placement, test_pci_addresses)
