/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/inventory.h"

#include <math.h>

#include "tests/unit/test.h"

#define RECORD(total_, reserved_, min_, max_, step_, ratio_)                           \
        {                                                                              \
                .total = (total_), .reserved = (reserved_), .min_unit = (min_),        \
                .max_unit = (max_), .step_size = (step_), .allocation_ratio = (ratio_) \
        }

static const uint64_t max = INVENTORY_MAX_AMOUNT;

static void test_valid_table(void **state)
{
        const struct {
                Inventory inventory;
                bool valid;
        } cases[] = {
                { INVENTORY_DEFAULT(1), true },
                { INVENTORY_DEFAULT(max), true },
                { INVENTORY_DEFAULT(0), false },
                { INVENTORY_DEFAULT(max + 1), false },
                { INVENTORY_DEFAULT(UINT64_MAX), false },
                { RECORD(max, max, max, max, max, 3.4e38), true },
                { RECORD(8, 9, 1, 8, 1, 1.0), true }, /* reserved above total, as the reshaper
                                                       * accepts it */
                { RECORD(8, max + 1, 1, 8, 1, 1.0), false },
                { RECORD(8, 0, 0, 8, 1, 1.0), false },
                { RECORD(8, 0, max + 1, 8, 1, 1.0), false },
                { RECORD(8, 0, 1, 0, 1, 1.0), false },
                { RECORD(8, 0, 1, max + 1, 1, 1.0), false },
                { RECORD(8, 0, 9, 8, 1, 1.0), true }, /* min_unit above max_unit: valid, but no
                                                       * amount fits */
                { RECORD(8, 0, 1, 8, 0, 1.0), false },
                { RECORD(8, 0, 1, 8, max + 1, 1.0), false },
                { RECORD(8, 0, 1, 8, 1, 0.0), true },
                { RECORD(8, 0, 1, 8, 1, -0.1), false },
                { RECORD(8, 0, 1, 8, 1, 3.5e38), false },
                { RECORD(8, 0, 1, 8, 1, INFINITY), false },
                { RECORD(8, 0, 1, 8, 1, -INFINITY), false },
                { RECORD(8, 0, 1, 8, 1, NAN), false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (!inventory_invalid_field(&cases[i].inventory) != cases[i].valid)
                        fail_msg("case %zu", i);
}

static void test_capacity_table(void **state)
{
        const struct {
                Inventory inventory;
                uint64_t capacity;
        } cases[] = {
                { RECORD(16, 0, 1, 16, 1, 1.0), 16 },
                { RECORD(16, 0, 1, 16, 1, 16.0), 256 },
                { RECORD(16, 2, 1, 16, 1, 16.0), 224 },
                { RECORD(16, 16, 1, 16, 1, 16.0), 0 },
                { RECORD(16, 17, 1, 16, 1, 16.0), 0 }, /* no wrap below zero */
                { RECORD(10, 0, 1, 10, 1, 1.1), 11 },
                { RECORD(3, 0, 1, 3, 1, 1.5), 4 }, /* rounded down */
                { RECORD(7, 0, 1, 7, 1, 0.1), 0 }, /* 0.7 */
                { RECORD(10, 0, 1, 10, 1, 0.1), 1 },
                { RECORD(8, 0, 1, 8, 1, 0.0), 0 },
                { RECORD(8, 0, 1, 8, 1, NAN), 0 },
                { RECORD(8, 0, 1, 8, 1, -1.0), 0 },
                { RECORD(max, 0, 1, max, 1, 16.0), max * 16 },
                { RECORD(max, 0, 1, max, 1, 3.4e38), UINT64_MAX },
                { RECORD(8, 0, 1, 8, 1, INFINITY), UINT64_MAX },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t capacity = inventory_capacity(&cases[i].inventory);

                if (capacity != cases[i].capacity)
                        fail_msg("case %zu: %ju", i, (uintmax_t)capacity);
        }
}

/* The examples of the base-models specification, and the cases in which Placement differs from
 * it. */
static void test_fit_table(void **state)
{
        const struct {
                Inventory inventory;
                uint64_t used, amount;
                InventoryFit fit;
        } cases[] = {
                { RECORD(16, 0, 1, 16, 1, 1.0), 0, 16, INVENTORY_FITS },
                { RECORD(16, 0, 1, 16, 1, 1.0), 0, 0, INVENTORY_E_ZERO },
                { RECORD(16, 0, 1, 16, 1, 1.0), 1, 16, INVENTORY_E_CAPACITY },
                { RECORD(16, 1, 1, 16, 1, 1.0), 0, 16, INVENTORY_E_CAPACITY },
                { RECORD(16, 16, 1, 16, 1, 1.0), 0, 1, INVENTORY_E_CAPACITY },
                { RECORD(16, 20, 1, 16, 1, 1.0), 0, 1, INVENTORY_E_CAPACITY },
                /* With overcommit one request is still limited to the host: 8 CPUs at ratio 16. */
                { RECORD(8, 0, 1, 8, 1, 16.0), 0, 8, INVENTORY_FITS },
                { RECORD(8, 0, 1, 8, 1, 16.0), 0, 9, INVENTORY_E_MAX_UNIT },
                { RECORD(8, 0, 1, 8, 1, 16.0), 120, 8, INVENTORY_FITS },
                { RECORD(8, 0, 1, 8, 1, 16.0), 121, 8, INVENTORY_E_CAPACITY },
                /* DISK_GB: min 5, max 1000, step 10. The specification allows 5, and Placement
                 * rejects it. */
                { RECORD(5000, 0, 5, 1000, 10, 1.0), 0, 4, INVENTORY_E_MIN_UNIT },
                { RECORD(5000, 0, 5, 1000, 10, 1.0), 0, 5, INVENTORY_E_STEP_SIZE },
                { RECORD(5000, 0, 5, 1000, 10, 1.0), 0, 8, INVENTORY_E_STEP_SIZE },
                { RECORD(5000, 0, 5, 1000, 10, 1.0), 0, 10, INVENTORY_FITS },
                { RECORD(5000, 0, 5, 1000, 10, 1.0), 0, 1000, INVENTORY_FITS },
                { RECORD(5000, 0, 5, 1000, 10, 1.0), 0, 1010, INVENTORY_E_MAX_UNIT },
                /* VCPU: min 1, max 16, step 2. An amount of 1 is rejected too. */
                { RECORD(16, 0, 1, 16, 2, 1.0), 0, 1, INVENTORY_E_STEP_SIZE },
                { RECORD(16, 0, 1, 16, 2, 1.0), 0, 2, INVENTORY_FITS },
                { RECORD(16, 0, 1, 16, 2, 1.0), 0, 3, INVENTORY_E_STEP_SIZE },
                /* The used amount counts, and need not be a multiple of step_size. */
                { RECORD(16, 0, 1, 16, 2, 1.0), 13, 2, INVENTORY_FITS },
                { RECORD(16, 0, 1, 16, 2, 1.0), 15, 2, INVENTORY_E_CAPACITY },
                /* The first check that fails, in the order of the enum. */
                { RECORD(8, 8, 4, 2, 3, 1.0), 0, 3, INVENTORY_E_MIN_UNIT },
                { RECORD(8, 8, 1, 2, 3, 1.0), 0, 4, INVENTORY_E_MAX_UNIT },
                { RECORD(8, 8, 1, 4, 3, 1.0), 0, 4, INVENTORY_E_STEP_SIZE },
                /* Sums above 64 bits, a use above the capacity, and a record without steps. */
                { RECORD(8, 0, 1, max, 1, 3e38), UINT64_MAX, 1, INVENTORY_E_CAPACITY },
                { RECORD(8, 0, 1, 8, 1, 1.0), UINT64_MAX, 8, INVENTORY_E_CAPACITY },
                { RECORD(8, 0, 1, 8, 1, 1.0), 100, 1, INVENTORY_E_CAPACITY },
                { RECORD(8, 0, 0, 8, 0, 1.0), 0, 1, INVENTORY_FITS },
                { RECORD(8, 0, 1, 8, 1, NAN), 0, 1, INVENTORY_E_CAPACITY },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                InventoryFit fit =
                        inventory_fit(&cases[i].inventory, cases[i].used, cases[i].amount);

                if (fit != cases[i].fit)
                        fail_msg("case %zu: %d, expected %d", i, fit, cases[i].fit);
        }
}

static void test_explain_table(void **state)
{
        const Inventory inventory = RECORD(16, 0, 2, 8, 2, 1.0);
        static const struct {
                InventoryFit fit;
                uint64_t used, amount;
                const char *text;
        } cases[] = {
                { INVENTORY_FITS, 0, 2, "2 fits" },
                { INVENTORY_E_ZERO, 0, 0, "the amount must be at least 1" },
                { INVENTORY_E_MIN_UNIT, 0, 1, "1 is less than min_unit 2" },
                { INVENTORY_E_MAX_UNIT, 0, 9, "9 is more than max_unit 8" },
                { INVENTORY_E_STEP_SIZE, 0, 5, "5 is not a multiple of step_size 2" },
                { INVENTORY_E_CAPACITY, 13, 4, "4 requested, but 3 of 16 are free" },
                { INVENTORY_E_CAPACITY, 40, 4, "4 requested, but 0 of 16 are free" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[128], small[8];

                assert_string_equal(inventory_fit_explain(cases[i].fit, &inventory, cases[i].used,
                                                          cases[i].amount, text, sizeof(text)),
                                    cases[i].text);
                inventory_fit_explain(cases[i].fit, &inventory, cases[i].used, cases[i].amount,
                                      small, sizeof(small));
                assert_memory_equal(small, text, strnlen(text, sizeof(small) - 1));
                assert_true(strlen(small) < sizeof(small));
        }
}

static void test_equal_table(void **state)
{
        const Inventory record = RECORD(16, 1, 2, 8, 2, 1.1);
        const struct {
                Inventory other;
                bool equal;
        } cases[] = {
                { RECORD(16, 1, 2, 8, 2, 1.1), true },
                { RECORD(16, 1, 2, 8, 2, 1.10000002384), true }, /* as read back from a 32-bit
                                                                  * column */
                { RECORD(16, 1, 2, 8, 2, 1.10001), false },
                { RECORD(17, 1, 2, 8, 2, 1.1), false },
                { RECORD(16, 0, 2, 8, 2, 1.1), false },
                { RECORD(16, 1, 1, 8, 2, 1.1), false },
                { RECORD(16, 1, 2, 9, 2, 1.1), false },
                { RECORD(16, 1, 2, 8, 1, 1.1), false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (inventory_equal(&record, &cases[i].other) != cases[i].equal)
                        fail_msg("case %zu", i);
}

static void test_class_names(void **state)
{
        char longest[RESOURCE_CLASS_MAX + 2];
        static const struct {
                const char *name;
                bool valid, custom;
        } cases[] = {
                { "VCPU", true, false },       { "CUSTOM_A100_40GB", true, true },
                { "CUSTOM_", true, true },     { "_", true, false },
                { "0", true, false },          { "", false, false },
                { "vcpu", false, false },      { "custom_x", false, false },
                { "VCPU ", false, false },     { "VCPU\n", false, false },
                { "CUSTOM_A-B", false, true }, { "CUSTOM_\xc3\x89", false, true },
                { "XCUSTOM_", true, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                if (resource_class_valid(cases[i].name) != cases[i].valid ||
                    resource_class_is_custom(cases[i].name) != cases[i].custom)
                        fail_msg("\"%s\"", cases[i].name);
        }

        memset(longest, 'A', sizeof(longest));
        longest[RESOURCE_CLASS_MAX + 1] = '\0';
        assert_false(resource_class_valid(longest));
        longest[RESOURCE_CLASS_MAX] = '\0';
        assert_true(resource_class_valid(longest));
}

TEST_MAIN(test_valid_table, test_capacity_table, test_fit_table, test_explain_table,
          test_equal_table, test_class_names)
