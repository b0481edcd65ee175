/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes the index of claims, guests and devices, and searches it. The index has sorted arrays of
 * keys by uuid, which point to claims and guests (domains and processes). It also has sorted arrays
 * of mdevs and PCI addresses, which the caller searches. A claim has a key for its consumer. A
 * claim that a migration took over has a second key, for its former owner. Keys of claims with one
 * uuid are in the order of claim ids. Everything that the arrays point to is borrowed, and must
 * live as long as the index. In a zeroed index, and after a failure of guest_index_make(), the
 * look-ups of claims and guests find nothing. The caller sorts the consumers, but the claims can
 * have any order. Nothing in the index is updated: a change of claims or guests needs a new one. A
 * look-up is a binary search, and cannot fail. Sizes of guests are compared as the sum of VCPU and
 * PCPU, and MEMORY_MB. */

#include "claims/guest-index.h"

#include <string.h>

#include "base/text.h"

typedef struct GuestIndexEntry {
        Uuid uuid;
        const void *of;
} GuestIndexEntry;

void guest_index_done(GuestIndex *index)
{
        free(index->known);
        free(index->guests);
        free(index->mdevs);
        free(index->pci);
        *index = (GuestIndex){ 0 };
}

static int order_keys(const void *a, const void *b)
{
        return uuid_order(&((const GuestIndexEntry *)a)->uuid, &((const GuestIndexEntry *)b)->uuid);
}

/* Orders keys of one uuid by the ids of their claims, so that the first one is the oldest claim. */
static int order_claims(const void *a, const void *b)
{
        const Claim *x = ((const GuestIndexEntry *)a)->of, *y = ((const GuestIndexEntry *)b)->of;
        int r = order_keys(a, b);

        return r != 0 ? r : x->id < y->id ? -1 : x->id > y->id;
}

/* Fills the arrays, which guest_index_make() allocated large enough. */
static void add_keys(GuestIndex *index)
{
        const HostFacts *facts = index->facts;

        for (size_t i = 0; i < index->claims->n_claims; i++) {
                const Claim *claim = index->claims->claims[i];

                index->known[index->n_known++] = (GuestIndexEntry){ claim->consumer, claim };
                if (!uuid_empty(&claim->guest))
                        index->known[index->n_known++] = (GuestIndexEntry){ claim->guest, claim };
        }
        for (size_t i = 0; i < facts->n_domains + index->n_processes; i++) {
                const HostDomain *domain = i < facts->n_domains
                                                   ? &facts->domains[i]
                                                   : &index->processes[i - facts->n_domains];

                index->guests[index->n_guests++] = (GuestIndexEntry){ domain->uuid, domain };
        }
        for (size_t i = 0; i < facts->n_mdevs; i++)
                index->mdevs[index->n_mdevs++] = facts->mdevs[i].uuid.text;
        for (size_t i = 0; i < facts->n_pci; i++)
                index->pci[index->n_pci++] = facts->pci[i].address;
}

/* Allocates two keys for each claim: one for its consumer, and one for the former owner that it can
 * have. */
int guest_index_make(GuestIndex *index)
{
        const HostFacts *facts = index->facts;

        index->known = calloc(2 * index->claims->n_claims + 1, sizeof(GuestIndexEntry));
        index->guests = calloc(facts->n_domains + index->n_processes + 1, sizeof(GuestIndexEntry));
        index->mdevs = calloc(facts->n_mdevs + 1, sizeof(char *));
        index->pci = calloc(facts->n_pci + 1, sizeof(char *));
        if (!index->known || !index->guests || !index->mdevs || !index->pci)
                return -ENOMEM;
        add_keys(index);
        qsort(index->known, index->n_known, sizeof(GuestIndexEntry), order_claims);
        qsort(index->guests, index->n_guests, sizeof(GuestIndexEntry), order_keys);
        qsort(index->mdevs, index->n_mdevs, sizeof(char *), text_order);
        qsort(index->pci, index->n_pci, sizeof(char *), text_order);
        return 0;
}

/* Returns the first of *ret_n keys with this uuid. The result must not be read if *ret_n is 0. */
static const GuestIndexEntry *find(const GuestIndexEntry *keys, size_t n, const Uuid *uuid,
                                   size_t *ret_n)
{
        size_t low = 0, high = n, end;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (uuid_order(&keys[middle].uuid, uuid) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (end = low; end < n && uuid_equal(&keys[end].uuid, uuid);)
                end++;
        *ret_n = end - low;
        return keys + low;
}

const Claim *guest_index_claim(const GuestIndex *index, const Uuid *consumer, size_t place)
{
        size_t n;
        const GuestIndexEntry *keys = find(index->known, index->n_known, consumer, &n);

        for (size_t i = 0; i < n; i++) {
                const Claim *claim = keys[i].of;

                if (uuid_equal(&claim->consumer, consumer) && place-- == 0)
                        return claim;
        }
        return NULL;
}

bool guest_index_has_claim(const GuestIndex *index, const Uuid *guest, const Claim *but)
{
        size_t n;
        const GuestIndexEntry *keys = find(index->known, index->n_known, guest, &n);

        for (size_t i = 0; i < n; i++)
                if (keys[i].of != but)
                        return true;
        return false;
}

const HostDomain *guest_index_domain(const GuestIndex *index, const Uuid *uuid)
{
        size_t n;
        const GuestIndexEntry *keys = find(index->guests, index->n_guests, uuid, &n);

        return n > 0 ? keys[0].of : NULL;
}

const HostDomain *guest_index_guest(const GuestIndex *index, const Claim *claim)
{
        return guest_index_domain(index,
                                  uuid_empty(&claim->guest) ? &claim->consumer : &claim->guest);
}

static int order_consumers(const void *a, const void *b)
{
        return uuid_order(&((const ConsumerRead *)a)->consumer,
                          &((const ConsumerRead *)b)->consumer);
}

const ConsumerRead *consumer_read_find(const ConsumerRead *consumers, size_t n,
                                       const Uuid *consumer)
{
        const ConsumerRead key = { .consumer = *consumer };

        return n > 0 ? bsearch(&key, consumers, n, sizeof(key), order_consumers) : NULL;
}

ConsumerPlace guest_index_place(const GuestIndex *index, const Uuid *consumer)
{
        const ConsumerRead *found =
                consumer_read_find(index->consumers, index->n_consumers, consumer);

        if (!found)
                return CONSUMER_UNREAD;
        if (found->here)
                return CONSUMER_HERE;
        return found->holding && found->holding->n_allocations > 0 ? CONSUMER_ELSEWHERE
                                                                   : CONSUMER_NOWHERE;
}

/* Counts a consumer without a type as one of an unknown type. */
bool guest_index_can_be_migration(const GuestIndex *index, const Consumer *consumer)
{
        const char *type = consumer->type ? consumer->type : "unknown";

        return (strcmp(type, "unknown") == 0 || strcmp(type, "MIGRATION") == 0) &&
               !guest_index_domain(index, &consumer->uuid);
}

GuestSize guest_size_of_claim(const Claim *claim)
{
        return (GuestSize){ .cpus = claim_sum(claim, "VCPU") + claim_sum(claim, "PCPU"),
                            .memory_mb = claim_sum(claim, "MEMORY_MB") };
}

GuestSize guest_size_of_consumer(const Consumer *consumer)
{
        return (GuestSize){ .cpus = consumer_sum(consumer, "VCPU") + consumer_sum(consumer, "PCPU"),
                            .memory_mb = consumer_sum(consumer, "MEMORY_MB") };
}

bool guest_size_covers(GuestSize size, const HostDomain *domain)
{
        return size.cpus >= domain->vcpus && size.memory_mb >= domain->memory_mb;
}
