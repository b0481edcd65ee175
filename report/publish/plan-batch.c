/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/plan-batch.h"

bool plan_batch_takes(const Provider *desired, const Provider *mirror)
{
        if (desired->n_inventories == 0)
                return false;
        for (size_t i = 0; i < desired->n_inventories; i++) {
                const Inventory *inventory = &desired->inventories[i].inventory;

                if (inventory->reserved > inventory->total)
                        return false;
        }
        for (size_t i = 0; mirror && i < mirror->n_inventories; i++)
                if (!provider_find_inventory(desired, mirror->inventories[i].resource_class))
                        return false;
        return true;
}
