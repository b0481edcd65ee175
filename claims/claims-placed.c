/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Claims of what Placement allocates to consumers of which this host knows nothing: the claim
 * database was lost. The scheduler chose the providers, so no fit is made; the devices of a
 * provider are chosen as for any other claim. */

#include <string.h>

#include "base/clock.h"
#include "claims/claims-internal.h"

typedef struct Placed {
        ResourceRequest request; /* the sums, in one group */
        Fit fit;
        DeviceList devices;
        Taken taken;
} Placed;

static void placed_done(Placed *placed)
{
        resource_request_done(&placed->request);
        fit_done(&placed->fit);
        device_list_done(&placed->devices);
        taken_done(&placed->taken);
}

/* Takes the consumer's amounts on providers that claims of this host can take from. */
static int collect(Claims *claims, const Consumer *consumer, Placed *placed)
{
        _cleanup_free_ bool *usable = calloc(claims->view->n_providers + 1, sizeof(bool));
        RequestGroup *group;
        size_t provider;

        if (!usable || resource_request_group(&placed->request, "", &group, NULL) < 0)
                return -ENOMEM;
        host_view_usable(claims->view, claims->node, usable);
        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];

                if (!host_view_find(claims->view, &held->provider, &provider) || !usable[provider])
                        continue;
                for (size_t j = 0; j < held->resources.n_items; j++) {
                        const ResourceAmount *item = &held->resources.items[j];

                        if (resources_add(&group->resources, item->resource_class, item->amount) <
                                    0 ||
                            fit_add(&placed->fit, provider, item->resource_class, item->amount) < 0)
                                return -ENOMEM;
                }
        }
        return 0;
}

/* Placement's name for a value that it does not have. */
static const char *known_id(const char *id)
{
        return id && strcmp(id, CONSUMER_UNKNOWN_ID) != 0 ? id : "";
}

static int write_placed(Claims *claims, const ClaimPlacing *placing, const Placed *placed,
                        Claim **ret, Error *reterr)
{
        const Consumer *consumer = placing->holding;
        const char *type = consumer->type ? consumer->type : "";
        const ClaimRequest request = { .consumer = consumer->uuid,
                                       .project_id = known_id(consumer->project_id),
                                       .user_id = known_id(consumer->user_id),
                                       .consumer_type = strcmp(type, "unknown") == 0 ? "" : type,
                                       .resources = placed->request };
        uint64_t now = clock_usec(CLOCK_REALTIME);
        const StoreClaim claim = {
                .request = &request,
                .request_text = "",
                .created_usec = now,
                .expires_usec = claims_expiry_from(claims, now),
                .write_state = placing->write_state,
                .reported = placing->reported,
                .devices = placed->devices.devices,
                .n_devices = placed->devices.n_devices,
                .reason = "Placement allocates it, and the claim database is new",
        };

        return store_insert(claims, &claim, &placed->fit, ret, reterr);
}

/* CLAIM_E_RACE: to be tried again. */
static int claim_placed_once(Claims *claims, const ClaimPlacing *placing, bool in_turn, Claim **ret,
                             Error *reterr)
{
        _cleanup_(placed_done) Placed placed = { .fit = FIT_NULL };
        int outcome, r = claims_load_view(claims, reterr);

        if (r < 0)
                return r;
        if (collect(claims, placing->holding, &placed) < 0)
                return error_oom(reterr);
        if (placed.fit.n_pieces == 0) {
                error_setf(reterr, ESTALE, "Consumer %s holds nothing of this host",
                           placing->holding->uuid.text);
                return CLAIM_E_OTHER;
        }
        r = claims_count_devices(claims, &placed.request, &placed.taken, reterr);
        if (r < 0)
                return r;
        outcome = claims_choose_devices(claims, &placed.request, &placed.fit, &placed.taken,
                                        &placed.devices, reterr);
        if (outcome < 0)
                return outcome;
        r = write_placed(claims, placing, &placed, ret, reterr);
        if (r == CLAIM_E_CONFLICT && in_turn)
                error_setf(reterr, EEXIST, "Consumer %s has a claim", placing->holding->uuid.text);
        else if (r > 0)
                r = CLAIM_E_RACE;
        return r != 0 ? r : outcome;
}

int claims_claim_placed(Claims *claims, const ClaimPlacing *placing, Claim **ret_claim,
                        Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        while (claims_attempt(&attempts, reterr))
                attempts.result =
                        claim_placed_once(claims, placing, attempts.n > 1, ret_claim, reterr);
        return attempts.result;
}
