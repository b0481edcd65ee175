/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A /sys and /proc/cpuinfo with files that are damaged, missing, or links to any place. Each line
 * of the input replaces one file: a letter selects it, then its content follows. "@" makes a link,
 * "!" removes the file, and '|' is a newline. */

#include <errno.h>
#include <sys/stat.h>

#include "drivers/linux/reader.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

#define CPU  "sys/devices/system/cpu/"
#define NODE "sys/devices/system/node/"
#define GPU  "sys/devices/pci0000:40/0000:41:00.0/"
#define VF   "sys/devices/pci0000:40/0000:41:00.4/"
#define MDEV "2a1f4b9e-6c41-4f0b-9a53-8f8f0f6c1d01"

static const struct {
        const char *name, *text;
} files[] = {
        { CPU "online", "0-1" },
        { CPU "present", "0-3" },
        { CPU "cpu0/topology/physical_package_id", "0" },
        { CPU "cpu0/topology/thread_siblings_list", "0-1" },
        { NODE "online", "0" },
        { NODE "node0/cpulist", "0-1" },
        { NODE "node0/meminfo", "Node 0 MemTotal: 4096 kB" },
        { NODE "node0/hugepages/hugepages-2048kB/nr_hugepages", "1" },
        { GPU "uevent", "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:13BD" },
        { GPU "numa_node", "0" },
        { GPU "sriov_totalvfs", "4" },
        { GPU "vpd", "\x82\x04" },
        { GPU "mdev_supported_types/nvidia-35/available_instances", "3" },
        { GPU "mdev_supported_types/nvidia-35/name", "GRID" },
        { GPU "subsystem", "@../../../bus/pci" },
        { GPU MDEV "/mdev_type", "@../mdev_supported_types/nvidia-35" },
        { VF "uevent", "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:13BD" },
        { VF "physfn", "@../0000:41:00.0" },
        { VF "nvidia/creatable_vgpu_types", "1428 : NVIDIA L40S-2Q" },
        { VF "nvidia/current_vgpu_type", "0" },
        { "sys/bus/pci/devices/0000:41:00.0", "@../../../devices/pci0000:40/0000:41:00.0" },
        { "sys/bus/pci/devices/0000:41:00.4", "@../../../devices/pci0000:40/0000:41:00.4" },
        { "sys/class/mdev_bus/0000:41:00.0", "@../../devices/pci0000:40/0000:41:00.0" },
        { "sys/class/mdev_bus/mtty", "@../../devices/pci0000:40/0000:41:00.0" },
        { "sys/bus/mdev/devices/" MDEV, "@../../../devices/pci0000:40/0000:41:00.0/" MDEV },
        { "sys/bus/vdpa/devices/vdpa0", "@../../../devices/pci0000:40/0000:41:00.4/vdpa0" },
        { "sys/fs/cgroup/misc.capacity", "sev 410\nsev_es 99" },
        { "sys/module/kvm_amd/parameters/sev_snp", "Y" },
        { "proc/cpuinfo", "model name\t: CPU\nflags\t: fpu sse4_1 avx512_vnni" },
};

static void put(size_t i, const char *text)
{
        char path[256];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), files[i].name);
        for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
                *slash = '\0';
                assert(mkdir(path, 0755) == 0 || errno == EEXIST || errno == ENOTDIR ||
                       errno == ELOOP || errno == ENOENT);
                *slash = '/';
        }
        (void)unlink(path);
        if (text[0] == '@') {
                (void)symlink(text + 1, path);
                return;
        }
        file = text[0] == '!' ? NULL : fopen(path, "we");
        if (!file)
                return;
        for (; *text; text++)
                assert(putc(*text == '|' ? '\n' : *text, file) != EOF);
        assert(fclose(file) == 0);
}

static Snapshot *read_host(const Snapshot *last)
{
        char sys[128], proc[128];
        LinuxReader reader = {
                .sys = sys, .proc = proc, .last = last, .quiet = last, .serials = true
        };
        Snapshot *snapshot;
        Error error = ERROR_NULL;

        snprintf(sys, sizeof(sys), "%s/sys", fuzz_folder());
        snprintf(proc, sizeof(proc), "%s/proc", fuzz_folder());
        assert(snapshot_new(&snapshot) == 0);
        assert(snapshot_set_text(&snapshot->nodename, "cn1", NULL) == 0 &&
               snapshot_set_text(&snapshot->arch, "x86_64", NULL) == 0);
        reader.snapshot = snapshot;
        if (linux_read_host(&reader, &error) == 0 && linux_read_devices(&reader, &error) == 0 &&
            snapshot_seal(snapshot, &error) == 0)
                return snapshot;
        /* a failure of the whole poll must name a file */
        assert(strstr(error.text, "/sys/"));
        snapshot_unref(snapshot);
        return NULL;
}

/* Checks that the host can be written as JSON and read again, and that a second read without
 * changes has the same result. */
static void check(const Snapshot *snapshot)
{
        Snapshot *back = NULL, *again = read_host(snapshot);
        json_t *json = snapshot_to_json(snapshot), *same = again ? snapshot_to_json(again) : NULL;
        Error error = ERROR_NULL;

        assert(json && same);
        if (snapshot_from_json(json, &back, &error) < 0) {
                fprintf(stderr, "%s\n", error.text);
                abort();
        }
        if (snapshot->problems.n_items == 0)
                assert(json_equal(json, same));
        json_decref(json);
        json_decref(same);
        snapshot_unref(back);
        snapshot_unref(again);
}

void fuzz_text(const char *text)
{
        bool damaged[sizeof(files) / sizeof(files[0])] = { false };
        Snapshot *snapshot;
        char *copy = strdup(text), *state = NULL;

        assert(copy);
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
                put(i, files[i].text);
        for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
                size_t i = (size_t)(unsigned char)(line[0] - 'a');

                if (i < sizeof(files) / sizeof(files[0]) && !damaged[i]) {
                        damaged[i] = true;
                        put(i, line + 1);
                }
        }
        free(copy);
        snapshot = read_host(NULL);
        if (snapshot)
                check(snapshot);
        snapshot_unref(snapshot);
}
