/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/resources.h"
#include "tests/unit/test.h"

static void test_parse_table(void **state)
{
        static const struct {
                const char *text;
                int r;
                const char *formatted; /* on success */
        } cases[] = {
                { "VCPU=2", 0, "VCPU=2" },
                { "VCPU=2,VGPU=1", 0, "VCPU=2,VGPU=1" },
                { "VGPU:1,CUSTOM_X=2147483647", 0, "CUSTOM_X=2147483647,VGPU=1" },
                { "", -EINVAL, NULL },
                { "VCPU", -EINVAL, NULL },
                { "VCPU=", -EINVAL, NULL },
                { "VCPU=0", -EINVAL, NULL },
                { "VCPU=-1", -EINVAL, NULL },
                { "VCPU=+1", -EINVAL, NULL },
                { "VCPU= 1", -EINVAL, NULL },
                { "VCPU=1.5", -EINVAL, NULL },
                { "VCPU=2147483648", -EINVAL, NULL },
                { "VCPU=99999999999999999999999", -EINVAL, NULL },
                { "VCPU=1,VCPU=1", -EINVAL, NULL },
                { "VCPU=1,", -EINVAL, NULL },
                { "vcpu=1", -EINVAL, NULL },
                { "=1", -EINVAL, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(resources_done) Resources resources = RESOURCES_INIT;
                Error error = ERROR_NULL;
                int r = resources_parse(cases[i].text, &resources, &error);

                if (r != cases[i].r)
                        fail_msg("\"%s\": %d, expected %d", cases[i].text, r, cases[i].r);
                if (r < 0) {
                        assert_true(error.text[0] != '\0');
                        assert_int_equal(resources.n_items, 0);
                } else {
                        _cleanup_free_ char *text = resources_format(&resources);

                        assert_string_equal(text, cases[i].formatted);
                }
        }
}

static void test_amounts(void **state)
{
        _cleanup_(resources_done) Resources a = RESOURCES_INIT, b = RESOURCES_INIT;

        assert_int_equal(resources_add(&a, "VCPU", 2), 0);
        assert_int_equal(resources_add(&a, "VCPU", 3), 0);
        assert_int_equal(resources_get(&a, "VCPU"), 5);
        assert_int_equal(resources_add(&a, "VCPU", UINT64_MAX), -EOVERFLOW);
        assert_int_equal(resources_get(&a, "VCPU"), 5);
        assert_int_equal(resources_copy(&b, &a), 0);
        assert_true(resources_equal(&a, &b));
        assert_int_equal(resources_set(&a, "VCPU", 0), 0);
        assert_int_equal(a.n_items, 0);
        assert_false(resources_equal(&a, &b));
}

TEST_MAIN(test_parse_table, test_amounts)
