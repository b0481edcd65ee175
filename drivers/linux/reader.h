/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What Linux itself says of this host, read from /sys and /proc as any user may. No library.
 *
 *   online_cpus, present_cpus   devices/system/cpu/online, present
 *   cells, their CPUs           devices/system/node/online, nodeN/cpulist; offline CPUs: the links
 *                               nodeN/cpuN. A kernel without NUMA has cell 0 with everything
 *   siblings, socket            devices/system/cpu/cpuN/topology/thread_siblings_list,
 *                               physical_package_id ("-1": no socket)
 *   memory, pages of a cell     nodeN/meminfo (MemTotal), nodeN/hugepages/hugepages-SkB/
 *                               nr_hugepages; the rest of the memory is small pages
 *   emulators                   fs/cgroup/misc.capacity, module/kvm_amd/parameters/sev_snp
 *   cpu_model, cpu_features     /proc/cpuinfo, of x86; libvirt's names
 *   devices                     bus/pci/devices/A: uevent, numa_node, physfn, sriov_totalvfs, vpd,
 *                               nvidia/ (drivers/host/vgpu-types.h); bus/vdpa/devices
 *   their mdev types            class/mdev_bus/D/mdev_supported_types; D may be no PCI function
 *   mdevs                       bus/mdev/devices
 *
 * Without a CPU list or the memory of a cell the host is not known, and the poll fails: half a cell
 * would look like a smaller one. Every other file that is bad costs the device, the type or the
 * number that it is of, and is named among the problems of the snapshot. What is not there, or
 * leaves while it is read, is not there. Text is bounded (SYSFS_TEXT_MAX) and made safe to print;
 * links are read and never walked. Blocks as long as the kernel does. */

#include "base/error.h"
#include "drivers/host/snapshot.h"
#include "drivers/host/sysfs.h"

#define LINUX_PATH_SIZE 1024

typedef struct LinuxReader {
        const char *sys, *proc; /* "/sys", "/proc" */
        Snapshot *snapshot;     /* in the making, not sealed */
        const Snapshot *last;   /* of the last poll; NULL to read everything */
        bool quiet;             /* no event came of a device or a CPU since: what does not change
                                   silently is as in last */
        bool serials;           /* the serial numbers of cards are read from their VPD */
        bool serials_needed;    /* a VPD that cannot be read is a problem */
        char path[LINUX_PATH_SIZE]; /* of the last file */
} LinuxReader;

/* Reads CPUs, cells and memory, cpu_model and cpu_features, and how many guests can have their
 * memory encrypted by an AMD CPU. The latter is one emulator of the host's architecture, which must
 * be set. The kernel lists no feature that it does not use and no other emulator, so
 * features_incomplete and emulators_incomplete are set. Negative errno with words. */
int linux_read_host(LinuxReader *reader, Error *reterr);

/* Reads devices and mdevs. Negative errno with words. */
int linux_read_devices(LinuxReader *reader, Error *reterr);

/* Returns the path of a file below sys, cut to LINUX_PATH_SIZE. It stays in reader->path until the
 * next call. */
const char *linux_path(LinuxReader *reader, const char *format, ...) _printf_(2, 3);

/* A decimal number; -EBADMSG when it is none or above max, else as sysfs_read(). */
int linux_read_number(const char *path, uint64_t max, uint64_t *ret);

/* -r with words that name the last path. */
int linux_fail(const LinuxReader *reader, int r, Error *reterr);

/* Notes that the last path could not be read; 0, -ENOMEM with words. Nothing of what is gone. */
int linux_note(LinuxReader *reader, int r, Error *reterr);

/* The names in a folder, sorted; none where it is not there. -errno. */
int linux_list(const char *path, StringSet *ret);

/* Opens a socket that is readable when the kernel, or udev after it, reports devices or CPUs that
 * come, go, or are bound to a driver. Any user may listen. The caller closes it. Negative errno: a
 * container may have none. */
int uevents_open(void);

/* Reads all that there is, without waiting. True when some of it is about what a host is made of
 * (PCI functions, mediated and vDPA devices, CPUs, memory), or when some was lost. */
bool uevents_read(int fd);
