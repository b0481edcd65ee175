/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One card (physical function) whose virtual functions become vGPUs, and the number of vGPUs that
 * it can still offer. The driver makes the card from a poll. The tree and the claims mark the
 * functions that are taken, and then use the same arithmetic. Pure; any thread.
 *
 * A taken function belongs to a claim or a guest, whether its type is set in the hardware or not.
 * An idle one has a type, but neither claim nor guest, and a claim can get it as it is. On a
 * prepared card it is unavailable until another program has removed its type. A free function has
 * neither type, claim nor guest. A function whose type the configuration does not allow for it,
 * without claim and guest, is neither idle nor free: no claim gets it.
 *
 * A free function can become each type that the configuration allows for it and that the hardware
 * lists as creatable. A card can create as many vGPUs of a type as its remaining framebuffer and
 * the limit of the type (max_instances) allow. If a size is unknown, the limit alone decides. While
 * no claim waits for its type, one more within the limit is certain whatever the sizes are, because
 * the hardware lists the type. If a size is unknown and there is no limit, no more than this one
 * counts.
 *
 * In homogeneous mode all vGPUs of a card have one type, and the hardware shows that only after the
 * first type is set. Therefore a claimed type that is not set yet excludes all other types. If the
 * hardware shows two types at the same time (two set, or one set and another one listed), the card
 * is in heterogeneous mode, and nothing is excluded. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define VGPU_TYPES_MAX    64   /* types of one card; the bits of a VgpuTypeSet */
#define VGPU_TYPE_NONE    (-1) /* index of a type: none */
#define VGPU_NAME_SIZE    24   /* "pci_0000_41_00_0" and the NUL */
#define VGPU_ADDRESS_SIZE 13   /* "0000:41:00.0" and the NUL */

/* Bit i stands for types[i] of the card. */
typedef uint64_t VgpuTypeSet;

typedef struct VgpuType {
        char *id;                 /* "nvidia-1428"; owned */
        char *resource_class;     /* owned; NULL: the type is not offered */
        uint64_t framebuffer_mib; /* 0: unknown */
        uint64_t limit; /* largest number on this card by max_instances; UINT64_MAX: any */
} VgpuType;

typedef struct VgpuFunction {
        const char *address;   /* PCI address; borrowed */
        const char *name;      /* libvirt's name; borrowed */
        int type;              /* type that is set in the hardware, or VGPU_TYPE_NONE */
        VgpuTypeSet allowed;   /* types that the configuration allows */
        VgpuTypeSet creatable; /* types that the hardware lists */
        bool is_taken;         /* a claim or a guest has it */
        bool is_unread;        /* its types are unknown, so the card offers nothing new */
        int claimed_type;      /* type of the claim, or VGPU_TYPE_NONE */
        int former_type; /* type of a claim that ended after the poll, which might lack the vGPU; or
                            VGPU_TYPE_NONE */
} VgpuFunction;

typedef struct VgpuCard {
        char address[VGPU_ADDRESS_SIZE]; /* PCI address of the physical function */
        char name[VGPU_NAME_SIZE];       /* libvirt's name of the physical function */
        int numa_node;                   /* -1 if it has none */
        const char *identity;            /* "" or NULL if it is unknown; borrowed */
        uint64_t size_mib;               /* framebuffer of the card; 0: unknown */
        bool is_prepared;                /* another program clears idle functions */
        VgpuType *types;
        size_t n_types, n_types_allocated;
        VgpuFunction *functions; /* by address */
        size_t n_functions, n_functions_allocated;
} VgpuCard;

/* Frees the members and zeroes the struct. */
void vgpu_card_done(VgpuCard *card);

/* Makes a copy that owns its types and functions, and borrows the texts that the card borrows.
 * -ENOMEM leaves *ret zeroed. */
int vgpu_card_copy(const VgpuCard *card, VgpuCard *ret);

/* Sets *ret to the index of the type with this id. Adds the type if it is missing, without class,
 * size and limit. *ret is VGPU_TYPE_NONE if the card has VGPU_TYPES_MAX other types. Returns 0, or
 * -ENOMEM with VGPU_TYPE_NONE. */
int vgpu_card_ensure_type(VgpuCard *card, const char *id, int *ret);

/* Returns the index of the type, or VGPU_TYPE_NONE. */
int vgpu_card_find_type(const VgpuCard *card, const char *id);

/* Returns the function with this PCI address, or NULL. O(log n). */
VgpuFunction *vgpu_card_find(const VgpuCard *card, const char *address);

/* Marks a function as taken. type: the type of the claim. "" leaves claimed_type unchanged, and a
 * type that the card does not have makes it VGPU_TYPE_NONE. An address of another card is
 * ignored. */
void vgpu_card_take(VgpuCard *card, const char *address, const char *type);

/* Numbers of functions of one type. */
typedef struct VgpuCount {
        uint64_t n_used;      /* taken functions of the type */
        uint64_t n_idle;      /* idle functions of the type */
        uint64_t n_creatable; /* further vGPUs of the type, without those of n_idle */
        uint64_t total;       /* largest known number of the type on the empty card; at least the
                                 sum of the other members */
} VgpuCount;

/* Counts the functions of a type. O(functions). */
VgpuCount vgpu_card_count(const VgpuCard *card, int type);

/* Returns the function that the next claim of the type gets, borrowed: the idle one with the lowest
 * address, or else such a free one. NULL if the card has none, or if it has only free ones and
 * n_creatable is 0. O(functions). */
VgpuFunction *vgpu_card_choose(const VgpuCard *card, int type);
