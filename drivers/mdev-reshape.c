/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/mdev-reshape.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "drivers/mdev-providers.h"

static const char vgpu[] = "VGPU";

typedef struct Reshape {
        const Snapshot *snapshot;
        const MdevPlan *plan;
        const ProviderTree *tree;
        const Provider *root;
} Reshape;

bool mdev_reshape_needed(const MdevPlan *plan, const Provider *root)
{
        return plan->n_offers > 0 && provider_find_inventory(root, vgpu);
}

/* The provider of the GPU that an mdev is on. */
static int find_provider(const Reshape *reshape, const Uuid *mdev_uuid, Provider **ret,
                         Error *reterr)
{
        const SnapshotMdev *mdev = snapshot_find_mdev(reshape->snapshot, mdev_uuid);
        const MdevOffer *offer;
        Provider *provider;

        if (!mdev)
                return error_setf(reterr, EINVAL, "its mediated device %s is not on this host",
                                  mdev_uuid->text);
        offer = mdev_plan_find(reshape->plan, mdev->parent);
        provider = offer ? mdev_providers_find(reshape->tree, reshape->root, offer->device) : NULL;
        if (!provider)
                return error_setf(reterr, EINVAL,
                                  "its mediated device %s is on %.60s, which offers none by the "
                                  "configuration",
                                  mdev_uuid->text, mdev->parent);
        if (!provider_find_inventory(provider, vgpu))
                return error_setf(reterr, EINVAL,
                                  "its mediated device %s is on %.60s, which offers %.60s and not "
                                  "VGPU",
                                  mdev_uuid->text, mdev->parent, offer->type->mdev_class);
        *ret = provider;
        return 0;
}

static int move_consumer(const Reshape *reshape, Consumer *consumer, uint64_t amount, Error *reterr)
{
        const SnapshotDomain *domain = snapshot_find_domain(reshape->snapshot, &consumer->uuid);

        if (!domain || domain->n_mdevs == 0)
                return error_setf(reterr, EINVAL,
                                  domain ? "its domain has no mediated device"
                                         : "it has no domain on this host");
        if (domain->n_mdevs != amount)
                log_debug("Consumer %s holds %llu VGPU and uses %zu, moving what it uses",
                          consumer->uuid.text, (unsigned long long)amount, domain->n_mdevs);
        if (consumer_set(consumer, &reshape->root->uuid, vgpu, 0) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < domain->n_mdevs; i++) {
                Provider *provider;
                int r;

                r = find_provider(reshape, &domain->mdevs[i], &provider, reterr);
                if (r < 0)
                        return r;
                r = consumer_add(consumer, &provider->uuid, vgpu, 1);
                if (r < 0)
                        return error_prefixf(reterr, r, "%s", provider->name);
        }
        return 0;
}

int mdev_reshape(const Snapshot *snapshot, const MdevPlan *plan, const ProviderTree *tree,
                 const Provider *root, Allocations *allocations, Error *reterr)
{
        const Reshape reshape = { .snapshot = snapshot, .plan = plan, .tree = tree, .root = root };

        for (size_t i = 0; i < allocations->n_consumers; i++) {
                Consumer *consumer = allocations->consumers[i];
                const Resources *held = consumer_find(consumer, &root->uuid);
                uint64_t amount = held ? resources_get(held, vgpu) : 0;
                int r;

                if (amount == 0)
                        continue;
                r = move_consumer(&reshape, consumer, amount, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "Cannot move the %llu VGPU of consumer %s",
                                             (unsigned long long)amount, consumer->uuid.text);
        }
        return 0;
}
