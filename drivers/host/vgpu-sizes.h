/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Framebuffer sizes of vGPU types and of the cards that they are on, as far as polls have shown
 * them. Pure.
 *
 * No file of the kernel has these sizes. The size of most types follows from the name. The size of
 * a card is the largest sum that a poll has proved: the framebuffer of its vGPUs, and of the
 * largest type that it can create beside them. An empty card can create a type with all of its
 * framebuffer, but a used one lists fewer types, and a full one none. Therefore the caller keeps
 * the sizes, also over restarts (vgpu_sizes_to_json()). Cards of one model (vendor and product)
 * count as equally large.
 *
 * A vGPU can appear or end while a poll reads the other functions of its card. The sum of such a
 * poll can exceed the card. One list of creatable types is read at once, so its largest type is
 * proved by one poll. A sum with vGPUs is proved by three polls that show the same vGPUs: none of
 * them changed while the second poll read the lists. LIMITATION: a vGPU that ends between two polls
 * and is made again at the same function with the same type looks unchanged. */

#include <jansson.h>

#include "drivers/host/snapshot.h"

/* Largest number of sizes that are remembered. */
#define VGPU_SIZES_MAX 1024

typedef struct VgpuSizes {
        struct VgpuSize *items; /* by vendor, product and type */
        size_t n_items, n_allocated;
        struct VgpuSeen *seen; /* neither copied nor written */
        size_t n_seen, n_seen_allocated;
} VgpuSizes;

void vgpu_sizes_done(VgpuSizes *sizes);

/* Adds what the snapshot proves. Only virtual functions that become a vGPU without an mdev
 * (is_vgpu_function) count. A snapshot that is noted again counts as one poll, by its began_usec.
 * *ret_changed: a size is new or larger. New sizes are ignored when there are VGPU_SIZES_MAX
 * already. After -ENOMEM some sizes are added. */
int vgpu_sizes_note(VgpuSizes *sizes, const Snapshot *snapshot, bool *ret_changed);

/* Returns the framebuffer of a type of the device in MiB, by its name or else as remembered. 0 if
 * it is unknown. sizes can be NULL, here and in the next function. */
uint64_t vgpu_sizes_of_type(const VgpuSizes *sizes, const SnapshotDevice *device,
                            const MdevType *type);

/* Returns the framebuffer of the card of a virtual function in MiB. 0 if it is unknown. */
uint64_t vgpu_sizes_of_card(const VgpuSizes *sizes, const SnapshotDevice *device);

/* Replaces ret by a copy of the sizes, without the polls that were seen. -ENOMEM leaves it
 * unchanged. */
int vgpu_sizes_copy(VgpuSizes *ret, const VgpuSizes *sizes);

/* Write and read the JSON form, an array of the sizes. The function vgpu_sizes_to_json() returns a
 * new reference, or NULL if out of memory. The function vgpu_sizes_from_json() sets ret, whose old
 * content is not freed. It skips sizes of 0, above 16 TiB, and beyond VGPU_SIZES_MAX. A value that
 * is no array has no sizes. -EBADMSG or -ENOMEM with an error text, and ret is untouched. */
json_t *vgpu_sizes_to_json(const VgpuSizes *sizes);
int vgpu_sizes_from_json(const json_t *array, VgpuSizes *ret, Error *reterr);
