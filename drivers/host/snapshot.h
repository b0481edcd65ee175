/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Result of one poll of a driver: facts about the host.
 *
 * A driver's poll builds the snapshot on its thread, seals it, and passes it to the main thread.
 * After that it never changes. It is shared by an atomic reference count, so the tracker can keep
 * the last one while the next one is built. A snapshot knows no resource provider, no configuration
 * and no policy. Names of amounts contain their unit. Strings are never NULL, except where noted,
 * and UTF-8 if the name of the host is. They come from outside of the agent, so treat them as
 * untrusted.
 *
 * The JSON form (snapshot_to_json()) is the output of "computectl discover --json" and the input
 * of the static driver. */

#include <jansson.h>

#include "base/cpu-set.h"
#include "base/device-identity.h"
#include "base/error.h"
#include "base/string-set.h"
#include "base/uuid.h"

#define SNAPSHOT_FORMAT   "compute-agent-host/1" /* "format" member of the JSON form */
#define NUMA_NODE_NONE    (-1)
#define SNAPSHOT_TEXT_MAX 4096  /* bytes of any string */
#define SNAPSHOT_LIST_MAX 65536 /* items of any list */
/* Largest number of problems of one poll. */
#define SNAPSHOT_PROBLEMS_MAX 64
#define PCI_ADDRESS_SIZE      13 /* "0000:41:00.0" and the NUL: lower case, 16-bit domain */

/* Pages of one size in a cell. */
typedef struct PageSize {
        uint64_t size_kib;
        uint64_t count; /* number of pages, as libvirt counts them */
} PageSize;

typedef struct SnapshotCpu {
        unsigned id;
        int socket_id;   /* -1 if unknown */
        CpuSet siblings; /* threads of the same core, including this one */
} SnapshotCpu;

typedef struct SnapshotCell {
        unsigned id;         /* libvirt's id; ids can have gaps */
        uint64_t memory_kib; /* 0 for a cell without memory */
        SnapshotCpu *cpus;   /* none for a cell with memory only */
        size_t n_cpus;
        PageSize *pages;
        size_t n_pages;
} SnapshotCell;

/* A type of mediated device that a device offers. */
typedef struct MdevType {
        char *id;   /* "nvidia-35" */
        char *name; /* for example "GRID V100D-4Q"; "" if unknown */
        uint64_t available_instances;
        /* Instances that are not mdevs; see is_vgpu_function. */
        uint64_t created_instances;
} MdevType;

/* A PCI function, or another parent of mdevs, of which guests can have a part or the whole. */
typedef struct SnapshotDevice {
        char *name;   /* libvirt's name: "pci_0000_41_00_0", "mtty_mtty" */
        char *parent; /* libvirt's name of the parent, "" if unknown */
        char *driver; /* "" if none is bound */
        bool is_pci;
        /* PCI address, "0000:41:00.0"; "" unless is_pci. A device whose domain has more than 16
         * bits is not listed, unless it is a parent of mdevs; is_pci is then false. */
        char address[PCI_ADDRESS_SIZE];
        uint32_t vendor_id, product_id, class_code;
        char *vendor, *product; /* names, "" if unknown */
        int numa_node;          /* NUMA_NODE_NONE if it has none */
        /* PCI address of the physical function of a virtual function; else "". */
        char physical_function[PCI_ADDRESS_SIZE];
        bool is_physical_function; /* has virtual functions, or can have them */
        uint64_t max_virtual_functions;
        bool is_vdpa_parent;
        /* The VPD of the device, or that of its physical function, has the serial number of the
         * card. */
        bool has_card_serial;
        /* Serial number: from the VPD, from the NVMe controller, or else that of the physical
         * function. "" if unknown. */
        char *serial;
        /* Inode of its folder in sysfs, by which the driver "linux" sees that another device is at
         * the address; 0 with other drivers. The JSON form does not have it. */
        uint64_t inode;
        /* A virtual function that becomes a vGPU without an mdev. Its types are the possible
         * vGPUs (drivers/host/vgpu-types.h). */
        bool is_vgpu_function;
        /* The types of a function could not be read, so it can be a vGPU of any type. */
        bool vgpu_unread;
        MdevType *mdev_types;
        size_t n_mdev_types;
} SnapshotDevice;

typedef struct SnapshotMdev {
        Uuid uuid;
        char *type;   /* "nvidia-35" */
        char *parent; /* name of its parent device */
} SnapshotMdev;

typedef enum DomainState {
        DOMAIN_SHUTOFF,
        DOMAIN_RUNNING,
        DOMAIN_PAUSED, /* paused, or another state in which the guest uses its resources */
        _DOMAIN_STATE_MAX,
        _DOMAIN_STATE_INVALID = -EINVAL,
} DomainState;

const char *domain_state_to_text(DomainState state); /* "shutoff", "running", "paused"; or NULL */

/* Host CPUs that one guest CPU can use: <vcpupin>. */
typedef struct DomainPin {
        unsigned vcpu;
        CpuSet cpus;
} DomainPin;

/* A NUMA cell that the guest sees: <cpu><numa><cell>. */
typedef struct DomainCell {
        unsigned id;
        uint64_t memory_kib;
        CpuSet vcpus;      /* guest CPUs; can be empty */
        CpuSet host_cells; /* host cells of its <memnode>; empty: none */
        uint64_t page_kib; /* page size of its memory; 0: small pages */
} DomainCell;

/* A guest. Without other notes, members describe the live definition of a running domain, or
 * else the persistent one. */
typedef struct SnapshotDomain {
        Uuid uuid;
        char *name;
        DomainState state;
        /* The domain exists, but its definition could not be read. A problem has the reason. */
        bool unread;
        uint64_t vcpus;      /* maximum number of guest CPUs */
        uint64_t memory_kib; /* maximum memory of the guest */
        /* Host CPUs of guest CPUs without a pin: <vcpu cpuset>. Empty: any. */
        CpuSet cpus;
        /* Pins, sorted by vcpu. Guest CPUs can lack one. */
        DomainPin *pins;
        size_t n_pins;
        /* Host CPUs of emulator threads and of all I/O threads: <emulatorpin> and <iothreadpin>.
         * Empty: not pinned. */
        CpuSet emulator_cpus, iothread_cpus;
        /* Host cells of <numatune><memory nodeset>. Empty: none. */
        CpuSet memory_cells;
        DomainCell *cells; /* sorted by id */
        size_t n_cells;    /* 0: the guest sees no cells */
        /* Page size of memory outside of cells; 0: small pages. A guest that requests hugepages
         * without a size gets the host's default, which is assumed to be 2048 KiB. */
        uint64_t page_kib;
        Uuid *mdevs; /* mdevs of its <hostdev> elements */
        size_t n_mdevs;
        /* Addresses of its <hostdev> and <interface type='hostdev'> elements, and of the NVMe
         * controllers of its images. */
        char (*pci_addresses)[PCI_ADDRESS_SIZE];
        size_t n_pci_addresses;
        /* A running domain has a second, persistent definition, which its next start uses. These
         * members describe the persistent one: the devices that the live one lacks, and CPUs. They
         * are empty for a domain that does not run (decision devices/definition). */
        Uuid *config_mdevs;
        size_t n_config_mdevs;
        char (*config_pci_addresses)[PCI_ADDRESS_SIZE];
        size_t n_config_pci_addresses;
        /* Host CPUs of pins (and <vcpu cpuset>) to a single CPU in the persistent definition, and
         * of its emulator and I/O threads. The live definition can have the same CPUs. */
        CpuSet config_cpus;
} SnapshotDomain;

/* Abilities of guests with one architecture and machine type: libvirt's domain capabilities, in
 * libvirt's words. */
typedef struct SnapshotEmulator {
        char *arch;    /* "x86_64" */
        char *machine; /* "pc-q35-7.2"; "" if the hypervisor has no machine types */
        StringSet disk_buses;
        StringSet video_models;
        StringSet filesystem_drivers;
        StringSet tpm_models;   /* "tpm-tis" */
        StringSet tpm_backends; /* "emulator" */
        StringSet tpm_versions; /* "2.0"; empty if libvirt does not list versions */
        bool secure_boot;
        bool sev, sev_es, sev_snp;
        uint64_t sev_max_guests; /* INT64_MAX if unknown */
        uint64_t sev_es_max_guests;
} SnapshotEmulator;

/* The host. Sealed after snapshot_seal(). */
typedef struct Snapshot {
        unsigned n_references; /* atomic; snapshot_ref() and snapshot_unref() */
        char *driver;          /* "libvirt", "linux", "static" */
        /* The hypervisor's name of the host, which is the name of the root provider. */
        char *nodename;
        char *arch;                  /* "x86_64" */
        char *cpu_model;             /* "" if unknown */
        char *hypervisor;            /* "QEMU" */
        uint64_t hypervisor_version; /* libvirt's form: 7002011 is 7.2.11 */
        uint64_t libvirt_version;    /* the same form; 0 if unknown */
        uint64_t memory_kib;         /* total of the host */
        CpuSet online_cpus;
        CpuSet present_cpus; /* online or not; empty if unknown */
        /* Features that guests can have, in libvirt's names. Empty if unknown. */
        StringSet cpu_features;
        /* Size of the file system of instances_path, or of the configured storage pool or Ceph
         * cluster. 0 if there is none. With disk_error: the last size without an error, or 0. */
        uint64_t disk_total_bytes;
        /* Why the size is unknown; code 0: it is known. The JSON form does not have it. */
        Error disk_error;
        /* Servers with a folder below instances_path (drivers/disk-check.h). Sorted. */
        Uuid *instance_folders;
        size_t n_instance_folders;
        /* Why the folders are unknown; code 0: they are known. The JSON form does not have it. */
        Error folders_error;
        uint64_t taken_realtime_usec; /* end of the poll, CLOCK_REALTIME */
        /* Start of the poll, CLOCK_MONOTONIC. The snapshot might lack changes after it. */
        uint64_t began_usec;
        SnapshotCell *cells;
        size_t n_cells; /* 0: the host lists no cells */
        SnapshotEmulator *emulators;
        size_t n_emulators; /* 0: unknown */
        /* At least one emulator could not be read. An ability that no emulator lists can thus
         * still exist. */
        bool emulators_incomplete;
        /* The CPU features could not be read completely. */
        bool features_incomplete;
        /* Parts that could not be read, at most SNAPSHOT_PROBLEMS_MAX: a text with the name of the
         * part and the reason. */
        StringSet problems;
        SnapshotDevice *devices;
        size_t n_devices;
        SnapshotMdev *mdevs;
        size_t n_mdevs;
        SnapshotDomain *domains;
        size_t n_domains;
        /* The list of domains is not that of this host. The JSON form does not have it. */
        bool guests_unknown;
} Snapshot;

/* Creates an empty snapshot with one reference, and "" for each text. The driver fills it before
 * it is shared. The snapshot owns the strings that a driver sets. -ENOMEM. */
int snapshot_new(Snapshot **ret);
Snapshot *snapshot_ref(const Snapshot *snapshot);
Snapshot *snapshot_unref(const Snapshot *snapshot); /* NULL-safe, returns NULL; any thread */
static inline void snapshot_unrefp(Snapshot **snapshot)
{
        snapshot_unref(*snapshot);
}

/* Sorts the lists at the end of a poll. Two polls of an unchanged host are then equal, except for
 * their times. The libvirt driver adds its facts later, from a sealed snapshot. Cells are sorted by
 * id, emulators by architecture and machine, devices by name, and their mdev types by id. Mdevs are
 * sorted by parent and uuid, domains by uuid, their pins by guest CPU and their cells by id. CPUs
 * and pages of a cell, and the devices of a domain, keep their order. Devices without a serial
 * number get that of their physical function. Sets of texts are sorted and lose their duplicates.
 * Returns -EBADMSG with an error text if another sorted list except instance_folders has an item
 * twice, or -ENOMEM. The lists are then partly sorted. */
int snapshot_seal(Snapshot *snapshot, Error *reterr);

/* Returns the start of the poll in CLOCK_REALTIME, as the clock is set now. */
uint64_t snapshot_begun_realtime_usec(const Snapshot *snapshot);

/* Replaces a text of the snapshot by a copy of value. -ENOMEM. */
int snapshot_set_text(char **text, const char *value, Error *reterr);

/* Adds a problem. Ignores it above SNAPSHOT_PROBLEMS_MAX. -ENOMEM. */
int snapshot_add_problem(Snapshot *snapshot, const char *text);

/* Returns the first mdev of the device, and their number in *ret_n. Borrowed, or NULL. The snapshot
 * must be sealed. O(log n), plus the number. */
const SnapshotMdev *snapshot_mdevs_of(const Snapshot *snapshot, const char *device, size_t *ret_n);

/* Return a borrowed item, or NULL. The searches for a device by its name or PCI address need a
 * sealed snapshot and are O(log n); the others are linear. A PCI address of no device, or of a
 * device without libvirt's name for it, is searched linearly. */
const SnapshotDevice *snapshot_find_device(const Snapshot *snapshot, const char *name);
const SnapshotDevice *snapshot_find_address(const Snapshot *snapshot, const char *address);
const SnapshotMdev *snapshot_find_mdev(const Snapshot *snapshot, const Uuid *uuid);
const SnapshotDomain *snapshot_find_domain(const Snapshot *snapshot, const Uuid *uuid);
MdevType *snapshot_find_mdev_type(const SnapshotDevice *device, const char *id);

/* Returns whether the domain has the mdev (uuid) or PCI device (address). in_config: also if
 * only the persistent definition of a running domain has it. */
bool snapshot_domain_has(const SnapshotDomain *domain, const char *thing, bool in_config);

/* Free everything that the struct owns and zero it, for a struct that is not part of a snapshot. */
void snapshot_emulator_done(SnapshotEmulator *emulator);
void snapshot_device_done(SnapshotDevice *device);
void snapshot_mdev_done(SnapshotMdev *mdev);
void snapshot_domain_done(SnapshotDomain *domain);

/* Returns whether the resources of the device can change without an event. A driver that is bound
 * late adds mdev types and virtual functions, and a removed mdev frees an instance. A device with
 * mdev types always changes silently. Without them, a virtual function with a driver does not;
 * graphics cards, accelerators and physical functions do. Network cards do not, because their
 * functions cause events. Other devices do not, either. */
bool snapshot_device_changes_silently(const SnapshotDevice *device);

/* Returns the id of the vGPU type that a virtual function has now, borrowed; NULL: none. */
const char *snapshot_vgpu_type(const SnapshotDevice *device);

/* Returns true if the card has virtual functions that become vGPUs, and all of them were read. */
bool snapshot_has_read_vgpus(const Snapshot *snapshot, const SnapshotDevice *card);

/* Parses a PCI address in upper or lower case. Returns -EINVAL for another text, and leaves ret
 * unchanged. */
int pci_address_parse(const char *text, char ret[PCI_ADDRESS_SIZE]);

/* Makes libvirt's name of a device: "pci_0000_41_00_0" from "pci" and "0000:41:00.0". The Linux
 * driver uses it, so the providers of a host stay the same when its driver changes. The caller
 * frees it. NULL if out of memory. */
char *snapshot_device_name(const char *subsystem, const char *name);

/* Writes the identity of a PCI device, or "" for another device or an unknown vendor. */
void snapshot_device_identity(const SnapshotDevice *device, char ret[static DEVICE_IDENTITY_SIZE]);

/* Sets the serial number to a copy, which is shortened and safe to print. -ENOMEM. */
int snapshot_device_set_serial(SnapshotDevice *device, const char *serial);

/* Make deep copies. The old content of ret is not freed. -ENOMEM, with ret zeroed. */
int snapshot_device_copy(SnapshotDevice *ret, const SnapshotDevice *device);
int snapshot_mdev_copy(SnapshotMdev *ret, const SnapshotMdev *mdev);
int snapshot_domain_copy(SnapshotDomain *ret, const SnapshotDomain *domain);
int snapshot_emulator_copy(SnapshotEmulator *ret, const SnapshotEmulator *emulator);

/* Sets every text that is NULL to "", except those of mdev types. -ENOMEM. */
int snapshot_device_complete(SnapshotDevice *device);

/* Write and read the JSON form. The function snapshot_to_json() returns a new reference, or NULL if
 * out of memory or if a text is not UTF-8. The function snapshot_from_json() checks all types and
 * limits, and yields a sealed snapshot. It returns -EBADMSG with the path of the wrong member or
 * the name of an item that is listed twice, or -ENOMEM. Most members are optional, so that an
 * operator can write a host by hand. Unknown members are ignored, so that an older program can read
 * a newer file. */
json_t *snapshot_to_json(const Snapshot *snapshot);
int snapshot_from_json(const json_t *object, Snapshot **ret, Error *reterr);
