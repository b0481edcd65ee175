/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/root-inventory.h"

#include <errno.h>

typedef struct RootClass {
        const char *resource_class;
        const char *reserved_option;
        uint64_t total;
        uint64_t reserved;
        double ratio;         /* 0: not configured */
        double initial_ratio; /* the same */
} RootClass;

static double choose_ratio(const RootClass *class, const Provider *root)
{
        const Inventory *present = provider_find_inventory(root, class->resource_class);

        if (class->ratio > 0)
                return class->ratio;
        if (present)
                return present->allocation_ratio;
        return class->initial_ratio > 0 ? class->initial_ratio : 1.0;
}

static int make_record(const RootClass *class, const Provider *root, Inventory *ret, Error *reterr)
{
        uint64_t total = MIN(class->total, INVENTORY_MAX_AMOUNT);

        if (class->reserved > total)
                return error_setf(reterr, EINVAL,
                                  "%s reserves %llu of %s, but the host has only %llu",
                                  class->reserved_option, (unsigned long long)class->reserved,
                                  class->resource_class, (unsigned long long)total);
        *ret = (Inventory){
                .total = total,
                .reserved = class->reserved,
                .min_unit = 1,
                .max_unit = total,
                .step_size = 1,
                .allocation_ratio = choose_ratio(class, root),
        };
        return 0;
}

static uint64_t round_up_to_gb(uint64_t mb)
{
        return mb / 1024 + (mb % 1024 != 0);
}

int root_inventory_update(const DriverConfig *config, const Snapshot *snapshot, Provider *root,
                          Error *reterr)
{
        const RootClass classes[] = {
                { "VCPU", "reserved_host_cpus", cpu_set_count(&snapshot->online_cpus),
                  config->reserved_host_cpus, config->cpu_allocation_ratio,
                  config->initial_cpu_allocation_ratio },
                { "MEMORY_MB", "reserved_host_memory_mb", snapshot->memory_kib / 1024,
                  config->reserved_host_memory_mb, config->ram_allocation_ratio,
                  config->initial_ram_allocation_ratio },
                { "DISK_GB", "reserved_host_disk_mb", snapshot->disk_total_bytes >> 30,
                  round_up_to_gb(config->reserved_host_disk_mb), config->disk_allocation_ratio,
                  config->initial_disk_allocation_ratio },
        };
        Inventory records[ARRAY_SIZE(classes)];
        int r;

        /* all of them before the old ones go: the ratios are read from those */
        for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
                if (classes[i].total == 0)
                        continue;
                r = make_record(&classes[i], root, &records[i], reterr);
                if (r < 0)
                        return r;
        }
        provider_clear_inventories(root);
        for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
                if (classes[i].total == 0)
                        continue;
                r = provider_set_inventory(root, classes[i].resource_class, &records[i]);
                if (r < 0)
                        return error_prefixf(reterr, r, "Inventory %s of %s",
                                             classes[i].resource_class, root->name);
        }
        return 0;
}
