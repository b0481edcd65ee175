/* SPDX-License-Identifier: LGPL-2.1-or-later */

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
        /* memory in files cannot be overcommitted, whatever ratio Placement has */
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
