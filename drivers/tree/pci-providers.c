/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Edits the providers of PCI devices. A view is made first: for each provider that the host should
 * have, the devices that count on it. Then providers with the trait COMPUTE_MANAGED_PCI_DEVICE but
 * without a device that counts are removed, with the exceptions below, and the others are created
 * or updated. With report_in_placement off, nothing is changed, and each provider that exists is a
 * problem.
 *
 * Virtual functions count on the provider of their physical function, so a view has either the
 * physical function or virtual functions of one class with the same traits. A provider stays while
 * a domain has the device at the address in its name, also in a persistent definition, and also if
 * the snapshot lacks the device. A provider that another writer renamed stays only while the
 * snapshot has a device that counts on it or is refused. A virtual function of the snapshot that a
 * domain has loses its provider only to Neutron (physical_network). A view with a contradiction is
 * refused: its provider stays unchanged, and a problem names the reason. After an error the tree is
 * undefined.
 *
 * Tests: tests/unit/drivers/tree/test-pci-providers.c */

#include "drivers/tree/pci-providers.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "drivers/tree/numa-providers.h"

/* Marks the providers that the agent, or Nova before, created. */
static const char managed_trait[] = "COMPUTE_MANAGED_PCI_DEVICE";

/* The devices that count on one provider. */
typedef struct PciView {
        char address[PCI_ADDRESS_SIZE]; /* address of the device, or of its physical function */
        bool has_parent;                /* the device itself counts, and not its functions */
        bool refused;                   /* its provider stays unchanged */
        bool one_time_use;
        uint64_t n_devices; /* devices that match, or that a domain has */
        /* Number of devices of n_devices that domains have. A device that only the persistent
         * definition of a running domain has does not count. */
        uint64_t n_used;
        uint64_t n_unlisted; /* devices of n_devices without a spec */
        char resource_class[RESOURCE_CLASS_MAX +
                            1]; /* "" if only devices without a spec are left */
        StringSet traits;
} PciView;

typedef struct PciViews {
        PciView *items;
        size_t n_items, n_allocated;
} PciViews;

static void views_done(PciViews *views)
{
        for (size_t i = 0; i < views->n_items; i++)
                string_set_done(&views->items[i].traits);
        free(views->items);
}

/* Views */

/* Returns whether a domain has the device. in_config: the persistent definitions of running
 * domains count, too. */
static bool is_used(const Snapshot *snapshot, const char *address, bool in_config)
{
        for (size_t i = 0; i < snapshot->n_domains; i++)
                if (snapshot_domain_has(&snapshot->domains[i], address, in_config))
                        return true;
        return false;
}

static PciView *find_view(const PciViews *views, const char *address)
{
        for (size_t i = 0; i < views->n_items; i++)
                if (strcmp(views->items[i].address, address) == 0)
                        return &views->items[i];
        return NULL;
}

static int ensure_view(PciViews *views, const char *address, PciView **ret)
{
        *ret = find_view(views, address);
        if (*ret)
                return 0;
        if (array_grow(&views->items, sizeof(PciView), views->n_items, &views->n_allocated) < 0)
                return -ENOMEM;
        *ret = &views->items[views->n_items++];
        **ret = (PciView){ 0 };
        strcpy((*ret)->address, address);
        return 0;
}

/* Returns the address of the provider on which a device counts: its own, or that of its physical
 * function. */
static const char *provider_address(const SnapshotDevice *device)
{
        return device->physical_function[0] ? device->physical_function : device->address;
}

static bool is_child(const SnapshotDevice *device)
{
        return device->physical_function[0] != '\0';
}

/* Returns whether the configuration uses this function as a vGPU without an mdev: the function
 * offers the type that [devices] enabled_mdev_types gives it. */
static bool is_vgpu(const HostConfig *config, const SnapshotDevice *device)
{
        const HostMdevType *type = mdev_type_of_device(config, device);

        return device->is_vgpu_function && type && snapshot_find_mdev_type(device, type->type);
}

/* Returns 0 if the device fits into the view. Returns -EINVAL with the reason if Nova rejects it,
 * or if the configuration uses it as a vGPU. */
static int check_device(const HostConfig *config, const PciView *view, const SnapshotDevice *device,
                        const PciSpec *spec, const char *resource_class, const StringSet *traits,
                        Error *reterr)
{
        bool first = view->n_devices == 0;

        if (is_vgpu(config, device))
                return error_setf(
                        reterr, EINVAL,
                        "[pci] device_spec: %s is also a vGPU of [devices] enabled_mdev_types. Remove it from one of them",
                        device->address);
        if (!first && (!is_child(device) || view->has_parent))
                return error_setf(
                        reterr, EINVAL,
                        "[pci] device_spec: %s and its virtual functions both match, but only one kind can be used. Name its product_id",
                        view->address);
        if (!first && strcmp(view->resource_class, resource_class) != 0)
                return error_setf(
                        reterr, EINVAL,
                        "[pci] device_spec: %s has the resource class %.60s, but other functions of %s have %.60s",
                        device->address, resource_class, view->address, view->resource_class);
        if (!first && !string_set_equal(&view->traits, traits))
                return error_setf(
                        reterr, EINVAL,
                        "[pci] device_spec: the traits of %s differ from those of the other functions of %s",
                        device->address, view->address);
        if (spec->one_time_use && is_child(device))
                return error_setf(
                        reterr, EINVAL,
                        "[pci] device_spec: one_time_use is not possible for %s, which is a virtual function",
                        device->address);
        if (spec->remote_managed && device->is_physical_function)
                return error_setf(
                        reterr, EINVAL,
                        "[pci] device_spec: remote_managed is not possible for %s, which is a physical function",
                        device->address);
        return 0;
}

/* Adds a device that matches a spec. The first device that fits sets the class and the traits of
 * the view. */
static int add_matched(TreeUpdate *update, PciView *view, const SnapshotDevice *device,
                       const PciSpec *spec)
{
        char resource_class[RESOURCE_CLASS_MAX + 1];
        _cleanup_(string_set_done) StringSet traits = STRING_SET_INIT;
        const char *owner = update->config->owner_trait;
        Error error;

        pci_spec_resource_class(spec, device, resource_class);
        if (pci_spec_add_traits(spec, &traits) < 0 ||
            (owner && owner[0] && string_set_add(&traits, owner) < 0))
                return -ENOMEM;
        if (check_device(update->config, view, device, spec, resource_class, &traits, &error) < 0) {
                view->refused = true;
                error_join(&update->problem, &error);
                return 0;
        }
        if (view->n_devices == 0) {
                strcpy(view->resource_class, resource_class);
                view->traits = TAKE_STRUCT(traits);
        }
        view->has_parent = !is_child(device);
        view->one_time_use = spec->one_time_use;
        view->n_devices++;
        return 0;
}

/* Returns whether the device can become a vGPU, but has no type now and is not used by a domain. A
 * guest that got it would have nothing. */
static bool lacks_type(const Snapshot *snapshot, const SnapshotDevice *device)
{
        return device->is_vgpu_function && !snapshot_vgpu_type(device) &&
               !is_used(snapshot, device->address, true);
}

/* Adds all devices with a spec. Neutron owns devices with a physical_network. A virtual function
 * that can become a vGPU counts if it has a type or a domain has it; one that the configuration
 * uses as a vGPU is refused. */
static int add_devices(TreeUpdate *update, PciViews *views)
{
        for (size_t i = 0; i < update->snapshot->n_devices; i++) {
                const SnapshotDevice *device = &update->snapshot->devices[i];
                const PciSpec *spec = pci_specs_find(&update->config->pci_specs, device);
                PciView *view;

                if (!spec || spec->physical_network ||
                    (lacks_type(update->snapshot, device) && !is_vgpu(update->config, device)))
                        continue;
                if (ensure_view(views, provider_address(device), &view) < 0 ||
                    add_matched(update, view, device, spec) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Returns whether a used device without a spec counts. A physical function and its virtual
 * functions must not count on the same provider. */
static bool counts_without_spec(const PciView *view, const SnapshotDevice *device)
{
        return view->n_devices == 0 || (is_child(device) && !view->has_parent);
}

/* Adds used devices. One without a spec still counts, because its spec can have been removed (facts
 * G4.18). apply_view() then makes no provider for such devices alone. */
static int add_used(const TreeUpdate *update, PciViews *views)
{
        for (size_t i = 0; i < update->snapshot->n_devices; i++) {
                const SnapshotDevice *device = &update->snapshot->devices[i];
                const PciSpec *spec = pci_specs_find(&update->config->pci_specs, device);
                PciView *view;

                if (!device->is_pci || !is_used(update->snapshot, device->address, true) ||
                    (spec && spec->physical_network))
                        continue;
                if (ensure_view(views, provider_address(device), &view) < 0)
                        return -ENOMEM;
                if (!spec && !counts_without_spec(view, device))
                        continue;
                if (!spec && view->n_devices++ == 0)
                        view->has_parent = !is_child(device);
                view->n_unlisted += !spec;
                view->n_used += is_used(update->snapshot, device->address, false);
        }
        return 0;
}

/* Providers */

/* Writes the name of the provider, as in Nova: the address in upper case. */
static void make_name(const TreeUpdate *update, const char *address, char ret[CHILD_NAME_SIZE])
{
        size_t n = (size_t)snprintf(ret, CHILD_NAME_SIZE, "%s_", update->root->name);

        for (; *address && n + 1 < CHILD_NAME_SIZE; address++)
                ret[n++] = (char)toupper((unsigned char)*address);
        ret[MIN(n, CHILD_NAME_SIZE - 1U)] = '\0';
}

/* Sets the total in the record that exists, or in a new one: the number of devices. Devices without
 * a spec raise it at most to the present total. Other values that an operator set stay (facts
 * G2.18). */
static int set_total(Provider *provider, const char *resource_class, const PciView *view,
                     Error *reterr)
{
        const Inventory *present = provider_find_inventory(provider, resource_class);
        uint64_t limit = MAX(present ? present->total : 0, view->n_devices - view->n_unlisted);
        Inventory record = present ? *present : INVENTORY_DEFAULT(0);
        int r;

        /* The present total contains devices that lost their spec since. A device that never had a
         * spec has no allocation, so it must not raise the total. */
        record.total = record.max_unit = MIN(view->n_devices, limit);
        record.reserved = MIN(record.reserved, record.total);
        /* after its first use it is reserved until an operator or a cleaning changes that */
        if (view->one_time_use && view->n_used > 0)
                record.reserved = record.total;
        r = provider_set_inventory(provider, resource_class, &record);
        return r < 0 ? error_prefixf(reterr, r, "Inventory %.60s of %s", resource_class,
                                     provider->name)
                     : 0;
}

/* Removes all other classes. If the class of the device changed, the record of the only other class
 * becomes that of this one, so a reserved device stays reserved. A new record begins if another
 * device is at the provider's place, or if the number of devices changed, as between a physical
 * function and its virtual functions. -ENOMEM. */
static int change_class(const TreeUpdate *update, Provider *provider, const PciView *view)
{
        const char *resource_class = view->resource_class;

        if (provider->n_inventories == 1 &&
            strcmp(provider->inventories[0].resource_class, resource_class) != 0 &&
            !(update->known && string_set_contains(&update->known->exchanged, provider->name))) {
                const Inventory record = provider->inventories[0].inventory;

                /* provider_set_inventory() rejects invalid values (-EINVAL): leave them out */
                if (record.total <= view->n_devices &&
                    record.total + view->n_unlisted >= view->n_devices &&
                    provider_set_inventory(provider, resource_class, &record) == -ENOMEM)
                        return -ENOMEM;
        }
        for (size_t i = provider->n_inventories; i > 0; i--)
                if (strcmp(provider->inventories[i - 1].resource_class, resource_class) != 0)
                        provider_remove_inventory(provider,
                                                  provider->inventories[i - 1].resource_class);
        return 0;
}

static bool is_ours(const TreeUpdate *update, const Provider *provider)
{
        return provider != update->root && string_set_contains(&provider->traits, managed_trait) &&
               provider_tree_in_subtree(update->tree, provider, &update->root->uuid);
}

/* Creates or updates the provider of a view. */
static int apply_view(TreeUpdate *update, const PciView *view, Error *reterr)
{
        const SnapshotDevice *device;
        char name[CHILD_NAME_SIZE];
        Provider *provider;
        int r;

        make_name(update, view->address, name);
        if (!view->resource_class[0]) {
                /* without a spec, class and traits come from the provider */
                provider = provider_tree_find_name(update->tree, name);
                if (!provider || provider->n_inventories != 1 || !is_ours(update, provider))
                        return 0;
                return set_total(provider, provider->inventories[0].resource_class, view, reterr);
        }
        device = snapshot_find_address(update->snapshot, view->address);
        r = child_provider_ensure(update,
                                  numa_parent(update->config, update->tree, update->root,
                                              device ? device->numa_node : NUMA_NODE_NONE),
                                  name, &provider);
        if (r < 0)
                return error_oom(reterr);
        if (!provider)
                return 0;
        if (change_class(update, provider, view) < 0)
                return error_oom(reterr);
        r = set_total(provider, view->resource_class, view, reterr);
        if (r < 0)
                return r;
        return string_set_copy(&provider->traits, &view->traits) < 0 ? error_oom(reterr) : 0;
}

/* Parses the address in the name of a provider; "" if there is none. */
static void address_of_provider(const TreeUpdate *update, const Provider *provider,
                                char ret[PCI_ADDRESS_SIZE])
{
        size_t n = strlen(update->root->name);

        ret[0] = '\0';
        if (strncmp(provider->name, update->root->name, n) == 0 && provider->name[n] == '_')
                (void)pci_address_parse(provider->name + n + 1, ret);
}

/* Returns whether the provider stays. A used device that the snapshot lacks stays, because a
 * guest might be about to get it. */
static bool is_kept(const TreeUpdate *update, const PciViews *views, const char *address)
{
        const PciView *view = find_view(views, address);

        return (view && (view->refused || view->n_devices > 0)) ||
               is_used(update->snapshot, address, true);
}

/* Returns whether the provider is that of a view, and another writer renamed it. Its name is not
 * that of a device, but it must stay. */
static bool is_renamed(const TreeUpdate *update, const PciViews *views, const Provider *provider)
{
        char name[CHILD_NAME_SIZE];

        for (size_t i = 0; i < views->n_items; i++) {
                make_name(update, views->items[i].address, name);
                if (child_provider_find_renamed(update->tree, update->root, name) == provider)
                        return true;
        }
        return false;
}

static void remove_gone(const TreeUpdate *update, const PciViews *views)
{
        /* backwards, because children are behind their parents */
        for (size_t i = update->tree->n_providers; i > 0; i--) {
                Provider *provider = update->tree->providers[i - 1];
                char address[PCI_ADDRESS_SIZE];

                if (!is_ours(update, provider))
                        continue;
                address_of_provider(update, provider, address);
                if (!is_kept(update, views, address) && !is_renamed(update, views, provider))
                        child_provider_remove(update, provider);
        }
}

/* Sets a problem if providers exist although report_in_placement is off. Nova rejects this, too. */
static void refuse_if_switched_off(TreeUpdate *update)
{
        for (size_t i = 0; i < update->tree->n_providers; i++) {
                const Provider *provider = update->tree->providers[i];
                Error error;

                if (!is_ours(update, provider))
                        continue;
                error_setf(
                        &error, EINVAL,
                        "[pci] report_in_placement is false, but Placement still has %.80s. Set it to true, or remove the PCI devices from device_spec first",
                        provider->name);
                error_join(&update->problem, &error);
        }
}

int pci_providers_update(TreeUpdate *update, Error *reterr)
{
        _cleanup_(views_done) PciViews views = { 0 };

        if (!update->config->report_in_placement) {
                refuse_if_switched_off(update);
                return 0;
        }
        if (add_devices(update, &views) < 0 || add_used(update, &views) < 0)
                return error_oom(reterr);
        remove_gone(update, &views);
        for (size_t i = 0; i < views.n_items; i++) {
                const PciView *view = &views.items[i];
                int r = 0;

                if (!view->refused && view->n_devices > 0)
                        r = apply_view(update, view, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}
