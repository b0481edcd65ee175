/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/device-identity.h"

#include <string.h>

#include "base/macros.h"
#include "tests/unit/test.h"

static void test_make(void **state)
{
        static const char long_serial[] =
                "1234567890123456789012345678901234567890123456789012345678901234567890";
        static const struct {
                uint32_t vendor, product;
                const char *serial, *expected;
        } cases[] = {
                { 0x10de, 0x20b0, "1322 A", "10de:20b0 1322 A" },
                { 0x10de, 0x20b0, "", "10de:20b0" },
                { 0x10de, 0x20b0, NULL, "10de:20b0" },
                { 0, 0x20b0, "1", "" },
                { 0xffff, 0xffff, "1", "" },
                { 0x8086, 0xf, long_serial,
                  "8086:000f 123456789012345678901234567890123456789012345678901234567890123456789" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[DEVICE_IDENTITY_SIZE];

                device_identity_make(cases[i].vendor, cases[i].product, cases[i].serial, text);
                assert_string_equal(text, cases[i].expected);
        }
}

static void test_unknown_parts_are_no_difference(void **state)
{
        static const struct {
                const char *a, *b;
                bool differs, completes; /* a completes b */
        } cases[] = {
                { "10de:20b0", "10de:20b0", false, false },
                { "10de:20b0", "144d:a808", true, false },
                { "10de:20b0", "10de:20b1", true, false },
                { "10de:20b0 1", "10de:20b0 2", true, false },
                { "10de:20b0 12", "10de:20b0 1", true, false },
                { "10de:20b0 1", "10de:20b1", true, false },
                { "10de:20b0 1", "10de:20b0 1", false, false },
                { "10de:20b0 1", "10de:20b0", false, true },
                { "10de:20b0 1", "", false, true },
                { "10de:20b0", "", false, true },
                { "", "", false, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(device_identity_differs(cases[i].a, cases[i].b), cases[i].differs);
                assert_int_equal(device_identity_differs(cases[i].b, cases[i].a), cases[i].differs);
                assert_int_equal(device_identity_completes(cases[i].b, cases[i].a),
                                 cases[i].completes);
                assert_false(device_identity_completes(cases[i].a, cases[i].b));
        }
}

TEST_MAIN(test_make, test_unknown_parts_are_no_difference)
