/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One claim as the store has it, and lists of claims. Plain data, no policy. */

#include "base/allocation.h"
#include "base/resource-request.h"
#include "claims/claim/event.h"
#include "claims/claim/host-facts.h"
#include "claims/claim/layout.h"

/* Number of ended claims that the history keeps, the newest ones. CLAIMS_LOT is the largest number
 * of claims that one call of claims_list_some() yields. */
#define CLAIM_HISTORY_MAX 1000
#define CLAIMS_LOT        64

/* Longest end reason, project, user and consumer type, in bytes. */
#define CLAIM_TEXT_MAX 255

/* Cuts a text (NULL: none) to CLAIM_TEXT_MAX bytes, at the end of a UTF-8 sequence. Returns cut. */
const char *claim_cut_text(const char *text, char cut[static CLAIM_TEXT_MAX + 1]);

/* Bytes of the text that identifies a guest without a domain, with the NUL. */
#define CLAIM_PROCESS_SIZE 512

/* End reason of a claim that was not confirmed in time. */
#define CLAIM_EXPIRED "expired"

/* End reason of a claim that is made again, because its guest and Placement have other amounts.
 * After a resize, also of a claim whose guest has other devices. */
#define CLAIM_RESIZED "its guest was resized"

/* End reason of a confirmed claim whose guest was missing in every poll of claim_expiry_time. */
#define CLAIM_ORPHAN "orphan: its guest is gone"
/* End reason of one of the two claims of a guest that was resized on its own host. */
#define CLAIM_RESIZE_OVER "its resize is over: guest and Placement have other amounts"

/* End reason of a claim that is made again, because another writer changed its consumer's
 * allocations. */
#define CLAIM_FOLLOWED "Placement has other amounts"

/* Consumer type of claims that were made of a domain, or for the start of a server, and not
 * requested by the guest's scheduler. */
#define CLAIM_TYPE_GUEST "LIBVIRT"

typedef enum ClaimState {
        CLAIM_STATE_PENDING,   /* on disk, and no caller has it: its write has no answer yet */
        CLAIM_STATE_CLAIMED,   /* allocated, not confirmed; expires_usec can end it */
        CLAIM_STATE_CONFIRMED, /* a guest uses it */
        CLAIM_STATE_RELEASED,  /* ended; kept as history */
        _CLAIM_STATE_MAX,
        _CLAIM_STATE_INVALID = -EINVAL,
} ClaimState;

const char *claim_state_to_text(
        ClaimState state); /* "pending", "claimed", "confirmed", "released"; else "unknown" */

/* State of writing the claim to Placement, as far as this agent writes it. */
typedef enum ClaimWriteState {
        CLAIM_WRITE_NONE, /* the agent writes nothing: no Placement, or another writer places the
                             consumer */
        CLAIM_WRITE_UNANSWERED, /* it might have been written; its caller has no answer yet */
        CLAIM_WRITE_WRITTEN,    /* the agent wrote the allocations, and must remove them */
        CLAIM_WRITE_UNSENT,     /* pending write that was not sent yet */
        CLAIM_WRITE_SENT, /* a pending write that was sent: the allocations can be the agent's */
        _CLAIM_WRITE_MAX,
        _CLAIM_WRITE_INVALID = -EINVAL,
} ClaimWriteState;

const char *claim_write_state_to_text(ClaimWriteState write_state); /* "", "pending", … */

/* Numbers of pending writes to Placement. */
typedef struct PendingWrites {
        uint64_t n_writes;      /* allocations to write */
        uint64_t n_removals;    /* ended claims whose allocations must be removed */
        uint64_t n_moves;       /* allocations that another consumer must get */
        int64_t last_removal;   /* the highest id of a removal; 0: there is none */
        uint64_t n_unallocated; /* claims of guests whose consumers have no allocations, and for
                                 * which another writer must allocate; not in the sum */
} PendingWrites;

static inline uint64_t pending_writes_sum(const PendingWrites *pending_writes)
{
        return pending_writes->n_writes + pending_writes->n_removals + pending_writes->n_moves;
}

/* State of a consumer in Placement when its claim was reported, or when it was last read before
 * that. A difference shows that another program wrote the consumer since.
 * agent/guests/claim-share.h gives the members their meaning. */
typedef struct ClaimReported {
        int64_t generation; /* generation of the consumer */
        Uuid elsewhere;     /* stands for the providers that are not of this host; "": unknown */
        uint64_t until_sec; /* last possible time of the write, by Placement's clock; if the
                               consumer was only read, the time of its last write; 0: unknown */
} ClaimReported;

/* The pending removal of an ended claim's allocations. The claim was pending, written or sent when
 * it ended, or it ended while its move was under way. */
typedef struct ClaimRemoval {
        int64_t id;
        int64_t claim; /* the ended claim; 0: it ended during its move */
        Uuid consumer;
        ClaimReported reported;
        bool unsure; /* it is unknown whether the claim's allocations reached Placement */
} ClaimRemoval;

/* A claim that another consumer must get: a migration, or the instance again. */
typedef struct ClaimMove {
        int64_t id;
        int64_t claim; /* 0: it had ended when an older version of the database was upgraded */
        Uuid from, to;
        char *to_type;         /* consumer type of to: "MIGRATION", …; owned */
        const EventAuthor *by; /* borrowed; not stored */
} ClaimMove;

void claim_move_done(ClaimMove *move);

/* A device that a claim has alone, with texts that the claim owns. It is a mediated device, which
 * exists or will be created, or a PCI function. A function without mdev_type is given as it is. One
 * with mdev_type becomes a vGPU of that type. */
typedef struct ClaimDevice {
        Uuid provider;
        const char *suffix;    /* suffix of its request group */
        const char *name;      /* libvirt's name of the device, or of the mdev's parent:
                                  "pci_0000_41_00_0" */
        const char *address;   /* PCI address; "" if it has none */
        const char *mdev_type; /* "nvidia-35"; "" for a PCI device that is no vGPU */
        Uuid mdev;             /* UUID_NULL for a PCI function */
        const char *identity;  /* identity of the device at the address when it was given
                                  (base/device-identity.h); "" or NULL: not recorded */
        bool must_be_cleaned;  /* the write of the claim marks it as unclean; not stored */
} ClaimDevice;

/* A device that living claims name, by its address. */
typedef struct ClaimedDevice {
        char address[HOST_ADDRESS_SIZE];
        char identity[DEVICE_IDENTITY_SIZE]; /* as recorded, never "" */
} ClaimedDevice;

typedef struct ClaimedDevices {
        ClaimedDevice *items; /* by address; also by identity if claims differ */
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
        Uuid guest; /* the owner before a migration took the claim over; "": the consumer itself */
        ClaimState state;
        ClaimWriteState write_state; /* NONE for an ended claim */
        bool resize_target;          /* second claim beside the first one of the same consumer */
        bool was_read;               /* the consumer's allocations were read for this claim */
        bool is_unallocated;         /* was_read, and the consumer had no allocations */
        char *host, *node;
        char *project_id, *user_id; /* "" if not given */
        char *consumer_type;        /* "" if not given */
        char *request; /* the request in the form of Placement's query: "resources=VCPU:2" */
        char *process; /* identifies a guest that no hypervisor lists (agent/guests/process.h); "":
                          a domain, or unknown */
        char *boot_id; /* boot in which the claim was made or checked last; "" if unknown */
        Allocation *allocations; /* provider and resources, sorted by provider */
        size_t n_allocations;
        char **provider_names; /* name of each allocation's provider, same order */
        RequestMappings mappings;
        ClaimDevice *devices; /* in the order in which they were given */
        size_t n_devices, n_devices_allocated;
        Layout layout; /* host cells and CPUs of its CPUs and memory; no cells: unknown */
        size_t n_cells_allocated, n_cpus_allocated; /* array sizes of layout */
        uint64_t created_usec;                      /* CLOCK_REALTIME */
        uint64_t expires_usec;                      /* CLOCK_REALTIME; 0: never */
        uint64_t ended_usec;                        /* CLOCK_REALTIME; 0: it lives */
        char *end_reason;                           /* "" while it lives */
} Claim;

/* Yields a claim with every text "" and no allocation. Returns -ENOMEM on failure. */
int claim_new(Claim **ret);
Claim *claim_free(Claim *claim);
DEFINE_CLEANUP(Claim *, claim_free);

/* Adds the amount of a class that one group got from a provider. Returns -ENOMEM or -EOVERFLOW on
 * failure; the provider can be in the claim then, without the amount or the mapping. */
int claim_add(Claim *claim, const Uuid *provider, const char *provider_name, const char *suffix,
              const char *resource_class, uint64_t amount);

/* Adds a copy of a device, with must_be_cleaned false. Returns -ENOMEM on failure. */
int claim_add_device(Claim *claim, const ClaimDevice *device);

/* Returns true for a PCI function that is or becomes a vGPU. */
static inline bool claim_device_is_function(const ClaimDevice *device)
{
        return uuid_empty(&device->mdev) && device->mdev_type[0] && device->address[0];
}

/* Returns true if the claim has the PCI function at the address itself, whole or as a vGPU, and not
 * only an mdev of it. */
bool claim_has_pci(const Claim *claim, const char *address);

bool claim_has_mdev(const Claim *claim, const Uuid *mdev);

/* Returns true if the claim was made of its guest alone. If guests claim only while they run, such
 * a claim ends when the guest stops. False if another writer made the guest's allocations, because
 * these stay when the guest is off. With a Placement that is also false while nothing shows whether
 * there is another writer: it was not read, and the agent does not write the claim. */
bool claim_is_of_guest_alone(const Claim *claim, bool with_placement);

/* Returns the sum of a class over all providers, UINT64_MAX on overflow. */
uint64_t claim_sum(const Claim *claim, const char *resource_class);

/* Returns true if the claim's devices or cells determine the provider of the class. With cells that
 * is true for each class of the claim. Placement determines the provider of other classes. */
bool claim_binds(const Claim *claim, const char *resource_class);

/* Selection of a list of claims. */
typedef enum ClaimsWhich {
        CLAIMS_LIVING,
        CLAIMS_ENDED,        /* the newest CLAIM_HISTORY_MAX */
        CLAIMS_ALL,          /* first the living ones, then those of CLAIMS_ENDED */
        CLAIMS_PENDING,      /* living ones that are pending */
        CLAIMS_OF_DEVICE,    /* living ones with a device: its libvirt name, its PCI address, or the
                                uuid of the mdev */
        CLAIMS_OF_GUEST,     /* living ones of the guest with that uuid: its own, and those that a
                                migration took over */
        CLAIMS_WITH_DEVICES, /* living ones with devices: only id, consumer and devices */
        _CLAIMS_WHICH_MAX,
} ClaimsWhich;

typedef struct ClaimList {
        Claim **claims;
        size_t n_claims;
        size_t n_allocated;
} ClaimList;

/* Appends a claim; the list owns it if 0 is returned. Returns -ENOMEM on failure. */
int claim_list_add(ClaimList *list, Claim *claim);
void claim_list_done(ClaimList *list);

/* Results of opening a store. */
typedef enum ClaimsOpened {
        CLAIMS_OPENED = 0,
        CLAIMS_CREATED,  /* there was no file, or an empty one */
        CLAIMS_UPGRADED, /* an older schema was upgraded; the old file is kept beside it (reterr has
                            its name) */
        CLAIMS_SET_ASIDE, /* the file was corrupt: it was renamed (reterr has the words), and an
                             empty one was made */
        _CLAIMS_OPENED_MAX,
} ClaimsOpened;
