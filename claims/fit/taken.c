/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The rooms are counted in one pass over each list of the facts, with binary searches: a host may
 * have thousands of virtual functions. */

#include "claims/fit/taken.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

void taken_done(Taken *taken)
{
        string_set_done(&taken->things);
        for (size_t i = 0; i < taken->n_mdevs; i++)
                free(taken->mdevs[i].device);
        free(taken->mdevs);
        *taken = (Taken){ 0 };
}

int taken_add(Taken *taken, const Uuid *mdev, const char *device, const char *address)
{
        TakenMdev *item;

        if (address[0] && string_set_add(&taken->things, address) < 0)
                return -ENOMEM;
        if (uuid_empty(mdev))
                return 0;
        if (string_set_add(&taken->things, mdev->text) < 0 ||
            array_grow(&taken->mdevs, sizeof(TakenMdev), taken->n_mdevs, &taken->n_allocated) < 0)
                return -ENOMEM;
        item = &taken->mdevs[taken->n_mdevs];
        *item = (TakenMdev){ .uuid = *mdev, .device = strdup(device) };
        if (!item->device)
                return -ENOMEM;
        taken->n_mdevs++;
        return 0;
}

int taken_add_guests(Taken *taken, const HostFacts *facts)
{
        for (size_t i = 0; i < facts->n_domains; i++) {
                const HostDomain *domain = &facts->domains[i];

                for (size_t j = 0; j < domain->n_mdevs; j++)
                        if (string_set_add(&taken->things, domain->mdevs[j].text) < 0)
                                return -ENOMEM;
                for (size_t j = 0; j < domain->n_pci; j++)
                        if (string_set_add(&taken->things, domain->pci[j]) < 0)
                                return -ENOMEM;
        }
        return 0;
}

bool taken_has(const Taken *taken, const char *thing)
{
        return string_set_contains(&taken->things, thing);
}

/* Rooms. */

void device_rooms_done(DeviceRooms *rooms)
{
        free(rooms->items);
        *rooms = (DeviceRooms){ 0 };
}

/* PCI addresses come in either case. */
static int order_rooms(const void *a, const void *b)
{
        const DeviceRoom *x = a, *y = b;
        int order = strcasecmp(x->key, y->key);

        return order ? order : strcmp(x->resource_class, y->resource_class);
}

static DeviceRoom *find_room(const DeviceRooms *rooms, const char *key, const char *resource_class)
{
        const DeviceRoom wanted = { .key = key, .resource_class = resource_class };
        bool found;
        size_t i = array_find(rooms->items, sizeof(DeviceRoom), rooms->n_items, &wanted,
                              order_rooms, &found);

        return found ? &rooms->items[i] : NULL;
}

/* One device of facts with what is counted of it. */
typedef struct Count {
        const HostDevice *device;
        uint64_t n_free, n_unmade; /* mdevs: free ones; claimed ones that nobody made yet */
} Count;

typedef struct Counting {
        const HostFacts *facts;
        const Taken *taken;
        Count *counts; /* by the device's name */
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

static void add_rooms(const Counting *counting, DeviceRooms *rooms)
{
        const HostFacts *facts = counting->facts;

        for (size_t i = 0; i < facts->n_devices; i++) {
                const Count *count = &counting->counts[i];
                uint64_t available = count->device->available;

                rooms->items[rooms->n_items++] = (DeviceRoom){
                        .key = count->device->name,
                        .resource_class = count->device->resource_class,
                        .n_free = count->n_free + available - MIN(count->n_unmade, available),
                        .cell = count->device->cell,
                };
        }
        for (size_t i = 0; i < facts->n_pci; i++)
                rooms->items[rooms->n_items++] = (DeviceRoom){
                        .key = facts->pci[i].provider,
                        .resource_class = facts->pci[i].resource_class,
                        .n_free = !taken_has(counting->taken, facts->pci[i].address),
                        .cell = facts->pci[i].cell,
                };
}

/* Virtual functions of one card are one room. */
static void merge_rooms(DeviceRooms *rooms)
{
        size_t n = 0;

        qsort(rooms->items, rooms->n_items, sizeof(DeviceRoom), order_rooms);
        for (size_t i = 0; i < rooms->n_items; i++)
                if (n > 0 && order_rooms(&rooms->items[n - 1], &rooms->items[i]) == 0)
                        rooms->items[n - 1].n_free += rooms->items[i].n_free;
                else
                        rooms->items[n++] = rooms->items[i];
        rooms->n_items = n;
}

int device_rooms_make(DeviceRooms *ret, const HostFacts *facts, const Taken *taken)
{
        _cleanup_(counting_done) Counting counting = { .facts = facts, .taken = taken };
        DeviceRooms rooms = { .items = calloc(facts->n_devices + facts->n_pci + 1,
                                              sizeof(DeviceRoom)) };

        if (!rooms.items || counting_init(&counting) < 0) {
                device_rooms_done(&rooms);
                return -ENOMEM;
        }
        count_mdevs(&counting);
        add_rooms(&counting, &rooms);
        merge_rooms(&rooms);
        *ret = rooms;
        return 0;
}

const DeviceRoom *device_rooms_find(const DeviceRooms *rooms, const char *node,
                                    const char *provider_name, const char *resource_class)
{
        size_t n = strlen(node);

        if (strncmp(provider_name, node, n) != 0 || provider_name[n] != '_')
                return NULL;
        return find_room(rooms, provider_name + n + 1, resource_class);
}
