/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides how many vGPUs each device offers. Each parent of mdevs that has its configured type gets
 * one offer, and each card one for each of its configured types with a class. Existing vGPUs that
 * are used or can be given always count. The option max_instances of a type limits the new vGPUs of
 * all its offers to the number that the existing ones leave. The rest after all existing ones goes
 * to the devices of the type in their order. Offers of 0 are removed at the end, because Placement
 * has no inventories of 0. A failure leaves *ret unchanged.
 *
 * The cards are made first: the virtual functions that become vGPUs, grouped by their physical
 * function. The functions are sorted by card and address, so each card is one run of the list. A
 * card gets the configured types that one of its functions can have, the types that its functions
 * have now, and those of claims, up to VGPU_TYPES_MAX. If several configured types have one class,
 * only the first one gets the class. A card without a class is left out. A host can have thousands
 * of functions, so the PCI addresses that domains have are one sorted set.
 *
 * Tests: tests/unit/drivers/tree/test-mdev-plan.c tests/unit/drivers/tree/test-vgpu-cards.c */

#include "drivers/tree/mdev-plan.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"

_Static_assert(VGPU_ADDRESS_SIZE == PCI_ADDRESS_SIZE, "PCI addresses have one size");

void device_facts_clear_holdings(DeviceFacts *facts)
{
        for (size_t i = 0; i < facts->n_holdings; i++)
                free(facts->holdings[i].type);
        facts->n_holdings = 0;
}

void device_facts_done(DeviceFacts *facts)
{
        device_facts_clear_holdings(facts);
        free(facts->holdings);
        vgpu_sizes_done(&facts->sizes);
        string_set_done(&facts->withheld);
        string_set_done(&facts->exchanged);
        *facts = (DeviceFacts){ 0 };
}

int device_facts_add_holding(DeviceFacts *facts, const char *address, const char *type)
{
        size_t i = facts->n_holdings;

        if (array_grow(&facts->holdings, sizeof(*facts->holdings), i, &facts->n_allocated) < 0)
                return -ENOMEM;
        snprintf(facts->holdings[i].address, PCI_ADDRESS_SIZE, "%s", address);
        facts->holdings[i].type = strdup(type);
        if (!facts->holdings[i].type)
                return -ENOMEM;
        facts->n_holdings++;
        return 0;
}

void mdev_plan_done(MdevPlan *plan)
{
        free(plan->offers);
        for (size_t i = 0; i < plan->n_cards; i++)
                vgpu_card_done(&plan->cards[i]);
        free(plan->cards);
        *plan = (MdevPlan){ 0 };
}

/* Cards. */

/* The sets that the functions are compared with. */
typedef struct Input {
        const HostConfig *config;
        const Snapshot *snapshot;
        const DeviceFacts *known;
        StringSet guests; /* PCI addresses that domains have */
} Input;

static int add_addresses(StringSet *set, char (*addresses)[PCI_ADDRESS_SIZE], size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (string_set_add(set, addresses[i]) < 0)
                        return -ENOMEM;
        return 0;
}

static int list_guests(Input *input)
{
        for (size_t i = 0; i < input->snapshot->n_domains; i++) {
                const SnapshotDomain *domain = &input->snapshot->domains[i];

                if (add_addresses(&input->guests, domain->pci_addresses, domain->n_pci_addresses) <
                            0 ||
                    add_addresses(&input->guests, domain->config_pci_addresses,
                                  domain->n_config_pci_addresses) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Returns the index of a type of the device on the card, with its size. */
static int ensure_type(const Input *input, VgpuCard *card, const SnapshotDevice *device,
                       const MdevType *type, int *ret)
{
        if (vgpu_card_ensure_type(card, type->id, ret) < 0)
                return -ENOMEM;
        if (*ret != VGPU_TYPE_NONE && card->types[*ret].framebuffer_mib == 0)
                card->types[*ret].framebuffer_mib = vgpu_sizes_of_type(
                        input->known ? &input->known->sizes : NULL, device, type);
        return 0;
}

/* Sets the type that the function has, the types of the card that it can become, and those that the
 * configuration allows for it. */
static int add_types(const Input *input, VgpuCard *card, const SnapshotDevice *device,
                     VgpuTypeSet allowed, VgpuFunction *function)
{
        for (size_t i = 0; i < device->n_mdev_types; i++) {
                const MdevType *type = &device->mdev_types[i];
                int index;

                if (type->created_instances == 0 && vgpu_card_find_type(card, type->id) < 0)
                        continue;
                if (ensure_type(input, card, device, type, &index) < 0)
                        return -ENOMEM;
                if (index == VGPU_TYPE_NONE)
                        continue;
                if (type->created_instances > 0)
                        function->type = index;
                else if (type->available_instances > 0)
                        function->creatable |= UINT64_C(1) << index;
        }
        for (size_t i = 0; i < input->config->n_mdev_types && i < VGPU_TYPES_MAX; i++) {
                int index = allowed & UINT64_C(1) << i
                                    ? vgpu_card_find_type(card, input->config->mdev_types[i].type)
                                    : VGPU_TYPE_NONE;

                if (index != VGPU_TYPE_NONE)
                        function->allowed |= UINT64_C(1) << index;
        }
        return 0;
}

/* Returns whether the card has a type of this class other than the type with the index "but". */
static bool has_class(const VgpuCard *card, int but, const char *resource_class)
{
        for (size_t i = 0; i < card->n_types; i++)
                if ((int)i != but && card->types[i].resource_class &&
                    strcmp(card->types[i].resource_class, resource_class) == 0)
                        return true;
        return false;
}

/* Adds a configured type with its class. A second type of the same class is not offered, because
 * the class cannot say how many of which type are left. */
static int add_configured(const Input *input, VgpuCard *card, const SnapshotDevice *device,
                          const HostMdevType *type)
{
        const MdevType named = { .id = type->type, .name = (char *)"" };
        VgpuType *of;
        int index;

        if (ensure_type(input, card, device, &named, &index) < 0)
                return -ENOMEM;
        if (index == VGPU_TYPE_NONE)
                return 0;
        of = &card->types[index];
        if (of->resource_class || has_class(card, index, type->mdev_class))
                return 0;
        of->resource_class = strdup(type->mdev_class);
        return of->resource_class ? 0 : -ENOMEM;
}

/* Adds the configured types that functions of the card may have. */
static int add_all_configured(const Input *input, VgpuCard *card,
                              const SnapshotDevice *const functions[], size_t n)
{
        VgpuTypeSet allowed = 0;

        for (size_t i = 0; i < n; i++)
                allowed |= vgpu_types_allowed(input->config, functions[i]);
        for (size_t i = 0; i < input->config->n_mdev_types && i < VGPU_TYPES_MAX; i++)
                if (allowed & UINT64_C(1) << i &&
                    add_configured(input, card, functions[0], &input->config->mdev_types[i]) < 0)
                        return -ENOMEM;
        return 0;
}

/* Adds a function to its card, with its types and whether a domain has it. take_claimed() adds
 * later what claims have. */
static int add_function(const Input *input, VgpuCard *card, const SnapshotDevice *device)
{
        VgpuFunction function = {
                .address = device->address,
                .name = device->name,
                .type = VGPU_TYPE_NONE,
                .claimed_type = VGPU_TYPE_NONE,
                .former_type = VGPU_TYPE_NONE,
                .is_unread = device->vgpu_unread,
                .is_taken = string_set_contains(&input->guests, device->address),
        };

        if (add_types(input, card, device, vgpu_types_allowed(input->config, device), &function) <
                    0 ||
            array_grow(&card->functions, sizeof(VgpuFunction), card->n_functions,
                       &card->n_functions_allocated) < 0)
                return -ENOMEM;
        card->functions[card->n_functions++] = function;
        return 0;
}

/* Returns whether compute-agent-prepare sets the types of the card's functions. */
static bool is_prepared(const HostConfig *config, const char *card)
{
        for (size_t i = 0; i < config->n_prepares; i++)
                for (char **address = config->prepares[i].device_addresses;
                     config->prepares[i].vgpu_types && *address; address++)
                        if (strcmp(*address, card) == 0)
                                return true;
        return false;
}

/* Names the card after its physical function, which the driver might not list. Sets its NUMA node,
 * its size, and whether compute-agent-prepare sets the types of its functions. */
static void identify(const Input *input, VgpuCard *card, const SnapshotDevice *function)
{
        const SnapshotDevice *device;

        strcpy(card->address, function->physical_function);
        snprintf(card->name, sizeof(card->name), "pci_%s", card->address);
        for (char *c = card->name; *c; c++)
                if (*c == ':' || *c == '.')
                        *c = '_';
        device = snapshot_find_device(input->snapshot, card->name);
        card->numa_node = device ? device->numa_node : function->numa_node;
        card->size_mib = vgpu_sizes_of_card(input->known ? &input->known->sizes : NULL, function);
        card->is_prepared = is_prepared(input->config, card->address);
}

/* Marks a function with that address, which a claim has, if it is of this card. */
static int take_claimed(const Input *input, VgpuCard *card, const SnapshotDevice *device,
                        const char *address, char *type_id)
{
        const MdevType type = { .id = type_id, .name = (char *)"" };
        int index;

        if (!vgpu_card_find(card, address))
                return 0;
        if (type.id[0] && ensure_type(input, card, device, &type, &index) < 0)
                return -ENOMEM;
        vgpu_card_take(card, address, type_id);
        return 0;
}

static int make_card(const Input *input, const SnapshotDevice *const functions[], size_t n,
                     VgpuCard *ret)
{
        identify(input, ret, functions[0]);
        if (add_all_configured(input, ret, functions, n) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (add_function(input, ret, functions[i]) < 0)
                        return -ENOMEM;
        for (size_t i = 0; input->known && i < input->known->n_holdings; i++)
                if (take_claimed(input, ret, functions[0], input->known->holdings[i].address,
                                 input->known->holdings[i].type) < 0)
                        return -ENOMEM;
        return 0;
}

static int order_functions(const void *a, const void *b)
{
        const SnapshotDevice *x = *(const SnapshotDevice *const *)a,
                             *y = *(const SnapshotDevice *const *)b;
        int order = strcmp(x->physical_function, y->physical_function);

        return order ? order : strcmp(x->address, y->address);
}

/* Lists the functions of all cards, sorted by card and address. */
static size_t list_functions(const Snapshot *snapshot, const SnapshotDevice *functions[])
{
        size_t n = 0;

        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (snapshot->devices[i].is_vgpu_function &&
                    snapshot->devices[i].physical_function[0])
                        functions[n++] = &snapshot->devices[i];
        qsort(functions, n, sizeof(SnapshotDevice *), order_functions);
        return n;
}

/* Adds the cards of the sorted functions. A card without a configured type is left out. */
static int add_cards(const Input *input, const SnapshotDevice *const functions[], size_t n,
                     MdevPlan *plan)
{
        for (size_t i = 0, of_card; i < n; i += of_card) {
                VgpuCard card = { 0 };
                bool configured = false;

                for (of_card = 1;
                     i + of_card < n && strcmp(functions[i + of_card]->physical_function,
                                               functions[i]->physical_function) == 0;)
                        of_card++;
                if (make_card(input, functions + i, of_card, &card) < 0 ||
                    array_grow(&plan->cards, sizeof(VgpuCard), plan->n_cards,
                               &plan->n_cards_allocated) < 0) {
                        vgpu_card_done(&card);
                        return -ENOMEM;
                }
                for (size_t j = 0; j < card.n_types; j++)
                        configured |= card.types[j].resource_class != NULL;
                if (configured)
                        plan->cards[plan->n_cards++] = card;
                else
                        vgpu_card_done(&card);
        }
        return 0;
}

/* Makes all cards with a function that the configuration allows to be a vGPU. A function whose card
 * is unknown is left out. Functions of known->holdings are taken, and those in the live or the
 * persistent definition of a domain. Limits of types are not set. The functions borrow from the
 * snapshot. -ENOMEM, with some of the cards. */
static int make_cards(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                      MdevPlan *plan)
{
        _cleanup_free_ const SnapshotDevice **functions =
                calloc(snapshot->n_devices + 1, sizeof(SnapshotDevice *));
        Input input = { .config = config, .snapshot = snapshot, .known = known };
        size_t n;
        int r;

        if (!functions)
                return -ENOMEM;
        n = list_functions(snapshot, functions);
        r = n > 0 && config->n_mdev_types > 0 ? list_guests(&input) : 0;
        if (r == 0 && config->n_mdev_types > 0)
                r = add_cards(&input, functions, n, plan);
        string_set_done(&input.guests);
        return r;
}

/* Offers. */

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

        if (make_cards(config, snapshot, known, &plan) < 0 ||
            add_parents(config, snapshot, &plan, &n_allocated) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < plan.n_cards; i++)
                if (add_card(config, &plan.cards[i], &plan, &n_allocated) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < config->n_mdev_types; i++)
                share_out(&plan, &config->mdev_types[i]);
        drop_empty(&plan);
        if (plan.n_cards > 0)
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
