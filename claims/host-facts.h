/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the claims must know of the host beside its providers: which devices can be given, which
 * mdevs exist, which guests are defined. Plain data, made by agent/ from a poll; everything in it
 * is borrowed from whoever made it. */

#include "base/uuid.h"

/* A device that mediated devices are made on, of the one type that it is configured for. */
typedef struct HostDevice {
        const char *name;           /* libvirt's: "pci_0000_41_00_0" */
        const char *address;        /* PCI address, "" when it has none */
        const char *mdev_type;      /* "nvidia-35" */
        const char *resource_class; /* "VGPU", "CUSTOM_…": what one mdev counts as */
        uint64_t available;         /* mdevs of the type that can still be made */
} HostDevice;

typedef struct HostMdev {
        Uuid uuid;
        const char *device; /* name of the parent */
        const char *type;
} HostMdev;

typedef struct HostDomain {
        Uuid uuid;
        const char *name;
        bool running; /* or paused: it holds what it has */
        uint64_t vcpus;
        uint64_t memory_mb;
        const Uuid *mdevs;
        size_t n_mdevs;
} HostDomain;

typedef struct HostFacts {
        uint64_t taken_usec; /* CLOCK_REALTIME */
        HostDevice *devices;
        size_t n_devices;
        HostMdev *mdevs;
        size_t n_mdevs;
        HostDomain *domains;
        size_t n_domains;
} HostFacts;

/* Borrowed, or NULL. */
const HostDevice *host_facts_find_device(const HostFacts *facts, const char *name);
const HostMdev *host_facts_find_mdev(const HostFacts *facts, const Uuid *uuid);
const HostDomain *host_facts_find_domain(const HostFacts *facts, const Uuid *uuid);

/* Is the mdev in any domain's XML? */
bool host_facts_mdev_in_use(const HostFacts *facts, const Uuid *uuid);
