/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An index of claims, guests and Placement's consumers that every comparison of the three uses. It
 * finds the claims of a consumer, the guest of a claim, the place of a consumer, and consumers that
 * can be migrations. Pure.
 *
 * Two modules decide with it. The reconciler (claims/reconcile.h) runs after each poll, has answers
 * about the consumers that it asked about, and changes only claims. The audit (agent/audit/audit.h)
 * runs at a start and on demand, has all consumers of the host, and can change Placement. They use
 * the same terms:
 *
 *   here       The consumer has an allocation from the host's own tree, or all of its allocations
 *              are from sharing providers of this host. The caller decides it.
 *   gone       Placement was read, and the consumer has nothing here. Reconcile ends the claim of
 *              such a consumer if no guest of it is here, no write of it is pending, and no
 *              migration took it over. A claim that has expired, or whose guest was missed for the
 *              grace below, ends with a pending write, too. Reconcile never ends a pending claim,
 *              or one that is newer than the poll. The audit ends a claim only if the consumer is
 *              elsewhere.
 *   migration  A consumer whose type is MIGRATION or unknown, and that no guest here has. It can
 *              hold what a guest of the same project had here. Reconcile compares amounts of a
 *              claim (claims/resize-pair.h), or CPUs and memory of a guest. The audit compares
 *              project, user, CPUs and memory, and of a guest that is elsewhere only the owner.
 *   moving     There is such a consumer for a guest. The audit changes none of the guest's claims.
 *              Reconcile ends none of two claims of a resize.
 *   resized    The guest has other amounts than when the claim was made of it (claims/follow.h).
 *              If it has two claims, claims/resize-pair.h decides which one is over.
 *
 * Each grace is the time from an event until a decider acts (time_is_within()). Its length is
 * claim_expiry_time. If that is 0, the grace of a missed guest never ends, and each other grace is
 * 300 s:
 *
 *   since the claim's guest was missed    reconcile: the confirmed claim stays
 *   since a pair of claims was found      reconcile: the pair is not listed
 *   since the claim was made              audit: no finding about lost allocations or two claims
 *   since the consumer's state was seen   audit: no finding, or no remedy
 *   since the consumer was written        audit: its server is alive
 *
 * The first two can end earlier, with an answer of Placement. The last three protect a write that
 * is under way from an audit, which reads all consumers once. An operator who names a consumer
 * without claim and guest overrides the last two for it. A write of a consumer, or the loss of its
 * claim and guest, gives it a new state. */

#include "base/allocation.h"
#include "claims/claim/claim.h"
#include "claims/claim/host-facts.h"

/* A consumer that was read, as Placement has it. */
typedef struct ConsumerRead {
        Uuid consumer;
        const Consumer *holding; /* borrowed; NULL: nothing anywhere */
        bool here;               /* it is here (see above) */
} ConsumerRead;

typedef enum ConsumerPlace {
        CONSUMER_UNREAD, /* Placement was not asked about the consumer */
        CONSUMER_HERE,
        CONSUMER_ELSEWHERE, /* gone: it has allocations, and is not here */
        CONSUMER_NOWHERE,   /* gone: it has no allocations */
} ConsumerPlace;

typedef struct GuestIndex {
        /* Set by the caller before guest_index_make(); borrowed. */
        const ClaimList *claims; /* living ones */
        const HostFacts *facts;
        const HostDomain *processes; /* guests that are no domains */
        size_t n_processes;
        const ConsumerRead *consumers; /* sorted by uuid */
        size_t n_consumers;
        /* Made by guest_index_make(). */
        struct GuestIndexEntry
                *known; /* claims: by consumer, and by the guest that a migration has them of */
        size_t n_known;
        struct GuestIndexEntry *guests;
        size_t n_guests;
        const char **mdevs, **pci; /* uuids of the mdevs, and addresses of the PCI devices, that
                                      this host has or offers; sorted */
        size_t n_mdevs, n_pci;
} GuestIndex;

/* Sorts the keys of claims, guests and devices, so that a look-up costs no pass over all of them.
 * Returns -ENOMEM on failure. guest_index_done() is needed then, too. It also zeroes the members
 * that the caller set. */
int guest_index_make(GuestIndex *index);
void guest_index_done(GuestIndex *index);

/* Returns a claim of the consumer by its place in the order of ids: 0 is the oldest one, and 1 the
 * other one of a resize on this host. NULL if there is none. */
const Claim *guest_index_claim(const GuestIndex *index, const Uuid *consumer, size_t place);

/* Returns true if the guest has a claim: its own, or one that a migration took over from it. but: a
 * claim to leave out, or NULL. */
bool guest_index_has_claim(const GuestIndex *index, const Uuid *guest, const Claim *but);

/* Returns the domain or process with this uuid, borrowed; NULL: none. */
const HostDomain *guest_index_domain(const GuestIndex *index, const Uuid *uuid);

/* Returns the guest of a claim, also while a migration owns the claim. NULL: it is not here. */
const HostDomain *guest_index_guest(const GuestIndex *index, const Claim *claim);

/* Returns NULL if Placement was not asked about the consumer. consumers: by uuid. */
const ConsumerRead *consumer_read_find(const ConsumerRead *consumers, size_t n,
                                       const Uuid *consumer);
/* Returns where the consumer's allocations are, by the answer about it. */
ConsumerPlace guest_index_place(const GuestIndex *index, const Uuid *consumer);

/* Returns true if the consumer can be a migration of a guest: see above. */
bool guest_index_can_be_migration(const GuestIndex *index, const Consumer *consumer);

/* CPUs and memory, by which a guest, its claim and its allocations are compared. Whether CPUs are
 * VCPU or PCPU is not compared: a reshape changes it. */
typedef struct GuestSize {
        uint64_t cpus, memory_mb;
} GuestSize;

GuestSize guest_size_of_claim(const Claim *claim);
GuestSize guest_size_of_consumer(const Consumer *consumer); /* on all providers */

/* Returns true if both amounts are at least those of the domain. */
bool guest_size_covers(GuestSize size, const HostDomain *domain);

/* Returns true while less than span_usec has passed since since_usec, and if since_usec is in the
 * future. */
static inline bool time_is_within(uint64_t now_usec, uint64_t since_usec, uint64_t span_usec)
{
        return now_usec < since_usec || now_usec - since_usec < span_usec;
}
