/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads facts about this host from /sys and /proc, as every user can, except that a VPD can need
 * root. It needs no library.
 *
 *   Online and present CPUs    devices/system/cpu/online, present.
 *   Cells and their CPUs       devices/system/node/online, nodeN/cpulist, and for offline CPUs the
 *                              links nodeN/cpuN. A kernel without NUMA has cell 0 with all CPUs.
 *   Siblings and socket        devices/system/cpu/cpuN/topology/thread_siblings_list,
 *                              physical_package_id ("-1": no socket).
 *   Memory and pages of a cell nodeN/meminfo (MemTotal), and nr_hugepages below
 *                              nodeN/hugepages/hugepages-SkB. The rest is small pages.
 *   Emulators                  fs/cgroup/misc.capacity, module/kvm_amd/parameters/sev_snp.
 *   CPU model and features     /proc/cpuinfo of x86, in libvirt's names.
 *   Devices                    bus/pci/devices/A: uevent, numa_node, physfn, sriov_totalvfs, vpd,
 *                              nvme, nvidia (drivers/host/vgpu-types.h). Also bus/vdpa/devices.
 *   Types of mdevs             class/mdev_bus/D/mdev_supported_types, also of other devices than
 *                              PCI functions.
 *   Mdevs                      bus/mdev/devices.
 *
 * The poll fails without the online CPUs or with an unreadable list of cells. It also fails without
 * the CPUs or memory of a cell, or the number of its pages of a listed size. A part of a cell would
 * look like a smaller one. The same holds if the PCI functions or the mdevs cannot be listed. Every
 * other bad file leaves out its device, type or number, and is named in a problem of the snapshot.
 * Such a file that is missing, or vanishes during the poll, means that its object does not exist.
 * So does the error EIO, but not of the files about vGPUs. A VPD that cannot be read is a problem
 * only if a remote_managed device needs its serial number. An unreadable serial number of an NVMe
 * controller never is. Texts have limits (SYSFS_TEXT_MAX) and are sanitized. Links to physical
 * functions, drivers and types are read, and not followed. All functions but those of events block
 * as long as the kernel does. */

#include "base/error.h"
#include "drivers/host/snapshot.h"
#include "drivers/host/sysfs.h"

/* Longest path and the NUL, in bytes. */
#define LINUX_PATH_SIZE 1024

/* One poll of a host. */
typedef struct LinuxReader {
        const char *sys, *proc; /* "/sys", "/proc" */
        Snapshot *snapshot;     /* the snapshot is not sealed yet */
        const Snapshot *last;   /* snapshot of the last poll; NULL: read everything */
        /* No event about a device or a CPU came since last, and the last poll that was not quiet
         * is recent. Parts that do not change silently are copied from last. */
        bool quiet;
        bool serials;               /* read the serial numbers of cards from their VPD */
        bool serials_needed;        /* a VPD that cannot be read is a problem */
        char path[LINUX_PATH_SIZE]; /* path of the last file */
} LinuxReader;

/* Reads CPUs, cells and memory, cpu_model and cpu_features, and the number of guests whose
 * memory an AMD CPU can encrypt. This number is in one emulator of snapshot->arch, which must be
 * set. The kernel lists neither features that it does not use nor other emulators, so
 * features_incomplete and emulators_incomplete are set. Negative errno with an error text. */
int linux_read_host(LinuxReader *reader, Error *reterr);

/* Reads devices and mdevs. Negative errno with an error text. */
int linux_read_devices(LinuxReader *reader, Error *reterr);

/* Returns the path of a file below sys, shortened to LINUX_PATH_SIZE. It stays valid in
 * reader->path until the next call. */
const char *linux_path(LinuxReader *reader, const char *format, ...) _printf_(2, 3);

/* Reads a decimal number. -EBADMSG if it is malformed or above max, and the errors of
 * sysfs_read(). */
int linux_read_number(const char *path, uint64_t max, uint64_t *ret);

/* Returns r and sets an error text with the last path, or without it for -ENOMEM. */
int linux_fail(const LinuxReader *reader, int r, Error *reterr);

/* Adds a problem with the last path, unless r says that the file is gone. Returns 0 for every r
 * except -ENOMEM, also for success. -ENOMEM with an error text. */
int linux_note(LinuxReader *reader, int r, Error *reterr);

/* Adds the names in a folder, sorted, except those that begin with a dot. A folder that is gone
 * (sysfs_is_gone()) has none. -EFBIG above SNAPSHOT_LIST_MAX, -ENOMEM, or another -errno; ret can
 * then have some of them. */
int linux_list(const char *path, StringSet *ret);

/* Opens a socket that is readable when the kernel, or udev after it, reports that a device or
 * CPU appears, vanishes, or gets a driver. Every user can receive these events. The caller
 * closes it. Negative errno; some containers have no such socket. */
int uevents_open(void);

/* Reads all pending events without waiting. Returns true if an event concerns the hardware of a
 * snapshot (PCI functions, mediated and vDPA devices, CPUs, memory), or if events were lost. */
bool uevents_read(int fd);
