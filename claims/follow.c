/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides when a claim must follow Placement: it is made again with the amounts that another writer
 * has allocated to its guest. The request of a claim that was made of a guest has the amounts of
 * the domain. Its allocations have those of Placement where they are larger, or where no domain
 * shows the class. The database therefore needs no column for the amount by which Placement exceeds
 * the domain. A class is not compared if Placement has a part of it that this host cannot hold. A
 * class that no domain shows is compared only if it counts no devices and the claim has none of it
 * outside the root. Differences of VCPU and PCPU are found for each on its own. The comparisons of
 * sizes use their sum, because a reshape moves amounts between these classes. */

#include "claims/follow.h"

#include <string.h>

#include "claims/fit/guest-share.h"
#include "claims/guest-index.h"

bool claim_is_placed(const Claim *claim)
{
        return claim->was_read && claim->write_state == CLAIM_WRITE_NONE;
}

bool claim_waits_for_domain(const Claim *claim)
{
        return claim_is_placed(claim) && claim->state == CLAIM_STATE_CLAIMED &&
               strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0;
}

bool claim_follows(const Claim *claim)
{
        return claim_is_placed(claim) && claim->state == CLAIM_STATE_CONFIRMED &&
               uuid_empty(&claim->guest) && strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0;
}

/* Returns the amount of a class in one part of a request, such as "resources_GPU=VCPU:2,VGPU:1".
 * size: length of the part, which has no NUL at its end. */
static uint64_t amount_in_part(const char *part, size_t size, const char *resource_class)
{
        size_t n = strlen(resource_class);
        const char *end = part + size;

        if (size < 9 || strncmp(part, "resources", 9) != 0 || !(part = memchr(part, '=', size)))
                return 0;
        while (part && ++part < end) {
                if ((size_t)(end - part) > n && strncmp(part, resource_class, n) == 0 &&
                    part[n] == ':')
                        return strtoull(part + n + 1, NULL, 10);
                part = memchr(part, ',', (size_t)(end - part));
        }
        return 0;
}

/* Returns the amount of a class in the text of the claim's request, over all its groups. 0 if none,
 * UINT64_MAX on overflow. */
static uint64_t sum_requested(const Claim *claim, const char *resource_class)
{
        uint64_t sum = 0;
        size_t size;

        for (const char *part = claim->request; *part; part += size + (part[size] == '&')) {
                size = strcspn(part, "&");
                if (u64_add_overflow(sum, amount_in_part(part, size, resource_class), &sum))
                        return UINT64_MAX;
        }
        return sum;
}

/* Returns the number of CPUs that the claim requests, or holds if the request has none.
 * requested_memory() does the same for the memory in MiB. */
static uint64_t requested_cpus(const Claim *claim)
{
        uint64_t n = sum_requested(claim, "VCPU") + sum_requested(claim, "PCPU");

        return n > 0 ? n : guest_size_of_claim(claim).cpus;
}

static uint64_t requested_memory(const Claim *claim)
{
        uint64_t memory_mb = sum_requested(claim, "MEMORY_MB");

        return memory_mb > 0 ? memory_mb : claim_sum(claim, "MEMORY_MB");
}

bool claim_was_resized(const Claim *claim, const HostDomain *domain)
{
        GuestSize size = guest_size_of_claim(claim);

        /* An amount of 0 means that the host does not count the class, so there is nothing to
         * compare. */
        return (size.cpus > 0 && requested_cpus(claim) != domain->vcpus) ||
               (size.memory_mb > 0 && requested_memory(claim) != domain->memory_mb);
}

/* Returns true if the claim has none of the class outside the root. */
static bool is_on_root(const Claim *claim, const Uuid *root, const char *resource_class)
{
        for (size_t i = 0; i < claim->n_allocations; i++)
                if (!uuid_equal(&claim->allocations[i].provider, root) &&
                    resources_get(&claim->allocations[i].resources, resource_class) > 0)
                        return false;
        return true;
}

/* Returns true if Placement has another amount of the class than the claim, and so would a new
 * claim of the guest. These two amounts need not be equal. Returns false for classes of devices. A
 * class that no domain shows is compared only if is_on_root(). */
static bool differs(const Claim *claim, const HostDomain *domain, const HostFacts *facts,
                    const GuestShare *share, const char *resource_class)
{
        uint64_t claimed = claim_sum(claim, resource_class), placed;

        if (!guest_share_placed(share, resource_class, &placed) || placed == claimed)
                return false;
        if (!guest_share_is_shown(resource_class) &&
            (host_facts_has_class(facts, resource_class) ||
             !is_on_root(claim, share->root, resource_class)))
                return false;
        return guest_share_amount(share, resource_class, guest_amount_of(domain, resource_class)) !=
               claimed;
}

/* Returns true while a guest is resized and Placement has the old amounts: the guest has more CPUs
 * or memory than its claim and than its allocations. */
static bool is_behind(const Claim *claim, const HostDomain *domain, const Consumer *placed)
{
        GuestSize size = guest_size_of_claim(claim), has = guest_size_of_consumer(placed);

        return (size.cpus > 0 && domain->vcpus > MAX(size.cpus, has.cpus)) ||
               (size.memory_mb > 0 && domain->memory_mb > MAX(size.memory_mb, has.memory_mb));
}

bool claim_must_follow(const Claim *claim, const HostDomain *domain, const HostFacts *facts,
                       const HostView *view, const char *node, const Consumer *placed)
{
        GuestShare share = { .consumer = placed,
                             .vcpu = guest_amount_of(domain, "VCPU"),
                             .pcpu = guest_amount_of(domain, "PCPU") };
        const Allocation *lists[] = { claim->allocations, placed->allocations };
        const size_t n[] = { claim->n_allocations, placed->n_allocations };
        size_t root;

        if (!view || !host_view_root(view, node, &root) || is_behind(claim, domain, placed))
                return false;
        share.tree = view->tree;
        share.root = &view->tree->providers[root]->uuid;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                for (size_t j = 0; j < n[i]; j++)
                        for (size_t k = 0; k < lists[i][j].resources.n_items; k++)
                                if (differs(claim, domain, facts, &share,
                                            lists[i][j].resources.items[k].resource_class))
                                        return true;
        return false;
}

uint64_t claim_beyond_domain(const Claim *claim, const char *resource_class)
{
        uint64_t held = claim_sum(claim, resource_class), sum = held, asked;

        if (!claim_is_placed(claim) || strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) != 0 ||
            !guest_share_is_shown(resource_class))
                return 0;
        asked = sum_requested(claim, resource_class);
        if (held <= asked)
                return 0;
        if (strcmp(resource_class, "MEMORY_MB") == 0)
                return held - asked;
        /* A reshape can move CPUs from one class to the other. */
        sum = guest_size_of_claim(claim).cpus;
        return MIN(held - asked, sum - MIN(sum, requested_cpus(claim)));
}
