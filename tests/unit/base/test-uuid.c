/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/uuid.h"

#include "tests/unit/test.h"

#define DNS "6ba7b810-9dad-11d1-80b4-00c04fd430c8" /* the DNS name space of RFC 9562 */

static void test_parse_table(void **state)
{
        static const struct {
                const char *text;
                const char *canonical; /* NULL: rejected */
        } cases[] = {
                { DNS, DNS },
                { "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", DNS },
                { "6bA7b810-9dad-11D1-80b4-00C04fd430c8", DNS },
                { "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000" },
                { "ffffffff-ffff-ffff-ffff-ffffffffffff", "ffffffff-ffff-ffff-ffff-ffffffffffff" },
                { NULL, NULL },
                { "", NULL },
                { "6ba7b810-9dad-11d1-80b4-00c04fd430c", NULL },
                { "6ba7b810-9dad-11d1-80b4-00c04fd430c8a", NULL },
                { "6ba7b810-9dad-11d1-80b4-00c04fd430c8\n", NULL },
                { " 6ba7b810-9dad-11d1-80b4-00c04fd430c8", NULL },
                { " ba7b810-9dad-11d1-80b4-00c04fd430c8", NULL },
                { "6ba7b8109dad11d180b400c04fd430c8", NULL },
                { "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", NULL },
                { "urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8", NULL },
                { "6ba7b8109-dad-11d1-80b4-00c04fd430c8", NULL },
                { "6ba7b810-9dad-11d1-80b4+00c04fd430c8", NULL },
                { "6ba7b810-9dad-11d1-80b4-00c04fd430cg", NULL },
                { "0x6ba7b8-9dad-11d1-80b4-00c04fd430c8", NULL },
                { "-ba7b810-9dad-11d1-80b4-00c04fd430c8", NULL },
                { "6ba7b810-9dad-11d1-80b4-00c04fd430\xc3\xa9", NULL },
                { "------------------------------------", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Uuid uuid = { "untouched" };
                int r = uuid_from_text(cases[i].text, &uuid);

                if (r != (cases[i].canonical ? 0 : -EINVAL))
                        fail_msg("\"%s\": %d", cases[i].text, r);
                assert_string_equal(uuid.text,
                                    cases[i].canonical ? cases[i].canonical : "untouched");
        }
}

/* Expected values are from another implementation (Python's uuid.uuid5()). */
static void test_child_table(void **state)
{
        static const struct {
                const char *parent, *name, *child;
        } cases[] = {
                { DNS, "www.example.com", "2ed6657d-e927-568b-95e1-2665a8aea6a2" },
                { DNS, "host_pci_0000_41_00_0", "12e776d7-2326-5159-aeaf-0d5363fddaf0" },
                { DNS, "", "4ebd0208-8328-5d69-8c44-ec50939c0967" },
                { DNS, "\xc3\xa9", "ebfe0af8-3997-5ade-b634-ba92cf69f557" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Uuid parent, child;

                assert_int_equal(uuid_from_text(cases[i].parent, &parent), 0);
                child = uuid_make_child(&parent, cases[i].name);
                assert_string_equal(child.text, cases[i].child);
        }
}

static void test_random(void **state)
{
        Uuid a = uuid_make_random(), b = uuid_make_random(), parsed;

        assert_false(uuid_equal(&a, &b));
        assert_int_equal(uuid_from_text(a.text, &parsed), 0);
        assert_true(uuid_equal(&a, &parsed));
        assert_int_equal(a.text[14], '4');
}

static void test_bytes(void **state)
{
        static const unsigned char bytes[16] = { 0xab, 1, 2,  3,  4,  5,  6,  7,
                                                 8,    9, 10, 11, 12, 13, 14, 0xff };
        const Uuid uuid = uuid_from_bytes(bytes);

        assert_string_equal(uuid.text, "ab010203-0405-0607-0809-0a0b0c0d0eff");
}

static void test_order(void **state)
{
        static const Uuid none = UUID_NULL;
        Uuid low, high;

        assert_int_equal(uuid_from_text("00000000-0000-0000-0000-00000000000a", &low), 0);
        assert_int_equal(uuid_from_text("A0000000-0000-0000-0000-000000000000", &high), 0);
        assert_true(uuid_order(&low, &high) < 0);
        assert_true(uuid_order(&high, &low) > 0);
        assert_int_equal(uuid_order(&low, &low), 0);
        assert_true(uuid_order(&none, &low) < 0);
        assert_true(uuid_empty(&none));
        assert_false(uuid_empty(&low));
        assert_false(uuid_equal(&none, &low));
}

TEST_MAIN(test_parse_table, test_child_table, test_random, test_bytes, test_order)
