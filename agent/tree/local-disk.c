/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/local-disk.h"

#include <inttypes.h>

#include "claims/claim/host-view.h"

static const char disk_class[] = "DISK_GB";

void local_disk_note_pool(LocalDiskFacts *facts, const ProviderTree *pools)
{
        facts->pool[0] = '\0';
        for (size_t i = 0; pools && i < pools->n_providers; i++) {
                const Provider *pool = pools->providers[i];

                if (!string_set_contains(&pool->traits, TRAIT_SHARES_VIA_AGGREGATE) ||
                    !provider_find_inventory(pool, disk_class))
                        continue;
                snprintf(facts->pool, sizeof(facts->pool), "%s", pool->name);
                return;
        }
}

LocalDisk local_disk_decide(int option, bool present, const LocalDiskFacts *facts)
{
        bool leaves =
                option == HOST_LOCAL_DISK_NO || (option == HOST_LOCAL_DISK_AUTO && facts->pool[0]);

        if (!facts->owned || !leaves)
                return LOCAL_DISK_OFFERED;
        if (facts->claimed > 0 || (present && (!facts->allocated_known || facts->allocated > 0)))
                return LOCAL_DISK_WITHHELD;
        return LOCAL_DISK_LEFT_OUT;
}

void local_disk_apply(LocalDisk decision, Provider *root)
{
        Inventory *disk = provider_find_inventory(root, disk_class);

        if (decision == LOCAL_DISK_LEFT_OUT)
                (void)provider_remove_inventory(root, disk_class);
        else if (decision == LOCAL_DISK_WITHHELD && disk)
                disk->reserved = disk->total;
}

int local_disk_add_pools(const ProviderTree *pools, ProviderTree *tree)
{
        for (size_t i = 0; i < pools->n_providers; i++) {
                const Provider *pool = pools->providers[i];
                Provider *copy;
                int r;

                if (provider_tree_find(tree, &pool->uuid) ||
                    provider_tree_find_name(tree, pool->name))
                        continue;
                r = provider_tree_add(tree, &pool->uuid, pool->name, NULL, &copy, NULL);
                if (r >= 0)
                        r = provider_copy_contents(copy, pool);
                if (r < 0)
                        return r;
        }
        return 0;
}

void local_disk_drop_pools(ProviderTree *tree, const Uuid *root)
{
        for (size_t i = tree->n_providers; i > 0; i--) {
                const Provider *provider = tree->providers[i - 1];
                Uuid uuid = provider->uuid;

                if (uuid_empty(&provider->parent) && !uuid_equal(&uuid, root) &&
                    string_set_contains(&provider->traits, TRAIT_SHARES_VIA_AGGREGATE) &&
                    !provider_tree_has_children(tree, &uuid))
                        (void)provider_tree_remove(tree, &uuid);
        }
}

const char *local_disk_describe(LocalDisk decision, const LocalDiskFacts *facts, char *text,
                                size_t size)
{
        bool shared = facts->pool[0];
        const char *why = shared ? "provider " : "report_local_disk is no", *name = facts->pool,
                   *shares = shared ? " shares DISK_GB" : "";
        uint64_t amount = MAX(facts->allocated, facts->claimed);

        text[0] = '\0';
        if (decision == LOCAL_DISK_LEFT_OUT)
                snprintf(text, size, "Local DISK_GB is not reported: %s%s%s", why, name, shares);
        else if (decision == LOCAL_DISK_WITHHELD && !facts->allocated_known && facts->claimed == 0)
                snprintf(text, size, "Local DISK_GB is withheld: %s%s%s; its usage is not known",
                         why, name, shares);
        else if (decision == LOCAL_DISK_WITHHELD)
                snprintf(text, size,
                         "Local DISK_GB is withheld: %s%s%s; %" PRIu64 " of it is still allocated",
                         why, name, shares, amount);
        return text;
}
