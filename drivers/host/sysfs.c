/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads small files of sysfs, and facts that libvirt lacks: cells of offline CPUs, and serial
 * numbers of NVMe controllers. Checks which mdevs have ended during a poll. Facts whose file is
 * missing or cannot be read are left out, because devices come and go at any time. Only
 * sysfs_read() returns an error other than -ENOMEM. Nothing is cached.
 *
 * Tests: tests/unit/drivers/host/test-sysfs.c, and for the cells
 * tests/unit/drivers/linux/test-reader.c */

#include "drivers/host/sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/read-file.h"
#include "base/text.h"

/* Bytes of the first attempt to read a file. Almost every file of sysfs is smaller. If the file is
 * not, sysfs_read() reads it again. Above SYSFS_TEXT_MAX bytes the result is -EFBIG. */
#define CHUNK 4096

/* PCI class 01 (storage) and subclass 08 (NVMe), the upper 16 of the 24 bits of a class code. */
#define CLASS_NVME 0x0108

int sysfs_read(const char *path, char **ret)
{
        size_t size = CHUNK;

        for (;;) {
                _cleanup_free_ char *text = malloc(size + 1);
                size_t n;
                int r = text ? read_file_start(path, text, size, &n, NULL) : -ENOMEM;

                if (r < 0)
                        return r;
                if (n < size) {
                        text[n] = '\0';
                        for (n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]);)
                                text[--n] = '\0';
                        *ret = TAKE_PTR(text);
                        return 0;
                }
                if (size > SYSFS_TEXT_MAX)
                        return -EFBIG;
                size = SYSFS_TEXT_MAX + 1;
        }
}

bool sysfs_is_gone(int r)
{
        return r == -ENOENT || r == -ENOTDIR || r == -ENODEV || r == -ENXIO || r == -EIO;
}

/* The NUMA cells of offline CPUs
 *
 * Linux removes an offline CPU from the cpulist of its node, and removes its topology. libvirt
 * lists the CPUs that were online when libvirtd first read them. The links cpuN below nodeM in
 * sysfs stay, so they identify the cell. The siblings and the socket of such a CPU are unknown. It
 * gets a core of its own and no socket. A CPU that no node links stays without a cell. */

/* Returns whether the node of the cell has a link to the CPU. */
static bool has_link(const char *sys, const SnapshotCell *cell, unsigned cpu)
{
        char path[512];
        struct stat st;

        snprintf(path, sizeof(path), "%.255s/devices/system/node/node%u/cpu%u", sys, cell->id, cpu);
        return lstat(path, &st) == 0;
}

/* Returns whether the cell is the node of this machine with the same number: the node has all of
 * its CPUs. A cell without CPUs always counts as that node. */
static bool is_node(const char *sys, const SnapshotCell *cell)
{
        for (size_t i = 0; i < cell->n_cpus; i++)
                if (!has_link(sys, cell, cell->cpus[i].id))
                        return false;
        return true;
}

/* Returns the present CPUs that no cell lists. */
static int find_unlisted(const Snapshot *snapshot, CpuSet *ret)
{
        if (cpu_set_copy(ret, &snapshot->present_cpus) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < snapshot->n_cells; i++)
                for (size_t j = 0; j < snapshot->cells[i].n_cpus; j++)
                        cpu_set_remove(ret, snapshot->cells[i].cpus[j].id);
        return 0;
}

static int order_cpus(const void *a, const void *b)
{
        const SnapshotCpu *x = a, *y = b;

        return x->id < y->id ? -1 : x->id > y->id;
}

static int add_cpu(SnapshotCell *cell, unsigned id)
{
        SnapshotCpu cpu = { .id = id, .socket_id = -1 };
        SnapshotCpu *cpus = reallocarray(cell->cpus, cell->n_cpus + 1, sizeof(SnapshotCpu));

        if (!cpus)
                return -ENOMEM;
        cell->cpus = cpus;
        if (cpu_set_add(&cpu.siblings, id) < 0)
                return -ENOMEM;
        cell->cpus[cell->n_cpus++] = cpu;
        return 0;
}

/* Moves the unlisted CPUs that the node has into the cell. */
static int complete_cell(const char *sys, SnapshotCell *cell, CpuSet *unlisted)
{
        if (!is_node(sys, cell))
                return 0;
        CPU_SET_FOREACH(cpu, unlisted) {
                if (!has_link(sys, cell, cpu))
                        continue;
                if (add_cpu(cell, cpu) < 0)
                        return -ENOMEM;
                cpu_set_remove(unlisted, cpu);
        }
        if (cell->n_cpus > 1)
                qsort(cell->cpus, cell->n_cpus, sizeof(SnapshotCpu), order_cpus);
        return 0;
}

int sysfs_complete_cells(const char *sys, Snapshot *snapshot)
{
        _cleanup_(cpu_set_done) CpuSet unlisted = CPU_SET_INIT;

        if (find_unlisted(snapshot, &unlisted) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < snapshot->n_cells && cpu_set_count(&unlisted) > 0; i++)
                if (complete_cell(sys, &snapshot->cells[i], &unlisted) < 0)
                        return -ENOMEM;
        return 0;
}

/* The serial number of an NVMe controller, which has no VPD: nvme/nvmeN/serial in its sysfs
 * folder. The file exists only while the kernel's nvme driver is bound. */

/* Returns the path of the file of the first controller. NULL if there is none or memory is
 * short. */
static char *find_file(const char *folder, const char *address)
{
        _cleanup_free_ char *path = text_format("%s/%s/nvme", folder, address);
        DIR *dir = path ? opendir(path) : NULL;
        struct dirent *entry;
        char *file = NULL;

        while (dir && !file && (entry = readdir(dir)))
                if (strncmp(entry->d_name, "nvme", strlen("nvme")) == 0)
                        file = text_format("%s/%s/serial", path, entry->d_name);
        if (dir)
                closedir(dir);
        return file;
}

int sysfs_read_nvme_serial(const char *folder, SnapshotDevice *device)
{
        _cleanup_free_ char *file = NULL, *serial = NULL;

        if (device->class_code >> 8 != CLASS_NVME || device->serial[0])
                return 0;
        file = find_file(folder, device->address);
        if (!file || sysfs_read(file, &serial) < 0)
                return 0;
        return snapshot_device_set_serial(device, serial);
}

/* Mediated devices that end while a poll reads the host */

/* Writes the PCI address of libvirt's name of a PCI function. Returns false for another name. */
static bool parse_pci_name(const char *name, char ret[static PCI_ADDRESS_SIZE])
{
        unsigned domain, bus, slot, function;
        char excess;

        if (sscanf(name, "pci_%4x_%2x_%2x_%1x%c", &domain, &bus, &slot, &function, &excess) != 4)
                return false;
        snprintf(ret, PCI_ADDRESS_SIZE, "%04x:%02x:%02x.%x", domain & 0xffff, bus & 0xff,
                 slot & 0xff, function & 0xf);
        return true;
}

/* Returns whether sysfs has this entry; if_unknown after an error other than a missing file. */
static bool has_entry(const char *sys, const char *folder, const char *name, bool if_unknown)
{
        char path[512];
        struct stat st;

        snprintf(path, sizeof(path), "%.255s/%s/%.128s", sys, folder, name);
        return lstat(path, &st) == 0 || (if_unknown && errno != ENOENT && errno != ENOTDIR);
}

/* Returns whether the mdev has ended since it was listed. is_local: the snapshot was read from sys.
 * Otherwise sys must have the parent, because the mdev can be on another machine. */
static bool has_ended(const char *sys, bool is_local, const SnapshotMdev *mdev)
{
        char address[PCI_ADDRESS_SIZE];

        if (has_entry(sys, "bus/mdev/devices", mdev->uuid.text, true))
                return false;
        return is_local || (parse_pci_name(mdev->parent, address) &&
                            has_entry(sys, "class/mdev_bus", address, false));
}

void sysfs_drop_ended_mdevs(const char *sys, bool is_local, Snapshot *snapshot)
{
        size_t n = 0;

        for (size_t i = 0; i < snapshot->n_mdevs; i++)
                if (has_ended(sys, is_local, &snapshot->mdevs[i]))
                        snapshot_mdev_done(&snapshot->mdevs[i]);
                else
                        snapshot->mdevs[n++] = snapshot->mdevs[i];
        snapshot->n_mdevs = n;
}
