/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One claim as it stands in the store, and lists of them. Plain data, no policy. */

#include "base/allocation.h"
#include "base/resource-request.h"
#include "claims/claim/event.h"
#include "claims/claim/host-facts.h"
#include "claims/claim/layout.h"

/* Ended claims that the history keeps, the newest. */
#define CLAIM_HISTORY_MAX 1000
#define CLAIMS_LOT        64

/* Bytes of an end reason, of a project and of a user. */
#define CLAIM_TEXT_MAX 255

/* The first bytes of a text (NULL: none) for these, without half a UTF-8 sequence. Yields cut. */
const char *claim_cut_text(const char *text, char cut[static CLAIM_TEXT_MAX + 1]);

/* Of what shows that its guest lives, with the NUL. */
#define CLAIM_LIFE_SIZE 512

/* The end reason of a claim that nobody confirmed in time. */
#define CLAIM_EXPIRED "expired"

/* That of a claim that is made anew, since its guest and Placement have other amounts. */
#define CLAIM_RESIZED "its guest was resized"

/* That of a confirmed claim whose guest was gone in every poll of claim_expiry_time. */
#define CLAIM_ORPHAN "orphan: its guest is gone"
/* That of one of the two claims of a guest that was resized on its own host. */
#define CLAIM_RESIZE_OVER "its resize is over: neither guest nor Placement has what it holds"

/* That of a claim that is made again because Placement has other amounts of its guest. */
#define CLAIM_FOLLOWED "Placement has other amounts"

/* Consumer type of claims that were made of a domain, and not asked for by who placed the guest. */
#define CLAIM_TYPE_GUEST "LIBVIRT"

typedef enum ClaimState {
        CLAIM_STATE_PENDING,   /* on disk, and promised to nobody: Placement is being asked */
        CLAIM_STATE_CLAIMED,   /* promised; expires unless confirmed */
        CLAIM_STATE_CONFIRMED, /* a guest uses it */
        CLAIM_STATE_RELEASED,  /* ended; kept as history */
        _CLAIM_STATE_MAX,
        _CLAIM_STATE_INVALID = -EINVAL,
} ClaimState;

const char *claim_state_to_text(
        ClaimState state); /* "pending", "claimed", "confirmed", "released" */

/* The state of writing the claim to Placement, by this agent. */
typedef enum ClaimWriteState {
        CLAIM_WRITE_NONE,    /* nothing: there is no Placement, or somebody else wrote there */
        CLAIM_WRITE_PENDING, /* it may have been reported; nobody was promised anything yet */
        CLAIM_WRITE_WRITTEN, /* the allocations are ours to remove */
        CLAIM_WRITE_OWED,    /* promised without it: still to be written there */
        CLAIM_WRITE_SENT,    /* the same, and what is there may be ours */
        _CLAIM_WRITE_MAX,
        _CLAIM_WRITE_INVALID = -EINVAL,
} ClaimWriteState;

const char *claim_write_state_to_text(ClaimWriteState write_state); /* "", "pending", "written", …
                                                                     */

/* What is still to be reported to Placement. */
typedef struct ClaimsOwed {
        uint64_t n_writes;    /* to be written */
        uint64_t n_removals;  /* ended: what is there is to be removed */
        uint64_t n_moves;     /* to be another consumer's */
        int64_t last_removal; /* the highest id of one; 0: there is none */
        uint64_t n_unheld;    /* no part of the sum: claims of guests that nobody reported,
                                 and nobody is to */
} ClaimsOwed;

static inline uint64_t claims_owed_sum(const ClaimsOwed *owed)
{
        return owed->n_writes + owed->n_removals + owed->n_moves;
}

/* How Placement had a consumer when its claim was reported, or read last before that: what shows
 * whether somebody else wrote it since. Whoever writes to Placement knows what they mean
 * (agent/guests/claim-share.h). */
typedef struct ClaimReported {
        int64_t generation; /* of the consumer */
        Uuid elsewhere;     /* stands for the providers that are not of this host; "": not known */
        uint64_t until_sec; /* by Placement's clock: it was written until then, one that was read
                             * just then; 0: not known */
} ClaimReported;

/* A claim that ended while it was pending or written: what Placement has of it is to be removed. */
typedef struct ClaimRemoval {
        int64_t id;
        int64_t claim; /* that ended */
        Uuid consumer;
        ClaimReported reported;
        bool unsure; /* it is not known whether what was written for the claim arrived */
} ClaimRemoval;

/* A claim that is to be another consumer's: a migration's, or the instance's again. */
typedef struct ClaimMove {
        int64_t id;
        Uuid from, to;
        char *to_type;         /* "MIGRATION"; owned */
        const EventAuthor *by; /* borrowed; not kept on disk */
} ClaimMove;

void claim_move_done(ClaimMove *move);

/* A device that a claim has for itself, with texts that a claim owns: a mediated device, which
 * exists or is to be made, or a whole PCI device: no type and no mdev then. */
typedef struct ClaimDevice {
        Uuid provider;
        const char *suffix;    /* of the request group that it was given to */
        const char *name;      /* as libvirt names it, or the mdev's parent: "pci_0000_41_00_0" */
        const char *address;   /* its PCI address, "" when it has none */
        const char *mdev_type; /* "nvidia-35" */
        Uuid mdev;
        const char *identity; /* of the device at the address when it was given
                           (base/device-identity.h);
                           "" or NULL: not recorded */
} ClaimDevice;

/* A device that living claims name, by its address. */
typedef struct ClaimedDevice {
        char address[HOST_ADDRESS_SIZE];
        char identity[DEVICE_IDENTITY_SIZE]; /* as recorded, never "" */
} ClaimedDevice;

typedef struct ClaimedDevices {
        ClaimedDevice *items; /* by address, and by identity where claims differ */
        size_t n_items, n_allocated;
} ClaimedDevices;

static inline void claimed_devices_done(ClaimedDevices *devices)
{
        free(devices->items);
        *devices = (ClaimedDevices){ 0 };
}

typedef struct Claim {
        int64_t id;
        Uuid consumer; /* instance_uuid of the specification's table */
        Uuid guest;    /* whose it was before it was handed to the consumer, a migration; "": it is
                          the consumer's own */
        ClaimState state;
        ClaimWriteState write_state; /* NONE of an ended one */
        bool resize_target;          /* stands beside the first claim of the same consumer */
        bool was_read;               /* what Placement has of the consumer was read for it */
        bool is_unheld;              /* and nobody had written it there */
        char *host, *node;
        char *project_id, *user_id; /* "" when not given */
        char *consumer_type;        /* "" when not given */
        char *request; /* what was asked for, in the form of Placement's query: "resources=VCPU:2"
                        */
        char *life;    /* by what its guest is known that no hypervisor lists
                          (agent/guests/life.h); "" when by nothing */
        char *boot_id; /* of the boot that the claim was made in; "" when unknown */
        Allocation *allocations; /* what it holds: provider and resources, sorted by provider */
        size_t n_allocations;
        char **provider_names; /* name of each allocation's provider, same order */
        RequestMappings mappings;
        ClaimDevice *devices; /* in the order in which they were given */
        size_t n_devices, n_devices_allocated;
        Layout layout; /* where its CPUs and memory are; no cells: not said */
        size_t n_cells_allocated, n_cpus_allocated; /* of layout */
        uint64_t created_usec;                      /* CLOCK_REALTIME */
        uint64_t expires_usec;                      /* CLOCK_REALTIME; 0: never */
        uint64_t ended_usec;                        /* 0: lives */
        char *end_reason;                           /* "" while it lives */
} Claim;

/* Yields a claim with every text "" and no allocation. -ENOMEM. */
int claim_new(Claim **ret);
Claim *claim_free(Claim *claim);
DEFINE_CLEANUP(Claim *, claim_free);

/* Adds what one group got of a class from a provider. -ENOMEM, -EOVERFLOW. */
int claim_add(Claim *claim, const Uuid *provider, const char *provider_name, const char *suffix,
              const char *resource_class, uint64_t amount);

/* Adds a copy of a device. -ENOMEM. */
int claim_add_device(Claim *claim, const ClaimDevice *device);

/* True when the claim has that whole PCI device. */
bool claim_has_pci(const Claim *claim, const char *address);

/* True when the claim has that mdev. */
bool claim_has_mdev(const Claim *claim, const Uuid *mdev);

/* Was it made of its guest alone? Then it is over when that stops. Not where somebody else wrote
 * what the guest has: who placed it speaks for it, running or not. */
bool claim_is_of_guest_alone(const Claim *claim);

/* The sum of a class over all providers. */
uint64_t claim_sum(const Claim *claim, const char *resource_class);

/* Returns the amount of a class that the claim's request has, over all its groups. 0 if none. */
uint64_t claim_requested(const Claim *claim, const char *resource_class);

/* Do the claim's devices or cells say from which provider it has the class? What nothing binds is
 * where Placement has it. */
bool claim_binds(const Claim *claim, const char *resource_class);

/* Which claims are listed. */
typedef enum ClaimsWhich {
        CLAIMS_LIVING,
        CLAIMS_ENDED,     /* the newest CLAIM_HISTORY_MAX */
        CLAIMS_ALL,       /* both */
        CLAIMS_PENDING,   /* the living ones that are pending */
        CLAIMS_OF_DEVICE, /* that live and have the device: libvirt's name or PCI address of it, or
                             the uuid of the mdev */
        CLAIMS_OF_GUEST,  /* that live and are of the guest with that uuid: its own, and what was
                             handed to a migration */
        CLAIMS_WITH_DEVICES, /* that live and have devices: their ids, consumers and devices alone
                              */
        _CLAIMS_WHICH_MAX,
} ClaimsWhich;

typedef struct ClaimList {
        Claim **claims;
        size_t n_claims;
        size_t n_allocated;
} ClaimList;

/* Appends; the list takes the claim when 0 is returned. -ENOMEM. */
int claim_list_add(ClaimList *list, Claim *claim);
void claim_list_done(ClaimList *list);

/* What opening a store found. */
typedef enum ClaimsOpened {
        CLAIMS_OPENED = 0,
        CLAIMS_CREATED,  /* no file was there */
        CLAIMS_UPGRADED, /* an older schema was upgraded; the old file is kept beside it (reterr has
                            its name) */
        CLAIMS_SET_ASIDE, /* the file was corrupt: renamed (reterr has the words), and an empty one
                             made */
        _CLAIMS_OPENED_MAX,
} ClaimsOpened;
