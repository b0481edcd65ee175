/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Capacity, limits and fit of one inventory record, and the rule for names of resource classes.
 * Everything is computed as Placement computes it (facts E4, E5), with 64-bit amounts and a double
 * for the ratio. Amounts of a valid record are below 2^31, but the ratio can be 3e38, so a capacity
 * saturates at UINT64_MAX. Only inventory_invalid_field() and resource_class_valid() check the
 * limits of Placement's schema; the arithmetic accepts each record, so a caller checks foreign
 * records first. No function allocates, logs or stores an error. Pure. */

#include "base/inventory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Checks a field against its lowest value and the limit of Placement's schema. */
static bool in_limits(uint64_t value, uint64_t lowest)
{
        return value >= lowest && value <= INVENTORY_MAX_AMOUNT;
}

const char *inventory_invalid_field(const Inventory *inventory)
{
        if (!in_limits(inventory->total, 1))
                return "total";
        if (!in_limits(inventory->reserved, 0))
                return "reserved";
        if (!in_limits(inventory->min_unit, 1))
                return "min_unit";
        if (!in_limits(inventory->max_unit, 1))
                return "max_unit";
        if (!in_limits(inventory->step_size, 1))
                return "step_size";
        if (!isfinite(inventory->allocation_ratio) || inventory->allocation_ratio < 0 ||
            inventory->allocation_ratio > INVENTORY_MAX_RATIO)
                return "allocation_ratio";
        return NULL;
}

bool inventory_equal(const Inventory *a, const Inventory *b)
{
        /* Placement stores the ratio as a 32-bit float, so 1.1 is read back as 1.1 or as
         * 1.10000002384. Ratios with the same 32-bit float are therefore equal. */
        return a->total == b->total && a->reserved == b->reserved && a->min_unit == b->min_unit &&
               a->max_unit == b->max_unit && a->step_size == b->step_size &&
               (float)a->allocation_ratio == (float)b->allocation_ratio;
}

/* Returns the capacity without rounding. The value can exceed 64 bits. */
static double capacity_as_double(const Inventory *inventory)
{
        if (inventory->reserved >= inventory->total)
                return 0;
        return (double)(inventory->total - inventory->reserved) * inventory->allocation_ratio;
}

uint64_t inventory_capacity(const Inventory *inventory)
{
        double capacity = capacity_as_double(inventory);

        if (!(capacity > 0))
                return 0;
        /* UINT64_MAX as a double: a cast of this value or a larger one is undefined. */
        if (capacity >= 18446744073709551615.0)
                return UINT64_MAX;
        return (uint64_t)capacity;
}

/* Checks in the order of the enum, because messages show the first failure. */
InventoryFit inventory_fit(const Inventory *inventory, uint64_t used, uint64_t amount)
{
        uint64_t sum;

        if (amount == 0)
                return INVENTORY_E_ZERO;
        if (amount < inventory->min_unit)
                return INVENTORY_E_MIN_UNIT;
        if (amount > inventory->max_unit)
                return INVENTORY_E_MAX_UNIT;
        if (inventory->step_size > 1 && amount % inventory->step_size != 0)
                return INVENTORY_E_STEP_SIZE;
        if (u64_add_overflow(used, amount, &sum) || sum > inventory_capacity(inventory))
                return INVENTORY_E_CAPACITY;
        return INVENTORY_FITS;
}

const char *inventory_fit_term(InventoryFit fit)
{
        static const char *const terms[_INVENTORY_FIT_MAX] = {
                [INVENTORY_E_ZERO] = "min_unit",     [INVENTORY_E_MIN_UNIT] = "min_unit",
                [INVENTORY_E_MAX_UNIT] = "max_unit", [INVENTORY_E_STEP_SIZE] = "step_size",
                [INVENTORY_E_CAPACITY] = "capacity",
        };

        return terms[fit];
}

const char *inventory_fit_explain(InventoryFit fit, const Inventory *inventory, uint64_t used,
                                  uint64_t amount, char *text, size_t size)
{
        uint64_t capacity = inventory_capacity(inventory);

        switch (fit) {
        case INVENTORY_FITS:
                snprintf(text, size, "%" PRIu64 " fits", amount);
                break;
        case INVENTORY_E_ZERO:
                snprintf(text, size, "the amount must be at least 1");
                break;
        case INVENTORY_E_MIN_UNIT:
                snprintf(text, size, "%" PRIu64 " is less than min_unit %" PRIu64, amount,
                         inventory->min_unit);
                break;
        case INVENTORY_E_MAX_UNIT:
                snprintf(text, size, "%" PRIu64 " is more than max_unit %" PRIu64, amount,
                         inventory->max_unit);
                break;
        case INVENTORY_E_STEP_SIZE:
                snprintf(text, size, "%" PRIu64 " is not a multiple of step_size %" PRIu64, amount,
                         inventory->step_size);
                break;
        case INVENTORY_E_CAPACITY:
        case _INVENTORY_FIT_MAX:
                snprintf(text, size,
                         "%" PRIu64 " requested, but %" PRIu64 " of %" PRIu64 " are free", amount,
                         capacity > used ? capacity - used : 0, capacity);
                break;
        }
        return text;
}

/* Bounds the work with strnlen(), because the name can be foreign text of any length. */
bool resource_class_valid(const char *name)
{
        size_t n = strnlen(name, RESOURCE_CLASS_MAX + 1);

        if (n == 0 || n > RESOURCE_CLASS_MAX)
                return false;
        return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

bool resource_class_is_custom(const char *name)
{
        return strncmp(name, "CUSTOM_", strlen("CUSTOM_")) == 0;
}
