/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/reshape/migration-match.h"

static bool has_mdev(const SnapshotDomain *domain, const Uuid *mdev)
{
        for (size_t i = 0; i < domain->n_mdevs; i++)
                if (uuid_equal(&domain->mdevs[i], mdev))
                        return true;
        return false;
}

/* Returns the domain with an mdev that a claim of the consumer names. */
static const SnapshotDomain *find_by_claims(const Consumer *consumer, const Snapshot *snapshot,
                                            const ClaimList *claims)
{
        for (size_t i = 0; i < claims->n_claims; i++) {
                const Claim *claim = claims->claims[i];

                if (!uuid_equal(&claim->consumer, &consumer->uuid))
                        continue;
                for (size_t j = 0; j < claim->n_devices; j++)
                        for (size_t k = 0; k < snapshot->n_domains; k++)
                                if (has_mdev(&snapshot->domains[k], &claim->devices[j].mdev))
                                        return &snapshot->domains[k];
        }
        return NULL;
}

/* Returns true if the consumer's CPUs and memory equal those of the domain. */
static bool is_like(const Consumer *consumer, const SnapshotDomain *domain)
{
        uint64_t cpus = consumer_sum(consumer, "VCPU") + consumer_sum(consumer, "PCPU");

        return cpus == domain->vcpus &&
               consumer_sum(consumer, "MEMORY_MB") == domain->memory_kib / 1024;
}

/* Returns true if no domain has the consumer's uuid: the consumer can be a migration. */
static bool is_unowned(const Consumer *consumer, const Snapshot *snapshot)
{
        return !snapshot_find_domain(snapshot, &consumer->uuid);
}

/* Returns the only domain without a consumer that has the same size. Returns NULL if two domains,
 * or two consumers, fit each other: a guess could move the wrong allocations. */
static const SnapshotDomain *find_by_size(const Consumer *consumer, const Allocations *consumers,
                                          const Snapshot *snapshot)
{
        const SnapshotDomain *found = NULL;

        for (size_t i = 0; i < snapshot->n_domains; i++) {
                const SnapshotDomain *domain = &snapshot->domains[i];

                if (allocations_find(consumers, &domain->uuid) || !is_like(consumer, domain))
                        continue;
                if (found)
                        return NULL;
                found = domain;
        }
        for (size_t i = 0; found && i < consumers->n_consumers; i++)
                if (consumers->consumers[i] != consumer &&
                    is_unowned(consumers->consumers[i], snapshot) &&
                    is_like(consumers->consumers[i], found))
                        return NULL;
        return found;
}

int migration_match(const Allocations *consumers, const Snapshot *snapshot, const ClaimList *claims,
                    ReshapeAlias **ret, size_t *ret_n)
{
        ReshapeAlias *aliases = calloc(consumers->n_consumers + 1, sizeof(ReshapeAlias));
        size_t n = 0;

        if (!aliases)
                return -ENOMEM;
        for (size_t i = 0; i < consumers->n_consumers; i++) {
                const Consumer *consumer = consumers->consumers[i];
                const SnapshotDomain *domain;

                if (!is_unowned(consumer, snapshot))
                        continue;
                domain = find_by_claims(consumer, snapshot, claims);
                if (!domain)
                        domain = find_by_size(consumer, consumers, snapshot);
                if (domain)
                        aliases[n++] = (ReshapeAlias){ consumer->uuid, domain->uuid };
        }
        *ret = aliases;
        *ret_n = n;
        return 0;
}
