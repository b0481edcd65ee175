/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides how many vGPUs each device offers. Each parent of mdevs that has its configured type gets
 * one offer, and each card one for each of its configured types with a class. Existing vGPUs that
 * are used or can be given always count. max_instances of a type limits the sum of existing and new
 * vGPUs of all its offers. The rest after all existing ones goes to the devices of the type in
 * their order. Offers of 0 are removed at the end, because Placement has no inventories of 0.
 *
 * Tests: tests/unit/drivers/tree/test-mdev-plan.c */

#include "drivers/tree/mdev-plan.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"

void mdev_plan_done(MdevPlan *plan)
{
        free(plan->offers);
        vgpu_cards_done(&plan->cards);
        *plan = (MdevPlan){ 0 };
}

/* Returns the device's record of its configured type, or NULL if it does not offer that type. */
static const MdevType *find_mdev_type(const SnapshotDevice *device, const HostMdevType *type)
{
        return type ? snapshot_find_mdev_type(device, type->type) : NULL;
}

/* Counts the mdevs of the offer's type. */
static uint64_t count_existing(const Snapshot *snapshot, const MdevOffer *offer)
{
        uint64_t n = find_mdev_type(offer->device, offer->type)->created_instances;
        size_t n_mdevs;
        const SnapshotMdev *mdevs = snapshot_mdevs_of(snapshot, offer->device->name, &n_mdevs);

        for (size_t i = 0; i < n_mdevs; i++)
                n += strcmp(mdevs[i].type, offer->type->type) == 0;
        return n;
}

/* Returns the number of new vGPUs of the type that max_instances allows; UINT64_MAX without a
 * limit. */
static uint64_t room_left(const MdevPlan *plan, const HostMdevType *type)
{
        uint64_t existing = 0;

        if (type->max_instances == 0)
                return UINT64_MAX;
        for (size_t i = 0; i < plan->n_offers; i++)
                if (plan->offers[i].type == type)
                        existing += plan->offers[i].existing;
        return type->max_instances > existing ? type->max_instances - existing : 0;
}

/* Sets the total of an offer of mdevs. Returns the number of new ones. */
static uint64_t give_mdevs(MdevOffer *offer, uint64_t room)
{
        uint64_t available =
                MIN(find_mdev_type(offer->device, offer->type)->available_instances, room);

        available = MIN(available, INVENTORY_MAX_AMOUNT);
        offer->total = MIN(offer->existing + available, INVENTORY_MAX_AMOUNT);
        return available;
}

/* Sets the total and the reserved amount of an offer of a card, and the limit of its type. Returns
 * the number of new vGPUs. */
static uint64_t give_functions(MdevOffer *offer, uint64_t room)
{
        int index = vgpu_card_find_type(offer->card, offer->type->type);
        VgpuCount count;

        if (room != UINT64_MAX)
                offer->card->types[index].limit = offer->existing + room;
        count = vgpu_card_count(offer->card, index);
        offer->total = MIN(count.total, INVENTORY_MAX_AMOUNT);
        offer->reserved = offer->total - offer->existing - count.n_creatable;
        return count.n_creatable;
}

/* Gives each offer of the type its total. */
static void share_out(MdevPlan *plan, const HostMdevType *type)
{
        uint64_t room = room_left(plan, type);

        for (size_t i = 0; i < plan->n_offers; i++) {
                MdevOffer *offer = &plan->offers[i];
                uint64_t given;

                if (offer->type != type)
                        continue;
                given = offer->card ? give_functions(offer, room) : give_mdevs(offer, room);
                if (room != UINT64_MAX)
                        room -= given;
        }
}

static void drop_empty(MdevPlan *plan)
{
        size_t n = 0;

        for (size_t i = 0; i < plan->n_offers; i++)
                if (plan->offers[i].total > 0)
                        plan->offers[n++] = plan->offers[i];
        plan->n_offers = n;
}

static int add_offer(MdevPlan *plan, const MdevOffer *offer, size_t *n_allocated)
{
        if (array_grow(&plan->offers, sizeof(MdevOffer), plan->n_offers, n_allocated) < 0)
                return -ENOMEM;
        plan->offers[plan->n_offers++] = *offer;
        return 0;
}

/* Adds the parents of mdevs, in the snapshot's order. */
static int add_parents(const HostConfig *config, const Snapshot *snapshot, MdevPlan *plan,
                       size_t *n_allocated)
{
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];
                MdevOffer offer = { .name = device->name,
                                    .numa_node = device->numa_node,
                                    .device = device };

                if (device->n_mdev_types == 0 || device->is_vgpu_function)
                        continue;
                offer.type = mdev_type_of_device(config, device);
                if (!find_mdev_type(device, offer.type))
                        continue;
                offer.existing = count_existing(snapshot, &offer);
                if (add_offer(plan, &offer, n_allocated) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Adds the configured types of a card. */
static int add_card(const HostConfig *config, VgpuCard *card, MdevPlan *plan, size_t *n_allocated)
{
        for (size_t i = 0; i < config->n_mdev_types; i++) {
                int index = vgpu_card_find_type(card, config->mdev_types[i].type);
                MdevOffer offer = { .name = card->name,
                                    .numa_node = card->numa_node,
                                    .card = card,
                                    .type = &config->mdev_types[i] };
                VgpuCount count;

                if (index == VGPU_TYPE_NONE || !card->types[index].resource_class)
                        continue;
                count = vgpu_card_count(card, index);
                offer.existing = count.n_used + count.n_idle;
                if (add_offer(plan, &offer, n_allocated) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int order_offers(const void *a, const void *b)
{
        const MdevOffer *x = a, *y = b;
        int order = strcmp(x->name, y->name);

        return order ? order : (x->type > y->type) - (x->type < y->type);
}

int mdev_plan_make(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                   MdevPlan *ret)
{
        _cleanup_(mdev_plan_done) MdevPlan plan = { 0 };
        size_t n_allocated = 0;

        if (vgpu_cards_make(config, snapshot, known, &plan.cards) < 0 ||
            add_parents(config, snapshot, &plan, &n_allocated) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < plan.cards.n_items; i++)
                if (add_card(config, &plan.cards.items[i], &plan, &n_allocated) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < config->n_mdev_types; i++)
                share_out(&plan, &config->mdev_types[i]);
        drop_empty(&plan);
        if (plan.cards.n_items > 0)
                qsort(plan.offers, plan.n_offers, sizeof(MdevOffer), order_offers);
        *ret = TAKE_STRUCT(plan);
        return 0;
}

static int order_device(const void *key, const void *item)
{
        return strcmp(key, ((const MdevOffer *)item)->name);
}

const MdevOffer *mdev_plan_find(const MdevPlan *plan, const char *device_name)
{
        bool found;
        size_t place = array_find(plan->offers, sizeof(MdevOffer), plan->n_offers, device_name,
                                  order_device, &found);

        if (!found)
                return NULL;
        while (place > 0 && strcmp(plan->offers[place - 1].name, device_name) == 0)
                place--;
        return &plan->offers[place];
}
