/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Replaces the stored host: the providers and inventories to which new claims are fitted. A
 * provider that claims still use is kept if the new tree lacks it (host_view_merge()).
 * claims_set_providers() then gives claims of schema version 1 their providers. After a reshape,
 * shifts (StoreShift) move amounts of a claim from one provider and class to another. The function
 * claims_make_shifts() computes them. The function claims_complete() replaces the allocations of
 * one claim by those that its consumer has on this host.
 *
 * A write of the host compares the epoch and the generations of the changed providers. A write of a
 * claim compares the generations of the providers that it gets. Each write is retried after a lost
 * race, up to CLAIM_ATTEMPTS_MAX attempts, and then returns -EBUSY. The host, with the shifts, and
 * each claim of version 1 have transactions of their own: an error keeps those before it. A version
 * 1 claim with PCI addresses waits for the first poll, if the caller polls.
 *
 * Tests: tests/unit/claims/test-claims.c tests/unit/claims/test-claims-move.c
 *   tests/unit/claims/store/test-schema.c */

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/text.h"
#include "claims/claims-internal.h"
#include "claims/fit/numa.h"

/* Withholds the provider that has the uuid of a device's provider, but another name. Another writer
 * renamed it, and the device is not offered (drivers/tree/child-provider.h). */
static int withhold_renamed(HostView *view, const Uuid *root, const char *node, const char *device)
{
        _cleanup_free_ char *name = text_format("%s_%s", node, device);
        size_t index;
        Uuid uuid;

        if (!name)
                return -ENOMEM;
        if (provider_tree_find_name(view->tree, name))
                return 0;
        uuid = uuid_make_child(root, name);
        if (host_view_find(view, &uuid, &index))
                view->providers[index].withheld = true;
        return 0;
}

static int withhold_all_renamed(const Claims *claims, HostView *view)
{
        const HostFacts *facts = claims->facts;
        size_t root;

        if (!facts || !host_view_root(view, claims->node, &root))
                return 0;
        for (size_t i = 0; i < facts->n_devices + facts->n_pci; i++)
                if (withhold_renamed(view, &view->tree->providers[root]->uuid, claims->node,
                                     i < facts->n_devices
                                             ? facts->devices[i].name
                                             : facts->pci[i - facts->n_devices].provider) < 0)
                        return -ENOMEM;
        return 0;
}

/* Yields the host that results from the tree and the claims, with renamed providers withheld.
 * Returns a negative errno with words. */
static int merge_host(Claims *claims, const ProviderTree *tree, HostView **ret, Error *reterr)
{
        _cleanup_(host_view_freep) HostView *view = NULL;
        int r = store_load_view(claims, reterr);

        if (r == 0)
                r = host_view_merge(&view, claims->view, tree, reterr);
        if (r == 0 && withhold_all_renamed(claims, view) < 0)
                r = error_oom(reterr);
        if (r == 0)
                *ret = TAKE_PTR(view);
        return r;
}

/* Makes one attempt to store the tree. An unchanged host is not written. */
static int set_providers_once(Claims *claims, const ProviderTree *tree, Error *reterr)
{
        _cleanup_(host_view_freep) HostView *wanted = NULL;
        int r = merge_host(claims, tree, &wanted, reterr);

        if (r < 0)
                return r;
        if (host_view_same_host(claims->view, wanted))
                return 0;
        return store_write_host(claims, wanted, NULL, 0, reterr);
}

/* Returns true if the text contains the PCI address, and not only as the end of a longer number. */
static bool names(const char *text, const char *address)
{
        const char *found = strcasestr(text, address);

        while (found && found > text && isxdigit((unsigned char)found[-1]))
                found = strcasestr(found + 1, address);
        return found;
}

/* Adds the devices whose addresses are in text, the column "pci" of a claim of schema version 1.
 * Leaves out devices that another claim has, that no provider counts, or that are of a set. */
static int hold_devices(Claims *claims, const char *text, Fit *fit, DeviceList *devices,
                        Error *reterr)
{
        for (size_t i = 0; claims->facts && i < claims->facts->n_pci; i++) {
                const HostPci *pci = &claims->facts->pci[i];
                int r = names(text, pci->address)
                                ? claims_hold_pci(claims, pci, fit, devices, reterr)
                                : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Makes one attempt to place a claim of schema version 1. Returns 0 without a change if the root or
 * the devices are unknown yet. */
static int place_claim(Claims *claims, StoreUnplaced *claim, Error *reterr)
{
        _cleanup_(device_list_done) DeviceList devices = { 0 };
        _cleanup_(resources_done) Resources resources = RESOURCES_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        size_t root;
        int r = store_load_view(claims, reterr);

        if (r < 0)
                return r;
        /* Wait for the first poll, because the devices are unknown before it. */
        if (!host_view_root(claims->view, claims->node, &root) ||
            (strchr(claim->pci, ':') && claims->has_devices && !claims->facts))
                return 0;
        if (resources_set(&resources, "VCPU", claim->vcpus) < 0 ||
            resources_set(&resources, "MEMORY_MB", claim->memory_mb) < 0 ||
            resources_set(&resources, "DISK_GB", claim->disk_gb) < 0 ||
            fit_force_numa(claims->view, claims->facts, claims->node, &resources, &(Layout){ 0 },
                           &fit) < 0)
                return error_oom(reterr);
        r = hold_devices(claims, claim->pci, &fit, &devices, reterr);
        if (r < 0)
                return r;
        claim->devices = devices.devices;
        claim->n_devices = devices.n_devices;
        r = store_place(claims, claim, &fit, reterr);
        if (r == 0)
                log_debug("Claim %" PRIi64 " of schema version 1 was counted on this host",
                          claim->id);
        return r;
}

/* Places the claims of schema version 1, which hold amounts of the node as a whole, with or without
 * free capacity. A file serves one node, so all of them count here, whatever name they have. Skips
 * a claim that another process released or placed first (CLAIM_E_NOT_FOUND), or of which another
 * claim got a device first (CLAIM_E_CONFLICT). A claim that loses all its races ends the function
 * with -EBUSY. */
static int place_unplaced(Claims *claims, Error *reterr)
{
        int64_t after = 0;

        for (;;) {
                _cleanup_(store_unplaced_done) StoreUnplaced claim = { 0 };
                ClaimAttempts attempts = { .claims = claims };
                int r = store_next_unplaced(claims, after, &claim, reterr);

                if (r != 0)
                        return r < 0 ? r : 0;
                while (claims_attempt(&attempts, reterr))
                        attempts.result = place_claim(claims, &claim, reterr);
                if (attempts.result < 0)
                        return attempts.result;
                after = claim.id;
        }
}

int claims_set_providers(Claims *claims, const ProviderTree *tree, Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        while (claims_attempt(&attempts, reterr))
                attempts.result = set_providers_once(claims, tree, reterr);
        return attempts.result != 0 ? attempts.result : place_unplaced(claims, reterr);
}

static int move_once(Claims *claims, const ProviderTree *tree, const StoreShift *shifts,
                     size_t n_shifts, Error *reterr)
{
        _cleanup_(host_view_freep) HostView *wanted = NULL;
        int r = merge_host(claims, tree, &wanted, reterr);

        return r < 0 ? r : store_write_host(claims, wanted, shifts, n_shifts, reterr);
}

int claims_shift(Claims *claims, const ProviderTree *tree, const StoreShift *shifts,
                 size_t n_shifts, Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        while (claims_attempt(&attempts, reterr))
                attempts.result = move_once(claims, tree, shifts, n_shifts, reterr);
        return attempts.result;
}

/* Adds to *ret the consumer's allocations. Leaves out providers and classes that this host does not
 * have. */
static int fit_share(const HostView *view, const Consumer *share, Fit *ret)
{
        for (size_t i = 0; i < view->n_providers; i++) {
                const Provider *provider = view->tree->providers[i];
                const Resources *resources = consumer_find(share, &provider->uuid);

                for (size_t j = 0; resources && j < resources->n_items; j++)
                        if (provider_find_inventory(provider, resources->items[j].resource_class) &&
                            fit_add(ret, i, resources->items[j].resource_class,
                                    resources->items[j].amount) < 0)
                                return -ENOMEM;
        }
        return 0;
}

static int complete_once(Claims *claims, int64_t id, const Consumer *share, Error *reterr)
{
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        int r = store_load_view(claims, reterr);

        if (r < 0)
                return r;
        if (fit_share(claims->view, share, &fit) < 0)
                return error_oom(reterr);
        r = store_complete(claims, id, &share->uuid, &fit, reterr);
        return r == CLAIM_E_NOT_FOUND ? store_not_found(id, reterr) : r;
}

int claims_complete(Claims *claims, int64_t id, const Consumer *share, Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        while (claims_attempt(&attempts, reterr))
                attempts.result = complete_once(claims, id, share, reterr);
        return attempts.result;
}

/* A difference between the allocations of a consumer before and after a reshape. "amount" is the
 * part of it that no shift explains yet. */
typedef struct Change {
        const Uuid *provider;
        const char *resource_class;
        uint64_t amount;
} Change;

typedef struct Changes {
        Change *items;
        size_t n_items, n_allocated;
} Changes;

/* Adds a change for each provider and class of which the consumer "of" has more than the consumer
 * "other". */
static int collect(const Consumer *of, const Consumer *other, Changes *ret)
{
        for (size_t i = 0; i < of->n_allocations; i++) {
                const Allocation *allocation = &of->allocations[i];

                for (size_t j = 0; j < allocation->resources.n_items; j++) {
                        const ResourceAmount *item = &allocation->resources.items[j];
                        uint64_t there =
                                consumer_get(other, &allocation->provider, item->resource_class);

                        if (item->amount <= there)
                                continue;
                        if (array_grow(&ret->items, sizeof(Change), ret->n_items,
                                       &ret->n_allocated) < 0)
                                return -ENOMEM;
                        ret->items[ret->n_items++] =
                                (Change){ &allocation->provider, item->resource_class,
                                          item->amount - there };
                }
        }
        return 0;
}

/* Adds a shift of the smaller one of the two amounts that are left, and subtracts it from both
 * changes. */
static int pair(int64_t claim, Change *from, Change *to, StoreShift **shifts, size_t *n_shifts,
                size_t *n_allocated)
{
        uint64_t amount = MIN(from->amount, to->amount);

        if (amount == 0)
                return 0;
        if (array_grow(shifts, sizeof(StoreShift), *n_shifts, n_allocated) < 0)
                return -ENOMEM;
        (*shifts)[(*n_shifts)++] = (StoreShift){
                .claim = claim,
                .from = *from->provider,
                .from_class = from->resource_class,
                .to = *to->provider,
                .to_class = to->resource_class,
                .amount = amount,
        };
        from->amount -= amount;
        to->amount -= amount;
        return 0;
}

/* Pairs decreases with increases. The first pass pairs within a class, the second one between
 * classes. */
int claims_make_shifts(int64_t claim, const Consumer *before, const Consumer *after,
                       StoreShift **shifts, size_t *n_shifts, size_t *n_allocated)
{
        Changes less = { 0 }, more = { 0 };
        int r = collect(before, after, &less);

        if (r == 0)
                r = collect(after, before, &more);
        for (int any_class = 0; any_class <= 1; any_class++)
                for (size_t i = 0; i < less.n_items; i++)
                        for (size_t j = 0; r == 0 && j < more.n_items; j++)
                                if (any_class || strcmp(less.items[i].resource_class,
                                                        more.items[j].resource_class) == 0)
                                        r = pair(claim, &less.items[i], &more.items[j], shifts,
                                                 n_shifts, n_allocated);
        free(less.items);
        free(more.items);
        return r;
}
