/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/digest.h"

#include "tests/unit/test.h"

/* The expected hashes are those of Python's hashlib.blake2b. The i-th byte of a text is 7 * i. */
static void test_hashes(void **state)
{
        static const struct {
                size_t n;
                const char *text;
        } cases[] = {
                { 0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8" },
                { 1, "03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314" },
                { 3, "b316f3683ac87007461037a8ff6547de35618800044bb3a4e98b3560c92c3794" },
                { 127, "4ff62e7c4c43fe101a078479c48836be4907d9d498dcc577ca89d694b2c11f9b" },
                { 128, "14696d2a98d9f8a280da8b132b1045b345e1033759c6b02fcc4ee885c8ae7c37" },
                { 129, "3934215260b1039be9d9d2b073b059bcd50120c327a22af93eb4d98cf821c14c" },
                { 255, "a3bb8b4fa098078d32bb5a89e905e237862fd83e99141ca7d8a073bb268ba2a0" },
                { 256, "3d0cb2693dfbac42af5a6cc960953fea8714aa39c4bcd054ef61d6b5e98ade4a" },
                { 257, "63cb41934eb22ceb359755501ea299abcd784306baf8845ad6b97ff0828b7cfe" },
                { 1000, "6ac4bea923678eb024090384d6e767b5870f849057dc19b172d8d9f2df30bf8e" },
        };
        char text[DIGEST_TEXT_MAX];
        uint8_t data[1000];

        for (size_t i = 0; i < sizeof(data); i++)
                data[i] = (uint8_t)(7 * i);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Digest digest = digest_make(data, cases[i].n);

                assert_int_equal(digest.size, cases[i].n);
                assert_string_equal(digest_to_text(&digest, text), cases[i].text);
        }
}

TEST_MAIN(test_hashes)
