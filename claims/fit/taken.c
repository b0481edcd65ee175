/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Collects the devices that claims and guests have taken, and counts the free devices of each
 * provider. Taken whole devices and mdevs are one StringSet. Divided devices, of which a part is
 * taken, are another one. A look-up of a device therefore needs no list of claims. Capacities are
 * counted in few passes over each list of HostFacts, with binary searches: a host can have
 * thousands of virtual functions. A DeviceSet costs further passes, one of its own and one for each
 * of its devices, and a vGPU card one over the claimed functions. A capacity is first made for each
 * DeviceSet, for each type of a vGPU card, and for each device that belongs to neither. Capacities
 * with the same key and class, such as the virtual functions of one card, are merged at the end.
 *
 * Tests: tests/unit/claims/fit/test-device-choice.c */

#include "claims/fit/taken.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

/* A virtual function of a claim, which is or becomes a vGPU. */
typedef struct TakenFunction {
        char address[HOST_ADDRESS_SIZE];
        char *type; /* "nvidia-1428" */
} TakenFunction;

void taken_done(Taken *taken)
{
        string_set_done(&taken->things);
        string_set_done(&taken->divided);
        for (size_t i = 0; i < taken->n_mdevs; i++)
                free(taken->mdevs[i].device);
        free(taken->mdevs);
        for (size_t i = 0; i < taken->n_functions; i++)
                free(taken->functions[i].type);
        free(taken->functions);
        *taken = (Taken){ 0 };
}

/* Returns the PCI address of the physical function, "" if it is unknown or the device is not
 * virtual. */
static const char *find_card(const Taken *taken, const char *address)
{
        return taken->facts ? host_facts_physical_function(taken->facts, address) : "";
}

/* Marks the device at the address as divided, because a part of it is taken. "" is ignored. */
static int divide(Taken *taken, const char *address)
{
        return address[0] && string_set_add(&taken->divided, address) < 0 ? -ENOMEM : 0;
}

/* Marks the device as taken whole. Marks the card of a virtual function as divided. */
static int add_pci(Taken *taken, const char *address)
{
        if (address[0] && string_set_add(&taken->things, address) < 0)
                return -ENOMEM;
        return divide(taken, find_card(taken, address));
}

/* Adds an mdev on the device of that address. */
static int add_mdev(Taken *taken, const Uuid *mdev, const char *address)
{
        if (string_set_add(&taken->things, mdev->text) < 0 || divide(taken, address) < 0)
                return -ENOMEM;
        return divide(taken, find_card(taken, address));
}

/* Adds the type of a function that is a vGPU. Ignores a function without a type. */
static int add_function(Taken *taken, const char *address, const char *type)
{
        TakenFunction *function;

        if (!type[0] || !address[0])
                return 0;
        if (array_grow(&taken->functions, sizeof(TakenFunction), taken->n_functions,
                       &taken->n_functions_allocated) < 0)
                return -ENOMEM;
        function = &taken->functions[taken->n_functions];
        snprintf(function->address, sizeof(function->address), "%s", address);
        function->type = strdup(type);
        if (!function->type)
                return -ENOMEM;
        taken->n_functions++;
        return 0;
}

int taken_add(Taken *taken, const Uuid *mdev, const char *device, const char *address,
              const char *type)
{
        char *name;

        if (uuid_empty(mdev))
                return add_pci(taken, address) < 0 ? -ENOMEM : add_function(taken, address, type);
        if (add_mdev(taken, mdev, address) < 0 ||
            array_grow(&taken->mdevs, sizeof(*taken->mdevs), taken->n_mdevs, &taken->n_allocated) <
                    0)
                return -ENOMEM;
        name = strdup(device);
        if (!name)
                return -ENOMEM;
        taken->mdevs[taken->n_mdevs].uuid = *mdev;
        taken->mdevs[taken->n_mdevs++].device = name;
        return 0;
}

static int order_mdevs(const void *a, const void *b)
{
        return uuid_order(&(*(const HostMdev *const *)a)->uuid,
                          &(*(const HostMdev *const *)b)->uuid);
}

static int order_mdev(const void *key, const void *item)
{
        return uuid_order(key, &(*(const HostMdev *const *)item)->uuid);
}

/* Adds mdevs of a guest. mdevs: those of the host, sorted by uuid. A guest does not name the device
 * of an mdev, as a claim does. So an mdev of a guest that does not exist yet divides no device. */
static int add_mdevs(Taken *taken, const Uuid *of_guest, size_t n, const HostMdev **mdevs,
                     size_t n_mdevs)
{
        for (size_t i = 0; i < n; i++) {
                bool found;
                size_t place = array_find(mdevs, sizeof(HostMdev *), n_mdevs, &of_guest[i],
                                          order_mdev, &found);
                const char *address = found ? mdevs[place]->address : NULL;

                if (add_mdev(taken, &of_guest[i], address ? address : "") < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int add_all_pci(Taken *taken, const char (*pci)[HOST_ADDRESS_SIZE], size_t n)
{
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = add_pci(taken, pci[i]);
        return r;
}

static int add_guest(Taken *taken, const HostDomain *domain, const HostMdev **mdevs, size_t n_mdevs)
{
        int r = add_all_pci(taken, domain->pci, domain->n_pci);

        if (r == 0)
                r = add_all_pci(taken, domain->config_pci, domain->n_config_pci);
        if (r == 0)
                r = add_mdevs(taken, domain->mdevs, domain->n_mdevs, mdevs, n_mdevs);
        if (r == 0)
                r = add_mdevs(taken, domain->config_mdevs, domain->n_config_mdevs, mdevs, n_mdevs);
        return r;
}

int taken_add_guests(Taken *taken, const HostFacts *facts)
{
        _cleanup_free_ const HostMdev **mdevs = calloc(facts->n_mdevs + 1, sizeof(HostMdev *));
        int r = 0;

        if (!mdevs)
                return -ENOMEM;
        for (size_t i = 0; i < facts->n_mdevs; i++)
                mdevs[i] = &facts->mdevs[i];
        qsort(mdevs, facts->n_mdevs, sizeof(HostMdev *), order_mdevs);
        for (size_t i = 0; i < facts->n_domains && r == 0; i++)
                r = add_guest(taken, &facts->domains[i], mdevs, facts->n_mdevs);
        return r;
}

bool taken_has(const Taken *taken, const char *thing)
{
        return string_set_contains(&taken->things, thing);
}

TakenBlock taken_blocks_pci(const Taken *taken, const char *address, const char **ret_blocker)
{
        const char *card = find_card(taken, address);
        TakenBlock block = taken_has(taken, address)                       ? TAKEN_BLOCK_SELF
                           : card[0] && taken_has(taken, card)             ? TAKEN_BLOCK_CARD
                           : string_set_contains(&taken->divided, address) ? TAKEN_BLOCK_PART
                                                                           : TAKEN_BLOCK_NONE;

        if (ret_blocker)
                *ret_blocker = block == TAKEN_BLOCK_CARD ? card : address;
        return block;
}

TakenBlock taken_blocks_mdevs(const Taken *taken, const char *address, const char **ret_blocker)
{
        const char *card = find_card(taken, address);
        bool whole = address[0] && taken_has(taken, address);

        if (ret_blocker)
                *ret_blocker = whole ? address : card;
        return whole || (card[0] && taken_has(taken, card)) ? TAKEN_BLOCK_CARD : TAKEN_BLOCK_NONE;
}

int taken_mark_card(const Taken *taken, const VgpuCard *card, VgpuCard *ret)
{
        if (vgpu_card_copy(card, ret) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < ret->n_functions; i++) {
                VgpuFunction *function = &ret->functions[i];

                function->is_taken = function->former_type != VGPU_TYPE_NONE ||
                                     taken_has(taken, function->address);
                function->claimed_type = function->former_type;
        }
        for (size_t i = 0; i < taken->n_functions; i++) {
                const TakenFunction *function = &taken->functions[i];
                int type;

                if (!vgpu_card_find(ret, function->address))
                        continue;
                /* Add the type if the configuration does not have it any more. Its vGPU still uses
                 * a part of the framebuffer, whose size is unknown. */
                if (vgpu_card_ensure_type(ret, function->type, &type) < 0) {
                        vgpu_card_done(ret);
                        return -ENOMEM;
                }
                vgpu_card_take(ret, function->address, function->type);
        }
        return 0;
}

void taken_mark_set(const Taken *taken, const HostFacts *facts, const DeviceSet *set,
                    DeviceSetUse *ret)
{
        const char *address;

        for (size_t i = 0; (address = device_set_device(set, i)); i++) {
                const HostPci *pci = host_facts_find_pci(facts, address);
                TakenBlock block = taken_blocks_pci(taken, address, NULL);

                if (block == TAKEN_BLOCK_SELF || block == TAKEN_BLOCK_PART)
                        device_set_take(set, ret, address);
                if (!pci || pci->withheld || block != TAKEN_BLOCK_NONE)
                        device_set_exclude(set, ret, address);
        }
}

typedef struct DeviceCapacities {
        DeviceCapacity *items;
        size_t n_items;
} DeviceCapacities;

/* Compares keys without regard to case, because PCI addresses come in either case. */
static int order_capacities(const void *a, const void *b)
{
        const DeviceCapacity *x = a, *y = b;
        int order = strcasecmp(x->key, y->key);

        return order ? order : strcmp(x->resource_class, y->resource_class);
}

/* The number of mdevs of one device that are free, or that claims have but do not exist yet. */
typedef struct Count {
        const HostDevice *device;
        uint64_t n_free, n_unmade; /* n_unmade: claimed mdevs that do not exist yet */
} Count;

typedef struct Counting {
        const HostFacts *facts;
        const Taken *taken;
        Count *counts; /* sorted by the name of the device */
        const Uuid **made;
} Counting;

static void counting_done(Counting *counting)
{
        free(counting->counts);
        free(counting->made);
}

static int order_counts(const void *a, const void *b)
{
        return strcmp(((const Count *)a)->device->name, ((const Count *)b)->device->name);
}

static int order_name(const void *key, const void *item)
{
        return strcmp(key, ((const Count *)item)->device->name);
}

static int order_made(const void *a, const void *b)
{
        return uuid_order(*(const Uuid *const *)a, *(const Uuid *const *)b);
}

static int counting_init(Counting *counting)
{
        const HostFacts *facts = counting->facts;

        counting->counts = calloc(facts->n_devices + 1, sizeof(Count));
        counting->made = calloc(facts->n_mdevs + 1, sizeof(Uuid *));
        if (!counting->counts || !counting->made)
                return -ENOMEM;
        for (size_t i = 0; i < facts->n_devices; i++)
                counting->counts[i].device = &facts->devices[i];
        for (size_t i = 0; i < facts->n_mdevs; i++)
                counting->made[i] = &facts->mdevs[i].uuid;
        qsort(counting->counts, facts->n_devices, sizeof(Count), order_counts);
        qsort(counting->made, facts->n_mdevs, sizeof(Uuid *), order_made);
        return 0;
}

static Count *find_count(const Counting *counting, const char *name)
{
        bool found;
        size_t i = array_find(counting->counts, sizeof(Count), counting->facts->n_devices, name,
                              order_name, &found);

        return found ? &counting->counts[i] : NULL;
}

static bool is_made(const Counting *counting, const Uuid *mdev)
{
        bool found;

        array_find(counting->made, sizeof(Uuid *), counting->facts->n_mdevs, &mdev, order_made,
                   &found);
        return found;
}

/* Counts for each device its free mdevs, and the claimed mdevs that do not exist yet. */
static void count_mdevs(Counting *counting)
{
        const HostFacts *facts = counting->facts;
        const Taken *taken = counting->taken;

        for (size_t i = 0; i < facts->n_mdevs; i++) {
                const HostMdev *mdev = &facts->mdevs[i];
                Count *count = find_count(counting, mdev->device);

                if (count && strcmp(count->device->mdev_type, mdev->type) == 0)
                        count->n_free += !taken_has(taken, mdev->uuid.text);
        }
        for (size_t i = 0; i < taken->n_mdevs; i++) {
                Count *count = find_count(counting, taken->mdevs[i].device);

                if (count)
                        count->n_unmade += !is_made(counting, &taken->mdevs[i].uuid);
        }
}

/* Moves the free devices of a capacity to the blocked ones. blocker: the address of the device that
 * blocks them. It is taken whole, and they are parts of it. With TAKEN_BLOCK_PART it is the device
 * of the capacity itself, of which a part is taken. */
static void block_capacity(DeviceCapacity *capacity, TakenBlock block, const char *blocker)
{
        capacity->n_blocked = capacity->n_free;
        capacity->n_free = 0;
        capacity->blocker = blocker;
        capacity->in_part = block == TAKEN_BLOCK_PART;
}

/* Adds the capacity of a device with mdevs. Claimed mdevs that do not exist yet reduce the number
 * that can be made. */
static void add_capacity_of_mdevs(const Counting *counting, const Count *count,
                                  DeviceCapacities *capacities)
{
        uint64_t available = count->device->available;
        DeviceCapacity *capacity = &capacities->items[capacities->n_items++];
        const char *blocker;
        TakenBlock block = taken_blocks_mdevs(counting->taken, count->device->address, &blocker);

        *capacity = (DeviceCapacity){
                .key = count->device->name,
                .resource_class = count->device->resource_class,
                .n_free = count->n_free + available - MIN(count->n_unmade, available),
                .cell = count->device->cell,
        };
        if (block != TAKEN_BLOCK_NONE)
                block_capacity(capacity, block, blocker);
}

/* Adds the capacity of one type of a card. card: the copy in which taken functions are marked;
 * names: the card of the facts, whose texts the capacity borrows. */
static void add_capacity_of_type(const Counting *counting, const VgpuCard *card, int type,
                                 const VgpuCard *names, DeviceCapacities *capacities)
{
        const VgpuCount count = vgpu_card_count(card, type);
        DeviceCapacity *capacity = &capacities->items[capacities->n_items++];

        *capacity = (DeviceCapacity){
                .key = names->name,
                .resource_class = names->types[type].resource_class,
                .n_free = count.n_idle + count.n_creatable,
                .cell = card->numa_node,
        };
        if (taken_has(counting->taken, card->address)) {
                block_capacity(capacity, TAKEN_BLOCK_CARD, names->address);
                return;
        }
        /* vGPUs of other types use the rest of the card. */
        capacity->n_blocked = count.total - count.n_used - capacity->n_free;
        capacity->blocker = capacity->n_blocked > 0 ? names->address : NULL;
        capacity->in_part = true;
}

/* Adds the capacities of a card, one for each type that has a class. */
static int add_capacities_of_card(const Counting *counting, const VgpuCard *card,
                                  DeviceCapacities *capacities)
{
        VgpuCard marked;

        if (taken_mark_card(counting->taken, card, &marked) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < card->n_types; i++)
                if (card->types[i].resource_class)
                        add_capacity_of_type(counting, &marked, (int)i, card, capacities);
        vgpu_card_done(&marked);
        return 0;
}

/* Adds the capacity of one PCI device. A taken device has a capacity without free devices. */
static void add_capacity_of_pci(const Counting *counting, const HostPci *pci,
                                DeviceCapacities *capacities)
{
        DeviceCapacity *capacity = &capacities->items[capacities->n_items++];
        const char *blocker;
        TakenBlock block = taken_blocks_pci(counting->taken, pci->address, &blocker);

        *capacity = (DeviceCapacity){
                .key = pci->provider,
                .resource_class = pci->resource_class,
                .n_free = block != TAKEN_BLOCK_SELF,
                .cell = pci->cell,
        };
        if (block == TAKEN_BLOCK_CARD || block == TAKEN_BLOCK_PART)
                block_capacity(capacity, block, blocker);
}

/* Adds the capacity of a set that has a device on the host. */
static void add_capacity_of_set(const Counting *counting, const DeviceSet *set,
                                DeviceCapacities *capacities)
{
        const HostFacts *facts = counting->facts;
        const HostPci *first = NULL;
        DeviceSetUse use = { 0 };
        bool is_one_cell = true;

        for (size_t i = 0; i < facts->n_pci; i++) {
                if (facts->pci[i].set != set)
                        continue;
                first = first ? first : &facts->pci[i];
                is_one_cell = is_one_cell && facts->pci[i].cell == first->cell;
        }
        if (!first)
                return;
        taken_mark_set(counting->taken, facts, set, &use);
        capacities->items[capacities->n_items++] = (DeviceCapacity){
                .key = first->provider,
                .resource_class = first->resource_class,
                .n_free = set->n_members - device_members_count(use.taken),
                .cell = is_one_cell ? first->cell : HOST_CELL_NONE,
                .set = set,
                .amounts = device_set_amounts(set, &use),
        };
}

static int add_capacities(const Counting *counting, DeviceCapacities *capacities)
{
        const HostFacts *facts = counting->facts;

        for (size_t i = 0; i < facts->n_devices; i++)
                add_capacity_of_mdevs(counting, &counting->counts[i], capacities);
        for (size_t i = 0; i < facts->n_pci; i++)
                if (!facts->pci[i].vgpu_type && !facts->pci[i].set)
                        add_capacity_of_pci(counting, &facts->pci[i], capacities);
        for (size_t i = 0; i < facts->n_sets; i++)
                add_capacity_of_set(counting, &facts->sets[i], capacities);
        for (size_t i = 0; i < facts->n_cards; i++)
                if (add_capacities_of_card(counting, &facts->cards[i], capacities) < 0)
                        return -ENOMEM;
        return 0;
}

/* Adds a capacity to another one of the same provider and class. */
static void add_to_capacity(DeviceCapacity *capacity, const DeviceCapacity *other)
{
        capacity->n_free += other->n_free;
        capacity->n_blocked += other->n_blocked;
        if (!capacity->blocker) {
                capacity->blocker = other->blocker;
                capacity->in_part = other->in_part;
        }
}

/* Merges the capacities of each provider and class, for example of virtual functions of one card.
 */
static void merge_capacities(DeviceCapacities *capacities)
{
        size_t n = 0;

        qsort(capacities->items, capacities->n_items, sizeof(DeviceCapacity), order_capacities);
        for (size_t i = 0; i < capacities->n_items; i++)
                if (n > 0 &&
                    order_capacities(&capacities->items[n - 1], &capacities->items[i]) == 0)
                        add_to_capacity(&capacities->items[n - 1], &capacities->items[i]);
                else
                        capacities->items[n++] = capacities->items[i];
        capacities->n_items = n;
}

/* Returns the largest number of capacities that the host can have before they are merged. */
static size_t count_capacities(const HostFacts *facts)
{
        size_t n = facts->n_devices + facts->n_pci + facts->n_sets;

        for (size_t i = 0; i < facts->n_cards; i++)
                n += facts->cards[i].n_types;
        return n;
}

int device_capacities_make(DeviceCapacity **ret, size_t *ret_n, const HostFacts *facts,
                           const Taken *taken)
{
        _cleanup_(counting_done) Counting counting = { .facts = facts, .taken = taken };
        DeviceCapacities capacities = { .items = calloc(count_capacities(facts) + 1,
                                                        sizeof(DeviceCapacity)) };

        if (capacities.items && counting_init(&counting) == 0) {
                count_mdevs(&counting);
                if (add_capacities(&counting, &capacities) == 0) {
                        merge_capacities(&capacities);
                        *ret = capacities.items;
                        *ret_n = capacities.n_items;
                        return 0;
                }
        }
        free(capacities.items);
        return -ENOMEM;
}

const DeviceCapacity *device_capacities_find(const DeviceCapacity *capacities, size_t n,
                                             const char *node, const char *provider_name,
                                             const char *resource_class)
{
        DeviceCapacity wanted = { .resource_class = resource_class };
        size_t size = strlen(node), i;
        bool found;

        if (strncmp(provider_name, node, size) != 0 || provider_name[size] != '_')
                return NULL;
        wanted.key = provider_name + size + 1;
        i = array_find(capacities, sizeof(DeviceCapacity), n, &wanted, order_capacities, &found);
        return found ? &capacities[i] : NULL;
}
