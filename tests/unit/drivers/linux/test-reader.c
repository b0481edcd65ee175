/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads a small invented host below a scratch folder: two NUMA nodes, a GPU with mdev types, a
 * network card and mtty with an mdev. Each case changes some of its files. "host" has the files,
 * "links" the symbolic links. */
#include "drivers/linux/reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fixtures/host.h"
#include "tests/fixtures/scratch-folder.h"

#define CPU        "sys/devices/system/cpu/"
#define NODE       "sys/devices/system/node/"
#define PCI        "sys/bus/pci/devices/"
#define GPU        "0000:41:00.0"
#define NIC        "0000:8a:00.0"
#define NIC_FOLDER "sys/devices/pci0000:8a/" NIC
#define UUID       "2a1f4b9e-6c41-4f0b-9a53-8f8f0f6c1d01"

typedef struct File {
        const char *name, *text;
} File;

static const File host[] = {
        { CPU "online", "0-3\n" },
        { CPU "present", "0-4\n" },
        { CPU "cpu0/topology/physical_package_id", "0\n" },
        { CPU "cpu0/topology/thread_siblings_list", "0,2\n" },
        { CPU "cpu2/topology/physical_package_id", "0\n" },
        { CPU "cpu2/topology/thread_siblings_list", "0,2\n" },
        { NODE "online", "0,2\n" },
        { NODE "node0/cpulist", "0,2\n" },
        { NODE "node0/meminfo", "Node 0 MemTotal:       4096 kB\nNode 0 MemFree: 1 kB\n" },
        { NODE "node0/hugepages/hugepages-2048kB/nr_hugepages", "1\n" },
        { NODE "node2/cpulist", "1,3\n" },
        { NODE "node2/meminfo", "Node 2 MemTotal:\t8192 kB\n" },
        { "sys/devices/gpu/uevent", "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:13BD\n" },
        { "sys/devices/gpu/numa_node", "2\n" },
        { "sys/devices/gpu/mdev_supported_types/nvidia-35/available_instances", "3\n" },
        { "sys/devices/gpu/mdev_supported_types/nvidia-35/name", "GRID M10-0B\n" },
        { "sys/devices/gpu/mdev_supported_types/nvidia-35/device_api", "vfio-pci\n" },
        { NIC_FOLDER "/uevent", "PCI_CLASS=20000\nPCI_ID=8086:1572\n" },
        { NIC_FOLDER "/numa_node", "-1\n" },
        { NIC_FOLDER "/sriov_totalvfs", "64\n" },
        { "sys/devices/virtual/mtty/mtty/mdev_supported_types/mtty-1/available_instances", "24\n" },
        { "proc/cpuinfo",
          "processor\t: 0\nmodel\t\t: 1\nmodel name\t: CPU \x1b[2J@ 2 GHz\nflags\t\t: fpu sse4_1 "
          "sse4_2 pni sha_ni avx512_vnni avx512_vpopcntdq avx512vl\nbugs\t\t:\n\nflags\t: no\n" },
};

static const File links[] = {
        { PCI GPU, "../../../devices/pci0000:40/0000:40:01.1/" GPU },
        { "sys/devices/pci0000:40/0000:40:01.1/" GPU, "../../gpu" },
        { PCI NIC, "../../../devices/pci0000:8a/" NIC },
        { "sys/devices/gpu/subsystem", "../../bus/pci" },
        { "sys/class/mdev_bus/" GPU, "../../devices/pci0000:40/0000:40:01.1/" GPU },
        { "sys/class/mdev_bus/mtty", "../../devices/virtual/mtty/mtty" },
        { "sys/devices/virtual/mtty/mtty/subsystem", "../../../../class/mtty" },
        { "sys/devices/virtual/mtty/mtty/" UUID "/mdev_type", "../mdev_supported_types/mtty-1" },
        { "sys/bus/mdev/devices/" UUID, "../../../devices/virtual/mtty/mtty/" UUID },
};

/* Makes the host. The caller removes the folder. */
static char *host_make(void)
{
        char *folder = scratch_folder_make();

        for (size_t i = 0; i < ARRAY_SIZE(host); i++)
                scratch_write(folder, host[i].name, host[i].text);
        for (size_t i = 0; i < ARRAY_SIZE(links); i++)
                scratch_link(folder, links[i].name, links[i].text);
        return folder;
}

/* Reads the host below a folder. Returns NULL with an error text if the poll fails. */
static Snapshot *read_host(const char *folder, const Snapshot *last, Error *error)
{
        _cleanup_free_ char *sys = scratch_path(folder, "sys"),
                            *proc = scratch_path(folder, "proc");
        LinuxReader reader = { .sys = sys, .proc = proc, .last = last, .quiet = last };
        Snapshot *snapshot;

        assert_int_equal(snapshot_new(&snapshot), 0);
        reader.snapshot = snapshot;
        if (linux_read_host(&reader, error) < 0 || linux_read_devices(&reader, error) < 0 ||
            snapshot_seal(snapshot, error) < 0)
                return snapshot_unref(snapshot);
        return snapshot;
}

static void test_whole_host(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = host_make();
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        Error error = ERROR_NULL;
        const SnapshotDevice *gpu, *nic, *mtty;

        snapshot = read_host(folder, NULL, &error);
        if (!snapshot)
                fail_msg("%s", error.text);
        if (snapshot->problems.n_items > 0)
                fail_msg("%s", snapshot->problems.items[0]);
        assert_int_equal(cpu_set_count(&snapshot->online_cpus), 4);
        assert_int_equal(cpu_set_count(&snapshot->present_cpus), 5);
        assert_int_equal(snapshot->memory_kib, 12288);
        assert_int_equal(snapshot->n_cells, 2);
        assert_int_equal(snapshot->cells[1].id, 2);
        assert_int_equal(snapshot->cells[0].n_cpus, 2);
        assert_int_equal(cpu_set_count(&snapshot->cells[0].cpus[1].siblings), 2);
        /* the kernel reports nothing about this CPU */
        assert_int_equal(cpu_set_count(&snapshot->cells[1].cpus[0].siblings), 1);
        assert_int_equal(snapshot->cells[1].cpus[0].socket_id, -1);
        assert_int_equal(snapshot->cells[0].n_pages, 2);
        assert_int_equal(snapshot->cells[0].pages[0].count * snapshot->cells[0].pages[0].size_kib,
                         2048);
        assert_string_equal(snapshot->cpu_model, "CPU ?[2J@ 2 GHz");
        assert_int_equal(snapshot->cpu_features.n_items, 8);
        assert_true(string_set_contains(&snapshot->cpu_features, "sse4.1"));
        assert_true(string_set_contains(&snapshot->cpu_features, "sha-ni"));
        assert_true(string_set_contains(&snapshot->cpu_features, "avx512vnni"));
        assert_true(string_set_contains(&snapshot->cpu_features, "avx512-vpopcntdq"));

        assert_int_equal(snapshot->n_devices, 3);
        gpu = snapshot_find_device(snapshot, "pci_0000_41_00_0");
        nic = snapshot_find_device(snapshot, "pci_0000_8a_00_0");
        mtty = snapshot_find_device(snapshot, "mtty_mtty");
        assert_true(gpu && nic && mtty);
        assert_string_equal(gpu->parent, "pci_0000_40_01_1");
        assert_string_equal(gpu->driver, "nvidia");
        assert_int_equal(gpu->class_code, 0x030200);
        assert_int_equal(gpu->vendor_id, 0x10de);
        assert_int_equal(gpu->product_id, 0x13bd);
        assert_int_equal(gpu->numa_node, 2);
        assert_int_equal(gpu->n_mdev_types, 1);
        assert_int_equal(gpu->mdev_types[0].available_instances, 3);
        assert_string_equal(gpu->mdev_types[0].name, "GRID M10-0B");
        assert_string_equal(nic->driver, "");
        assert_int_equal(nic->numa_node, NUMA_NODE_NONE);
        assert_int_equal(nic->max_virtual_functions, 64);
        assert_false(mtty->is_pci);
        assert_string_equal(mtty->mdev_types[0].id, "mtty-1");
        assert_string_equal(mtty->mdev_types[0].name, "");
        assert_int_equal(snapshot->n_mdevs, 1);
        assert_string_equal(snapshot->mdevs[0].parent, "mtty_mtty");
        assert_string_equal(snapshot->mdevs[0].type, "mtty-1");
}

/* A kernel without NUMA, hugepages, PCI and mediated devices. */
static void test_small_host(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;

        scratch_write(folder, CPU "online", "0-1\n");
        snapshot = read_host(folder, NULL, NULL);
        assert_non_null(snapshot);
        assert_int_equal(snapshot->n_cells, 1);
        assert_int_equal(snapshot->cells[0].n_cpus, 2);
        assert_true(snapshot->memory_kib > 0);
        assert_int_equal(snapshot->memory_kib, snapshot->cells[0].memory_kib);
        assert_int_equal(snapshot->n_devices + snapshot->problems.n_items, 0);
}

/* Kernels for POWER, s390x and RISC-V report no sockets, which is not a problem. */
static void test_a_cpu_without_socket(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = host_make();
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;

        scratch_write(folder, CPU "cpu0/topology/physical_package_id", "-1\n");
        snapshot = read_host(folder, NULL, NULL);
        assert_non_null(snapshot);
        assert_int_equal(snapshot->problems.n_items, 0);
        assert_int_equal(snapshot->cells[0].cpus[0].socket_id, -1);
}

/* An offline CPU is in the cell whose node has a link to it. It is a core of its own. */
static void test_offline_cpus_are_in_their_cells(void **state)
{
        static const struct {
                const char *link;
                size_t n_cpus;
        } cases[] = {
                { NULL, 2 },
                { NODE "node0/cpu4", 3 },
                { NODE "node2/cpu4", 2 }, /* this node has no links to the CPUs of its cell */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = host_make();
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL, *quiet = NULL;

                scratch_link(folder, NODE "node0/cpu0", "../../cpu/cpu0");
                scratch_link(folder, NODE "node0/cpu2", "../../cpu/cpu2");
                if (cases[i].link)
                        scratch_link(folder, cases[i].link, "../../cpu/cpu4");
                snapshot = read_host(folder, NULL, NULL);
                assert_non_null(snapshot);
                assert_int_equal(snapshot->problems.n_items, 0);
                assert_int_equal(snapshot->cells[0].n_cpus, cases[i].n_cpus);
                assert_int_equal(snapshot->cells[1].n_cpus, 2);
                if (cases[i].n_cpus == 3) {
                        assert_int_equal(snapshot->cells[0].cpus[2].id, 4);
                        assert_int_equal(snapshot->cells[0].cpus[2].socket_id, -1);
                        assert_int_equal(cpu_set_count(&snapshot->cells[0].cpus[2].siblings), 1);
                }
                quiet = read_host(folder, snapshot, NULL);
                assert_non_null(quiet);
                assert_int_equal(quiet->cells[0].n_cpus, cases[i].n_cpus);
                assert_int_equal(cpu_set_count(&quiet->cells[0].cpus[1].siblings), 2);
        }
}

/* A bad file causes a problem that names it. With expected words it fails the poll. */
static void test_bad_files(void **state)
{
        static const struct {
                const char *name, *text;
                bool fails;
                const char *words;
        } cases[] = {
                { CPU "online", "", true, "cpu/online has unexpected content" },
                { CPU "online", "x", true, "cpu/online has unexpected content" },
                { CPU "online", "0-99999999999", true, "cpu/online" },
                { CPU "present", "x", false, "cpu/present has unexpected content" },
                { CPU "cpu0/topology/physical_package_id", "-2", false, "physical_package_id" },
                { CPU "cpu0/topology/thread_siblings_list", "5-4", false, "thread_siblings_list" },
                { NODE "online", "0-", true, "node/online" },
                { NODE "node0/cpulist", "a", true, "node0/cpulist" },
                { NODE "node2/meminfo", "MemTotal: 99999999999999999999 kB", true,
                  "node2/meminfo" },
                { NODE "node2/meminfo", "MemTotal: 4 MB", true, "node2/meminfo" },
                { NODE "node2/meminfo", "", true, "node2/meminfo" },
                { NODE "node0/hugepages/hugepages-2048kB/nr_hugepages", "-1", true,
                  "nr_hugepages" },
                { NODE "node0/hugepages/hugepages-2048kB/nr_hugepages", "9223372036854775807", true,
                  "nr_hugepages" },
                { NIC_FOLDER "/uevent", "", false, NIC "/uevent" },
                { NIC_FOLDER "/uevent", "PCI_CLASS=20000\nPCI_ID=8086", false, NIC "/uevent" },
                { NIC_FOLDER "/uevent", "PCI_CLASS=1020000\nPCI_ID=8086:1", false, NIC "/uevent" },
                { NIC_FOLDER "/numa_node", "4294967296", false, NIC "/numa_node" },
                { NIC_FOLDER "/sriov_totalvfs", "65536", false, NIC "/sriov_totalvfs" },
                { NIC_FOLDER "/physfn", "a file", false, NIC "/physfn" },
                { "sys/devices/gpu/mdev_supported_types/nvidia-35/available_instances", "3 4",
                  false, "nvidia-35/available_instances" },
                { "sys/devices/gpu/mdev_supported_types/b\xff/available_instances", "3", false,
                  "mdev_supported_types/b? has unexpected" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = host_make();
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
                Error error = ERROR_NULL;
                const char *words;

                scratch_write(folder, cases[i].name, cases[i].text);
                snapshot = read_host(folder, NULL, &error);
                words = !snapshot                        ? error.text
                        : snapshot->problems.n_items > 0 ? snapshot->problems.items[0]
                                                         : "";
                if (!snapshot != cases[i].fails || !strstr(words, cases[i].words) ||
                    (snapshot && snapshot->problems.n_items != 1))
                        fail_msg("case %zu (%s): %s", i, cases[i].name, words);
        }
}

/* Files that are missing or vanish, and devices that guests cannot have, are not reported. */
static void test_others(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = host_make();
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;

        scratch_link(folder, PCI "0000:01:00.0", "../gone");
        scratch_link(folder, PCI "0000:02:00.0", "0000:02:00.0");
        scratch_write(folder, PCI "10000:03:00.0/uevent", "PCI_CLASS=20000\nPCI_ID=8086:1572\n");
        scratch_write(folder, PCI "x/uevent", "");
        scratch_link(folder, "sys/class/mdev_bus/0000:04:00.0", "../gone");
        scratch_link(folder, "sys/class/mdev_bus/y", "y");
        scratch_link(folder, "sys/bus/mdev/devices/2a1f4b9e-6c41-4f0b-9a53-8f8f0f6c1d03",
                     "../../../devices/odd");
        scratch_link(folder, "sys/devices/odd/mdev_type", "/");
        scratch_link(folder, "sys/bus/mdev/devices/no-uuid", "../gone");
        scratch_link(folder, "sys/bus/mdev/devices/2a1f4b9e-6c41-4f0b-9a53-8f8f0f6c1d02",
                     "../gone");
        snapshot = read_host(folder, NULL, NULL);
        assert_non_null(snapshot);
        assert_int_equal(snapshot->n_devices, 3);
        assert_int_equal(snapshot->n_mdevs, 1);
        for (size_t i = 0; i < snapshot->problems.n_items; i++)
                assert_true(
                        strstr(snapshot->problems.items[i], "symbolic links") ||
                        strstr(snapshot->problems.items[i], "mdev_type has unexpected content"));
}

static int numa_node(const Snapshot *snapshot, const char *device)
{
        return snapshot_find_device(snapshot, device)->numa_node;
}

/* Without an event the known parts are not read again, except those that change silently. */
static void test_quiet(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = host_make();
        _cleanup_(snapshot_unrefp) Snapshot *first = NULL, *second = NULL, *third = NULL;

        first = read_host(folder, NULL, NULL);
        scratch_write(folder, NIC_FOLDER "/numa_node", "2\n");
        scratch_write(folder, "sys/devices/gpu/numa_node", "0\n");
        scratch_write(folder, CPU "cpu0/topology/physical_package_id", "1\n");
        scratch_write(folder, "sys/devices/gpu/mdev_supported_types/nvidia-35/available_instances",
                      "2\n");
        scratch_write(folder, NODE "node0/hugepages/hugepages-2048kB/nr_hugepages", "2\n");
        second = read_host(folder, first, NULL);
        third = read_host(folder, NULL, NULL);
        assert_true(first && second && third);
        assert_int_equal(numa_node(second, "pci_0000_8a_00_0"), NUMA_NODE_NONE);
        assert_int_equal(numa_node(third, "pci_0000_8a_00_0"), 2);
        assert_int_equal(numa_node(second, "pci_0000_41_00_0"), 0);
        assert_int_equal(
                snapshot_find_device(second, "pci_0000_41_00_0")->mdev_types[0].available_instances,
                2);
        assert_int_equal(second->cells[0].cpus[0].socket_id, 0);
        assert_int_equal(third->cells[0].cpus[0].socket_id, 1);
        assert_int_equal(second->cells[0].pages[1].count, 2);
}

#define AVAILABLE  "sys/devices/virtual/mtty/mtty/mdev_supported_types/mtty-1/available_instances"
#define INSTANCES  24
#define POLLS_RACE 200
#define OTHERS     30 /* further parents, so that a poll takes longer than the life of an mdev */

/* A thread that creates and ends an mdev of mtty, in the order of the kernel: its instance is taken
 * before it appears, and free after it has vanished. */
typedef struct MdevRace {
        char *folder;
        atomic_bool stop;
} MdevRace;

static void set_available(const char *folder, unsigned number)
{
        _cleanup_free_ char *from = scratch_path(folder, "new"),
                            *to = scratch_path(folder, AVAILABLE);
        char text[16];

        snprintf(text, sizeof(text), "%u\n", number);
        scratch_write(folder, "new", text);
        assert_int_equal(rename(from, to), 0);
}

static void *run_race(void *data)
{
        MdevRace *race = data;

        for (unsigned i = 0; !race->stop; i++) {
                char name[96];
                _cleanup_free_ char *path = NULL;

                snprintf(name, sizeof(name), "sys/bus/mdev/devices/2a1f4b9e-6c41-4f0b-9a53-%012x",
                         i);
                path = scratch_path(race->folder, name);
                set_available(race->folder, INSTANCES - 1);
                scratch_link(race->folder, name, "../../../devices/virtual/mtty/mtty/" UUID);
                assert_int_equal(unlink(path), 0);
                set_available(race->folder, INSTANCES);
        }
        return NULL;
}

/* An mdev that begins or ends during a poll never counts twice. */
static void test_an_mdev_ends_during_a_poll(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = host_make();
        _cleanup_free_ char *first = scratch_path(folder, "sys/bus/mdev/devices/" UUID);
        MdevRace race = { .folder = folder };
        pthread_t thread;

        for (unsigned i = 0; i < OTHERS; i++) {
                char name[64];

                snprintf(name, sizeof(name), "sys/class/mdev_bus/other%u", i);
                scratch_link(folder, name, "../../devices/virtual/mtty/mtty");
        }
        assert_int_equal(unlink(first), 0);
        assert_int_equal(pthread_create(&thread, NULL, run_race, &race), 0);
        for (unsigned i = 0; i < POLLS_RACE; i++) {
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = read_host(folder, NULL, NULL);
                const SnapshotDevice *mtty = snapshot_find_device(snapshot, "mtty_mtty");

                assert_int_equal(mtty->n_mdev_types, 1);
                if (snapshot->n_mdevs + mtty->mdev_types[0].available_instances > INSTANCES)
                        fail_msg("poll %u: %zu mdevs", i, snapshot->n_mdevs);
        }
        race.stop = true;
        assert_int_equal(pthread_join(thread, NULL), 0);
}

#define READ_ONLY(n) "\x82\x04\0card\x90" n "\0"

/* Reads the devices with their serial numbers. */
static Snapshot *read_serials(const char *sys, const Snapshot *last, bool quiet)
{
        LinuxReader reader = { .sys = sys, .last = last, .quiet = quiet, .serials = true };

        assert_int_equal(snapshot_new(&reader.snapshot), 0);
        assert_int_equal(linux_read_devices(&reader, NULL), 0);
        assert_int_equal(snapshot_seal(reader.snapshot, NULL), 0);
        return reader.snapshot;
}

static void test_vpd(void **state)
{
        static const struct {
                const char *bytes;
                size_t n;
                bool serial;
        } cases[] = {
#define VPD(text, expected) { text, sizeof(text) - 1, expected }
                /* the checksums were calculated by hand */
                VPD(READ_ONLY("\x0a") "SN\x03"
                                      "ABC"
                                      "RV\x01\x33"
                                      "\x78",
                    true),
                VPD(READ_ONLY("\x0a") "SN\x03"
                                      "ABC"
                                      "RV\x01\x34"
                                      "\x78",
                    false),
                VPD(READ_ONLY("\x07") "SN\0"
                                      "RV\x01\xff"
                                      "\x78",
                    false),
                VPD(READ_ONLY("\x0a") "SN\x03"
                                      "   "
                                      "RV\x01\x99"
                                      "\x78",
                    false),
                VPD(READ_ONLY("\x06") "SN\x03"
                                      "ABC"
                                      "\x78",
                    false),
                VPD(READ_ONLY("\xff") "SN\x03"
                                      "ABC",
                    false),
                VPD("\x78", false),
                VPD("", false),
                VPD("\xff\xff\xff\xff", false),
                VPD("\x82", false),
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = host_make();
                _cleanup_free_ char *sys = scratch_path(folder, "sys");
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
                const SnapshotDevice *card;

                scratch_write_bytes(folder, NIC_FOLDER "/vpd", cases[i].bytes, cases[i].n);
                snapshot = read_serials(sys, NULL, false);
                card = snapshot_find_device(snapshot, "pci_0000_8a_00_0");
                if (card->has_card_serial != cases[i].serial ||
                    cases[i].serial != (card->serial[0] != 0))
                        fail_msg("case %zu", i);
        }
}

static const char *serial_of_nic(const Snapshot *snapshot)
{
        return snapshot_find_device(snapshot, "pci_0000_8a_00_0")->serial;
}

/* A device of the same model takes the place of another one between two polls. */
static void test_an_exchange_within_one_model(void **state)
{
        static const char vpd[] = READ_ONLY("\x0a") "SN\x03"
                                                    "ABC"
                                                    "RV\x01\x33\x78",
                          other[] = READ_ONLY("\x0a") "SN\x03"
                                                      "ABD"
                                                      "RV\x01\x32\x78";

        for (int quiet = 0; quiet < 2; quiet++) {
                _cleanup_(scratch_folder_removep) char *folder = host_make();
                _cleanup_free_ char *sys = scratch_path(folder, "sys"),
                                    *place = scratch_path(folder, NIC_FOLDER),
                                    *unplugged = scratch_path(folder, "unplugged"),
                                    *spare = scratch_path(folder, "spare");
                _cleanup_(snapshot_unrefp) Snapshot *first = NULL, *same = NULL, *exchanged = NULL;

                scratch_write_bytes(folder, NIC_FOLDER "/vpd", vpd, sizeof(vpd) - 1);
                first = read_serials(sys, NULL, false);
                scratch_write_bytes(folder, NIC_FOLDER "/vpd", other, sizeof(other) - 1);
                same = read_serials(sys, first, quiet);
                scratch_write(folder, "spare/uevent", "PCI_CLASS=20000\nPCI_ID=8086:1572\n");
                scratch_write_bytes(folder, "spare/vpd", other, sizeof(other) - 1);
                assert_int_equal(rename(place, unplugged), 0);
                assert_int_equal(rename(spare, place), 0);
                exchanged = read_serials(sys, same, quiet);
                assert_string_equal(serial_of_nic(first), "ABC");
                assert_string_equal(serial_of_nic(same), "ABC");
                assert_string_equal(serial_of_nic(exchanged), "ABD");
        }
}

/* The service's user cannot read a VPD, which only root can. Only remote_managed functions need
 * it. */
static void test_vpd_that_cannot_be_read(void **state)
{
        for (int needed = 0; needed < 2; needed++) {
                _cleanup_(scratch_folder_removep) char *folder = host_make();
                _cleanup_free_ char *sys = scratch_path(folder, "sys");
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
                LinuxReader reader = { .sys = sys, .serials = true, .serials_needed = needed };

                scratch_write(folder, NIC_FOLDER "/vpd/no-file", "");
                assert_int_equal(snapshot_new(&snapshot), 0);
                reader.snapshot = snapshot;
                assert_int_equal(linux_read_devices(&reader, NULL), 0);
                assert_int_equal(snapshot->problems.n_items, needed);
                assert_int_equal(snapshot->n_devices, 3);
        }
}

/* libvirt reports the same of such a host. */
static void test_encryption(void **state)
{
        static const struct {
                const char *capacity, *snp;
                bool sev, sev_es, sev_snp;
                uint64_t max, es_max;
                size_t n_problems;
        } rows[] = {
                { NULL, NULL, .sev = false },
                { "", NULL, .sev = false },
                { "sev 410\nsev_es 99\n", NULL, true, true, false, 410, 99, 0 },
                { "sev 410\nsev_es 99\ntdx 31\n", "Y\n", true, true, true, 410, 99, 0 },
                { "sev 410\nsev_es 99\n", "N\n", true, true, false, 410, 99, 0 },
                { "sev 410\nsev_es 0\n", "Y\n", true, false, false, 410, 0, 0 },
                { "sev_es 509\n", "N\n", false, true, false, 0, 509, 0 },
                { "sev_es 509\n", "Y\n", false, true, true, 0, 509, 0 },
                { "tdx 31\n", NULL, .sev = false },
                { "sev many\n", NULL, .n_problems = 1 },
                { "sev\n", NULL, .n_problems = 1 },
                { "sev 99999999999999999999\n", NULL, .n_problems = 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
                _cleanup_free_ char *sys = scratch_path(folder, "sys");
                LinuxReader reader = { 0 };
                const SnapshotEmulator *emulator;

                scratch_write(folder, CPU "online", "0\n");
                if (rows[i].capacity)
                        scratch_write(folder, "sys/fs/cgroup/misc.capacity", rows[i].capacity);
                if (rows[i].snp)
                        scratch_write(folder, "sys/module/kvm_amd/parameters/sev_snp", rows[i].snp);
                assert_int_equal(snapshot_new(&snapshot), 0);
                reader = (LinuxReader){ .sys = sys, .proc = sys, .snapshot = snapshot };
                assert_int_equal(snapshot_set_text(&snapshot->arch, "x86_64", NULL), 0);
                assert_int_equal(linux_read_host(&reader, NULL), 0);
                assert_int_equal(snapshot->problems.n_items, rows[i].n_problems);
                assert_true(snapshot->emulators_incomplete);
                assert_int_equal(snapshot->n_emulators, rows[i].sev || rows[i].sev_es);
                if (snapshot->n_emulators == 0)
                        continue;
                emulator = &snapshot->emulators[0];
                assert_string_equal(emulator->arch, "x86_64");
                assert_int_equal(emulator->sev, rows[i].sev);
                assert_int_equal(emulator->sev_es, rows[i].sev_es);
                assert_int_equal(emulator->sev_snp, rows[i].sev_snp);
                assert_int_equal(emulator->sev_max_guests, rows[i].max);
                assert_int_equal(emulator->sev_es_max_guests, rows[i].es_max);
                assert_int_equal(snapshot_seal(snapshot, NULL), 0);
        }
}

static void test_uevents(void **state)
{
        static const struct {
                const char *text;
                size_t n;
                bool counts;
        } cases[] = {
#define MESSAGE(text, expected) { text, sizeof(text) - 1, expected }
                MESSAGE("bind@/devices/x\0ACTION=bind\0SUBSYSTEM=pci\0SEQNUM=1\0", true),
                MESSAGE("add@/devices/x\0ACTION=add\0SUBSYSTEM=mdev", true),
                MESSAGE("offline@/devices/x\0SUBSYSTEM=cpu\0", true),
                MESSAGE("libudev\0\xfe\xed\xca\xfe\0\0\0\x28"
                        "ACTION=add\0SUBSYSTEM=vdpa\0",
                        true),
                MESSAGE("add@/devices/x\0SUBSYSTEM=pci_express\0", false),
                MESSAGE("add@/devices/x\0SUBSYSTEM=net\0", false),
                MESSAGE("add@/devices/x\0SUBSYSTEM=", false),
                MESSAGE("SUBSYSTEM", false),
                MESSAGE("", false),
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int fds[2];

                assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds), 0);
                assert_int_equal(send(fds[1], cases[i].text, cases[i].n, 0), cases[i].n);
                if (uevents_read(fds[0]) != cases[i].counts)
                        fail_msg("case %zu", i);
                close(fds[0]);
                close(fds[1]);
        }
}

TEST_MAIN(test_whole_host, test_small_host, test_a_cpu_without_socket,
          test_offline_cpus_are_in_their_cells, test_bad_files, test_others, test_quiet,
          test_an_mdev_ends_during_a_poll, test_vpd, test_an_exchange_within_one_model,
          test_vpd_that_cannot_be_read, test_encryption, test_uevents)
