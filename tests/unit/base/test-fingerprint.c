/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/fingerprint.h"

#include "tests/unit/test.h"

/* The expected hashes are those of libxxhash. The i-th byte of a text is 7 * i. */
static void test_hashes(void **state)
{
        static const struct {
                size_t n;
                uint64_t hash;
        } cases[] = {
                { 0, UINT64_C(0xef46db3751d8e999) },  { 1, UINT64_C(0xe934a84adb052768) },
                { 3, UINT64_C(0x9ff70a635a6209ab) },  { 4, UINT64_C(0xae5acdc00a55ac41) },
                { 7, UINT64_C(0xd734a6b26f3da63e) },  { 8, UINT64_C(0x87116b3365b924eb) },
                { 31, UINT64_C(0x0f187c62b1e722b7) }, { 32, UINT64_C(0x91b0cb0931a8c629) },
                { 33, UINT64_C(0x931b043cf8d65b94) }, { 63, UINT64_C(0x219110bf13e2fa26) },
                { 64, UINT64_C(0xbf3052e3445775d0) }, { 1000, UINT64_C(0x25275608a9cfc168) },
        };
        uint8_t data[1000];

        for (size_t i = 0; i < sizeof(data); i++)
                data[i] = (uint8_t)(7 * i);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Fingerprint fingerprint = fingerprint_make(data, cases[i].n);

                assert_int_equal(fingerprint.size, cases[i].n);
                assert_true(fingerprint.hash == cases[i].hash);
        }
}

static void test_matches(void **state)
{
        static const Fingerprint none;
        Fingerprint fingerprint = fingerprint_make("abc", 3);

        assert_true(fingerprint_matches(&fingerprint, "abc", 3));
        assert_false(fingerprint_matches(&fingerprint, "abd", 3));
        assert_false(fingerprint_matches(&fingerprint, "abc", 2));
        /* A fingerprint of nothing equals no text, not even the empty one. */
        assert_false(fingerprint_matches(&none, "", 0));
        assert_false(fingerprint_matches(&none, NULL, 0));
}

TEST_MAIN(test_hashes, test_matches)
