/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One inventory record of Placement, and the arithmetic of capacity. Pure.
 *
 * The rules are Placement's (facts E4, E5): capacity is (total - reserved) * allocation_ratio,
 * and an amount must lie in [min_unit, max_unit] and be a multiple of step_size. The
 * base-models specification accepts exactly min_unit for any step_size. Placement rejects it,
 * and Placement decides. */

#include "base/macros.h"

#define INVENTORY_MAX_AMOUNT \
        UINT64_C(2147483647) /* Placement's limit for every integer of a record */
#define INVENTORY_MAX_RATIO 3.40282e38
#define RESOURCE_CLASS_MAX  255 /* characters of a class or trait name */

typedef struct Inventory {
        uint64_t total;          /* 1 … INVENTORY_MAX_AMOUNT */
        uint64_t reserved;       /* 0 or more; above total the capacity is 0 */
        uint64_t min_unit;       /* 1 or more */
        uint64_t max_unit;       /* 1 or more */
        uint64_t step_size;      /* 1 or more */
        double allocation_ratio; /* 0 … INVENTORY_MAX_RATIO */
} Inventory;

/* Placement's defaults for the fields that a record leaves out. */
#define INVENTORY_DEFAULT(total_)                       \
        ((Inventory){ .total = (total_),                \
                      .min_unit = 1,                    \
                      .max_unit = INVENTORY_MAX_AMOUNT, \
                      .step_size = 1,                   \
                      .allocation_ratio = 1.0 })

typedef enum InventoryFit {
        INVENTORY_FITS = 0,
        INVENTORY_E_ZERO,      /* the amount is 0 */
        INVENTORY_E_MIN_UNIT,  /* amount < min_unit */
        INVENTORY_E_MAX_UNIT,  /* amount > max_unit */
        INVENTORY_E_STEP_SIZE, /* amount is not a multiple of step_size */
        INVENTORY_E_CAPACITY,  /* used + amount > capacity */
        _INVENTORY_FIT_MAX,
} InventoryFit;

/* Returns the name of the first field outside of the limits of Placement's schema, or NULL. A
 * reserved above total is valid here: Placement's reshaper accepts it, so it can be read back. */
const char *inventory_invalid_field(const Inventory *inventory);

/* Compares all fields, the ratio with the precision of a 32-bit float. */
bool inventory_equal(const Inventory *a, const Inventory *b);

/* Returns (total - reserved) * allocation_ratio, rounded down; 0 if reserved is total or more.
 * Saturates at UINT64_MAX. */
uint64_t inventory_capacity(const Inventory *inventory);

/* Checks whether amount can be allocated beside used. The checks run in the order of the enum,
 * and the first that fails is returned. */
InventoryFit inventory_fit(const Inventory *inventory, uint64_t used, uint64_t amount);

/* Returns the name of the field that rejects the amount, or "capacity"; NULL for
 * INVENTORY_FITS. */
const char *inventory_fit_term(InventoryFit fit);

/* Writes the reason of inventory_fit() for the same arguments, for example "5 requested, but 3 of
 * 16 are free" or "5 is not a multiple of step_size 2". Returns text, which has size bytes. */
const char *inventory_fit_explain(InventoryFit fit, const Inventory *inventory, uint64_t used,
                                  uint64_t amount, char *text, size_t size);

/* Checks for ^[A-Z0-9_]{1,255}$, the form of the names of resource classes and traits. */
bool resource_class_valid(const char *name);

/* Returns true for names that begin with "CUSTOM_". */
bool resource_class_is_custom(const char *name);
