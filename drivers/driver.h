/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The contract of a virt driver: it says what a hypervisor has.
 *
 * "What is there?" (poll) takes as long as the hypervisor takes, and is asked on a thread of the
 * driver's own. What Placement should be told of it is no driver's affair, but the same for all of
 * them (drivers/update.h). A driver knows neither Placement nor claims, holds no event
 * loop, and logs at debug level only.
 *
 * Threads: every function here is called on the main thread and returns at once, but driver_free(),
 * which waits up to two seconds for the driver's thread. The one thing to watch is the descriptor
 * of driver_get_fd(): readable means that driver_take() has something.
 *
 * A new driver fills a DriverOps and adds a line to the table in drivers/registry.c. */

#include "drivers/host/pci-spec.h"
#include "drivers/host/snapshot.h"

/* One mdev type of [devices] enabled_mdev_types with its [mdev_TYPE] section. */
typedef struct DriverMdevType {
        char *type;
        char **device_addresses; /* PCI addresses or /sys/devices/virtual/… paths; NULL-terminated,
                                    or NULL */
        char *mdev_class;        /* "VGPU" or "CUSTOM_…" */
        uint64_t max_instances;  /* 0: no limit */
} DriverMdevType;

typedef enum DriverVirtType {
        DRIVER_VIRT_KVM,
        DRIVER_VIRT_QEMU,
        DRIVER_VIRT_LXC,
        DRIVER_VIRT_PARALLELS,
        _DRIVER_VIRT_TYPE_MAX,
} DriverVirtType;

typedef enum DriverCpuMode {
        DRIVER_CPU_DEFAULT, /* not set: host-passthrough on aarch64, else host-model */
        DRIVER_CPU_HOST_MODEL,
        DRIVER_CPU_HOST_PASSTHROUGH,
        DRIVER_CPU_CUSTOM,
        DRIVER_CPU_NONE,
        _DRIVER_CPU_MODE_MAX,
} DriverCpuMode;

typedef enum DriverImagesType {
        DRIVER_IMAGES_FILES, /* default, raw, flat, qcow2, ploop: files below instances_path */
        DRIVER_IMAGES_LVM,
        DRIVER_IMAGES_RBD,
        _DRIVER_IMAGES_TYPE_MAX,
} DriverImagesType;

/* The options that the drivers obey, under nova.conf's names. Filled by agent/; everything in it
 * belongs to whoever filled it and must outlive the driver. A ratio of 0 means "not set". */
/* [compute] numa_in_placement: what of VCPU, PCPU, MEMORY_MB and hugepages is where */
typedef enum DriverNuma {
        DRIVER_NUMA_FLAT,  /* at the root, without hugepages */
        DRIVER_NUMA_CELLS, /* in cells */
        DRIVER_NUMA_ROOT,  /* VCPU and MEMORY_MB at the root, the others in cells */
} DriverNuma;

typedef struct DriverConfig {
        const char *connection_uri;      /* [libvirt] connection_uri */
        const char *instances_path;      /* [DEFAULT] instances_path, where DISK_GB lies */
        const char *static_path;         /* [static] path, the JSON file of the static driver */
        uint64_t keepalive_interval_sec; /* [libvirt] keepalive_interval, 0 off */
        uint64_t keepalive_count;        /* [libvirt] keepalive_count */
        int virt_type;                   /* [libvirt] virt_type, DriverVirtType */
        int cpu_mode;                    /* [libvirt] cpu_mode, DriverCpuMode */
        char **cpu_models;               /* [libvirt] cpu_models, of cpu_mode = custom; or NULL */
        char **cpu_model_extra_flags;    /* [libvirt] cpu_model_extra_flags, or NULL */
        int images_type;                 /* [libvirt] images_type, DriverImagesType */
        const char *images_storage_pool; /* [libvirt] images_storage_pool: DISK_GB is the size of
                                            this pool of libvirt; NULL for instances_path */
        bool force_raw_images;
        bool swtpm_enabled;                   /* [libvirt] swtpm_enabled */
        char **supported_tpm_secret_security; /* [libvirt], words, or NULL */
        char **image_type_exclude_list;       /* [compute], words, or NULL */
        const char *cpu_shared_set; /* [compute], lists of CPUs; NULL or "" when not set */
        const char *cpu_dedicated_set;
        const char *vcpu_pin_set;    /* [DEFAULT], what was before the two */
        bool cpu_power_management;   /* [libvirt] cpu_power_management */
        int numa_in_placement;       /* [compute] numa_in_placement, DriverNuma */
        uint64_t file_backed_memory; /* [libvirt] file_backed_memory, MiB; 0: the host's memory */
        char **reserved_huge_pages;  /* "node:0,size:2048,count:64", or NULL */
        uint64_t reserved_host_cpus;
        uint64_t reserved_host_memory_mb;
        uint64_t reserved_host_disk_mb;
        double cpu_allocation_ratio, initial_cpu_allocation_ratio;
        double ram_allocation_ratio, initial_ram_allocation_ratio;
        double disk_allocation_ratio, initial_disk_allocation_ratio;
        const char *owner_trait; /* [agent] owner_trait, "" for none */
        DriverMdevType *mdev_types;
        size_t n_mdev_types;
        PciSpecs pci_specs;       /* [pci] device_spec */
        bool report_in_placement; /* [pci] report_in_placement */
        char **renamed_classes;   /* [agent] renamed_resource_classes, "OLD:NEW" each; or NULL */
} DriverConfig;

/* How much a poll reads anew, each kind also what the ones before it do. */
typedef enum DriverPollKind {
        DRIVER_POLL_CHANGES, /* what the hypervisor told of, and some of what it tells nothing of */
        DRIVER_POLL_GUESTS,  /* and all guests that do not run: they can be edited silently */
        DRIVER_POLL_ALL,
} DriverPollKind;

/* What driver_take() yields. */
typedef enum DriverEventType {
        DRIVER_EVENT_NONE,
        DRIVER_EVENT_SNAPSHOT,    /* a poll ended well: snapshot is set */
        DRIVER_EVENT_POLL_FAILED, /* a poll failed: error is set; the driver tries to connect again
                                     at the next poll */
        DRIVER_EVENT_LOST,        /* the connection broke between polls: error is set */
        DRIVER_EVENT_CHANGED,     /* the hypervisor says that something changed: poll soon */
        _DRIVER_EVENT_TYPE_MAX,
} DriverEventType;

typedef struct DriverEvent {
        DriverEventType type;
        Snapshot *snapshot; /* owned by the receiver: snapshot_unref() */
        Error error;
} DriverEvent;

typedef struct Driver Driver;

typedef struct DriverOps {
        const char *name;
        /* before: as of driver_new() (drivers/registry.h), but one of the same ops, or NULL */
        int (*init)(Driver *driver, const DriverConfig *config, Driver *before, Error *reterr);
        void (*done)(Driver *driver);
        int (*get_fd)(Driver *driver);
        int (*poll)(Driver *driver, DriverPollKind kind);
        int (*take)(Driver *driver, DriverEvent *ret);
} DriverOps;

struct Driver {
        const DriverOps *ops;
        const DriverConfig *config;
        void *state;   /* the driver's own */
        bool replaced; /* another has its place: done() waits for nothing */
};

/* Stops the threads, unless another driver took its place. A thread that hangs inside the
 * hypervisor's library for more than two seconds is left behind. */
Driver *driver_free(Driver *driver);
DEFINE_CLEANUP(Driver *, driver_free);

/* Readable (POLLIN) when driver_take() has something. Owned by the driver. */
int driver_get_fd(Driver *driver);

/* Asks for a poll. A request that comes while one runs is kept and served once after it; more are
 * merged into the kind that reads most. 1 when one is running already, 0 when one was started,
 * < 0 when the thread cannot be told. */
int driver_poll(Driver *driver, DriverPollKind kind);

/* Takes one event; DRIVER_EVENT_NONE when there is none left. Call until then. A newer snapshot
 * replaces an older one that was not taken. */
int driver_take(Driver *driver, DriverEvent *ret);
