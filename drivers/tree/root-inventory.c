/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/tree/root-inventory.h"

#include <errno.h>

#include "drivers/tree/numa-providers.h"

/* Returns whether the folder is missing, as on a host whose guests have their disks elsewhere. */
static bool is_never_there(const HostConfig *config, const Error *disk_error)
{
        return !config->images_storage_pool &&
               (disk_error->code == ENOENT || disk_error->code == ENOTDIR);
}

int root_inventory_update(const HostConfig *config, const HostAmounts *amounts,
                          const Error *disk_error, Provider *root, const Provider *heir,
                          Error *problem, Error *reterr)
{
        const ClassAmount *classes[] = { &amounts->disk, &amounts->vcpu, &amounts->pcpu,
                                         &amounts->memory };
        const Inventory *disk = provider_find_inventory(root, amounts->disk.resource_class);
        bool keep_disk = disk_error->code && disk;
        Inventory records[ARRAY_SIZE(classes)];
        int r;

        /* all of them before the old ones go: the ratios are read from those */
        for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
                records[i] = keep_disk && classes[i] == &amounts->disk
                                     ? *disk
                                     : class_amount_record(classes[i], root, heir);
        provider_clear_inventories(root);
        for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
                if (records[i].total == 0 || !numa_is_at_root(config, classes[i]->resource_class))
                        continue;
                r = provider_set_inventory(root, classes[i]->resource_class, &records[i]);
                if (r < 0)
                        return error_prefixf(reterr, r, "Inventory %s of %s",
                                             classes[i]->resource_class, root->name);
        }
        if (disk_error->code && (keep_disk || !is_never_there(config, disk_error))) {
                Error error;

                error_setf(&error, disk_error->code, "%s; DISK_GB %s", disk_error->text,
                           keep_disk                 ? "stays as it was"
                           : amounts->disk.total > 0 ? "is reported as it was measured last"
                                                     : "is not reported");
                error_join(problem, &error);
        }
        return 0;
}
