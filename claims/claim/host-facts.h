/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The facts of the host that claims need beside its providers: devices that guests can get,
 * existing mdevs, PCI functions, host cells, guests, and folders of Nova. Plain data, which agent/
 * makes from a poll. Texts with a pointer are borrowed from that poll or from the set "configured",
 * except those that cards and sets own. */

#include "base/device-identity.h"
#include "base/device-set.h"
#include "base/inventory.h"
#include "base/string-set.h"
#include "base/uuid.h"
#include "base/vgpu-card.h"
#include "claims/claim/layout.h"

#define HOST_ADDRESS_SIZE     13 /* bytes of "0000:41:00.0" with its NUL */
#define HOST_PAGES_CLASS_SIZE 48 /* bytes of "CUSTOM_HUGEPAGES_2M" */
#define HOST_PAGES_PREFIX     "CUSTOM_HUGEPAGES_"
#define HOST_CELL_NONE        (-1)

/* A device on which mediated devices are made, of the one type that is configured for it. */
typedef struct HostDevice {
        const char *name;           /* libvirt's name: "pci_0000_41_00_0" */
        const char *address;        /* PCI address; "" if it has none */
        const char *mdev_type;      /* "nvidia-35" */
        const char *resource_class; /* class that counts one mdev: "VGPU", "CUSTOM_…" */
        uint64_t available;         /* number of mdevs of the type that can still be made */
        int cell;                   /* id of its host cell; HOST_CELL_NONE if it has none */
        const char *identity;       /* "" or NULL if it is unknown */
} HostDevice;

/* A PCI function that guests get as a whole. A function that becomes a vGPU is listed once for each
 * type that it can have. */
typedef struct HostPci {
        const char *name;     /* libvirt's name: "pci_0000_41_00_0" */
        const char *address;  /* "0000:41:00.0" */
        const char *provider; /* end of its provider's name: its PCI address, or that of its
                                 physical function; for a vGPU libvirt's name of the card; for a
                                 device of a set that of the set's provider */
        char resource_class[RESOURCE_CLASS_MAX + 1];
        int cell;              /* id of its host cell, or HOST_CELL_NONE */
        bool managed;          /* libvirt must detach it from its driver when a guest gets it */
        const char *identity;  /* "" or NULL if it is unknown */
        const char *vgpu_type; /* "nvidia-1428"; NULL for a device that is no vGPU */
        size_t card;           /* index of its card in the facts, for a vGPU */
        bool must_be_cleaned;  /* after each guest: a section [device_clean NAME] has it */
        const DeviceSet *set;  /* set of the facts that it is a device of; NULL: none */
        bool withheld;         /* cordoned; no new claim gets it. Only for a device of a set */
} HostPci;

typedef struct HostCpu {
        unsigned id;
        unsigned core;          /* the lowest thread id of its core */
        bool shared, dedicated; /* guests can use it in this way; a shared one is online */
        bool withheld; /* a dedicated one that no claim can get now: it is offline, or a guest
                          without pins can run on it */
} HostCpu;

typedef struct HostPages {
        uint64_t size_kib;
        uint64_t total, reserved;                   /* number of pages */
        char resource_class[HOST_PAGES_CLASS_SIZE]; /* class by which the cell's provider counts
                                                       them */
} HostPages;

typedef struct HostCell {
        unsigned id;
        int socket;         /* -1: unknown, or CPUs of several sockets */
        uint64_t memory_mb; /* in small and large pages */
        HostCpu *cpus;      /* sorted by id */
        size_t n_cpus;
        HostPages *pages; /* large ones, by size */
        size_t n_pages;
} HostCell;

typedef struct HostMdev {
        Uuid uuid;
        const char *device; /* name of the parent device */
        const char *type;
        const char *address; /* PCI address of the parent; "" if it has none */
} HostMdev;

/* A PCI function that the host lists, whether guests can get it or not. */
typedef struct HostFunction {
        const char *address;
        const char *physical_function;       /* PCI address of its card; "" unless it is virtual */
        char identity[DEVICE_IDENTITY_SIZE]; /* base/device-identity.h; "" if it is unknown */
} HostFunction;

typedef struct HostDomain {
        Uuid uuid;
        const char *name;
        bool running; /* it runs or is paused, so it uses its resources */
        bool unread; /* it exists, but its resources are unknown: its claim stays as it is, and none
                        is made of it */
        uint64_t vcpus;
        uint64_t memory_mb;
        const Uuid *mdevs;
        size_t n_mdevs;
        const char (*pci)[HOST_ADDRESS_SIZE]; /* PCI addresses of its devices */
        size_t n_pci;
        /* Devices that only the persistent definition of a running guest has. The next start of the
         * guest needs them. */
        const Uuid *config_mdevs;
        size_t n_config_mdevs;
        const char (*config_pci)[HOST_ADDRESS_SIZE];
        size_t n_config_pci;
        Layout layout; /* no cells: its place is unknown */
} HostDomain;

typedef struct HostFacts {
        uint64_t taken_usec; /* CLOCK_REALTIME at the start of the poll, which might miss later
                                changes */
        HostDevice *devices;
        size_t n_devices;
        HostPci *pci;
        size_t n_pci;
        VgpuCard *cards; /* cards with vGPU functions; no function is marked as taken */
        size_t n_cards;
        DeviceSet *sets; /* with all devices, also those that the host does not list */
        size_t n_sets;
        HostMdev *mdevs;
        size_t n_mdevs;
        HostFunction *functions; /* all that the host lists, by address; NULL: unknown */
        size_t n_functions;
        HostCell *cells; /* sorted by id */
        size_t n_cells;
        uint64_t small_page_kib; /* 0: unknown */
        HostDomain *domains;
        size_t n_domains;
        CpuSet guest_cpus;   /* dedicated host CPUs in either definition of a running guest */
        const Uuid *folders; /* servers with a folder in Nova's instances_path; sorted, borrowed */
        size_t n_folders;
        const char *folders_unknown; /* reason why the folders are unknown, borrowed; NULL: they are
                                        known */
        StringSet configured; /* copies of the configured types and classes of devices, because the
                                 configuration can be freed before the facts */
} HostFacts;

/* Returns true if a device of the host counts as the class. */
bool host_facts_has_class(const HostFacts *facts, const char *resource_class);

/* Finds a part of the facts. Returns a borrowed pointer, or NULL. A device is found by libvirt's
 * name. */
const HostDevice *host_facts_find_device(const HostFacts *facts, const char *name);
const HostMdev *host_facts_find_mdev(const HostFacts *facts, const Uuid *uuid);
const HostDomain *host_facts_find_domain(const HostFacts *facts, const Uuid *uuid);

/* Returns true if Nova has a folder for the server on this host: it builds, copies or has the
 * server, which can be off. Returns false if the folders are unknown. */
bool host_facts_has_folder(const HostFacts *facts, const Uuid *server);

/* Returns the host cell with this id, borrowed, or NULL. */
const HostCell *host_facts_find_cell(const HostFacts *facts, unsigned id);
/* Returns false if the host lists no PCI function at this address. Returns true if the functions
 * are unknown. */
bool host_facts_lists_function(const HostFacts *facts, const char *address);
/* Returns the first entry of the PCI function that guests can get, borrowed, or NULL. */
const HostPci *host_facts_find_pci(const HostFacts *facts, const char *address);

/* Returns the set of the device at the address, borrowed; NULL: none. */
const DeviceSet *host_facts_find_set(const HostFacts *facts, const char *address);

/* Lists the guest's devices of a set, those of both definitions, each once, at most
 * DEVICE_SET_PARTITIONS_MAX. Returns their number. The addresses are borrowed. */
size_t host_domain_list_members(const HostDomain *domain, const DeviceSet *set,
                                const char *ret[static DEVICE_SET_PARTITIONS_MAX]);

/* Returns the PCI address of the physical function of a virtual function, borrowed; "" for all
 * other devices, and if the functions are unknown. */
const char *host_facts_physical_function(const HostFacts *facts, const char *address);

/* Returns the identity of the device at the address; "" if it is unknown or none is there. */
const char *host_facts_identity(const HostFacts *facts, const char *address);
