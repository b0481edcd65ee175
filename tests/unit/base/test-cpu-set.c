/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu-set.h"
#include "tests/unit/test.h"

static void test_parse_table(void **state)
{
        static const struct {
                const char *text;
                const char *formatted; /* NULL: rejected */
                unsigned count;
        } cases[] = {
                { "", "", 0 },
                { " , ,", "", 0 },
                { "0", "0", 1 },
                { "0-3,8,10-11", "0-3,8,10-11", 7 },
                { "3,2,1,0", "0-3", 4 },
                { " 4 - 12 , ^8 , 15 ", "4-7,9-12,15", 9 },
                { "^8,4-12", "4-7,9-12", 8 },
                { "^3", "", 0 },
                { "63-65", "63-65", 3 },
                { "16383", "16383", 1 },
                { "0-16383", "0-16383", 16384 },
                { "16384", NULL, 0 },
                { "0-99999999999999999999", NULL, 0 },
                { "3-1", NULL, 0 },
                { "-1", NULL, 0 },
                { "1-", NULL, 0 },
                { "0-9,^2-4", "0-1,5-9", 7 },
                { "^1-2", "", 0 },
                { "0-9,^4-2", NULL, 0 },
                { "^", NULL, 0 },
                { "1 2", NULL, 0 },
                { "0x3", NULL, 0 },
                { "a", NULL, 0 },
                { "1;rm", NULL, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(cpu_set_done) CpuSet set = CPU_SET_INIT;
                _cleanup_free_ char *text = NULL;
                Error error = ERROR_NULL;
                int r;

                assert_int_equal(cpu_set_add(&set, 77), 0);
                r = cpu_set_parse(cases[i].text, &set, &error);
                if (r != (cases[i].formatted ? 0 : -EINVAL))
                        fail_msg("\"%s\": %d (%s)", cases[i].text, r, error.text);
                text = cpu_set_format(&set);
                assert_string_equal(text, cases[i].formatted ? cases[i].formatted : "77");
                if (r == 0)
                        assert_int_equal(cpu_set_count(&set), cases[i].count);
                else
                        assert_true(error.text[0] != '\0');
        }
}

static void test_members(void **state)
{
        _cleanup_(cpu_set_done) CpuSet a = CPU_SET_INIT, b = CPU_SET_INIT;

        assert_false(cpu_set_contains(&a, 0));
        assert_int_equal(cpu_set_add(&a, CPU_SET_MAX), -ERANGE);
        assert_int_equal(cpu_set_add(&a, 3), 0);
        assert_int_equal(cpu_set_copy(&b, &a), 0);
        assert_true(cpu_set_equal(&a, &b));
        assert_int_equal(cpu_set_add(&a, 200), 0);
        assert_false(cpu_set_equal(&a, &b));
        cpu_set_remove(&a, 200);
        cpu_set_remove(&a, 9999);
        assert_true(cpu_set_equal(&a, &b)); /* sets with different numbers of allocated words */
        assert_true(cpu_set_contains(&a, 3));
        assert_false(cpu_set_contains(&a, 200));
        assert_int_equal(cpu_set_count(&a), 1);
        cpu_set_remove(&b, 3);
        assert_int_equal(cpu_set_copy(&a, &b), 0);
        assert_int_equal(cpu_set_count(&a), 0);
}

/* Returns the CPU time that the parser needs for many repetitions of the item; the best of some
 * passes. */
static uint64_t measure(const char *item)
{
        size_t length = strlen(item), n = 10000;
        _cleanup_free_ char *text = calloc(n, length + 1);
        uint64_t best = UINT64_MAX;

        assert_non_null(text);
        for (size_t i = 0; i < n; i++)
                memcpy(text + i * length, item, length);
        for (int pass = 0; pass < 3; pass++) {
                _cleanup_(cpu_set_done) CpuSet set = CPU_SET_INIT;
                uint64_t start = clock_usec(CLOCK_PROCESS_CPUTIME_ID);

                assert_int_equal(cpu_set_parse(text, &set, NULL), 0);
                best = MIN(best, clock_usec(CLOCK_PROCESS_CPUTIME_ID) - start);
        }
        return best;
}

/* An item costs one step for each word of the set. One step for each CPU would take more than a
 * thousand times as long as an item of one CPU. */
static void test_cost_of_ranges(void **state)
{
        uint64_t single = measure("16383,"), range = measure("0-16383,");

        if (range > single * 100)
                fail_msg("%" PRIu64 " usec for CPUs, %" PRIu64 " usec for ranges", single, range);
}

TEST_MAIN(test_parse_table, test_members, test_cost_of_ranges)
