/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Options about the host under their names in nova.conf, which count for every driver. agent/
 * fills the struct and owns everything in it. */

#include "base/device-set.h"
#include "drivers/host/pci-spec.h"

/* One mdev type of [devices] enabled_mdev_types with its [mdev_TYPE] section. */
typedef struct HostMdevType {
        char *type;
        char **device_addresses; /* PCI addresses or paths /sys/devices/virtual/…; NULL-terminated,
                                    or NULL */
        char *mdev_class;        /* "VGPU" or "CUSTOM_…" */
        uint64_t max_instances;  /* 0: no limit */
} HostMdevType;

/* One section [device_prepare NAME]: cards that compute-agent-prepare makes ready at boot. */
typedef struct HostPrepare {
        char *name;
        char **device_addresses;    /* PCI addresses of physical functions, in small letters;
                                       NULL-terminated; each in one section alone */
        uint64_t virtual_functions; /* wanted number; 0: unchanged */
        bool vgpu_types;            /* set the vGPU types that living claims need, clear others */
        char *driver_override;      /* kernel driver of the virtual functions; NULL: unchanged */
        char *unit; /* "NAME@.service", started with the address before the functions are made;
                       NULL: none */
} HostPrepare;

/* One section [device_clean NAME]: devices that are cleaned after each guest. */
typedef struct HostClean {
        char *name;
        char **device_addresses; /* PCI addresses, in small letters; NULL-terminated, or NULL */
        char **resource_classes; /* classes of [pci] device_spec; NULL-terminated, or NULL */
        char *clean;             /* "NAME@.service", started with the address */
        char *prove;             /* the same, started after clean; NULL: none */
        uint64_t timeout_usec;   /* longest time of each unit */
} HostClean;

/* One section [device_shapes NAME]: devices that are given out in partitions. */
typedef struct HostShapes {
        DeviceSet set;         /* made of the next three; has the name of the section */
        char *resource_class;  /* "CUSTOM_…" */
        char **members;        /* PCI addresses, or one number of slots; NULL-terminated */
        char **partitions;     /* "ID=MEMBERS" or "ID=MEMBERS@DEVICES"; NULL-terminated */
        bool managed;          /* libvirt detaches the devices from their host driver */
        char *activate;        /* "NAME@.service", started with the id of a partition; NULL: none */
        char *deactivate;      /* the same; NULL without activate */
        uint64_t timeout_usec; /* longest time of each unit */
} HostShapes;

typedef enum HostVirtType {
        HOST_VIRT_KVM,
        HOST_VIRT_QEMU,
        HOST_VIRT_LXC,
        HOST_VIRT_PARALLELS,
        _HOST_VIRT_TYPE_MAX,
} HostVirtType;

typedef enum HostCpuMode {
        HOST_CPU_DEFAULT, /* the option is not set: host-passthrough on aarch64, else host-model */
        HOST_CPU_HOST_MODEL,
        HOST_CPU_HOST_PASSTHROUGH,
        HOST_CPU_CUSTOM,
        HOST_CPU_NONE,
        _HOST_CPU_MODE_MAX,
} HostCpuMode;

typedef enum HostImagesType {
        HOST_IMAGES_FILES, /* default, raw, flat, qcow2, ploop: files below instances_path */
        HOST_IMAGES_LVM,
        HOST_IMAGES_RBD,
        _HOST_IMAGES_TYPE_MAX,
} HostImagesType;

/* [compute] numa_in_placement: the providers of VCPU, PCPU, MEMORY_MB and hugepages. */
typedef enum HostNuma {
        HOST_NUMA_FLAT,  /* all at the root, without hugepages */
        HOST_NUMA_CELLS, /* all in cells */
        HOST_NUMA_ROOT,  /* VCPU and MEMORY_MB at the root, the others in cells */
} HostNuma;

/* [compute] report_local_disk: whether the root has DISK_GB. */
typedef enum HostLocalDisk {
        HOST_LOCAL_DISK_AUTO, /* unless a sharing provider has it */
        HOST_LOCAL_DISK_YES,
        HOST_LOCAL_DISK_NO,
} HostLocalDisk;

/* Options about the host. A ratio of 0 means "not set". */
typedef struct HostConfig {
        const char *instances_path;   /* [DEFAULT], the folder whose file system is DISK_GB */
        int virt_type;                /* [libvirt] virt_type, HostVirtType */
        int cpu_mode;                 /* [libvirt] cpu_mode, HostCpuMode */
        char **cpu_models;            /* [libvirt] cpu_models, for cpu_mode = custom; or NULL */
        char **cpu_model_extra_flags; /* [libvirt] cpu_model_extra_flags, or NULL */
        int images_type;              /* [libvirt] images_type, HostImagesType */
        /* [libvirt] images_storage_pool: DISK_GB is the size of this storage pool. NULL: of
         * instances_path. */
        const char *images_storage_pool;
        const char *images_rbd_pool; /* [libvirt], for images_type = rbd without a storage pool */
        const char *images_rbd_ceph_conf; /* [libvirt], "" if not set */
        const char *rbd_user;             /* [libvirt], "" if not set */
        int report_local_disk;            /* [compute] report_local_disk, HostLocalDisk */
        bool force_raw_images;
        bool swtpm_enabled;                   /* [libvirt] swtpm_enabled */
        char **supported_tpm_secret_security; /* [libvirt], words, or NULL */
        char **image_type_exclude_list;       /* [compute], words, or NULL */
        const char *cpu_shared_set;           /* [compute], lists of CPUs; NULL or "" if not set */
        const char *cpu_dedicated_set;
        const char *vcpu_pin_set;    /* [DEFAULT], the older option */
        bool cpu_power_management;   /* [libvirt] cpu_power_management */
        int numa_in_placement;       /* [compute] numa_in_placement, HostNuma */
        uint64_t file_backed_memory; /* [libvirt], MiB; 0: use the memory of the host */
        char **reserved_huge_pages;  /* entries such as "node:0,size:2048,count:64", or NULL */
        /* reserved for the host */
        uint64_t reserved_host_cpus;
        uint64_t reserved_host_memory_mb;
        uint64_t reserved_host_disk_mb;
        double cpu_allocation_ratio, initial_cpu_allocation_ratio;
        double ram_allocation_ratio, initial_ram_allocation_ratio;
        double disk_allocation_ratio, initial_disk_allocation_ratio;
        const char *owner_trait; /* [agent] owner_trait, "": none */
        HostMdevType *mdev_types;
        size_t n_mdev_types;
        HostPrepare *prepares; /* sections [device_prepare NAME] */
        size_t n_prepares;
        HostClean *cleans; /* sections [device_clean NAME] */
        size_t n_cleans;
        HostShapes *shapes; /* sections [device_shapes NAME] */
        size_t n_shapes;
        PciSpecs pci_specs;       /* [pci] device_spec */
        bool report_in_placement; /* [pci] report_in_placement */
        char **renamed_classes;   /* [agent] renamed_resource_classes, entries "OLD:NEW"; or NULL */
} HostConfig;
