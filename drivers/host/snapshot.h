/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What one poll of a driver found on the host: a sealed value that nobody changes after it was
 * made.
 *
 * A driver's poll builds it on its own thread and hands it over; from then on it is read only, and
 * shared by reference count (atomic), so that the tracker can keep the last good one while the next
 * is made. It knows no resource provider, no configuration and no policy: facts only. Amounts carry
 * their unit in the name. Strings are UTF-8, never NULL unless said so, and foreign: treat them as
 * hostile.
 *
 * Its JSON form (snapshot_to_json()) is what "computectl discover --json" prints and the static
 * driver reads. */

#include <jansson.h>

#include "base/cpu-set.h"
#include "base/device-identity.h"
#include "base/error.h"
#include "base/string-set.h"
#include "base/uuid.h"

#define SNAPSHOT_FORMAT       "compute-agent-host/1" /* "format" member of the JSON form */
#define NUMA_NODE_NONE        (-1)
#define SNAPSHOT_TEXT_MAX     4096  /* bytes of any string */
#define SNAPSHOT_LIST_MAX     65536 /* items of any list */
#define SNAPSHOT_PROBLEMS_MAX 64
#define PCI_ADDRESS_SIZE      13 /* "0000:41:00.0" with the NUL: lower case, 16-bit domain */

typedef struct PageSize {
        uint64_t size_kib;
        uint64_t count; /* pages of this size in the cell, as libvirt counts them */
} PageSize;

typedef struct SnapshotCpu {
        unsigned id;
        int socket_id;   /* -1 when unknown */
        CpuSet siblings; /* threads of the same core, itself included */
} SnapshotCpu;

typedef struct SnapshotCell {
        unsigned id;         /* libvirt's, may be sparse */
        uint64_t memory_kib; /* 0 for a cell without memory */
        SnapshotCpu *cpus;   /* none for a cell with memory only */
        size_t n_cpus;
        PageSize *pages;
        size_t n_pages;
} SnapshotCell;

typedef struct MdevType {
        char *id;   /* "nvidia-35" */
        char *name; /* "GRID V100D-4Q", "" when unknown */
        uint64_t available_instances;
        uint64_t created_instances; /* that are no mdevs: see is_vgpu_function */
} MdevType;

/* A node device that guests may be given a part of, or the whole of: PCI functions and mdev
 * parents. */
typedef struct SnapshotDevice {
        char *name;   /* libvirt's: "pci_0000_41_00_0", "mtty_mtty" */
        char *parent; /* libvirt's name of the parent, "" when unknown */
        char *driver; /* "" when none is bound */
        bool is_pci;
        char address[PCI_ADDRESS_SIZE]; /* "0000:41:00.0"; "" unless is_pci. A 32-bit domain does
                             not fit and is no candidate */
        uint32_t vendor_id, product_id, class_code;
        char *vendor, *product;    /* as libvirt names them, "" when unknown */
        int numa_node;             /* NUMA_NODE_NONE when it has none */
        char *physical_function;   /* PCI address of its PF when it is a VF, else "" */
        bool is_physical_function; /* has, or can have, virtual functions */
        uint64_t max_virtual_functions;
        bool is_vdpa_parent;
        bool has_card_serial; /* its VPD, or else that of its physical function, has the serial
                                 number of the card */
        char *serial; /* serial number: of its VPD, of its NVMe controller, or else of its physical
                         function; "" when unknown */
        bool is_vgpu_function; /* a VF that becomes a vGPU itself, without an mdev: its types say
                                  into what (drivers/host/vgpu-types.h) */
        MdevType *mdev_types;
        size_t n_mdev_types;
} SnapshotDevice;

typedef struct SnapshotMdev {
        Uuid uuid;
        char *type;   /* "nvidia-35" */
        char *parent; /* name of the device in which it lives */
} SnapshotMdev;

typedef enum DomainState {
        DOMAIN_SHUTOFF,
        DOMAIN_RUNNING,
        DOMAIN_PAUSED, /* and every other state in which it holds its resources */
        _DOMAIN_STATE_MAX,
        _DOMAIN_STATE_INVALID = -EINVAL,
} DomainState;

const char *domain_state_to_text(DomainState state); /* "shutoff", "running", "paused" */

/* Host CPUs on which one guest CPU may run: <vcpupin>. */
typedef struct DomainPin {
        unsigned vcpu;
        CpuSet cpus;
} DomainPin;

/* A NUMA cell that the guest sees: <cpu><numa><cell>. */
typedef struct DomainCell {
        unsigned id;
        uint64_t memory_kib;
        CpuSet vcpus;      /* guest CPUs; may be empty */
        CpuSet host_cells; /* its <memnode>, ids of host cells; empty: none */
        uint64_t page_kib; /* of its memory; 0: small pages */
} DomainCell;

typedef struct SnapshotDomain {
        Uuid uuid;
        char *name;
        DomainState state;
        bool unread;    /* it is there, but what it has could not be read: a problem says why */
        uint64_t vcpus; /* that it may have at most */
        uint64_t memory_kib; /* the same */
        CpuSet cpus;     /* host CPUs of guest CPUs that have no pin, <vcpu cpuset>; empty: none */
        DomainPin *pins; /* sorted by vcpu; of CPUs that are pinned, which may be none */
        size_t n_pins;
        CpuSet emulator_cpus; /* host CPUs of its emulator threads and I/O threads, <emulatorpin>
                                 and <iothreadpin>; empty: not pinned */
        CpuSet memory_cells;  /* <numatune><memory nodeset>, ids of host cells; empty: none */
        DomainCell *cells;    /* sorted by id */
        size_t n_cells;       /* 0: the guest sees no cells */
        uint64_t page_kib;    /* of memory that no cell has; 0: small pages. A guest that asks for
                               * hugepages of no size gets the host's default, taken as 2048 */
        Uuid *mdevs;          /* of its <hostdev>s */
        size_t n_mdevs;
        char (*pci_addresses)[PCI_ADDRESS_SIZE]; /* of its <hostdev>s, <interface
                                                    type='hostdev'>s and <disk type='nvme'>s */
        size_t n_pci_addresses;
        /* A running domain has a second, persistent definition, which its next start uses. All
         * fields above are of the live one. These are of the persistent one alone, and empty for a
         * domain that does not run (decision devices/definition). */
        Uuid *config_mdevs;
        size_t n_config_mdevs;
        char (*config_pci_addresses)[PCI_ADDRESS_SIZE];
        size_t n_config_pci_addresses;
        CpuSet config_cpus; /* host CPUs that the persistent definition gives to one guest CPU
                             * each, or to emulator and I/O threads. The live definition can give
                             * them, too */
} SnapshotDomain;

/* What guests of one architecture and machine type may have: libvirt's domain capabilities. The
 * words are libvirt's. */
typedef struct SnapshotEmulator {
        char *arch;    /* "x86_64" */
        char *machine; /* "pc-q35-7.2", "" of a hypervisor without machine types */
        StringSet disk_buses;
        StringSet video_models;
        StringSet filesystem_drivers;
        StringSet tpm_models;   /* "tpm-tis" */
        StringSet tpm_backends; /* "emulator" */
        StringSet tpm_versions; /* "2.0"; empty with a libvirt that does not list them */
        bool secure_boot;
        bool sev, sev_es, sev_snp;
        uint64_t sev_max_guests; /* INT64_MAX when unknown */
        uint64_t sev_es_max_guests;
} SnapshotEmulator;

typedef struct Snapshot {
        unsigned n_references; /* atomic; snapshot_ref() and snapshot_unref() */
        char *driver;          /* "libvirt", "linux", "static" */
        char *nodename;   /* the host's name as the hypervisor has it: the root provider's name */
        char *arch;       /* "x86_64" */
        char *cpu_model;  /* "" when unknown */
        char *hypervisor; /* "QEMU" */
        uint64_t hypervisor_version; /* libvirt's form: 7002011 is 7.2.11 */
        uint64_t libvirt_version;    /* the same form; 0 when unknown */
        uint64_t memory_kib;         /* of the host */
        CpuSet online_cpus;
        CpuSet present_cpus;       /* online or not; empty when unknown */
        StringSet cpu_features;    /* that guests may have, libvirt's names; empty when unknown */
        uint64_t disk_total_bytes; /* file system of instances_path; 0 when there is none. With
                                      disk_error: the last good figure, 0 when there was none */
        Error disk_error;       /* why its size is not known now; code 0: it is. Not in the JSON */
        Uuid *instance_folders; /* servers with a folder there; sorted (drivers/disk-check.h) */
        size_t n_instance_folders;
        Error folders_error; /* why they are not known; code 0: they are. Not in the JSON */
        uint64_t taken_realtime_usec; /* when the poll ended, CLOCK_REALTIME */
        uint64_t begun_realtime_usec; /* when it began: what happened since is not sure to be in it
                                       */
        uint64_t began_usec;          /* the same, CLOCK_MONOTONIC */
        SnapshotCell *cells;
        size_t n_cells; /* 0: the host lists no cells */
        SnapshotEmulator *emulators;
        size_t n_emulators;        /* 0: unknown */
        bool emulators_incomplete; /* some of them could not be read, or none of them: what none is
                                      said to have may be there all the same */
        bool features_incomplete;  /* the same of cpu_features */
        StringSet problems;        /* what could not be read, in words, each with its name and with
                                      why; all else was read */
        SnapshotDevice *devices;
        size_t n_devices;
        SnapshotMdev *mdevs;
        size_t n_mdevs;
        SnapshotDomain *domains;
        size_t n_domains;
        bool guests_unknown; /* which guests there are is not known. Not in the JSON */
} Snapshot;

/* An empty snapshot with one reference, every string "", to be filled by a driver before it is
 * shared. Strings that a driver sets are owned by the snapshot and freed with it. */
int snapshot_new(Snapshot **ret);
Snapshot *snapshot_ref(const Snapshot *snapshot);
Snapshot *snapshot_unref(const Snapshot *snapshot); /* NULL-safe, returns NULL; any thread */
static inline void snapshot_unrefp(Snapshot **snapshot)
{
        snapshot_unref(*snapshot);
}

/* The last step of making one: brings every list into its one order (cells by id, emulators by
 * architecture and machine, devices by name, their mdev types by id, mdevs by the device that they
 * are of, then uuid, domains by uuid, a domain's pins by guest CPU and its cells by id), so that
 * two polls of an unchanged host are the same whatever order the hypervisor listed things in.
 * -EBADMSG when something is listed twice.
 */
int snapshot_seal(Snapshot *snapshot, Error *reterr);

/* Puts a copy of value in the place of one of the snapshot's texts. -ENOMEM. */
int snapshot_set_text(char **text, const char *value, Error *reterr);

/* Notes a part that could not be read; beyond SNAPSHOT_PROBLEMS_MAX none is added. -ENOMEM. */
int snapshot_add_problem(Snapshot *snapshot, const char *text);

/* The mdevs of a device, borrowed, *ret_n of them; of a sealed snapshot. In O(log n). */
const SnapshotMdev *snapshot_mdevs_of(const Snapshot *snapshot, const char *device, size_t *ret_n);

/* Borrowed, or NULL; a device of a sealed snapshot in O(log n). */
const SnapshotDevice *snapshot_find_device(const Snapshot *snapshot, const char *name);
const SnapshotMdev *snapshot_find_mdev(const Snapshot *snapshot, const Uuid *uuid);
const SnapshotDomain *snapshot_find_domain(const Snapshot *snapshot, const Uuid *uuid);
MdevType *snapshot_find_mdev_type(const SnapshotDevice *device, const char *id);

/* Returns whether the domain has the mdev (uuid) or PCI device (address). in_config: also if only
 * the persistent definition of a domain that runs has it. */
bool snapshot_domain_has(const SnapshotDomain *domain, const char *thing, bool in_config);

/* Free what the struct owns and leave it zeroed, for those who build one piece by piece. */
void snapshot_emulator_done(SnapshotEmulator *emulator);
void snapshot_device_done(SnapshotDevice *device);
void snapshot_mdev_done(SnapshotMdev *mdev);
void snapshot_domain_done(SnapshotDomain *domain);

/* Whether something of it that guests are given may change without an event: a driver that is bound
 * late brings mdev types and virtual functions, and an mdev less is one more to have. True of
 * parents of mediated devices, of graphics cards and accelerators, and of physical functions. Not
 * of network cards, of which there are many (their functions come and go with events), nor of a
 * virtual function that has its driver. */
bool snapshot_device_changes_silently(const SnapshotDevice *device);

/* Reads a PCI address in any case into the one form of this program. -EINVAL, ret untouched, for
 * something else. */
int pci_address_parse(const char *text, char ret[PCI_ADDRESS_SIZE]);

/* Makes libvirt's name of a device: "pci_0000_41_00_0" of "pci" and "0000:41:00.0". Every driver
 * uses it, so that a host keeps its providers when its driver changes. NULL when out of memory. */
char *snapshot_device_name(const char *subsystem, const char *name);

/* Writes the identity of a PCI device; "" for any other device. */
void snapshot_device_identity(const SnapshotDevice *device, char ret[static DEVICE_IDENTITY_SIZE]);

/* Sets the serial number to a copy that is cut and safe to print. -ENOMEM. */
int snapshot_device_set_serial(SnapshotDevice *device, const char *serial);

/* Deep copies. What ret had is not freed. -ENOMEM, ret zeroed. */
int snapshot_device_copy(SnapshotDevice *ret, const SnapshotDevice *device);
int snapshot_mdev_copy(SnapshotMdev *ret, const SnapshotMdev *mdev);
int snapshot_domain_copy(SnapshotDomain *ret, const SnapshotDomain *domain);
int snapshot_emulator_copy(SnapshotEmulator *ret, const SnapshotEmulator *emulator);

/* Makes every text of it that is still NULL "". -ENOMEM. */
int snapshot_device_complete(SnapshotDevice *device);

/* JSON. to: a new reference, NULL when out of memory. from: a whole check of types and limits;
 * -EBADMSG with the path of the member that is wrong. Members that a host can do without (most of
 * them) may be left out, so that a host can be written by hand; unknown members are ignored, so
 * that an older program reads a newer file. */
json_t *snapshot_to_json(const Snapshot *snapshot);
int snapshot_from_json(const json_t *object, Snapshot **ret, Error *reterr);
