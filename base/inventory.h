/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One inventory record of Placement, and the arithmetic of capacity. Pure.
 *
 * The rules are Placement's (facts E4, E5): capacity is (total - reserved) * allocation_ratio, and
 * an amount must lie in [min_unit, max_unit] and be a multiple of step_size. The base-models
 * specification allows exactly min_unit whatever the step_size is; Placement does not, and
 * Placement decides. */

#include "base/macros.h"

#define INVENTORY_MAX_AMOUNT \
        UINT64_C(2147483647) /* Placement's limit for every integer of a record */
#define INVENTORY_MAX_RATIO 3.40282e38
#define RESOURCE_CLASS_MAX  255 /* characters of a class or trait name */

typedef struct Inventory {
        uint64_t total;     /* 1 … INVENTORY_MAX_AMOUNT */
        uint64_t reserved;  /* 0 …; above total means a capacity of 0 */
        uint64_t min_unit;  /* 1 … */
        uint64_t max_unit;  /* 1 … */
        uint64_t step_size; /* 1 … */
        double allocation_ratio;
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
        INVENTORY_E_ZERO,      /* an amount of 0 is no request */
        INVENTORY_E_MIN_UNIT,  /* amount < min_unit */
        INVENTORY_E_MAX_UNIT,  /* amount > max_unit */
        INVENTORY_E_STEP_SIZE, /* amount is no multiple of step_size */
        INVENTORY_E_CAPACITY,  /* used + amount > capacity */
        _INVENTORY_FIT_MAX,
} InventoryFit;

/* Returns the name of the first field that is not within the limits of Placement's schema, NULL if
 * all are. A reserved above total is valid here: Placement's reshaper accepts it, so it can be read
 * back. */
const char *inventory_invalid_field(const Inventory *inventory);

bool inventory_equal(const Inventory *a, const Inventory *b);

/* (total - reserved) * allocation_ratio, rounded down; 0 when reserved > total. Saturates at
 * UINT64_MAX. */
uint64_t inventory_capacity(const Inventory *inventory);

/* May amount be allocated beside used? Checks in the order of the enum and returns the first that
 * fails. */
InventoryFit inventory_fit(const Inventory *inventory, uint64_t used, uint64_t amount);

/* The term that is not kept, by its field or "capacity"; of no FITS. */
const char *inventory_fit_term(InventoryFit fit);

/* Writes why: "asks for 5, free are 3 of 16", "5 is not a multiple of step_size 2", … Returns text.
 */
const char *inventory_fit_explain(InventoryFit fit, const Inventory *inventory, uint64_t used,
                                  uint64_t amount, char *text, size_t size);

/* ^[A-Z0-9_]{1,255}$, the form of resource class and trait names. */
bool resource_class_valid(const char *name);

/* True for names that begin with "CUSTOM_". */
bool resource_class_is_custom(const char *name);
