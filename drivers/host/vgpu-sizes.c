/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Learns the sizes of cards and types from polls. The list is sorted by vendor, product and type
 * number; number 0 is the card itself. The size of a card only grows: polls prove lower bounds. The
 * functions of a card are found by the address of their physical function.
 *
 * Tests: tests/unit/drivers/host/test-vgpu-sizes.c */

#include "drivers/host/vgpu-sizes.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"

/* Largest framebuffer that is believed, in MiB: 16 TiB. */
#define FRAMEBUFFER_MAX_MIB (UINT64_C(16) << 20)

/* One card as the last poll showed it. */
typedef struct VgpuSeen {
        char physical_function[PCI_ADDRESS_SIZE];
        uint64_t began_usec; /* start of the poll (Snapshot.began_usec) */
        uint64_t vgpus;      /* hash of the vGPUs and their types */
        uint64_t sum_mib;    /* framebuffer of them and of the largest creatable type */
        unsigned n_equal;    /* polls directly before it with the same vGPUs; more count as 2 */
} VgpuSeen;

typedef struct VgpuSize {
        uint32_t vendor_id, product_id;
        uint32_t type;            /* number of the type; 0: the size of the card */
        uint64_t framebuffer_mib; /* never 0 */
} VgpuSize;

void vgpu_sizes_done(VgpuSizes *sizes)
{
        free(sizes->items);
        free(sizes->seen);
        *sizes = (VgpuSizes){ 0 };
}

/* Parses the end of a name, for example "-2Q", "-48Q" or "-0B4". The number is the framebuffer in
 * GiB, and 0 means 512 MiB. The letter is the series. Characters after the letter are ignored.
 * Returns MiB: 0 if the name does not say it, and for MIG-backed types ("NVIDIA A100-1-5C"), whose
 * number depends on the MIG layout and not only on the framebuffer. */
static uint64_t framebuffer_of_name(const char *name)
{
        const char *dash = strrchr(name, '-'), *c;
        uint64_t gib = 0;

        if (!dash || dash == name || !isdigit((unsigned char)dash[1]))
                return 0;
        for (c = dash + 1; isdigit((unsigned char)*c); c++) {
                gib = gib * 10 + (uint64_t)(*c - '0');
                if (gib > FRAMEBUFFER_MAX_MIB / 1024)
                        return 0;
        }
        if (*c != 'Q' && *c != 'B' && *c != 'C' && *c != 'A')
                return 0;
        /* A number between two dashes is the number of MIG slices: "A100-1-5C". */
        for (const char *before = dash - 1; before > name; before--) {
                if (*before == '-' && before + 1 < dash)
                        return 0;
                if (!isdigit((unsigned char)*before))
                        break;
        }
        return gib == 0 ? 512 : gib * 1024;
}

static int order_sizes(const void *a, const void *b)
{
        const VgpuSize *x = a, *y = b;

        if (x->vendor_id != y->vendor_id)
                return x->vendor_id < y->vendor_id ? -1 : 1;
        if (x->product_id != y->product_id)
                return x->product_id < y->product_id ? -1 : 1;
        return x->type < y->type ? -1 : x->type > y->type;
}

static uint64_t get(const VgpuSizes *sizes, const SnapshotDevice *device, uint32_t type)
{
        const VgpuSize key = { device->vendor_id, device->product_id, type, 0 };
        bool found;
        size_t place;

        if (!sizes)
                return 0;
        place = array_find(sizes->items, sizeof(VgpuSize), sizes->n_items, &key, order_sizes,
                           &found);
        return found ? sizes->items[place].framebuffer_mib : 0;
}

/* Stores a size if none was known, or only a smaller one. Ignores 0, a size that is not believed,
 * and a new one if the list has VGPU_SIZES_MAX already. */
static int set(VgpuSizes *sizes, const VgpuSize *size, bool *changed)
{
        bool found;
        size_t place;

        if (size->framebuffer_mib == 0 || size->framebuffer_mib > FRAMEBUFFER_MAX_MIB)
                return 0;
        place = array_find(sizes->items, sizeof(VgpuSize), sizes->n_items, size, order_sizes,
                           &found);
        if (found && sizes->items[place].framebuffer_mib >= size->framebuffer_mib)
                return 0;
        if (!found && sizes->n_items >= VGPU_SIZES_MAX)
                return 0;
        if (!found) {
                if (array_grow(&sizes->items, sizeof(VgpuSize), sizes->n_items,
                               &sizes->n_allocated) < 0)
                        return -ENOMEM;
                array_open(sizes->items, sizeof(VgpuSize), &sizes->n_items, place);
        }
        sizes->items[place] = *size;
        *changed = true;
        return 0;
}

/* Returns the number of a type: 1428 of "nvidia-1428". 0 if it has none. */
static uint32_t number_of(const char *id)
{
        const char *dash = strrchr(id, '-');
        unsigned long number;

        if (!dash || !isdigit((unsigned char)dash[1]))
                return 0;
        errno = 0;
        number = strtoul(dash + 1, NULL, 10);
        return errno || number > UINT32_MAX ? 0 : (uint32_t)number;
}

uint64_t vgpu_sizes_of_type(const VgpuSizes *sizes, const SnapshotDevice *device,
                            const MdevType *type)
{
        uint64_t mib = framebuffer_of_name(type->name);
        uint32_t number = number_of(type->id);

        return mib || !number ? mib : get(sizes, device, number);
}

uint64_t vgpu_sizes_of_card(const VgpuSizes *sizes, const SnapshotDevice *device)
{
        return get(sizes, device, 0);
}

/* Remembers the sizes of the types that the function lists by name. */
static int note_types(VgpuSizes *sizes, const SnapshotDevice *device, bool *changed)
{
        for (size_t i = 0; i < device->n_mdev_types; i++) {
                const MdevType *type = &device->mdev_types[i];
                const VgpuSize size = { device->vendor_id, device->product_id, number_of(type->id),
                                        framebuffer_of_name(type->name) };

                if (size.type && set(sizes, &size, changed) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* The lower bound of a card's framebuffer that one poll shows. */
typedef struct Proof {
        uint64_t vgpus; /* sum of the hashes of the card's vGPUs, so their order does not matter */
        uint64_t used_mib;    /* framebuffer that these vGPUs use */
        uint64_t largest_mib; /* framebuffer of the largest type that it can create */
} Proof;

/* Returns the hash (FNV-1a) of a vGPU. */
static uint64_t hash_vgpu(const char *address, const char *type)
{
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (const char *c = address; *c; c++)
                hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
        for (const char *c = type; *c; c++)
                hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
        return hash;
}

/* Adds one function to the proof of its card. */
static void add_function(const VgpuSizes *sizes, const SnapshotDevice *device, Proof *proof)
{
        for (size_t i = 0; i < device->n_mdev_types; i++) {
                const MdevType *type = &device->mdev_types[i];
                uint64_t mib = vgpu_sizes_of_type(sizes, device, type);

                if (type->created_instances > 0) {
                        proof->used_mib += mib;
                        proof->vgpus += hash_vgpu(device->address, type->id);
                } else if (type->available_instances > 0)
                        proof->largest_mib = MAX(proof->largest_mib, mib);
        }
}

static int order_functions(const void *a, const void *b)
{
        const SnapshotDevice *x = *(const SnapshotDevice *const *)a,
                             *y = *(const SnapshotDevice *const *)b;

        return strcmp(x->physical_function, y->physical_function);
}

/* Returns the record of the card. Adds an empty record for a new card. If there are already
 * VGPU_SIZES_MAX records, all of them are dropped first. */
static int ensure_seen(VgpuSizes *sizes, const char *physical_function, VgpuSeen **ret)
{
        for (size_t i = 0; i < sizes->n_seen; i++)
                if (strcmp(sizes->seen[i].physical_function, physical_function) == 0) {
                        *ret = &sizes->seen[i];
                        return 0;
                }
        if (sizes->n_seen >= VGPU_SIZES_MAX)
                sizes->n_seen = 0;
        if (array_grow(&sizes->seen, sizeof(VgpuSeen), sizes->n_seen, &sizes->n_seen_allocated) < 0)
                return -ENOMEM;
        *ret = &sizes->seen[sizes->n_seen++];
        **ret = (VgpuSeen){ 0 };
        strcpy((*ret)->physical_function, physical_function);
        return 0;
}

/* Returns the framebuffer of the card that is proved. This poll alone proves its largest creatable
 * type. The sum that the previous poll has seen is proved if that poll, the one before it and this
 * one show the same vGPUs (vgpu-sizes.h). A poll that was noted before shows nothing new. */
static uint64_t prove(VgpuSeen *seen, uint64_t began_usec, const Proof *proof)
{
        uint64_t proved = proof->largest_mib;

        if (seen->began_usec == began_usec)
                return proved;
        seen->began_usec = began_usec;
        seen->n_equal = seen->vgpus == proof->vgpus ? MIN(seen->n_equal + 1, 2U) : 0;
        if (seen->n_equal == 2)
                proved = MAX(proved, seen->sum_mib);
        seen->vgpus = proof->vgpus;
        seen->sum_mib = proof->used_mib + proof->largest_mib;
        return proved;
}

/* Sets the size of the card of the functions. */
static int note_card(VgpuSizes *sizes, uint64_t began_usec, const SnapshotDevice *const functions[],
                     size_t n, bool *changed)
{
        Proof proof = { 0 };
        VgpuSeen *seen;
        VgpuSize size;

        for (size_t i = 0; i < n; i++)
                add_function(sizes, functions[i], &proof);
        if (ensure_seen(sizes, functions[0]->physical_function, &seen) < 0)
                return -ENOMEM;
        size = (VgpuSize){ functions[0]->vendor_id, functions[0]->product_id, 0,
                           prove(seen, began_usec, &proof) };
        return set(sizes, &size, changed);
}

int vgpu_sizes_note(VgpuSizes *sizes, const Snapshot *snapshot, bool *ret_changed)
{
        _cleanup_free_ const SnapshotDevice **functions =
                calloc(snapshot->n_devices + 1, sizeof(SnapshotDevice *));
        size_t n_functions = 0;

        *ret_changed = false;
        if (!functions)
                return -ENOMEM;
        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (snapshot->devices[i].is_vgpu_function) {
                        functions[n_functions++] = &snapshot->devices[i];
                        if (note_types(sizes, &snapshot->devices[i], ret_changed) < 0)
                                return -ENOMEM;
                }
        qsort(functions, n_functions, sizeof(SnapshotDevice *), order_functions);
        for (size_t i = 0, n; i < n_functions; i += n) {
                for (n = 1;
                     i + n < n_functions && order_functions(&functions[i], &functions[i + n]) == 0;)
                        n++;
                if (note_card(sizes, snapshot->began_usec, functions + i, n, ret_changed) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int vgpu_sizes_copy(VgpuSizes *ret, const VgpuSizes *sizes)
{
        VgpuSizes copy = { .items = calloc(sizes->n_items + 1, sizeof(VgpuSize)),
                           .n_items = sizes->n_items,
                           .n_allocated = sizes->n_items + 1 };

        if (!copy.items)
                return -ENOMEM;
        if (sizes->n_items > 0)
                memcpy(copy.items, sizes->items, sizes->n_items * sizeof(VgpuSize));
        vgpu_sizes_done(ret);
        *ret = copy;
        return 0;
}

json_t *vgpu_sizes_to_json(const VgpuSizes *sizes)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; i < sizes->n_items; i++) {
                const VgpuSize *size = &sizes->items[i];

                if (json_array_append_new(array,
                                          json_pack("{s:I, s:I, s:I, s:I}", "vendor_id",
                                                    (json_int_t)size->vendor_id, "product_id",
                                                    (json_int_t)size->product_id, "type",
                                                    (json_int_t)size->type, "framebuffer_mib",
                                                    (json_int_t)size->framebuffer_mib)) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

int vgpu_sizes_from_json(const json_t *array, VgpuSizes *ret, Error *reterr)
{
        _cleanup_(vgpu_sizes_done) VgpuSizes sizes = { 0 };

        for (size_t i = 0; i < json_array_size(array); i++) {
                const json_t *object = json_array_get(array, i);
                uint64_t vendor, product, type, mib;
                bool changed;
                int r;

                if ((r = json_read_u64(object, "vendor_id", &vendor, reterr)) < 0 ||
                    (r = json_read_u64(object, "product_id", &product, reterr)) < 0 ||
                    (r = json_read_u64(object, "type", &type, reterr)) < 0 ||
                    (r = json_read_u64(object, "framebuffer_mib", &mib, reterr)) < 0)
                        return r;
                if (vendor > UINT32_MAX || product > UINT32_MAX || type > UINT32_MAX)
                        return error_setf(reterr, EBADMSG, "A number of a vGPU size is too large");
                if (set(&sizes,
                        &(VgpuSize){ (uint32_t)vendor, (uint32_t)product, (uint32_t)type, mib },
                        &changed) < 0)
                        return error_oom(reterr);
        }
        *ret = TAKE_STRUCT(sizes);
        return 0;
}
