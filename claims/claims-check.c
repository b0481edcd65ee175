/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks existing claims by their domains. The function claims_check_again() completes a claim with
 * devices, identities, cells and host CPUs, and notes this boot in it. It repeats its attempt after
 * a lost race, and each attempt reads the host again. A device that the claim cannot get does not
 * prevent the other changes. Providers found again, and each identity, are transactions of their
 * own, and stay if a later step fails.
 *
 * Tests: tests/unit/claims/test-claims-guests.c tests/unit/claims/test-claims-layout.c */

#include <inttypes.h>
#include <string.h>

#include "claims/claims-internal.h"
#include "claims/fit/device-choice.h"

/* Returns the suffix of the first request group that uses the provider, "" if none does. */
static const char *suffix_of(const Claim *claim, const Uuid *provider)
{
        for (size_t i = 0; i < claim->mappings.n_items; i++)
                if (uuid_equal(&claim->mappings.items[i].provider, provider))
                        return claim->mappings.items[i].suffix;
        return "";
}

/* Lists the devices that the claim cannot get. With a domain, the guest's own devices are
 * candidates, so only those of claims are listed. Without one, those of all guests and the unclean
 * ones are listed too. The chosen ones, which the claim already gets, are listed in both cases. */
static int take_stock(Claims *claims, const HostDomain *domain, const DeviceList *chosen,
                      Taken *ret, Error *reterr)
{
        int r = domain ? store_taken(claims, false, ret, reterr)
                       : claims_taken(claims, ret, reterr);

        for (size_t i = 0; r >= 0 && i < chosen->n_devices; i++)
                if (taken_add(ret, &chosen->devices[i].mdev, chosen->devices[i].name,
                              chosen->devices[i].address, chosen->devices[i].mdev_type) < 0)
                        r = error_oom(reterr);
        return r;
}

/* Finds an mdev of the device for a claim: of the guest if there is a domain, else a free or new
 * one. Returns 1 if it found one, and 0 with words if not. */
static int find_mdev(Claims *claims, const HostDomain *domain, const HostDevice *device,
                     const Taken *taken, Uuid *ret, Error *reterr)
{
        for (size_t i = 0; domain && i < domain->n_mdevs; i++) {
                const HostMdev *mdev = host_facts_find_mdev(claims->facts, &domain->mdevs[i]);

                if (!mdev || strcmp(mdev->device, device->name) != 0 ||
                    taken_has(taken, mdev->uuid.text))
                        continue;
                *ret = mdev->uuid;
                return 1;
        }
        if (domain) {
                error_setf(reterr, ENODEV, "guest %.60s has no mdev on %.60s for its claim",
                           domain->name, device->name);
                return 0;
        }
        return device_choose(claims->facts, device, taken, ret, reterr) == CLAIM_DONE;
}

/* Adds n missing mdevs of one allocation. Returns CLAIM_E_NO_CAPACITY with words if there are not
 * enough. */
static int name_missing(Claims *claims, const Claim *claim, size_t allocation,
                        const HostDevice *device, uint64_t n, const HostDomain *domain,
                        DeviceList *ret, Error *reterr)
{
        const Provider provider = { .uuid = claim->allocations[allocation].provider };
        _cleanup_(taken_done) Taken taken = { 0 };
        int r = take_stock(claims, domain, ret, &taken, reterr);
        Uuid mdev;

        for (; r >= 0 && n > 0; n--) {
                r = find_mdev(claims, domain, device, &taken, &mdev, reterr);
                if (r == 0)
                        return CLAIM_E_NO_CAPACITY;
                if (claims_add_device(ret, &provider, suffix_of(claim, &provider.uuid), device,
                                      &mdev) < 0 ||
                    taken_add(&taken, &mdev, device->name, device->address, "") < 0)
                        return error_oom(reterr);
        }
        return MIN(r, 0);
}

/* Returns true if the claim can get this device of its guest: no claim has it, its card or a part
 * of it. */
static bool can_name(const Claim *claim, const char *address, const Taken *taken)
{
        return !claim_has_pci(claim, address) &&
               taken_blocks_pci(taken, address, NULL) == TAKEN_BLOCK_NONE;
}

/* Adds the devices of a claim that has an amount of a set, but names too few: a free partition, or
 * with a domain those of the guest. Returns CLAIM_E_NO_CAPACITY with words if there is no partition
 * of the amount, or another claim has a device of it. */
static int name_partition(Claims *claims, const Claim *claim, const Provider *provider,
                          const DeviceSet *set, uint64_t amount, const HostDomain *domain,
                          DeviceList *ret, Error *reterr)
{
        const char *devices[DEVICE_SET_PARTITIONS_MAX] = { NULL };
        const char *suffix = suffix_of(claim, &provider->uuid);
        size_t n = domain ? host_domain_list_members(domain, set, devices) : 0;
        const DevicePartition *partition = device_set_find(set, devices, n);
        _cleanup_(taken_done) Taken taken = { 0 };
        int r = take_stock(claims, domain, ret, &taken, reterr);

        if (r < 0 || !domain)
                return r < 0 ? r
                             : claims_choose_pci(claims, provider, set->resource_class, suffix,
                                                 amount, &taken, ret, reterr);
        if (!partition || device_members_count(partition->members) != amount) {
                error_setf(reterr, ENODEV, "guest %.60s has no partition of %s for its claim",
                           domain->name, set->name);
                return CLAIM_E_NO_CAPACITY;
        }
        for (size_t i = 0; i < n; i++) {
                const HostPci *pci = host_facts_find_pci(claims->facts, devices[i]);

                if (!pci || claim_has_pci(claim, devices[i]))
                        continue;
                if (!can_name(claim, devices[i], &taken)) {
                        error_setf(reterr, EBUSY, "another claim has %s of guest %.60s", devices[i],
                                   domain->name);
                        return CLAIM_E_NO_CAPACITY;
                }
                if (claims_add_pci(ret, provider, suffix, pci) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* Adds the missing PCI devices of one allocation, of which n have a name. Returns
 * CLAIM_E_NO_CAPACITY with words if there are not enough, or without a domain if the claim names a
 * part of a partition. */
static int name_missing_pci(Claims *claims, const Claim *claim, size_t allocation,
                            const ResourceAmount *item, uint64_t n, const HostDomain *domain,
                            DeviceList *ret, Error *reterr)
{
        const Provider provider = { .uuid = claim->allocations[allocation].provider,
                                    .name = claim->provider_names[allocation] };
        _cleanup_(taken_done) Taken taken = { 0 };
        const HostPci *first = pci_of_provider(claims->facts, claims->node, provider.name,
                                               item->resource_class, NULL);
        int r;

        if (first && first->set && !domain && n > 0) {
                error_setf(reterr, ENODEV, "its devices of %s are no partition of %" PRIu64,
                           first->set->name, item->amount);
                return CLAIM_E_NO_CAPACITY;
        }
        if (first && first->set)
                return name_partition(claims, claim, &provider, first->set, item->amount, domain,
                                      ret, reterr);
        r = take_stock(claims, domain, ret, &taken, reterr);
        if (r < 0 || !domain)
                return r < 0 ? r
                             : claims_choose_pci(claims, &provider, item->resource_class,
                                                 suffix_of(claim, &provider.uuid), item->amount - n,
                                                 &taken, ret, reterr);
        for (size_t i = 0; i < domain->n_pci && n < item->amount; i++) {
                const HostPci *pci = host_facts_find_pci(claims->facts, domain->pci[i]);
                size_t at = pci ? claims_find_pci_provider(claims, pci) : SIZE_MAX;

                if (at == SIZE_MAX || !can_name(claim, domain->pci[i], &taken) ||
                    strcmp(pci->resource_class, item->resource_class) != 0 ||
                    !uuid_equal(&claims->view->tree->providers[at]->uuid, &provider.uuid))
                        continue;
                if (claims_add_pci(ret, &provider, suffix_of(claim, &provider.uuid), pci) < 0)
                        return error_oom(reterr);
                n++;
        }
        if (n == item->amount)
                return 0;
        error_setf(reterr, ENODEV, "guest %.60s has no device of %.60s for its claim", domain->name,
                   provider.name);
        return CLAIM_E_NO_CAPACITY;
}

/* Adds the missing devices of all allocations. Those of a claim of CLAIM_TYPE_GUEST, such as one
 * for the start of a server, stay unnamed until its domain shows them, because Nova chooses them.
 * Returns the largest outcome, so that one missing device does not stop the search for the next. */
static int name_all_missing(Claims *claims, const Claim *claim, const HostDomain *domain,
                            DeviceList *ret, Error *reterr)
{
        int outcome = 0;

        if (!domain && strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0)
                return 0;
        for (size_t i = 0; claims->facts && i < claim->n_allocations; i++) {
                const Resources *resources = &claim->allocations[i].resources;

                for (size_t j = 0; j < resources->n_items; j++) {
                        const ResourceAmount *item = &resources->items[j];
                        const HostDevice *device =
                                device_of_provider(claims->facts, claims->node,
                                                   claim->provider_names[i], item->resource_class);
                        uint64_t n = device_count_named(
                                claims->facts, claim, &claim->allocations[i], item->resource_class);
                        int r = 0;

                        if (n < item->amount && device)
                                r = name_missing(claims, claim, i, device, item->amount - n, domain,
                                                 ret, reterr);
                        else if (n < item->amount && pci_of_provider(claims->facts, claims->node,
                                                                     claim->provider_names[i],
                                                                     item->resource_class, NULL))
                                r = name_missing_pci(claims, claim, i, item, n, domain, ret,
                                                     reterr);
                        if (r < 0)
                                return r;
                        outcome = MAX(outcome, r);
                }
        }
        return outcome;
}

/* Changes of a claim's layout: the cells, if it has none, and the held host CPUs that it gets
 * (layout) or loses (dropped). */
typedef struct LayoutChange {
        Layout layout;
        CpuSet dropped;
} LayoutChange;

static void layout_change_done(LayoutChange *change)
{
        layout_done(&change->layout);
        cpu_set_done(&change->dropped);
}

/* Compares the layout of a claim with that of its guest. Finds no change without a domain that was
 * read. A requested claim keeps all of its host CPUs: with the thread policy "isolate" no domain
 * shows them. */
static int find_layout_change(const HostView *view, const Claim *claim, const HostDomain *domain,
                              LayoutChange *ret)
{
        _cleanup_(cpu_set_done) CpuSet missing = CPU_SET_INIT;
        int r = 0;

        if (!domain || domain->unread)
                return 0;
        if (claim->layout.n_cells == 0)
                r = layout_copy(&ret->layout, &domain->layout);
        if (r == 0)
                r = layout_compare_held(&claim->layout, &domain->layout, &view->held, &missing,
                                        &ret->dropped);
        if (r < 0)
                return r;
        if (strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) != 0)
                cpu_set_done(&ret->dropped);
        cpu_set_done(&ret->layout.held);
        ret->layout.held = TAKE_STRUCT(missing);
        return 0;
}

/* Returns 1 if the guest has only this claim, and no migration took it over, so that its layout is
 * the claim's. The layout of a guest with two claims can be that of either. */
static int owns_layout(Claims *claims, const Claim *claim, Error *reterr)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = claims_list(claims, CLAIMS_OF_GUEST, claim->consumer.text, &list, reterr);

        return r < 0 ? r : uuid_empty(&claim->guest) && list.n_claims == 1;
}

static bool is_changing(const LayoutChange *change)
{
        return change->layout.n_cells > 0 || cpu_set_count(&change->layout.held) > 0 ||
               cpu_set_count(&change->dropped) > 0;
}

/* Records the identities, or serial numbers, that the claim lacks, for example because an older
 * schema had none. Sets *ret_changed after each of them. */
static int record_identities(Claims *claims, const Claim *claim, bool *ret_changed, Error *reterr)
{
        int r = 0;

        for (size_t i = 0; r == 0 && claims->facts && i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];

                if (!device_lacks_identity(claims->facts, device))
                        continue;
                r = store_set_identity(claims, claim->id, device->address,
                                       host_facts_identity(claims->facts, device->address), reterr);
                *ret_changed = *ret_changed || r == 0;
        }
        return r;
}

/* Returns true if the host lacks the provider of a device of the claim. Version 0.2.0 did not
 * change the device when its provider got another uuid. */
static bool lacks_provider(const HostView *view, const Claim *claim)
{
        size_t index;

        for (size_t i = 0; i < claim->n_devices; i++)
                if (!host_view_find(view, &claim->devices[i].provider, &index))
                        return true;
        return false;
}

/* Reads the claim, with the providers of its devices found again. Sets *ret_changed if it wrote
 * them. Returns CLAIM_E_NOT_FOUND with words if no living claim has the id. */
static int read_claim(Claims *claims, int64_t id, Claim **ret, bool *ret_changed, Error *reterr)
{
        int r = claims_get(claims, id, ret, reterr);

        if (r < 0)
                return r;
        if (r > 0 || (*ret)->state == CLAIM_STATE_RELEASED)
                return store_not_found(id, reterr);
        if (!lacks_provider(claims->view, *ret))
                return 0;
        r = store_find_providers(claims, id, reterr);
        if (r != 0)
                return MIN(r, 0);
        *ret_changed = true;
        *ret = claim_free(*ret);
        return claims_get(claims, id, ret, reterr);
}

/* Makes one attempt to complete the claim. CLAIM_E_RACE: the caller must retry. Sets *ret_changed
 * if it wrote. */
static int check_once(Claims *claims, int64_t id, const HostDomain *domain, bool *ret_changed,
                      Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        _cleanup_(device_list_done) DeviceList devices = { 0 };
        _cleanup_(layout_change_done) LayoutChange change = { 0 };
        int r, outcome;

        r = store_load_view(claims, reterr);
        if (r == 0)
                r = read_claim(claims, id, &claim, ret_changed, reterr);
        if (r != 0)
                return r;
        outcome = name_all_missing(claims, claim, domain, &devices, reterr);
        if (outcome < 0)
                return outcome;
        r = record_identities(claims, claim, ret_changed, reterr);
        if (r < 0)
                return r;
        if (find_layout_change(claims->view, claim, domain, &change) < 0)
                return error_oom(reterr);
        r = is_changing(&change) ? owns_layout(claims, claim, reterr) : 0;
        if (r < 0)
                return r;
        if (r == 0)
                layout_change_done(&change);
        if (devices.n_devices == 0 && !is_changing(&change) &&
            strcmp(claim->boot_id, claims->boot_id) == 0)
                return outcome;
        r = store_renew(claims, id, devices.devices, devices.n_devices,
                        is_changing(&change) ? &change.layout : NULL, &change.dropped, reterr);
        *ret_changed = *ret_changed || r == 0;
        return r > 0 ? CLAIM_E_RACE : r < 0 ? r : outcome;
}

int claims_check_again(Claims *claims, int64_t id, const HostDomain *domain, bool *ret_changed,
                       Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        *ret_changed = false;
        while (claims_attempt(&attempts, reterr))
                attempts.result = check_once(claims, id, domain, ret_changed, reterr);
        return attempts.result;
}
