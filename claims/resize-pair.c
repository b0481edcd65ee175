/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides which claim of a resize is over, by three kinds of evidence: the domain, Placement and
 * the migrations, in this order. The domain and Placement each name the claim of the two that they
 * contradict, or none. A claim is over only if both name it, or Placement alone if the domain
 * agrees with both claims. The named claim is not over if a consumer can be its migration. If
 * no claim can be over by domain and Placement, a migration of either claim is searched for. It
 * only explains the pair to the caller (ResizePair.migration). Missing data, such as no answer
 * about the consumer, leave the pair open without a search. */

#include "claims/resize-pair.h"

#include "claims/reconcile-compare.h"

/* Evidence of the domain */

/* Returns the number of the domain's PCI devices that this host counts. */
static uint64_t count_counted_pci(const HostFacts *facts, const HostDomain *domain)
{
        uint64_t n = 0;

        for (size_t i = 0; i < domain->n_pci; i++)
                n += host_facts_find_pci(facts, domain->pci[i]) != NULL;
        return n;
}

/* Returns true if the claim has exactly the mdevs and counted PCI devices of the domain. */
static bool has_devices(const Claim *claim, const HostFacts *facts, const HostDomain *domain)
{
        for (size_t i = 0; i < domain->n_mdevs; i++)
                if (!claim_has_mdev(claim, &domain->mdevs[i]))
                        return false;
        for (size_t i = 0; i < domain->n_pci; i++)
                if (host_facts_find_pci(facts, domain->pci[i]) &&
                    !claim_has_pci(claim, domain->pci[i]))
                        return false;
        return claim->n_devices == domain->n_mdevs + count_counted_pci(facts, domain);
}

/* Compares amounts and the number of devices, but not which devices they are. */
static bool has_shape(const Claim *claim, const HostFacts *facts, const HostDomain *domain)
{
        GuestSize size = guest_size_of_claim(claim);
        uint64_t n_mdevs = 0;

        for (size_t i = 0; i < claim->n_devices; i++)
                n_mdevs += !uuid_empty(&claim->devices[i].mdev);
        return (size.cpus == 0 || size.cpus == domain->vcpus) &&
               (size.memory_mb == 0 || size.memory_mb == domain->memory_mb) &&
               n_mdevs == domain->n_mdevs &&
               claim->n_devices - n_mdevs == count_counted_pci(facts, domain);
}

/* Returns the claim of the two that lacks the property, if the other one has it. NULL if both have
 * it, or none. */
static const Claim *odd_one(const Claim *first, bool first_has, const Claim *target,
                            bool target_has)
{
        if (first_has == target_has)
                return NULL;
        return first_has ? target : first;
}

/* Yields whether reconcile_compare() finds no difference. Returns -ENOMEM on failure. */
static int agrees(const GuestIndex *index, const Claim *claim, const HostDomain *domain, bool *ret)
{
        _cleanup_(reconcile_problems_done) ReconcileProblems problems = { 0 };

        if (reconcile_compare(index, claim, domain, &problems) < 0)
                return -ENOMEM;
        *ret = problems.n_items == 0;
        return 0;
}

/* Finds the claim that the domain contradicts, NULL for none. If it contradicts both, only amounts
 * and the number of devices are compared. ret_agrees: the domain agrees with both. This is
 * possible, because reconcile_compare() accepts that a placed claim has more than its domain. */
static int find_contradicted(const GuestIndex *index, const Claim *first, const Claim *target,
                             const HostDomain *domain, const Claim **ret, bool *ret_agrees)
{
        bool first_agrees, target_agrees;

        if (agrees(index, first, domain, &first_agrees) < 0 ||
            agrees(index, target, domain, &target_agrees) < 0)
                return -ENOMEM;
        *ret_agrees = first_agrees && target_agrees;
        *ret = odd_one(first, first_agrees, target, target_agrees);
        if (!*ret && !first_agrees)
                *ret = odd_one(first, has_shape(first, index->facts, domain), target,
                               has_shape(target, index->facts, domain));
        return 0;
}

/* Evidence of Placement */

static uint64_t claimed_of(const Claim *claim, const Uuid *provider, const char *resource_class)
{
        for (size_t i = 0; i < claim->n_allocations; i++)
                if (uuid_equal(&claim->allocations[i].provider, provider))
                        return resources_get(&claim->allocations[i].resources, resource_class);
        return 0;
}

/* Returns true if the consumer has exactly the amounts of the claim, on the providers that this
 * host knows. */
static bool is_allocated(const HostView *view, const Claim *claim, const Consumer *consumer)
{
        size_t index;

        for (size_t i = 0; i < claim->n_allocations; i++) {
                const Allocation *held = &claim->allocations[i];

                for (size_t j = 0; j < held->resources.n_items; j++)
                        if (consumer_get(consumer, &held->provider,
                                         held->resources.items[j].resource_class) !=
                            held->resources.items[j].amount)
                                return false;
        }
        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];

                if (!host_view_find(view, &held->provider, &index))
                        continue;
                for (size_t j = 0; j < held->resources.n_items; j++)
                        if (claimed_of(claim, &held->provider,
                                       held->resources.items[j].resource_class) !=
                            held->resources.items[j].amount)
                                return false;
        }
        return true;
}

/* Evidence of migrations */

/* Returns true if the consumer has a claim with a request. Such a consumer is no migration. */
static bool has_requested_claim(const GuestIndex *index, const Uuid *consumer)
{
        const Claim *claim;

        for (size_t i = 0; (claim = guest_index_claim(index, consumer, i)); i++)
                if (claim->request[0])
                        return true;
        return false;
}

/* Returns true if the consumer has the claim's amount of at least one class on the same
 * provider. */
static bool has_amount_of(const Consumer *consumer, const Claim *claim)
{
        for (size_t i = 0; i < claim->n_allocations; i++) {
                const Allocation *held = &claim->allocations[i];

                for (size_t j = 0; j < held->resources.n_items; j++)
                        if (consumer_get(consumer, &held->provider,
                                         held->resources.items[j].resource_class) ==
                            held->resources.items[j].amount)
                                return true;
        }
        return false;
}

/* Returns a consumer with allocations here that can be the migration of the consumer "of", and
 * has_amount_of() the claim. NULL if there is none. */
static const Consumer *find_migration(const GuestIndex *index, const Consumer *of,
                                      const Claim *claim)
{
        for (size_t i = 0; i < index->n_consumers; i++) {
                const Consumer *consumer = index->consumers[i].holding;

                if (consumer && index->consumers[i].here && has_amount_of(consumer, claim) &&
                    !uuid_equal(&consumer->uuid, &of->uuid) &&
                    consumer_is_same_project(consumer, of) &&
                    guest_index_can_be_migration(index, consumer) &&
                    !has_requested_claim(index, &consumer->uuid))
                        return consumer;
        }
        return NULL;
}

int resize_pair_judge(const GuestIndex *index, const HostView *view, const Claim *first,
                      const Claim *target, const HostDomain *domain, ResizePair *ret)
{
        const ConsumerRead *answer =
                consumer_read_find(index->consumers, index->n_consumers, &first->consumer);
        const Claim *by_domain, *by_placement;
        bool decided, agrees_with_both;

        if (find_contradicted(index, first, target, domain, &by_domain, &agrees_with_both) < 0)
                return -ENOMEM;
        if (!view || !answer || !answer->here)
                return 0;
        by_placement = odd_one(first, is_allocated(view, first, answer->holding), target,
                               is_allocated(view, target, answer->holding));
        if (agrees_with_both)
                by_domain = by_placement;
        decided = by_domain && by_domain == by_placement;
        if (!decided || by_domain == first)
                ret->migration = find_migration(index, answer->holding, first);
        if (!ret->migration && (!decided || by_domain == target))
                ret->migration = find_migration(index, answer->holding, target);
        if (ret->migration || !decided)
                return 0;
        ret->over = by_domain;
        ret->kept = by_domain == first ? target : first;
        ret->has_other_devices = !has_devices(ret->kept, index->facts, domain);
        return 0;
}
