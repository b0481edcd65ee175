/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/root-inventory.h"

#include <errno.h>

int root_inventory_update(const DriverConfig *config, const HostAmounts *amounts, Provider *root,
                          const Provider *heir, Error *reterr)
{
        const ClassAmount *classes[] = { &amounts->disk, &amounts->vcpu, &amounts->pcpu,
                                         &amounts->memory };
        size_t n_classes = config->numa_in_placement ? 1 : ARRAY_SIZE(classes);
        Inventory records[ARRAY_SIZE(classes)];
        int r;

        /* all of them before the old ones go: the ratios are read from those */
        for (size_t i = 0; i < n_classes; i++)
                records[i] = class_amount_record(classes[i], root, heir);
        provider_clear_inventories(root);
        for (size_t i = 0; i < n_classes; i++) {
                if (classes[i]->total == 0)
                        continue;
                r = provider_set_inventory(root, classes[i]->resource_class, &records[i]);
                if (r < 0)
                        return error_prefixf(reterr, r, "Inventory %s of %s",
                                             classes[i]->resource_class, root->name);
        }
        return 0;
}
