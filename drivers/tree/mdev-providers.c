/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Edits the providers of mdev parents and of cards with vGPU functions. Providers of devices
 * without an offer are removed first; one that has children stays without inventories. Then each
 * device with offers gets one provider, with one inventory for each offer, unless its provider is
 * impossible (child_provider_ensure()).
 *
 * A removed provider has the name "<root>_<device>" and inventories, all of mdev classes. The
 * classes are enough, because Nova created some of these providers without a trait. With the name
 * of a PCI function and the agent's owner trait, the inventories do not matter. A provider with
 * another OWNER_ trait than the agent's, for example OWNER_NOVA, or with another name, is never
 * removed. For a device with an offer, a provider of the host with its name is adopted, whatever
 * its traits are. Allocations are not considered here; drivers/reshape moves them afterwards. After
 * an error the tree is undefined.
 *
 * Tests: tests/unit/drivers/test-update.c */

#include "drivers/tree/mdev-providers.h"

#include <ctype.h>
#include <string.h>

#include "drivers/tree/numa-providers.h"

/* Prefix of the traits that name the owner of a provider, for example OWNER_NOVA. */
static const char owner_prefix[] = "OWNER_";

/* Writes the name of the provider of a device, as in Nova. */
static void make_name(const Provider *root, const char *device_name, char ret[CHILD_NAME_SIZE])
{
        snprintf(ret, CHILD_NAME_SIZE, "%s_%s", root->name, device_name);
}

Provider *mdev_providers_find(const ProviderTree *tree, const Provider *root,
                              const char *device_name)
{
        char name[CHILD_NAME_SIZE];

        make_name(root, device_name, name);
        return provider_tree_find_name(tree, name);
}

/* Replaces the inventories by those of the offers from first to end. vGPUs are never overcommitted:
 * the ratio is 1. max_unit is the part that is not reserved, but at least 1. */
static int update_provider(const TreeUpdate *update, const MdevOffer *first, const MdevOffer *end,
                           Provider *provider, Error *reterr)
{
        provider_clear_inventories(provider);
        for (const MdevOffer *offer = first; offer < end; offer++) {
                Inventory record = INVENTORY_DEFAULT(offer->total);
                int r;

                record.reserved = offer->reserved;
                record.max_unit = MAX(offer->total - offer->reserved, (uint64_t)1);
                r = provider_set_inventory(provider, offer->type->mdev_class, &record);
                if (r < 0)
                        return error_prefixf(reterr, r, "Inventory %.60s of %s",
                                             offer->type->mdev_class, provider->name);
        }
        return child_provider_own(update, provider) < 0 ? error_oom(reterr) : 0;
}

/* Returns whether this is libvirt's name of a PCI function: pci_0000_41_00_0. */
static bool is_pci_name(const char *name)
{
        static const char shape[] = "pci_xxxx_xx_xx_x";

        if (strlen(name) != strlen(shape))
                return false;
        for (size_t i = 0; shape[i]; i++)
                if (shape[i] == 'x' ? !isxdigit((unsigned char)name[i]) : name[i] != shape[i])
                        return false;
        return true;
}

/* Returns whether this can be libvirt's name of a device: letters, digits and '_'. */
static bool is_device_name(const char *name)
{
        for (const char *c = name; *c; c++)
                if (!isalnum((unsigned char)*c) && *c != '_')
                        return false;
        return name[0] != '\0';
}

bool mdev_providers_have_class(const HostConfig *config, const char *resource_class)
{
        for (size_t i = 0; i < config->n_mdev_types; i++)
                if (strcmp(config->mdev_types[i].mdev_class, resource_class) == 0)
                        return true;
        return strcmp(resource_class, "VGPU") == 0;
}

/* Returns true if the provider has inventories, and all of them are of mdev classes. */
static bool has_mdevs_only(const HostConfig *config, const Provider *provider)
{
        for (size_t i = 0; i < provider->n_inventories; i++)
                if (!mdev_providers_have_class(config, provider->inventories[i].resource_class))
                        return false;
        return provider->n_inventories > 0;
}

static bool has_foreign_owner(const HostConfig *config, const Provider *provider)
{
        for (size_t i = 0; i < provider->traits.n_items; i++) {
                const char *trait = provider->traits.items[i];

                if (strncmp(trait, owner_prefix, strlen(owner_prefix)) == 0 &&
                    (!config->owner_trait || strcmp(trait, config->owner_trait) != 0))
                        return true;
        }
        return false;
}

/* Returns whether the provider counts as one that the agent, or Nova before, created for a device
 * with mdevs. */
static bool is_mdev_provider(const TreeUpdate *update, const Provider *provider)
{
        const HostConfig *config = update->config;
        const Provider *root = update->root;
        size_t n = strlen(root->name);
        const char *device_name;
        bool owned;

        if (provider == root || !provider_tree_in_subtree(update->tree, provider, &root->uuid))
                return false;
        if (strncmp(provider->name, root->name, n) != 0 || provider->name[n] != '_')
                return false;
        if (has_foreign_owner(config, provider))
                return false;
        device_name = provider->name + n + 1;
        owned = config->owner_trait && config->owner_trait[0] &&
                string_set_contains(&provider->traits, config->owner_trait);
        return (is_pci_name(device_name) && owned) ||
               (is_device_name(device_name) && has_mdevs_only(config, provider));
}

/* Returns whether another writer renamed the provider of a device that has an offer. Its name can
 * look like that of another device, but it must stay. A renamed provider of a device without an
 * offer is not recognised. */
static bool is_renamed(const TreeUpdate *update, const Provider *provider)
{
        char name[CHILD_NAME_SIZE];

        for (size_t i = 0; i < update->mdevs.n_offers; i++) {
                make_name(update->root, update->mdevs.offers[i].name, name);
                if (child_provider_find_renamed(update->tree, update->root, name) == provider)
                        return true;
        }
        return false;
}

static void remove_gone(const TreeUpdate *update)
{
        /* Go backwards. Children are behind their parents, so a parent whose children go can go
         * too, and the indexes before a removed provider stay valid. */
        for (size_t i = update->tree->n_providers; i > 0; i--) {
                Provider *provider = update->tree->providers[i - 1];

                if (is_mdev_provider(update, provider) &&
                    !mdev_plan_find(&update->mdevs,
                                    provider->name + strlen(update->root->name) + 1) &&
                    !is_renamed(update, provider))
                        child_provider_remove(update, provider);
        }
}

/* Returns the end of the offers of the device that has this first offer. */
static const MdevOffer *end_of_offers(const MdevPlan *plan, const MdevOffer *first)
{
        const MdevOffer *offer = first;

        while (offer < plan->offers + plan->n_offers && strcmp(offer->name, first->name) == 0)
                offer++;
        return offer;
}

int mdev_providers_update(TreeUpdate *update, Error *reterr)
{
        const MdevPlan *plan = &update->mdevs;

        remove_gone(update);
        for (size_t i = 0; i < plan->n_offers;) {
                const MdevOffer *offer = &plan->offers[i], *end = end_of_offers(plan, offer);
                char name[CHILD_NAME_SIZE];
                Provider *provider;
                int r;

                i += (size_t)(end - offer);
                make_name(update->root, offer->name, name);
                r = child_provider_ensure(
                        update,
                        numa_parent(update->config, update->tree, update->root, offer->numa_node),
                        name, &provider);
                if (r < 0)
                        return error_oom(reterr);
                if (!provider)
                        continue;
                r = update_provider(update, offer, end, provider, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}
