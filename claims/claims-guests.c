/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes claims of guests by their domains. The function claims_adopt() makes a claim of an existing
 * guest's CPUs, memory and devices, whether they fit or not. It leaves out classes and devices that
 * this host does not count, and devices and host CPUs that another claim has. The result is
 * CLAIM_E_CONFLICT for an mdev that is left out, and for devices of a set that are no partition. So
 * it is for a PCI device or host CPU of another claim. The last of these is in reterr. Without a
 * conflict, a lack of capacity is the result. In these cases the claim is made, too. No claim is
 * made if nothing can be counted, if the guest has one already, or after a negative result. The
 * first two are CLAIM_E_CONFLICT, too, but they leave *ret_claim unset.
 *
 * The function claims_prepare_new() makes a claim of a guest that is about to start, but only if
 * all of it fits (claims-start.c, which repeats it). It leaves out only PCI devices that this host
 * does not count. An adoption repeats its attempt after a lost race. Each attempt reads the host
 * again. The function claims_hold_pci() also serves claims of schema version 1 (claims-host.c).
 *
 * The function claims_note_domain() completes the request of a claim that was made before its
 * domain, when the hook or a poll shows the domain. */

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"
#include "claims/claims-internal.h"
#include "claims/fit/guest-share.h"
#include "claims/fit/numa.h"
#include "claims/follow.h"

/* The resources of a guest that will be written as a claim. */
typedef struct Adoption {
        Claims *claims;
        const HostDomain *domain;
        ResourceRequest request;
        Fit fit;
        DeviceList devices;
        const ClaimStart *start; /* NULL: the guest exists; check_clean() does not apply */
        UncleanDevices unclean;  /* for a guest that starts */
        Layout layout;           /* the guest's, without the host CPUs of other claims */
        int outcome;             /* CLAIM_DONE, or the ClaimOutcome that reterr describes */
} Adoption;

static void adoption_done(Adoption *adoption)
{
        resource_request_done(&adoption->request);
        fit_done(&adoption->fit);
        device_list_done(&adoption->devices);
        unclean_devices_done(&adoption->unclean);
        layout_done(&adoption->layout);
}

/* Returns the part of a provider's name that names its device, or NULL. device_of_provider() and
 * pci_of_provider() compare the same part. They are not used here, because they search all devices
 * for each provider. */
static const char *name_below(const Claims *claims, const Provider *provider)
{
        size_t n = strlen(claims->node);

        return strncmp(provider->name, claims->node, n) == 0 && provider->name[n] == '_'
                       ? provider->name + n + 1
                       : NULL;
}

/* Finds the device and the provider of an mdev. Returns false with words if the mdev cannot be
 * counted. */
static bool place_mdev(Claims *claims, const Uuid *uuid, const HostDevice **ret_device,
                       size_t *ret_provider, Error *reterr)
{
        const HostMdev *mdev = host_facts_find_mdev(claims->facts, uuid);
        const HostDevice *device =
                mdev ? host_facts_find_device(claims->facts, mdev->device) : NULL;

        if (!mdev) {
                error_setf(reterr, ENODEV, "mdev %s is not on this host", uuid->text);
                return false;
        }
        if (!device || strcmp(device->mdev_type, mdev->type) != 0) {
                error_setf(reterr, ENODEV,
                           "mdev %s is a %.60s on %.60s, which this host does not offer",
                           uuid->text, mdev->type, mdev->device);
                return false;
        }
        for (size_t i = 0; i < claims->view->n_providers; i++) {
                const Provider *provider = claims->view->tree->providers[i];
                const char *name = name_below(claims, provider);

                if (!name || strcmp(name, device->name) != 0 ||
                    !provider_find_inventory(provider, device->resource_class))
                        continue;
                *ret_device = device;
                *ret_provider = i;
                return true;
        }
        error_setf(reterr, ENODEV, "mdev %s: %.60s has no provider", uuid->text, device->name);
        return false;
}

/* Adds an mdev of the guest. An mdev is left out, and sets the outcome to CLAIM_E_CONFLICT, if this
 * host does not count it, or if another claim has it or blocks its device. */
static int add_mdev(Adoption *adoption, const Uuid *mdev, Resources *resources, Error *reterr)
{
        _cleanup_(taken_done) Taken taken = { 0 };
        Claims *claims = adoption->claims;
        const HostDevice *device;
        size_t provider;
        int r;

        if (!place_mdev(claims, mdev, &device, &provider, reterr)) {
                adoption->outcome = CLAIM_E_CONFLICT;
                return 0;
        }
        r = store_taken(claims, false, &taken, reterr);
        if (r < 0)
                return r;
        if (taken_has(&taken, mdev->text) ||
            taken_blocks_mdevs(&taken, device->address, NULL) != TAKEN_BLOCK_NONE) {
                error_setf(reterr, EEXIST, "mdev %s on %.60s belongs to another claim", mdev->text,
                           device->name);
                adoption->outcome = CLAIM_E_CONFLICT;
                return 0;
        }
        if (claims_add_device(&adoption->devices, claims->view->tree->providers[provider], "",
                              device, mdev) < 0 ||
            resources_add(resources, device->resource_class, 1) < 0 ||
            fit_add(&adoption->fit, provider, device->resource_class, 1) < 0)
                return error_oom(reterr);
        return 0;
}

size_t claims_find_pci_provider(const Claims *claims, const HostPci *pci)
{
        for (size_t i = 0; i < claims->view->n_providers; i++) {
                const Provider *provider = claims->view->tree->providers[i];
                const char *name = name_below(claims, provider);

                if (name && strcasecmp(name, pci->provider) == 0 &&
                    provider_find_inventory(provider, pci->resource_class))
                        return i;
        }
        return SIZE_MAX;
}

int claims_hold_pci(Claims *claims, const HostPci *pci, Fit *fit, DeviceList *devices,
                    Error *reterr)
{
        size_t provider = pci->set ? SIZE_MAX : claims_find_pci_provider(claims, pci);
        int r;

        if (provider == SIZE_MAX)
                return 0;
        r = claims_is_pci_claimed(claims, pci->address, reterr);
        if (r != 0)
                return r < 0 ? r : CLAIM_E_CONFLICT;
        if (claims_add_pci(devices, claims->view->tree->providers[provider], "", pci) < 0 ||
            fit_add(fit, provider, pci->resource_class, 1) < 0)
                return error_oom(reterr);
        return 0;
}

/* Returns CLAIM_E_CONFLICT with words if a guest that is about to start cannot have the device,
 * because it is not clean. The last guest can have it again until its cleaning is due. So can any
 * guest if the agent cannot reserve it for the cleaning (ClaimsRules.gives_unclean). */
static int check_clean(const Adoption *adoption, const char *address, Error *reterr)
{
        const UncleanDevice *row = unclean_devices_find(&adoption->unclean, address);
        char words[UNCLEAN_WORDS_SIZE];

        if (!row ||
            (row->state == UNCLEAN_HELD && (adoption->claims->rules.gives_unclean ||
                                            uuid_equal(&row->consumer, &adoption->domain->uuid))))
                return 0;
        unclean_describe(row, words);
        error_setf(reterr, EEXIST, "PCI device %s is %s", address, words);
        return CLAIM_E_CONFLICT;
}

/* Adds a PCI device of the guest. One of another claim only sets the outcome. So does one that a
 * starting guest cannot have because it is not clean. A device of a set is left to add_partition(),
 * and one that no provider counts is ignored. */
static int add_pci(Adoption *adoption, const char *address, Resources *resources, Error *reterr)
{
        const HostPci *pci = host_facts_find_pci(adoption->claims->facts, address);
        size_t n = adoption->devices.n_devices;
        int r = pci ? check_clean(adoption, address, reterr) : 0;

        if (pci && r == 0)
                r = claims_hold_pci(adoption->claims, pci, &adoption->fit, &adoption->devices,
                                    reterr);

        if (r > 0)
                adoption->outcome = r;
        if (r == 0 && adoption->devices.n_devices > n &&
            resources_add(resources, pci->resource_class, 1) < 0)
                return error_oom(reterr);
        return MIN(r, 0);
}

/* Yields the partition whose devices the guest has exactly. If there is none, *ret stays NULL, and
 * the outcome is CLAIM_E_CONFLICT with words. The same holds if another claim has a member, or if a
 * guest that is about to start cannot get it. */
static int find_partition(Adoption *adoption, const DeviceSet *set, const char *const devices[],
                          size_t n, const DevicePartition **ret, Error *reterr)
{
        _cleanup_(taken_done) Taken taken = { 0 };
        const DevicePartition *partition = device_set_find(set, devices, n);
        DeviceSetUse use = { 0 };
        int r = store_taken(adoption->claims, false, &taken, reterr);

        if (r < 0)
                return r;
        for (size_t i = 0; device_set_device(set, i); i++)
                if (taken_has(&taken, device_set_device(set, i)))
                        device_set_take(set, &use, device_set_device(set, i));
        if (adoption->start)
                taken_mark_set(&taken, adoption->claims->facts, set, &use);
        if (!partition)
                error_setf(reterr, EEXIST, "its devices of %s are no partition", set->name);
        else if (partition->members & use.taken ||
                 use.is_out[(size_t)(partition - set->partitions)])
                error_setf(
                        reterr, EEXIST,
                        "a member of its partition %s of %s belongs to another claim or is withheld",
                        partition->id, set->name);
        else {
                *ret = partition;
                return 0;
        }
        adoption->outcome = CLAIM_E_CONFLICT;
        return 0;
}

/* Adds the guest's devices of one set, if they are a partition and a provider counts each. */
static int add_partition(Adoption *adoption, const DeviceSet *set, Resources *resources,
                         Error *reterr)
{
        Claims *claims = adoption->claims;
        const char *devices[DEVICE_SET_PARTITIONS_MAX] = { NULL };
        const HostPci *pci[DEVICE_SET_PARTITIONS_MAX];
        size_t n = host_domain_list_members(adoption->domain, set, devices), provider = SIZE_MAX;
        const DevicePartition *partition = NULL;
        uint64_t amount;
        int r = n > 0 ? find_partition(adoption, set, devices, n, &partition, reterr) : 0;

        if (r < 0 || !partition)
                return r;
        for (size_t i = 0; i < n; i++) {
                pci[i] = host_facts_find_pci(claims->facts, devices[i]);
                provider = pci[i] ? claims_find_pci_provider(claims, pci[i]) : SIZE_MAX;
                if (provider == SIZE_MAX)
                        return 0;
        }
        for (size_t i = 0; i < n; i++)
                if (claims_add_pci(&adoption->devices, claims->view->tree->providers[provider], "",
                                   pci[i]) < 0)
                        return error_oom(reterr);
        amount = device_members_count(partition->members);
        return fit_add(&adoption->fit, provider, set->resource_class, amount) < 0 ||
                               resources_add(resources, set->resource_class, amount) < 0
                       ? error_oom(reterr)
                       : 0;
}

static int add_partitions(Adoption *adoption, Resources *resources, Error *reterr)
{
        const HostFacts *facts = adoption->claims->facts;
        int r = 0;

        for (size_t i = 0; facts && r == 0 && i < facts->n_sets; i++)
                r = add_partition(adoption, &facts->sets[i], resources, reterr);
        return r;
}

/* Removes the host CPUs that claims hold from the layout. Returns the lowest CPU that was removed,
 * CPU_SET_MAX if there is none. */
static unsigned drop_held(const HostView *view, Layout *layout)
{
        unsigned first = CPU_SET_MAX;

        CPU_SET_FOREACH(cpu, &view->held) {
                if (!cpu_set_contains(&layout->held, cpu))
                        continue;
                cpu_set_remove(&layout->held, cpu);
                first = MIN(first, cpu);
        }
        return first;
}

/* Copies the guest's layout without the host CPUs of other claims. Such a CPU sets the outcome to
 * CLAIM_E_CONFLICT. */
static int take_layout(Adoption *adoption, Error *reterr)
{
        unsigned cpu;

        if (layout_copy(&adoption->layout, &adoption->domain->layout) < 0)
                return error_oom(reterr);
        cpu = drop_held(adoption->claims->view, &adoption->layout);
        if (cpu < CPU_SET_MAX) {
                error_setf(reterr, EEXIST, "host CPU %u belongs to another claim", cpu);
                adoption->outcome = CLAIM_E_CONFLICT;
        }
        return 0;
}

/* Adds the devices of the domain, and those that only the persistent definition of a running guest
 * has. Its next start needs them (decision devices/definition). */
static int collect_devices(Adoption *adoption, Resources *resources, Error *reterr)
{
        const HostDomain *domain = adoption->domain;
        int r = 0;

        for (size_t i = 0; r == 0 && i < domain->n_pci + domain->n_config_pci; i++)
                r = add_pci(adoption,
                            i < domain->n_pci ? domain->pci[i]
                                              : domain->config_pci[i - domain->n_pci],
                            resources, reterr);
        if (r == 0)
                r = add_partitions(adoption, resources, reterr);
        for (size_t i = 0; r == 0 && i < domain->n_mdevs + domain->n_config_mdevs; i++)
                r = add_mdev(adoption,
                             i < domain->n_mdevs ? &domain->mdevs[i]
                                                 : &domain->config_mdevs[i - domain->n_mdevs],
                             resources, reterr);
        return r;
}

/* Sets the CPUs and the memory of the domain. Returns -ENOMEM on failure. */
static int set_shown(Resources *resources, const HostDomain *domain)
{
        static const char *const shown[] = { "VCPU", "PCPU", "MEMORY_MB" };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(shown); i++)
                r = resources_set(resources, shown[i], guest_amount_of(domain, shown[i]));
        return r;
}

/* Collects the amounts and devices of the domain. The fit is forced: amounts are counted whether
 * they fit or not. */
static int collect(Adoption *adoption, Error *reterr)
{
        const HostDomain *domain = adoption->domain;
        Claims *claims = adoption->claims;
        RequestGroup *group;

        if (resource_request_group(&adoption->request, "", &group, NULL) < 0 ||
            set_shown(&group->resources, domain) < 0 ||
            fit_force_numa(claims->view, claims->facts, claims->node, &group->resources,
                           &domain->layout, &adoption->fit) < 0)
                return error_oom(reterr);
        return collect_devices(adoption, &group->resources, reterr);
}

/* Returns true if a reservation of all of the device does not concern the guest: a cordon stops no
 * guest, and neither does the cleaning after this guest. The devices of an earlier claim, and those
 * of a server that Nova builds, can be reserved for this guest. With unknown folders, any guest can
 * be such a server. An existing guest has its device. */
static bool can_have_reserved(const Adoption *adoption, const ClaimDevice *device)
{
        const HostFacts *facts = adoption->claims->facts;
        const Uuid *guest = &adoption->domain->uuid;
        const ClaimStart *start = adoption->start;
        const UncleanDevice *row = unclean_devices_find(&adoption->unclean, device->address);

        if (!start ||
            (start->cordoned && string_set_contains(start->cordoned, device->provider.text)) ||
            (row && uuid_equal(&row->consumer, guest)) || facts->folders_unknown ||
            host_facts_has_folder(facts, guest))
                return true;
        for (size_t i = 0; start->earlier && i < start->earlier->n_devices; i++)
                if (uuid_equal(&start->earlier->devices[i].provider, &device->provider))
                        return true;
        return false;
}

/* Returns the inventory of a piece. A device that is withheld counts with its total if the guest
 * can have it: the domain names it, so the claims and check_clean() decide. */
static Inventory inventory_of(const Adoption *adoption, const FitPiece *piece)
{
        const Provider *provider = adoption->claims->view->tree->providers[piece->provider];
        Inventory ret = *provider_find_inventory(provider, piece->resource_class);

        for (size_t i = 0; i < adoption->devices.n_devices; i++)
                if (uuid_equal(&adoption->devices.devices[i].provider, &provider->uuid) &&
                    ret.reserved >= ret.total &&
                    can_have_reserved(adoption, &adoption->devices.devices[i]))
                        ret.reserved = 0;
        return ret;
}

/* Compares the fit with the capacities of the inventories; with all_rules also with min_unit,
 * max_unit and step_size. The first violation sets the outcome to CLAIM_E_NO_CAPACITY. Does nothing
 * if the outcome is already set. */
static void check_capacity(Adoption *adoption, bool all_rules, Error *reterr)
{
        const HostView *view = adoption->claims->view;

        for (size_t i = 0; adoption->outcome == CLAIM_DONE && i < adoption->fit.n_pieces; i++) {
                const FitPiece *piece = &adoption->fit.pieces[i];
                const Inventory inventory = inventory_of(adoption, piece);
                uint64_t used = resources_get(&view->providers[piece->provider].used,
                                              piece->resource_class);
                InventoryFit fit = inventory_fit(&inventory, used, piece->amount);
                char text[128];

                if (!all_rules)
                        fit = used + piece->amount <= inventory_capacity(&inventory)
                                      ? INVENTORY_FITS
                                      : INVENTORY_E_CAPACITY;
                if (fit == INVENTORY_FITS)
                        continue;
                error_setf(reterr, ENOSPC, "%s: %s on %s", piece->resource_class,
                           inventory_fit_explain(fit, &inventory, used, piece->amount, text,
                                                 sizeof(text)),
                           view->tree->providers[piece->provider]->name);
                adoption->outcome = CLAIM_E_NO_CAPACITY;
        }
}

/* Decides whether the agent must write the claim to Placement. For a guest that is about to start,
 * the caller decides. An existing guest can have been placed, or deleted, by another program. Its
 * claim is written only if an earlier claim of it left a removal that the agent has not done
 * yet. */
static int must_be_written(const Adoption *adoption, bool *ret, Error *reterr)
{
        ClaimRemoval left;
        int r = adoption->start ? 0
                                : claims_next_removal(adoption->claims, 0, &adoption->domain->uuid,
                                                      &left, reterr);

        *ret = adoption->start ? adoption->start->writes : r == 0;
        return MIN(r, 0);
}

/* Writes the claim. runs: the guest exists, so the claim is confirmed and never expires. Otherwise
 * the guest is about to start. */
static int write_adoption(Adoption *adoption, bool runs, Claim **ret, Error *reterr)
{
        Claims *claims = adoption->claims;
        const ClaimRequest request = { .consumer = adoption->domain->uuid,
                                       .consumer_type = CLAIM_TYPE_GUEST,
                                       .resources = adoption->request,
                                       .by = claims->author };
        uint64_t now = clock_usec(CLOCK_REALTIME);
        _cleanup_free_ char *text = resource_request_format(&adoption->request);
        _cleanup_free_ char *why = text_format("guest %s %s", adoption->domain->name,
                                               runs ? "had no claim" : "starts");
        StoreClaim claim = {
                .request = &request,
                .request_text = text,
                .created_usec = now,
                .expires_usec = runs ? 0 : claims_expiry_from(claims, now),
                .confirmed = runs,
                .devices = adoption->devices.devices,
                .n_devices = adoption->devices.n_devices,
                .layout = &adoption->layout,
        };
        bool must_write;
        int r = must_be_written(adoption, &must_write, reterr);

        if (!text || !why)
                return error_oom(reterr);
        if (r < 0)
                return r;
        claim.reason = why;
        claim.write_state = must_write ? CLAIM_WRITE_UNSENT : CLAIM_WRITE_NONE;
        return store_insert(claims, &claim, &adoption->fit, ret, reterr);
}

/* Maps each positive result of the store to CLAIM_E_RACE, so that the caller retries with the
 * present state. There is one exception. If this attempt has the write lock (in_turn),
 * CLAIM_E_CONFLICT is final, because a retry would end in the same way. */
static int write_outcome(int r, bool in_turn, Error *reterr)
{
        if (r != CLAIM_E_CONFLICT || !in_turn)
                return r > 0 ? CLAIM_E_RACE : r;
        error_setf(reterr, EEXIST, "its consumer or one of its resources belongs to another claim");
        return CLAIM_E_CONFLICT;
}

/* Makes one attempt to adopt the guest. in_turn: claims_attempt() has taken the write lock, as it
 * does for each attempt after the first. Returns CLAIM_E_RACE if the caller must retry. */
static int adopt_once(Claims *claims, const HostDomain *domain, bool in_turn, Claim **ret,
                      Error *reterr)
{
        _cleanup_(adoption_done) Adoption adoption = { .claims = claims, .domain = domain };
        int r = store_load_view(claims, reterr);

        if (r < 0)
                return r;
        r = collect(&adoption, reterr);
        if (r == 0)
                r = take_layout(&adoption, reterr);
        if (r < 0)
                return r;
        if (adoption.fit.n_pieces == 0) {
                error_setf(reterr, EAGAIN, "no provider of this host has any of its resources");
                return CLAIM_E_CONFLICT;
        }
        check_capacity(&adoption, false, reterr);
        r = write_outcome(write_adoption(&adoption, true, ret, reterr), in_turn, reterr);
        return r != 0 ? r : adoption.outcome;
}

int claims_adopt(Claims *claims, const HostDomain *domain, Claim **ret_claim, Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        while (claims_attempt(&attempts, reterr))
                attempts.result = adopt_once(claims, domain, attempts.n > 1, ret_claim, reterr);
        return attempts.result;
}

/* Guests that are about to start. */

/* Returns the first class of the request that the fit has nowhere, because no usable provider of
 * this host has it. NULL if there is none. */
static const char *find_uncounted(const Adoption *adoption)
{
        const Resources *asked = &adoption->request.groups[0].resources;

        for (size_t i = 0; i < asked->n_items; i++) {
                bool found = false;

                for (size_t j = 0; j < adoption->fit.n_pieces; j++)
                        found |= strcmp(adoption->fit.pieces[j].resource_class,
                                        asked->items[i].resource_class) == 0;
                if (!found)
                        return asked->items[i].resource_class;
        }
        return NULL;
}

int claims_prepare_new(Claims *claims, const ClaimStart *start, Claim **ret, Error *reterr)
{
        _cleanup_(adoption_done)
                Adoption adoption = { .claims = claims, .domain = start->domain, .start = start };
        const char *uncounted;
        int r = store_load_view(claims, reterr);

        if (r == 0)
                r = claims_list_unclean(claims, &adoption.unclean, reterr);
        if (r < 0)
                return r;
        r = collect(&adoption, reterr);
        if (r == 0 && adoption.outcome == CLAIM_DONE)
                r = take_layout(&adoption, reterr);
        if (r < 0)
                return r;
        uncounted = find_uncounted(&adoption);
        if (adoption.outcome == CLAIM_DONE && uncounted) {
                error_setf(reterr, ENODEV, "no provider of this host has %s", uncounted);
                return CLAIM_E_UNKNOWN_CLASS;
        }
        check_capacity(&adoption, true, reterr);
        if (adoption.outcome != CLAIM_DONE)
                return adoption.outcome;
        r = write_adoption(&adoption, false, ret, reterr);
        return r > 0 ? CLAIM_E_RACE : r;
}

/* Returns the text of a request for the claim's amounts, but with the CPUs and the memory of the
 * domain. NULL: out of memory. */
static char *format_request(const Claim *claim, const HostDomain *domain)
{
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        RequestGroup *group;
        int r = resource_request_group(&request, "", &group, NULL);

        for (size_t i = 0; r >= 0 && i < claim->n_allocations; i++) {
                const Resources *held = &claim->allocations[i].resources;

                for (size_t j = 0; r >= 0 && j < held->n_items; j++)
                        r = resources_add(&group->resources, held->items[j].resource_class,
                                          held->items[j].amount);
        }
        return r < 0 || set_shown(&group->resources, domain) < 0
                       ? NULL
                       : resource_request_format(&request);
}

int claims_note_domain(Claims *claims, const Claim *claim, const HostDomain *domain, Error *reterr)
{
        _cleanup_free_ char *text = NULL;

        if (!claim_waits_for_domain(claim))
                return 0;
        text = format_request(claim, domain);
        if (!text)
                return error_oom(reterr);
        return strcmp(text, claim->request) != 0
                       ? store_set_request(claims, claim->id, text, reterr)
                       : 0;
}

int claims_confirm_guest(Claims *claims, int64_t id, const HostDomain *domain, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = claims_get(claims, id, &claim, reterr);

        if (r == 0)
                r = claims_note_domain(claims, claim, domain, reterr);
        return r < 0 ? r : claims_confirm(claims, id, reterr);
}
