/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/reshape/keep.h"

#include <string.h>

int reshape_rename_classes(const ReshapeHost *host, ProviderTree *tree)
{
        for (size_t i = 0; i < host->before->n_providers; i++) {
                const Provider *before = host->before->providers[i];
                Provider *after = provider_tree_find(tree, &before->uuid);

                if (!after || !provider_tree_in_subtree(tree, after, &host->root->uuid))
                        continue;
                for (size_t j = 0; j < before->n_inventories; j++) {
                        const InventoryRecord *record = &before->inventories[j];
                        const char *name = reshape_new_name(host->config, record->resource_class);

                        if (!name)
                                continue;
                        if (!provider_find_inventory(after, name) &&
                            provider_set_inventory(after, name, &record->inventory) < 0)
                                return -ENOMEM;
                        provider_remove_inventory(after, record->resource_class);
                }
        }
        return 0;
}

/* The provider as it was, with what it hangs below, but without inventories. */
static int bring_back(const ReshapeHost *host, ProviderTree *tree, const Provider *before,
                      Provider **ret, Error *reterr)
{
        const Provider *parent = provider_tree_find(host->before, &before->parent);
        Provider *after = provider_tree_find(tree, &before->uuid), *unused;
        int r;

        if (after) {
                *ret = after;
                return 0;
        }
        r = parent ? bring_back(host, tree, parent, &unused, reterr) : 0;
        if (r < 0)
                return r;
        r = provider_tree_add(tree, &before->uuid, before->name,
                              uuid_empty(&before->parent) ? NULL : &before->parent, &after, reterr);
        if (r < 0)
                return r;
        if (string_set_copy(&after->traits, &before->traits) < 0 ||
            string_set_copy(&after->aggregates, &before->aggregates) < 0)
                return error_oom(reterr);
        *ret = after;
        return 0;
}

static int keep_record(const ReshapeHost *host, ProviderTree *tree, const Provider *before,
                       const char *resource_class, Error *reterr)
{
        const Inventory *record = provider_find_inventory(before, resource_class);
        Provider *after;
        int r = bring_back(host, tree, before, &after, reterr);

        if (r < 0)
                return r;
        return provider_set_inventory(after, resource_class, record) < 0 ? error_oom(reterr) : 0;
}

static int restore_class(const ReshapeHost *host, ProviderTree *tree, const char *resource_class,
                         Error *reterr)
{
        const Uuid root = host->root->uuid;

        for (size_t i = 0; i < tree->n_providers; i++) {
                const Provider *before =
                        provider_tree_find(host->before, &tree->providers[i]->uuid);

                if (provider_tree_in_subtree(tree, tree->providers[i], &root) &&
                    (!before || !provider_find_inventory(before, resource_class)))
                        provider_remove_inventory(tree->providers[i], resource_class);
        }
        for (size_t i = 0; i < host->before->n_providers; i++) {
                const Provider *before = host->before->providers[i];
                int r = 0;

                if (provider_find_inventory(before, resource_class) &&
                    provider_tree_in_subtree(host->before, before, &root))
                        r = keep_record(host, tree, before, resource_class, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int link_class(const ReshapeHost *host, const Provider *from, ReshapeRule rule,
                      const char *resource_class, StringSet *ret)
{
        const Provider *after = provider_tree_find(host->after, &from->uuid);
        int r = 0;

        switch (rule) {
        case RESHAPE_RULE_RENAME:
                return string_set_add(ret, reshape_new_name(host->config, resource_class));
        case RESHAPE_RULE_CELLS:
                if (strcmp(resource_class, "MEMORY_MB") == 0 ||
                    reshape_tree_has_class(host->before, &host->root->uuid, "PCPU") ==
                            reshape_tree_has_class(host->after, &host->root->uuid, "PCPU"))
                        return 0;
                r = string_set_add(ret, "VCPU");
                return r < 0 ? r : string_set_add(ret, "PCPU");
        case RESHAPE_RULE_MDEVS:
                for (size_t i = 0; r >= 0 && i < host->mdevs->n_offers; i++)
                        r = string_set_add(ret, host->mdevs->offers[i].type->mdev_class);
                return r;
        case RESHAPE_RULE_REGROUP:
                return string_set_add(ret, after->inventories[0].resource_class);
        default:
                return 0;
        }
}

/* The class and what it would have turned into. */
static int find_linked(const ReshapeHost *host, const char *resource_class, StringSet *ret)
{
        if (string_set_add(ret, resource_class) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < host->before->n_providers; i++) {
                const Provider *from = host->before->providers[i];

                if (provider_find_inventory(from, resource_class) &&
                    provider_tree_in_subtree(host->before, from, &host->root->uuid) &&
                    link_class(host, from, reshape_rule_find(host, from, resource_class),
                               resource_class, ret) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int reshape_keep_class(const ReshapeHost *host, ProviderTree *tree, const char *resource_class,
                       Error *reterr)
{
        _cleanup_(string_set_done) StringSet linked = STRING_SET_INIT;

        if (find_linked(host, resource_class, &linked) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < linked.n_items; i++) {
                int r = restore_class(host, tree, linked.items[i], reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

int reshape_keep_used(const ReshapeHost *host, ProviderTree *tree, const Consumer *usage,
                      Error *reterr)
{
        for (size_t i = 0; i < usage->n_allocations; i++) {
                const Allocation *used = &usage->allocations[i];
                const Provider *before = provider_tree_find(host->before, &used->provider);

                if (!before || !provider_tree_in_subtree(host->before, before, &host->root->uuid))
                        continue;
                for (size_t j = 0; j < used->resources.n_items; j++) {
                        const char *name = used->resources.items[j].resource_class;
                        const Provider *after = provider_tree_find(tree, &before->uuid);
                        int r = 0;

                        if ((!after || !provider_find_inventory(after, name)) &&
                            provider_find_inventory(before, name))
                                r = keep_record(host, tree, before, name, reterr);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

/* The least total with which there is room for used. */
static uint64_t find_total(const Inventory *record, uint64_t used)
{
        uint64_t low = record->total, high = INVENTORY_MAX_AMOUNT;
        Inventory trial = *record;

        while (low < high) {
                trial.total = low + (high - low) / 2;
                if (inventory_capacity(&trial) < used)
                        low = trial.total + 1;
                else
                        high = trial.total;
        }
        return low;
}

static void relax(Inventory *record, uint64_t amount, uint64_t used)
{
        record->max_unit = MAX(record->max_unit, amount);
        record->min_unit = MIN(record->min_unit, amount);
        if (amount % record->step_size != 0)
                record->step_size = 1;
        record->total = find_total(record, used);
}

static void relax_holding(const Provider *provider, const Allocation *held, const Consumer *usage)
{
        for (size_t i = 0; i < held->resources.n_items; i++) {
                const ResourceAmount *item = &held->resources.items[i];
                Inventory *record = provider_find_inventory(provider, item->resource_class);

                if (record)
                        relax(record, item->amount,
                              consumer_get(usage, &held->provider, item->resource_class));
        }
}

void reshape_relax_limits(const ReshapeHost *host, ProviderTree *tree, const Allocations *consumers,
                          const Consumer *usage)
{
        for (size_t i = 0; i < consumers->n_consumers; i++)
                for (size_t j = 0; j < consumers->consumers[i]->n_allocations; j++) {
                        const Allocation *held = &consumers->consumers[i]->allocations[j];
                        const Provider *provider = provider_tree_find(tree, &held->provider);

                        if (provider && provider_tree_in_subtree(tree, provider, &host->root->uuid))
                                relax_holding(provider, held, usage);
                }
}

void reshape_drop_empty(const ReshapeHost *host, ProviderTree *tree)
{
        /* backwards: children first */
        for (size_t i = tree->n_providers; i > 0; i--) {
                const Provider *provider = tree->providers[i - 1];

                if (provider->n_inventories == 0 && provider != host->root &&
                    !provider_tree_find(host->before, &provider->uuid) &&
                    !provider_tree_has_children(tree, &provider->uuid))
                        provider_tree_remove(tree, &provider->uuid);
        }
}
