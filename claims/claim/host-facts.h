/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the claims must know of the host beside its providers: which devices can be given, which
 * mdevs exist, which guests are defined. Plain data, made by agent/ from a poll; what is not its
 * own is borrowed from that poll. */

#include "base/device-identity.h"
#include "base/inventory.h"
#include "base/string-set.h"
#include "base/uuid.h"
#include "claims/claim/layout.h"

#define HOST_ADDRESS_SIZE     13 /* bytes of "0000:41:00.0" with its NUL */
#define HOST_PAGES_CLASS_SIZE 48 /* of "CUSTOM_HUGEPAGES_2M" */
#define HOST_PAGES_PREFIX     "CUSTOM_HUGEPAGES_"
#define HOST_CELL_NONE        (-1)

/* A device that mediated devices are made on, of the one type that it is configured for. */
typedef struct HostDevice {
        const char *name;           /* libvirt's: "pci_0000_41_00_0" */
        const char *address;        /* PCI address, "" when it has none */
        const char *mdev_type;      /* "nvidia-35" */
        const char *resource_class; /* "VGPU", "CUSTOM_…": what one mdev counts as */
        uint64_t available;         /* mdevs of the type that can still be made */
        int cell;                   /* id of its host cell, HOST_CELL_NONE when it has none */
        const char *identity;       /* "" or NULL when it is unknown */
} HostDevice;

/* A PCI device that is given to guests whole. */
typedef struct HostPci {
        const char *name;     /* libvirt's: "pci_0000_41_00_0" */
        const char *address;  /* "0000:41:00.0" */
        const char *provider; /* the address that its provider is named by: its own, or that of its
                                 physical function */
        char resource_class[RESOURCE_CLASS_MAX + 1];
        int cell;             /* as above */
        bool managed;         /* libvirt is to take it from its driver when a guest gets it */
        const char *identity; /* "" or NULL when it is unknown */
} HostPci;

typedef struct HostCpu {
        unsigned id;
        unsigned core;          /* the lowest id of the threads of its core */
        bool shared, dedicated; /* is it for guests, and how? A shared one is online. */
        bool withheld;          /* a dedicated one that no claim can get now: it is offline, or a
                                   guest without pins can run on it */
} HostCpu;

typedef struct HostPages {
        uint64_t size_kib;
        uint64_t total, reserved;                   /* pages */
        char resource_class[HOST_PAGES_CLASS_SIZE]; /* that the cell's provider counts them as */
} HostPages;

typedef struct HostCell {
        unsigned id;
        int socket;         /* -1: unknown, or CPUs of several */
        uint64_t memory_mb; /* small and large pages */
        HostCpu *cpus;      /* by id */
        size_t n_cpus;
        HostPages *pages; /* large ones, by size */
        size_t n_pages;
} HostCell;

typedef struct HostMdev {
        Uuid uuid;
        const char *device; /* name of the parent */
        const char *type;
        const char *address; /* PCI address of the parent, "" when it has none */
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
        bool running; /* or paused: it holds what it has */
        bool unread; /* it is there, and what it has is not known: whatever claim it has stays as it
                        is, and none is made of it */
        uint64_t vcpus;
        uint64_t memory_mb;
        const Uuid *mdevs;
        size_t n_mdevs;
        const char (*pci)[HOST_ADDRESS_SIZE]; /* addresses */
        size_t n_pci;
        /* Of the persistent definition of a running guest alone: its next start needs them */
        const Uuid *config_mdevs;
        size_t n_config_mdevs;
        const char (*config_pci)[HOST_ADDRESS_SIZE];
        size_t n_config_pci;
        Layout layout; /* no cells: it is not said where it is */
} HostDomain;

typedef struct HostFacts {
        uint64_t taken_usec; /* CLOCK_REALTIME: when the poll began, which can miss what came since
                              */
        HostDevice *devices;
        size_t n_devices;
        HostPci *pci;
        size_t n_pci;
        HostMdev *mdevs;
        size_t n_mdevs;
        HostFunction *functions; /* all that the host lists, by address; NULL: not known */
        size_t n_functions;
        HostCell *cells; /* by id */
        size_t n_cells;
        uint64_t small_page_kib; /* 0: not known */
        HostDomain *domains;
        size_t n_domains;
        CpuSet guest_cpus;   /* dedicated host CPUs that running guests have by either definition */
        const Uuid *folders; /* servers with a folder in Nova's instances_path; sorted, borrowed */
        size_t n_folders;
        const char *folders_unknown; /* why they are not known, borrowed; NULL: they are */
        StringSet configured; /* types and classes of devices, whose configuration may go first */
} HostFacts;

/* Returns true if a device of the host counts as the class. */
bool host_facts_has_class(const HostFacts *facts, const char *resource_class);

/* Borrowed, or NULL. */
const HostDevice *host_facts_find_device(const HostFacts *facts, const char *name);
const HostMdev *host_facts_find_mdev(const HostFacts *facts, const Uuid *uuid);
const HostDomain *host_facts_find_domain(const HostFacts *facts, const Uuid *uuid);

/* Returns true if Nova has a folder for the server on this host: it builds, copies or runs it. */
bool host_facts_has_folder(const HostFacts *facts, const Uuid *server);

const HostCell *host_facts_find_cell(const HostFacts *facts, unsigned id);
/* False when the host lists no PCI function at this address; true when that is not known. */
bool host_facts_lists_function(const HostFacts *facts, const char *address);
const HostPci *host_facts_find_pci(const HostFacts *facts, const char *address);

/* Returns the PCI address of the physical function of a virtual function, borrowed; "" for all
 * other devices. */
const char *host_facts_physical_function(const HostFacts *facts, const char *address);

/* Returns the identity of the device at the address; "" if it is unknown or none is there. */
const char *host_facts_identity(const HostFacts *facts, const char *address);

/* Returns true if this host offers the device at the address, whole or in mediated devices. */
bool host_facts_offers(const HostFacts *facts, const char *address);
