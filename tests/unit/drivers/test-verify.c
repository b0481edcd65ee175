/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the findings for a valid host (GOOD) with additions, and a configuration that one
 * setter changes. A Case expects one finding, or none. */
#include "base/json.h"
#include "drivers/verify.h"
#include "tests/fixtures/host.h"

#define GOOD                                                                         \
        "'hypervisor': 'QEMU', 'arch': 'x86_64', 'online_cpus': '0-3',"              \
        " 'memory_kib': 4194304, 'disk_total_bytes': 107374182400,"                  \
        " 'cells': [{'id': 0, 'memory_kib': 4194304,"                                \
        "   'cpus': [{'id': 0, 'siblings': '0,2'}, {'id': 1, 'siblings': '1,3'},"    \
        "              {'id': 2, 'siblings': '0,2'}, {'id': 3, 'siblings': '1,3'}]," \
        "   'pages': [{'size_kib': 4, 'count': 9}, {'size_kib': 2048, 'count': 8}]}],"
#define EMULATORS "'emulators': [{'arch': 'x86_64', 'machine': 'q35'}]"
#define GPU                                                                         \
        ", 'devices': [{'name': 'pci_0000_41_00_0', 'address': '0000:41:00.0',"     \
        " 'mdev_types': [{'id': 'A', 'available_instances': 1}]}],"                 \
        " 'mdevs': [{'uuid': '11111111-1111-4111-8111-111111111111', 'type': 'A',"  \
        "             'parent': 'pci_0000_41_00_0'},"                               \
        "            {'uuid': '22222222-1111-4111-8111-111111111111', 'type': 'A'," \
        "             'parent': 'pci_0000_41_00_0'}]"

#define FULL_GPU                                                                \
        ", 'devices': [{'name': 'pci_0000_41_00_0', 'address': '0000:41:00.0'," \
        " 'mdev_types': [{'id': 'A', 'available_instances': 1},"                \
        "                  {'id': 'B', 'available_instances': 0}]}]"

/* members of the guest g, after its name */
#define GUEST(members)                                                                \
        ", 'domains': [{'uuid': '11111111-1111-4111-8111-111111111111', 'name': 'g'," \
        " 'state': 'running', 'vcpus': 2" members "}]"
#define PIN(vcpu, cpus) "{'vcpu': " #vcpu ", 'cpus': '" cpus "'}"

typedef struct Case {
        const char *name, *host;
        void (*set)(HostConfig *config);
        const char *level;
        const char *option; /* NULL: no finding */
        const char *words;
} Case;

static char *no_such_cell[] = { TEXT("node:4,size:2048,count:1"), NULL };
static char *two_pages[] = { TEXT("node:0,size:2048,count:2"), NULL };
static char *small_pages[] = { TEXT("node:0,size:4,count:2"), NULL };
static char *many_pages[] = { TEXT("node:0,size:2048,count:9"), NULL };
static char *right_address[] = { TEXT("0000:41:00.0"), NULL };
static char *wrong_address[] = { TEXT("0000:42:00.0"), NULL };
static HostMdevType type_a[] = { MDEV_TYPE("A", NULL, "VGPU", 0) };
static HostMdevType type_a_once[] = { MDEV_TYPE("A", NULL, "VGPU", 1) };
static HostMdevType type_a_there[] = { MDEV_TYPE("A", right_address, "VGPU", 0) };
static HostMdevType type_a_elsewhere[] = { MDEV_TYPE("A", wrong_address, "VGPU", 0) };
static HostMdevType type_b[] = { MDEV_TYPE("B", NULL, "VGPU", 0) };
static HostMdevType types_crossed[] = { MDEV_TYPE("B", right_address, "VGPU", 0) };

static void set_nothing(HostConfig *config)
{
}

#define SETTER(name, statement)                    \
        static void set_##name(HostConfig *config) \
        {                                          \
                statement;                         \
        }

SETTER(offline, config->cpu_shared_set = "0-7")
SETTER(overlap, config->cpu_shared_set = "0-1"; config->cpu_dedicated_set = "1-3")
SETTER(split_core, config->cpu_shared_set = "0-1"; config->cpu_dedicated_set = "2")
SETTER(whole_cores, config->cpu_shared_set = "0,2"; config->cpu_dedicated_set = "1,3")
SETTER(one_thread, config->cpu_dedicated_set = "1")
SETTER(offline_shared, config->cpu_shared_set = "7"; config->cpu_dedicated_set = "0-3")
SETTER(only_dedicated, config->cpu_dedicated_set = "0-3")
SETTER(memory, config->reserved_host_memory_mb = 5000)
SETTER(disk, config->reserved_host_disk_mb = 1024 * 101)
SETTER(cpus, config->reserved_host_cpus = 5)
SETTER(ratio, config->file_backed_memory = 1024; config->ram_allocation_ratio = 2)
SETTER(numa, config->numa_in_placement = true)
SETTER(no_such_cell, config->reserved_huge_pages = no_such_cell)
SETTER(flat_pages, config->reserved_huge_pages = two_pages)
SETTER(numa_pages, config->reserved_huge_pages = two_pages; config->numa_in_placement = true)
SETTER(small_pages, config->reserved_huge_pages = small_pages; config->numa_in_placement = true)
SETTER(many_pages, config->reserved_huge_pages = many_pages; config->numa_in_placement = true)
SETTER(tpm, config->swtpm_enabled = true)
SETTER(pool, config->images_storage_pool = "guests")
SETTER(lvm, config->images_type = HOST_IMAGES_LVM)
SETTER(rbd, config->images_type = HOST_IMAGES_RBD)
SETTER(type_a, config->mdev_types = type_a; config->n_mdev_types = 1)
SETTER(type_a_once, config->mdev_types = type_a_once; config->n_mdev_types = 1)
SETTER(type_a_there, config->mdev_types = type_a_there; config->n_mdev_types = 1)
SETTER(type_a_elsewhere, config->mdev_types = type_a_elsewhere; config->n_mdev_types = 1)
SETTER(type_b, config->mdev_types = type_b; config->n_mdev_types = 1)
SETTER(types_crossed, config->mdev_types = types_crossed; config->n_mdev_types = 1)

/* Returns the findings of a host, which the caller frees, and one of their texts. */
static json_t *find(const HostConfig *config, const Snapshot *host)
{
        json_t *document = verify_host(config, host);

        assert_non_null(document);
        return document;
}

static size_t count(const json_t *document)
{
        return json_array_size(json_object_get(document, "findings"));
}

static const char *get(const json_t *document, size_t i, const char *key)
{
        const json_t *finding = json_array_get(json_object_get(document, "findings"), i);
        const char *text = json_string_value(json_object_get(finding, key));

        return text ? text : "nothing";
}

static const Case cases[] = {
        { "nothing", GOOD EMULATORS, set_nothing, NULL, NULL, NULL },
        { "whole cores", GOOD EMULATORS, set_whole_cores, NULL, NULL, NULL },
        { "a thread for the host", GOOD EMULATORS, set_one_thread, NULL, NULL, NULL },
        { "cells", GOOD EMULATORS, set_numa, NULL, NULL, NULL },
        { "pages", GOOD EMULATORS, set_numa_pages, NULL, NULL, NULL },
        { "gpu", GOOD EMULATORS GPU, set_type_a, NULL, NULL, NULL },
        { "gpu by address", GOOD EMULATORS GPU, set_type_a_there, NULL, NULL, NULL },
        { "gpu, nothing enabled", GOOD EMULATORS GPU, set_nothing, NULL, NULL, NULL },

        { "CPUs that are not there", GOOD EMULATORS, set_offline, "error",
          "[compute] cpu_shared_set", "CPU 4-7" },
        { "CPUs in both sets", GOOD EMULATORS, set_overlap, "error", "[compute] cpu_shared_set",
          "in common" },
        { "a core in both sets", GOOD EMULATORS, set_split_core, "warning",
          "[compute] cpu_dedicated_set", "CPUs 0 and 2 are threads of one core" },
        /* C3, last row: guests beside which Nova does not start */
        { "pinned to dedicated CPUs",
          GOOD EMULATORS GUEST(", 'pins': [" PIN(0, "1") "," PIN(1, "3") "]"), set_whole_cores, 0,
          NULL, NULL },
        { "floats over shared CPUs",
          GOOD EMULATORS GUEST(", 'pins': [" PIN(0, "0,2") "," PIN(1, "0,2") "]"), set_whole_cores,
          0, NULL, NULL },
        { "floats as the domain does", GOOD EMULATORS GUEST(", 'cpus': '0,2'"), set_whole_cores, 0,
          NULL, NULL },
        { "of both kinds", GOOD EMULATORS GUEST(", 'cpus': '0,2', 'pins': [" PIN(1, "3") "]"),
          set_whole_cores, NULL, NULL, NULL },
        { "no dedicated CPUs: anything goes", GOOD EMULATORS GUEST(", 'pins': [" PIN(0, "1") "]"),
          set_nothing, NULL, NULL, NULL },
        { "pinned elsewhere", GOOD EMULATORS GUEST(", 'pins': [" PIN(0, "1") "," PIN(1, "2") "]"),
          set_whole_cores, "warning", "[compute] cpu_dedicated_set",
          "CPU 1 of the guest g is pinned to CPU 2" },
        { "not pinned, nothing shared", GOOD EMULATORS GUEST(""), set_only_dedicated, "warning",
          "[compute] cpu_shared_set", "there are no shared CPUs" },
        { "one CPU not pinned, nothing shared", GOOD EMULATORS GUEST(", 'pins': [" PIN(0, "1") "]"),
          set_only_dedicated, "warning", "[compute] cpu_shared_set", "there are no shared CPUs" },
        { "floats over all", GOOD EMULATORS GUEST(""), set_whole_cores, "warning",
          "[compute] cpu_shared_set", "can run on dedicated CPUs" },
        { "cannot be read", GOOD EMULATORS GUEST(", 'unread': true"), set_whole_cores, 0, NULL,
          NULL },
        { "floats over all, no shared CPU is online", GOOD EMULATORS GUEST(""), set_offline_shared,
          "warning", "[compute] cpu_shared_set", "can run on dedicated CPUs" },
        { "floats over one too many",
          GOOD EMULATORS GUEST(", 'pins': [" PIN(0, "0-2") "," PIN(1, "0,2") "]"), set_whole_cores,
          "warning", "[compute] cpu_shared_set", "can run on dedicated CPUs" },
        { "reserved memory", GOOD EMULATORS, set_memory, "error", "reserved_host_memory_mb",
          "has only 4096" },
        { "reserved disk", GOOD EMULATORS, set_disk, "error", "reserved_host_disk_mb",
          "has only 100" },
        { "reserved CPUs", GOOD EMULATORS, set_cpus, "error", "reserved_host_cpus", "has only 4" },
        { "memory in files", GOOD EMULATORS, set_ratio, "error", "[libvirt] file_backed_memory",
          "ram_allocation_ratio" },
        { "no pool", GOOD EMULATORS, set_lvm, "error", "[libvirt] images_type",
          "images_storage_pool" },
        { "no cells",
          "'online_cpus': '0', 'disk_total_bytes': 107374182400, 'memory_kib': 4194304, " EMULATORS,
          set_numa, "error", "[compute] numa_in_placement", "reports no NUMA cells" },
        { "too many pages", GOOD EMULATORS, set_many_pages, "error", "reserved_huge_pages",
          "has only 8" },
        { "pages of no cell", GOOD EMULATORS, set_no_such_cell, "warning", "reserved_huge_pages",
          "cell 4 has no pages of 2048 KiB" },
        { "ordinary pages", GOOD EMULATORS, set_small_pages, "warning", "reserved_huge_pages",
          "ordinary pages are memory" },
        { "pages without cells", GOOD EMULATORS, set_flat_pages, "warning", "reserved_huge_pages",
          "numa_in_placement = true" },
        { "no disk", "'online_cpus': '0', 'memory_kib': 4194304, " EMULATORS, set_nothing,
          "warning", "instances_path", "DISK_GB is not reported" },
        { "empty pool", "'online_cpus': '0', 'memory_kib': 4194304, " EMULATORS, set_pool,
          "warning", "[libvirt] images_storage_pool", "guests" },
        { "no monitor", "'online_cpus': '0', 'memory_kib': 4194304, " EMULATORS, set_rbd, "warning",
          "[libvirt] images_type", "Ceph cluster" },
        { "no emulator", GOOD "'emulators': []", set_nothing, "warning", "[libvirt] virt_type",
          "kvm" },
        { "no TPM", GOOD EMULATORS, set_tpm, "warning", "[libvirt] swtpm_enabled",
          "Install swtpm" },
        { "more than allowed", GOOD EMULATORS GPU, set_type_a_once, "warning",
          "[mdev_A] max_instances", "2 devices of A already exist" },
        { "no device has it", GOOD EMULATORS, set_type_b, "warning", "[devices] enabled_mdev_types",
          "No device offers B" },
        { "a device left out", GOOD EMULATORS GPU, set_type_b, "warning",
          "[devices] enabled_mdev_types", "The device pci_0000_41_00_0 offers" },
        { "a device that carries another type", GOOD EMULATORS FULL_GPU, set_type_b, "warning",
          "[devices] enabled_mdev_types", "The device pci_0000_41_00_0 cannot offer B" },
        { "wrong address", GOOD EMULATORS GPU, set_type_a_elsewhere, "warning",
          "[mdev_A] device_addresses", "device 0000:42:00.0 does not exist" },
        { "wrong type", GOOD EMULATORS GPU, set_types_crossed, "warning",
          "[devices] enabled_mdev_types", "No device offers B" },
};

static void test_table(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *host = host_new(cases[i].host);
                _cleanup_json_ json_t *document = NULL;
                HostConfig config = config_make(NULL, 0);
                bool found = false;

                cases[i].set(&config);
                document = find(&config, host);
                if (!cases[i].option && count(document) > 0)
                        fail_msg("%s: %s", cases[i].name, get(document, 0, "text"));
                for (size_t j = 0; cases[i].option && j < count(document); j++)
                        found |= strcmp(get(document, j, "level"), cases[i].level) == 0 &&
                                 strcmp(get(document, j, "option"), cases[i].option) == 0 &&
                                 strstr(get(document, j, "text"), cases[i].words);
                if (cases[i].option && !found)
                        fail_msg("%s: %s", cases[i].name, get(document, 0, "text"));
        }
}

/* LP 2126751: eight providers of one class are too many for requests of several groups */
static void test_like_pci_siblings(void **state)
{
        static const struct {
                unsigned n;
                const char *specs, *words; /* NULL: no finding */
        } hosts[] = {
                { 7, "{'vendor_id': '10de'}", NULL },
                { 8, "{'vendor_id': '10de'}", "8 providers have CUSTOM_PCI_10DE_1EB8" },
                { 8,
                  "[{'address': '0000:81:00.0', 'resource_class': 'PGPU'}, {'vendor_id': '10de'}]",
                  NULL },
                { 8, "{'vendor_id': '10de', 'physical_network': 'net'}", "No device" },
                { 8, "{'vendor_id': '8086'}", "No device of this host matches" },
                { 1, "[{'vendor_id': '8086'}, {'vendor_id': '10de'}]",
                  "Entry 1 of 2 matches no device" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
                _cleanup_json_ json_t *document = NULL;
                HostConfig config = config_make(NULL, 0);
                char text[4096] = GOOD EMULATORS ", 'devices': [";

                for (unsigned j = 0; j < hosts[i].n; j++)
                        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                                 "%s{'name': 'pci_0000_8%u_00_0', 'address':"
                                 " '0000:8%u:00.0', 'vendor_id': 4318, 'product_id': 7864}",
                                 j > 0 ? "," : "", j, j);
                strcat(text, "]");
                host = host_new(text);
                config.report_in_placement = true;
                assert_int_equal(specs_add(&config.pci_specs, hosts[i].specs, NULL), 0);
                document = find(&config, host);
                assert_int_equal(count(document), hosts[i].words ? 1 : 0);
                if (hosts[i].words)
                        assert_non_null(strstr(get(document, 0, "text"), hosts[i].words));
                pci_specs_done(&config.pci_specs);
        }
}

/* A function that device_spec offers needs no enabled type. It is offered without a vGPU type while
 * a domain has it. */
static void test_functions_of_device_spec(void **state)
{
        static const struct {
                const char *current, *address, *words; /* NULL: no finding */
        } rows[] = {
                { "", "0000:99:00.0", "0000:41:00.4 has no vGPU type and is not offered" },
                { "", "0000:41:00.4", NULL },
                { ", 'created_instances': 1", "0000:99:00.0", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
                _cleanup_json_ json_t *document = NULL;
                HostConfig config = config_make(type_b, 1);
                _cleanup_free_ char *text = text_format(
                        GOOD EMULATORS
                        ", 'devices': [{'name': 'pci_0000_41_00_4', 'address': '0000:41:00.4',"
                        " 'vendor_id': 4318, 'product_id': 7864, 'is_vgpu_function': true,"
                        " 'physical_function': '0000:41:00.0',"
                        " 'mdev_types': [{'id': 'A', 'available_instances': 1%s}]},"
                        " {'name': 'pci_0000_42_00_0', 'address': '0000:42:00.0',"
                        " 'mdev_types': [{'id': 'B', 'available_instances': 1}]}]" GUEST(
                                ", 'pci_addresses': ['%s']"),
                        rows[i].current, rows[i].address);

                host = host_new(text);
                config.report_in_placement = true;
                assert_int_equal(specs_add(&config.pci_specs, "{'vendor_id': '10de'}", NULL), 0);
                document = find(&config, host);
                if (count(document) != (rows[i].words ? 1 : 0) ||
                    (rows[i].words && !strstr(get(document, 0, "text"), rows[i].words)))
                        fail_msg("%zu: %s", i, get(document, 0, "text"));
                pci_specs_done(&config.pci_specs);
        }
}

/* Sections and addresses without a device are named. */
static void test_sections_that_clean_nothing(void **state)
{
        char *there[] = { (char *)"0000:80:00.0", NULL };
        char *gone[] = { (char *)"0000:99:00.0", NULL };
        char *classes[] = { (char *)"CUSTOM_NVME", NULL };
        HostClean cleans[] = { { .name = (char *)"a", .device_addresses = there },
                               { .name = (char *)"b", .device_addresses = gone },
                               { .name = (char *)"c", .resource_classes = classes } };
        _cleanup_(snapshot_unrefp) Snapshot *host =
                host_new(GOOD EMULATORS ", 'devices': [{'name': 'pci_0000_80_00_0', 'address':"
                                        " '0000:80:00.0', 'vendor_id': 4318,"
                                        " 'product_id': 7864}]");
        _cleanup_json_ json_t *document = NULL;
        HostConfig config = config_make(NULL, 0);

        config.report_in_placement = true;
        config.cleans = cleans;
        config.n_cleans = ARRAY_SIZE(cleans);
        assert_int_equal(specs_add(&config.pci_specs, "{'vendor_id': '10de'}", NULL), 0);
        document = find(&config, host);
        assert_int_equal(count(document), 2);
        assert_non_null(strstr(get(document, 0, "text"), "0000:99:00.0 is not cleaned"));
        assert_non_null(strstr(get(document, 1, "text"), "belongs to the section c"));
        pci_specs_done(&config.pci_specs);
}

/* A set names its missing devices, or a contradiction. */
static void test_sets_of_devices(void **state)
{
        char *members[] = { (char *)"0000:80:00.0", (char *)"0000:99:00.0", NULL };
        char *partitions[] = { (char *)"all=1-2", NULL };
        HostShapes shapes = { 0 };
        _cleanup_(snapshot_unrefp) Snapshot *host =
                host_new(GOOD EMULATORS ", 'devices': [{'name': 'pci_0000_80_00_0', 'address':"
                                        " '0000:80:00.0', 'vendor_id': 4318,"
                                        " 'product_id': 7864}]");
        _cleanup_json_ json_t *missing = NULL, *twice = NULL;
        HostConfig config = config_make(NULL, 0);

        assert_int_equal(
                device_set_parse(&shapes.set, "hgx", "CUSTOM_GPU", members, partitions, NULL), 0);
        config.report_in_placement = true;
        config.shapes = &shapes;
        config.n_shapes = 1;
        missing = find(&config, host);
        assert_int_equal(count(missing), 1);
        assert_string_equal(get(missing, 0, "text"),
                            "[device_shapes hgx]: 1 of 2 devices are missing, first 0000:99:00.0");
        assert_int_equal(specs_add(&config.pci_specs, "{'vendor_id': '10de'}", NULL), 0);
        twice = find(&config, host);
        assert_non_null(strstr(get(twice, 0, "text"), "also matches [pci] device_spec"));
        pci_specs_done(&config.pci_specs);
        device_set_done(&shapes.set);
}

static void test_errors_come_first(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new("'online_cpus': '0'");
        _cleanup_json_ json_t *document = NULL;
        HostConfig config = config_make(type_b, 1);

        config.numa_in_placement = true;
        document = find(&config, host);
        assert_true(count(document) >= 4);
        assert_string_equal(get(document, 0, "level"), "error");
        for (size_t i = 1; i < count(document); i++)
                assert_string_equal(get(document, i, "level"), "warning");
        assert_int_equal(json_integer_value(json_object_get(document, "errors")), 1);
        assert_string_equal(json_string_value(json_object_get(document, "nodename")), "cn1");
}

/* A warning limits the names of guests in bytes, which can cut a character. */
static void test_long_names_are_cut(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
        _cleanup_json_ json_t *document = NULL;
        HostConfig config = config_make(type_b, 0);
        char name[120] = "x";
        _cleanup_free_ char *text = NULL;

        for (size_t i = 1; i + 2 < sizeof(name); i += 2)
                memcpy(name + i, "\xc3\xa9", 3); /* é */
        text = text_format(GOOD EMULATORS
                           ", 'domains': [{'uuid': '11111111-1111-4111-8111-111111111111',"
                           " 'name': '%s', 'state': 'running', 'vcpus': 1}]",
                           name);
        host = host_new(text);
        set_whole_cores(&config);
        document = find(&config, host);
        assert_int_equal(count(document), 1);
}

/* All guests of a host are one finding of each kind. */
static void test_many_guests_are_one_finding(void **state)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
        _cleanup_json_ json_t *document = NULL;
        HostConfig config = config_make(type_b, 0);
        size_t size;
        FILE *file = open_memstream(&text, &size);

        fputs(GOOD EMULATORS ", 'domains': [", file);
        for (unsigned i = 0; i < 490; i++)
                fprintf(file,
                        "%s{'uuid': '00000000-0000-4000-8000-%012u', 'name': 'g%u', "
                        "'state': 'running', 'vcpus': 1, 'pins': [%s]}",
                        i > 0 ? ", " : "", i, i, i % 2 ? "" : PIN(0, "2"));
        fputs("]", file);
        fclose(file);
        host = host_new(text);
        set_whole_cores(&config);
        document = find(&config, host);
        assert_int_equal(count(document), 2);
        assert_string_equal(
                get(document, 0, "text"),
                "245 guests (g0, g2, g4, g6, g8, …) are pinned to CPUs that are not in "
                "the set, CPU 0 of the first to CPU 2. Add these CPUs, or move the guests");
        assert_string_equal(get(document, 1, "text"),
                            "245 guests (g1, g3, g5, g7, g9, …) are not pinned and can run on "
                            "dedicated CPUs. Restart them on the shared CPUs, or move them");
}

TEST_MAIN(test_table, test_like_pci_siblings, test_sections_that_clean_nothing,
          test_functions_of_device_spec, test_sets_of_devices, test_long_names_are_cut,
          test_errors_come_first, test_many_guests_are_one_finding)
