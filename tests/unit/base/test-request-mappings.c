/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/request-mappings.h"

#include "tests/unit/test.h"

static const Uuid a = { "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa" };
static const Uuid b = { "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb" };

static void test_order(void **state)
{
        _cleanup_(request_mappings_done) RequestMappings mappings = REQUEST_MAPPINGS_INIT;
        static const struct {
                const char *suffix;
                const Uuid *provider;
        } added[] = { { "2", &b }, { "", &b }, { "10", &a }, { "", &a }, { "2", &b } },
          expected[] = { { "", &a }, { "", &b }, { "10", &a }, { "2", &b } };

        for (size_t i = 0; i < ARRAY_SIZE(added); i++)
                assert_int_equal(
                        request_mappings_add(&mappings, added[i].suffix, added[i].provider), 0);
        assert_int_equal(mappings.n_items, ARRAY_SIZE(expected));
        for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
                assert_string_equal(mappings.items[i].suffix, expected[i].suffix);
                assert_string_equal(mappings.items[i].provider.text, expected[i].provider->text);
        }
        assert_true(request_mappings_contain(&mappings, "", &a));
        assert_true(request_mappings_contain(&mappings, "2", &b));
        assert_false(request_mappings_contain(&mappings, "2", &a));
}

static void test_many(void **state)
{
        _cleanup_(request_mappings_done) RequestMappings mappings = REQUEST_MAPPINGS_INIT;
        char suffix[8];

        for (int i = 0; i < 64; i++) {
                snprintf(suffix, sizeof(suffix), "%d", i * 37 % 64);
                assert_int_equal(request_mappings_add(&mappings, suffix, i % 2 ? &a : &b), 0);
        }
        assert_int_equal(mappings.n_items, 64);
        for (size_t i = 1; i < mappings.n_items; i++)
                assert_true(strcmp(mappings.items[i - 1].suffix, mappings.items[i].suffix) < 0);
}

TEST_MAIN(test_order, test_many)
