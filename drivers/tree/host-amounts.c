/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calculates the amounts of a host and of an inventory record, and shares amounts out over
 * providers.
 *
 * Amounts are uint64_t in the unit of their class: CPUs, MiB or GiB. Products have 128 bits, so no
 * product overflows. A total above INVENTORY_MAX_AMOUNT is cut to it. A share-out keeps the sum:
 * the parts add up to the amount, or the function fails.
 *
 * Tests: tests/unit/drivers/tree/test-host-amounts.c tests/unit/drivers/tree/test-cpu-plan.c */

#include "drivers/tree/host-amounts.h"

#include <errno.h>

static uint64_t round_up_to_gb(uint64_t mb)
{
        return mb / 1024 + (mb % 1024 != 0);
}

int class_amount_limit(ClassAmount *amount, Error *reterr)
{
        uint64_t reserved = amount->reserved;

        if (amount->total == 0 || reserved <= amount->total)
                return 0;
        amount->reserved = amount->total;
        return error_setf(reterr, EINVAL, "%s reserves %llu of %s, but the host has only %llu",
                          amount->reserved_option, (unsigned long long)reserved,
                          amount->resource_class, (unsigned long long)amount->total);
}

/* Returns the memory in MiB. Memory in files replaces the memory of the host. */
static uint64_t memory_mb(const HostConfig *config, const Snapshot *snapshot)
{
        return config->file_backed_memory > 0 ? config->file_backed_memory
                                              : snapshot->memory_kib / 1024;
}

void class_amount_count_cpus(ClassAmount *amount, uint64_t usable, uint64_t offline)
{
        amount->total = usable;
        if (usable > 0 || offline == 0)
                return;
        amount->total = 1;
        amount->reserved = 1;
}

void host_amounts_make(const HostConfig *config, const Snapshot *snapshot, const CpuPlan *cpus,
                       HostAmounts *ret)
{
        /* memory in files cannot be overcommitted, so this ignores the ratio in Placement */
        double ram_ratio = config->file_backed_memory > 0 ? 1.0 : config->ram_allocation_ratio;
        HostAmounts amounts = {
                .vcpu = { "VCPU", "reserved_host_cpus", 0, config->reserved_host_cpus,
                          config->cpu_allocation_ratio, config->initial_cpu_allocation_ratio },
                .pcpu = { "PCPU", "", 0, cpu_set_count(&cpus->floated), 1.0, 1.0 },
                .memory = { "MEMORY_MB", "reserved_host_memory_mb", memory_mb(config, snapshot),
                            config->reserved_host_memory_mb, ram_ratio,
                            config->initial_ram_allocation_ratio },
                .disk = { "DISK_GB", "reserved_host_disk_mb", snapshot->disk_total_bytes >> 30,
                          round_up_to_gb(config->reserved_host_disk_mb),
                          config->disk_allocation_ratio, config->initial_disk_allocation_ratio },
        };

        class_amount_count_cpus(&amounts.vcpu, cpu_set_count(&cpus->shared),
                                cpu_set_count(&cpus->shared_offline));
        class_amount_count_cpus(&amounts.pcpu, cpu_set_count(&cpus->dedicated),
                                cpu_set_count(&cpus->dedicated_offline));
        amounts.memory.total = MIN(amounts.memory.total, INVENTORY_MAX_AMOUNT);
        amounts.disk.total = MIN(amounts.disk.total, INVENTORY_MAX_AMOUNT);
        *ret = amounts;
}

/* Chooses the first ratio that exists: the configured one, that of the provider, that of heir, the
 * initial one, or 1.0. heir is the provider that had the class before, or NULL. */
static double choose_ratio(const ClassAmount *amount, const Provider *provider,
                           const Provider *heir)
{
        const Inventory *present = provider_find_inventory(provider, amount->resource_class);

        if (!present && heir)
                present = provider_find_inventory(heir, amount->resource_class);
        if (amount->ratio > 0)
                return amount->ratio;
        if (present)
                return present->allocation_ratio;
        return amount->initial_ratio > 0 ? amount->initial_ratio : 1.0;
}

Inventory class_amount_record(const ClassAmount *amount, const Provider *provider,
                              const Provider *heir)
{
        Inventory record = INVENTORY_DEFAULT(amount->total);

        record.reserved = amount->reserved;
        record.max_unit = amount->total;
        record.allocation_ratio = choose_ratio(amount, provider, heir);
        return record;
}

/* Sharing an amount out */

uint64_t reshape_portion(uint64_t amount, uint64_t before, uint64_t weight, uint64_t all)
{
        __extension__ typedef unsigned __int128 Wide;

        if (all == 0)
                return 0;
        return (uint64_t)((Wide)amount * (before + weight) / all - (Wide)amount * before / all);
}

/* Returns the part of amount that can be added to the share, within its limits. */
static uint64_t addable(const ReshapeShare *share, uint64_t amount)
{
        uint64_t sum = MIN(share->room, share->given + amount);

        sum -= sum % share->step;
        if (sum < share->least || sum < share->given)
                return 0;
        return sum - share->given;
}

/* Returns whether share is a better place than best for an amount that stays together: the lower
 * rank, then the least capacity that is left after it. best can be NULL. */
static bool is_better(const ReshapeShare *share, const ReshapeShare *best)
{
        if (!best || share->rank != best->rank)
                return !best || share->rank < best->rank;
        return share->room - share->given < best->room - best->given;
}

/* Returns the best share that can take the whole amount, or NULL. */
static ReshapeShare *find_for_whole(ReshapeShare *shares, size_t n_shares, uint64_t amount)
{
        ReshapeShare *best = NULL;

        for (size_t i = 0; i < n_shares; i++)
                if (addable(&shares[i], amount) == amount && is_better(&shares[i], best))
                        best = &shares[i];
        return best;
}

/* Returns the share that can take the largest part, or NULL if none can take any. */
static ReshapeShare *find_largest(ReshapeShare *shares, size_t n_shares, uint64_t amount)
{
        ReshapeShare *best = NULL;

        for (size_t i = 0; i < n_shares; i++)
                if (addable(&shares[i], amount) > (best ? addable(best, amount) : 0))
                        best = &shares[i];
        return best;
}

int reshape_share_out(ReshapeShare *shares, size_t n_shares, uint64_t amount)
{
        ReshapeShare *share;

        for (size_t i = 0; i < n_shares; i++) {
                shares[i].given = 0;
                shares[i].given = addable(&shares[i], MIN(shares[i].wanted, amount));
                amount -= shares[i].given;
        }
        if (amount > 0 && (share = find_for_whole(shares, n_shares, amount))) {
                share->given += amount;
                return 0;
        }
        while (amount > 0 && (share = find_largest(shares, n_shares, amount))) {
                uint64_t part = addable(share, amount);

                share->given += part;
                amount -= part;
        }
        return amount > 0 ? -ENOSPC : 0;
}
