/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The host that claims are made of, as it is given. */

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "claims/claims-internal.h"

/* A provider with the uuid of a device's and another name: somebody renamed it. The device is not
 * offered (drivers/tree/child-provider.h), so nothing new fits there. */
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

static int set_providers_once(Claims *claims, const ProviderTree *tree, Error *reterr)
{
        _cleanup_(host_view_freep) HostView *wanted = NULL;
        int r = claims_load_view(claims, reterr);

        if (r >= 0)
                r = host_view_merge(&wanted, claims->view, tree, reterr);
        if (r < 0)
                return r;
        if (withhold_all_renamed(claims, wanted) < 0)
                return error_oom(reterr);
        if (host_view_same_host(claims->view, wanted))
                return 0;
        return store_write_host(claims, wanted, NULL, 0, reterr);
}

/* Is the address in the text, whatever else is? */
static bool names(const char *text, const char *address)
{
        const char *found = strcasestr(text, address);

        return found && (found == text || !isxdigit((unsigned char)found[-1]));
}

/* Those that the specification's column names. One that another claim has stays with that. */
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

static int place_claim(Claims *claims, StoreUnplaced *claim, Error *reterr)
{
        _cleanup_(device_list_done) DeviceList devices = { 0 };
        _cleanup_(resources_done) Resources resources = RESOURCES_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        size_t root;
        int r = claims_load_view(claims, reterr);

        if (r < 0)
                return r;
        /* Which devices there are is known with the first poll. */
        if (!host_view_root(claims->view, claims->node, &root) ||
            (strchr(claim->pci, ':') && claims->has_devices && !claims->facts))
                return 0;
        if (resources_set(&resources, "VCPU", claim->vcpus) < 0 ||
            resources_set(&resources, "MEMORY_MB", claim->memory_mb) < 0 ||
            resources_set(&resources, "DISK_GB", claim->disk_gb) < 0 ||
            fit_force(claims->view, claims->node, &resources, &fit) < 0)
                return error_oom(reterr);
        r = hold_devices(claims, claim->pci, &fit, &devices, reterr);
        if (r < 0)
                return r;
        claim->devices = devices.devices;
        claim->n_devices = devices.n_devices;
        return store_place(claims, claim, &fit, reterr);
}

/* Claims of schema version 1 hold amounts of the node as a whole. What is promised stays promised,
 * whether it fits or not. One that another writer placed or released meanwhile is done. */
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
                log_debug("Claim %" PRIi64 " of schema version 1 was counted on this host",
                          claim.id);
        }
}

int claims_set_providers(Claims *claims, const ProviderTree *tree, Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        while (claims_attempt(&attempts, reterr))
                attempts.result = set_providers_once(claims, tree, reterr);
        return attempts.result != 0 ? attempts.result : place_unplaced(claims, reterr);
}
