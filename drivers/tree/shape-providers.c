/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Edits the providers of sets of devices. First, providers of sets without a section are removed.
 * One with children of other writers stays, without inventories. Then, for each set, the use of its
 * devices is collected: by claims, by guests, and by cordons or absence. It is stored twice
 * (DeviceSetUse): all that cannot be given out, and the part of claims. The inventory is computed
 * from both. After an error the tree is undefined.
 *
 * A member is also in use if a guest or a claim has a part of it or the card that it is a part of
 * (decision devices/parts). Limit: mdevs of claims count only if a domain has them.
 *
 * Tests: tests/unit/drivers/tree/test-shape-providers.c */

#include "drivers/tree/shape-providers.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "drivers/tree/numa-providers.h"

void shape_name(const DeviceSet *set, char ret[static SHAPE_NAME_SIZE])
{
        snprintf(ret, SHAPE_NAME_SIZE, SHAPE_PREFIX "%s", set->name);
}

static void make_name(const Provider *root, const DeviceSet *set, char ret[CHILD_NAME_SIZE])
{
        char end[SHAPE_NAME_SIZE];

        shape_name(set, end);
        snprintf(ret, CHILD_NAME_SIZE, "%s_%s", root->name, end);
}

static const SnapshotDevice *find_device(const Snapshot *snapshot, const char *address)
{
        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (strcmp(snapshot->devices[i].address, address) == 0)
                        return &snapshot->devices[i];
        return NULL;
}

/* Returns whether guests can get the device in vGPUs. */
static bool has_vgpus(const HostConfig *config, const SnapshotDevice *device)
{
        const HostMdevType *type = mdev_type_of_device(config, device);
        VgpuTypeSet allowed = device->is_vgpu_function ? vgpu_types_allowed(config, device) : 0;

        for (size_t i = 0; i < config->n_mdev_types && i < VGPU_TYPES_MAX; i++)
                if (allowed & UINT64_C(1) << i &&
                    snapshot_find_mdev_type(device, config->mdev_types[i].type))
                        return true;
        return type && snapshot_find_mdev_type(device, type->type);
}

/* Checks a device that is a member of the set or on the card of that member. */
static int check_device(const HostConfig *config, const DeviceSet *set, const char *member,
                        const SnapshotDevice *device, Error *reterr)
{
        const bool same = strcmp(device->address, member) == 0;
        const char *what =
                pci_specs_find(&config->pci_specs, device) ? "also matches [pci] device_spec"
                : has_vgpus(config, device) ? "is also a device of [devices] enabled_mdev_types"
                                            : NULL;

        if (!what)
                return 0;
        return error_setf(reterr, EINVAL,
                          "[device_shapes %s]: %s%s%s %s. Remove %s from one of them", set->name,
                          device->address, same ? "" : " of the same card as ", same ? "" : member,
                          what, same ? "it" : "the card");
}

/* Returns -ENODEV with words if the host does not list all devices of the set. */
static int check_complete(const Snapshot *snapshot, const DeviceSet *set, Error *reterr)
{
        const char *address, *first = NULL;
        size_t n = 0, i;

        for (i = 0; (address = device_set_device(set, i)); i++)
                if (!find_device(snapshot, address) && n++ == 0)
                        first = address;
        return n == 0 ? 0
                      : error_setf(reterr, ENODEV,
                                   "[device_shapes %s]: %zu of %zu devices are missing, first %s",
                                   set->name, n, i, first);
}

int shape_check(const HostConfig *config, const Snapshot *snapshot, const DeviceSet *set,
                Error *reterr)
{
        const char *address;

        for (size_t i = 0; (address = device_set_device(set, i)); i++) {
                const SnapshotDevice *member = find_device(snapshot, address);
                const char *card = member ? member->physical_function : "";

                for (size_t j = 0; j < snapshot->n_devices; j++) {
                        const SnapshotDevice *device = &snapshot->devices[j];

                        if ((strcmp(device->address, address) == 0 ||
                             strcmp(device->physical_function, address) == 0 ||
                             (card[0] && strcmp(device->address, card) == 0)) &&
                            check_device(config, set, address, device, reterr) < 0)
                                return -EINVAL;
                }
        }
        return check_complete(snapshot, set, reterr);
}

/* The devices that claims have, or domains by any of their definitions. */
typedef struct Guests {
        StringSet things; /* PCI addresses and uuids of mdevs */
        StringSet cards;  /* PCI addresses of devices that have one of them as a part */
} Guests;

static void guests_done(Guests *guests)
{
        string_set_done(&guests->things);
        string_set_done(&guests->cards);
}

static int add_guest(Guests *guests, const SnapshotDomain *domain)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < domain->n_pci_addresses; i++)
                r = string_set_add(&guests->things, domain->pci_addresses[i]);
        for (size_t i = 0; r >= 0 && i < domain->n_config_pci_addresses; i++)
                r = string_set_add(&guests->things, domain->config_pci_addresses[i]);
        for (size_t i = 0; r >= 0 && i < domain->n_mdevs; i++)
                r = string_set_add(&guests->things, domain->mdevs[i].text);
        for (size_t i = 0; r >= 0 && i < domain->n_config_mdevs; i++)
                r = string_set_add(&guests->things, domain->config_mdevs[i].text);
        return MIN(r, 0);
}

/* Adds the device if things has an mdev of it. Adds its physical function if things has such an
 * mdev or the device. */
static int add_cards_of(Guests *guests, const Snapshot *snapshot, const SnapshotDevice *device)
{
        size_t n;
        const SnapshotMdev *mdevs = snapshot_mdevs_of(snapshot, device->name, &n);
        bool is_divided = false;
        int r = 0;

        for (size_t i = 0; i < n && !is_divided; i++)
                is_divided = string_set_contains(&guests->things, mdevs[i].uuid.text);
        if (is_divided)
                r = string_set_add(&guests->cards, device->address);
        if (r >= 0 && device->physical_function[0] &&
            (is_divided || string_set_contains(&guests->things, device->address)))
                r = string_set_add(&guests->cards, device->physical_function);
        return MIN(r, 0);
}

static int list_guests(Guests *guests, const Snapshot *snapshot, const DeviceFacts *known)
{
        int r = 0;

        for (size_t i = 0; known && r == 0 && i < known->n_holdings; i++)
                r = MIN(string_set_add(&guests->things, known->holdings[i].address), 0);
        for (size_t i = 0; r == 0 && i < snapshot->n_domains; i++)
                r = add_guest(guests, &snapshot->domains[i]);
        for (size_t i = 0; r == 0 && i < snapshot->n_devices; i++)
                r = add_cards_of(guests, snapshot, &snapshot->devices[i]);
        return r;
}

static bool is_claimed(const TreeUpdate *update, const char *address)
{
        const DeviceFacts *known = update->known;

        for (size_t i = 0; known && i < known->n_holdings; i++)
                if (strcmp(known->holdings[i].address, address) == 0)
                        return true;
        return false;
}

/* Marks the devices of the set that claims or guests have, and those that cannot be given out.
 * claimed gets those of claims alone. */
static void collect_use(const TreeUpdate *update, const DeviceSet *set, const Guests *guests,
                        DeviceSetUse *use, DeviceSetUse *claimed)
{
        const char *address;

        for (size_t i = 0; (address = device_set_device(set, i)); i++) {
                const SnapshotDevice *device = find_device(update->snapshot, address);

                if (is_claimed(update, address))
                        device_set_take(set, claimed, address);
                if (string_set_contains(&guests->things, address) ||
                    string_set_contains(&guests->cards, address))
                        device_set_take(set, use, address);
                if (!device ||
                    (device->physical_function[0] &&
                     string_set_contains(&guests->things, device->physical_function)) ||
                    (update->known && string_set_contains(&update->known->withheld, address)))
                        device_set_exclude(set, use, address);
        }
}

static Inventory make_record(const DeviceSet *set, const DeviceSetUse *use,
                             const DeviceSetUse *claimed)
{
        const uint64_t all = device_set_amounts(set, NULL), now = device_set_amounts(set, use);
        Inventory record = INVENTORY_DEFAULT(set->n_members);
        unsigned step;

        record.min_unit = device_amounts_smallest(all, &step);
        record.step_size = step;
        record.max_unit = now ? device_amounts_largest(now) : record.min_unit;
        record.reserved = now ? device_members_count(use->taken & ~claimed->taken)
                              : set->n_members - device_members_count(claimed->taken);
        return record;
}

/* Returns the parent of the provider. If the host lists no device of the set, this is the present
 * parent, so the provider does not move while the devices are missing. */
static const Provider *find_parent(const TreeUpdate *update, const DeviceSet *set, const char *name)
{
        const Provider *present = provider_tree_find_name(update->tree, name), *parent = NULL;
        const char *address;
        int node = NUMA_NODE_NONE;
        bool any = false, same = true;

        for (size_t i = 0; (address = device_set_device(set, i)); i++) {
                const SnapshotDevice *device = find_device(update->snapshot, address);

                if (!device)
                        continue;
                same = same && (!any || device->numa_node == node);
                node = device->numa_node;
                any = true;
        }
        if (!any && present)
                parent = provider_tree_find(update->tree, &present->parent);
        if (parent && provider_tree_in_subtree(update->tree, parent, &update->root->uuid))
                return parent;
        return numa_parent(update->config, update->tree, update->root,
                           any && same ? node : NUMA_NODE_NONE);
}

/* Reserves all of a set that contradicts another option, if it has a provider of its own name. */
static void withhold(const TreeUpdate *update, const DeviceSet *set)
{
        char name[CHILD_NAME_SIZE];
        const Provider *provider;

        make_name(update->root, set, name);
        provider = provider_tree_find_name(update->tree, name);
        if (!provider || !provider_tree_in_subtree(update->tree, provider, &update->root->uuid))
                return;
        for (size_t i = 0; i < provider->n_inventories; i++)
                provider->inventories[i].inventory.reserved =
                        provider->inventories[i].inventory.total;
}

static int update_set(TreeUpdate *update, const DeviceSet *set, const Guests *guests, Error *reterr)
{
        DeviceSetUse use = { 0 }, claimed = { 0 };
        char name[CHILD_NAME_SIZE];
        Provider *provider;
        Inventory record;
        Error words;
        int r;

        r = shape_check(update->config, update->snapshot, set, &words);
        if (r < 0)
                error_join(&update->problem, &words);
        if (r == -EINVAL) {
                withhold(update, set);
                return 0;
        }
        make_name(update->root, set, name);
        if (child_provider_ensure(update, find_parent(update, set, name), name, &provider) < 0)
                return error_oom(reterr);
        if (!provider)
                return 0;
        collect_use(update, set, guests, &use, &claimed);
        record = make_record(set, &use, &claimed);
        provider_clear_inventories(provider);
        r = provider_set_inventory(provider, set->resource_class, &record);
        if (r < 0)
                return error_prefixf(reterr, r, "Inventory %.60s of %s", set->resource_class,
                                     provider->name);
        return child_provider_own(update, provider) < 0 ? error_oom(reterr) : 0;
}

/* Returns whether a section has the provider, under its own name or under that of another
 * writer. */
static bool is_kept(const TreeUpdate *update, const Provider *provider)
{
        for (size_t i = 0; i < update->config->n_shapes; i++) {
                char name[CHILD_NAME_SIZE];

                make_name(update->root, &update->config->shapes[i].set, name);
                if (strcmp(provider->name, name) == 0 ||
                    child_provider_find_renamed(update->tree, update->root, name) == provider)
                        return true;
        }
        return false;
}

static void remove_gone(const TreeUpdate *update)
{
        size_t n = strlen(update->root->name);

        /* backwards, because children are behind their parents */
        for (size_t i = update->tree->n_providers; i > 0; i--) {
                Provider *provider = update->tree->providers[i - 1];

                if (strncmp(provider->name, update->root->name, n) == 0 &&
                    strncmp(provider->name + n, "_" SHAPE_PREFIX, strlen("_" SHAPE_PREFIX)) == 0 &&
                    provider != update->root &&
                    provider_tree_in_subtree(update->tree, provider, &update->root->uuid) &&
                    !is_kept(update, provider))
                        child_provider_remove(update, provider);
        }
}

int shape_providers_update(TreeUpdate *update, Error *reterr)
{
        _cleanup_(guests_done) Guests guests = { 0 };
        int r = 0;

        remove_gone(update);
        if (update->config->n_shapes > 0 &&
            list_guests(&guests, update->snapshot, update->known) < 0)
                return error_oom(reterr);
        for (size_t i = 0; r == 0 && i < update->config->n_shapes; i++)
                r = update_set(update, &update->config->shapes[i].set, &guests, reterr);
        return r;
}
