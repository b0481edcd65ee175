/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counts the vGPUs of cards. One character describes each function. Type 0 has 2 GiB and type 1 has
 * 48 GiB, unless a case says otherwise. The characters are those of add_function(). */
#include "base/vgpu-card.h"

#include "tests/unit/test.h"

#define GIB(n) ((n)*UINT64_C(1024))
#define BOTH   UINT64_C(3)

static char addresses[64][VGPU_ADDRESS_SIZE];

/* Adds a function in this state: free ('.' lists each type, '-' none, '2' type 0 only), idle ('a'
 * type 0, 'b' type 1), taken ('A', 'B', and 't' without a type), or claimed for a type that is not
 * set yet
 * ('x' type 0, 'y' type 1), or unread ('?'). */
static void add_function(VgpuCard *card, char state)
{
        VgpuFunction *function = &card->functions[card->n_functions];
        bool has_0 = state == 'a' || state == 'A', has_1 = state == 'b' || state == 'B';

        snprintf(addresses[card->n_functions], VGPU_ADDRESS_SIZE, "0000:c1:%02x.%u",
                 (unsigned)(1 + card->n_functions / 8) & 31, (unsigned)card->n_functions & 7);
        *function = (VgpuFunction){
                .address = addresses[card->n_functions],
                .name = "vf",
                .type = has_0   ? 0
                        : has_1 ? 1
                                : VGPU_TYPE_NONE,
                .allowed = BOTH,
                .creatable = state == '.'   ? BOTH
                             : state == '2' ? UINT64_C(1)
                                            : 0,
                .is_taken = strchr("ABxyt", state) != NULL,
                .claimed_type = state == 'x'   ? 0
                                : state == 'y' ? 1
                                               : VGPU_TYPE_NONE,
                .former_type = VGPU_TYPE_NONE,
                .is_unread = state == '?',
        };
        if (strchr("xy", state))
                function->creatable = BOTH;
        card->n_functions++;
}

static void card_make(VgpuCard *card, const char *functions, uint64_t size_mib)
{
        int index;

        *card = (VgpuCard){ .address = "0000:c1:00.0", .size_mib = size_mib };
        assert_int_equal(vgpu_card_ensure_type(card, "nvidia-1428", &index), 0);
        assert_int_equal(vgpu_card_ensure_type(card, "nvidia-1436", &index), 0);
        assert_int_equal(index, 1);
        card->types[0].framebuffer_mib = GIB(2);
        card->types[1].framebuffer_mib = GIB(48);
        card->functions = calloc(64, sizeof(VgpuFunction));
        assert_non_null(card->functions);
        for (const char *c = functions; *c; c++)
                add_function(card, *c);
}

static void check_count(const char *about, const VgpuCard *card, int type, const char *expected)
{
        const VgpuCount count = vgpu_card_count(card, type);
        char text[64];

        snprintf(text, sizeof(text), "%d/%d/%d/%d", (int)count.n_used, (int)count.n_idle,
                 (int)count.n_creatable, (int)count.total);
        if (strcmp(text, expected) != 0)
                fail_msg("%s: type %d: %s instead of %s", about, type, text, expected);
}

static void test_counts(void **state)
{
        static const struct {
                const char *about, *functions;
                uint64_t size_gib;
                const char *small, *large; /* used/idle/creatable/total of type 0 and type 1 */
        } cases[] = {
                { "an empty card of 48 GiB with 8 functions", "........", 48, "0/0/8/8",
                  "0/0/1/1" },
                { "fewer functions than framebuffer", "..", 48, "0/0/2/2", "0/0/1/1" },
                { "two of type 0 exist", "aA2222", 48, "1/1/4/6", "0/0/0/1" },
                { "the card is full", "B-------", 48, "0/0/0/8", "1/0/0/1" },
                { "a claim that is not set yet uses framebuffer and function", "x.......", 48,
                  "1/0/7/8", "0/0/0/1" },
                { "a claim of the whole card excludes the other type", "y.......", 48, "0/0/0/8",
                  "1/0/0/1" },
                { "a claim of one type excludes another until the hardware shows it", "x...", 100,
                  "1/0/3/4", "0/0/0/2" },
                { "heterogeneous mode: two types are set", "xAB.", 148, "2/0/1/4", "1/0/1/3" },
                { "heterogeneous mode: another type is listed", "yA..", 148, "1/0/2/4", "1/0/2/3" },
                { "a function without a type that a guest has", "t.", 48, "0/0/1/2", "0/0/1/1" },
                { "the size is unknown: one more is certain", "....", 0, "0/0/1/1", "0/0/1/1" },
                { "the size is unknown, and a claim is not set yet", "x...", 0, "1/0/0/1",
                  "0/0/0/0" },
                { "the size is unknown, and three exist", "AAa2", 0, "2/1/1/4", "0/0/0/0" },
                { "the size is a lower bound: one more is certain", "A222", 2, "1/0/1/2",
                  "0/0/0/0" },
                { "the size is a lower bound, and a claim is not set yet", "x222", 2, "1/0/0/1",
                  "0/0/0/0" },
                { "the hardware lists nothing", "A---", 48, "1/0/0/4", "0/0/0/1" },
                { "a function whose types are unknown", "A2?", 48, "1/0/0/3", "0/0/0/1" },
                { "no function", "", 48, "0/0/0/0", "0/0/0/0" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(vgpu_card_done) VgpuCard card;

                card_make(&card, cases[i].functions, GIB(cases[i].size_gib));
                check_count(cases[i].about, &card, 0, cases[i].small);
                check_count(cases[i].about, &card, 1, cases[i].large);
        }
}

static void test_unknown_framebuffer(void **state)
{
        _cleanup_(vgpu_card_done) VgpuCard card;

        card_make(&card, "....", GIB(48));
        card.types[0].framebuffer_mib = 0;
        check_count("unknown", &card, 0, "0/0/1/1");
        card.types[0].limit = 3;
        check_count("the operator's number", &card, 0, "0/0/3/3");
        vgpu_card_take(&card, addresses[0], "nvidia-1428");
        check_count("a claim of the operator's number", &card, 0, "1/0/2/3");
        check_count("the framebuffer in use is unknown", &card, 1, "0/0/0/1");
}

static void test_limit(void **state)
{
        _cleanup_(vgpu_card_done) VgpuCard card;

        card_make(&card, "Aa222222", GIB(48));
        card.types[0].limit = 4;
        check_count("a limit above the existing ones", &card, 0, "1/1/2/4");
        card.types[0].limit = 1;
        check_count("a limit below the existing ones", &card, 0, "1/1/0/2");
}

static void test_prepared_card_offers_no_idle_function(void **state)
{
        _cleanup_(vgpu_card_done) VgpuCard card;

        card_make(&card, "aA22", GIB(8));
        card.is_prepared = true;
        check_count("idle functions are cleared first", &card, 0, "1/0/2/4");
        assert_ptr_equal(vgpu_card_choose(&card, 0), &card.functions[2]);
}

static void test_choose(void **state)
{
        static const struct {
                const char *functions;
                int type, chosen; /* -1: none */
        } cases[] = {
                { "..", 0, 0 },  { "t.", 0, 1 },  { "2a", 0, 1 }, { "A-", 0, -1 }, { "B--", 1, -1 },
                { "-..", 1, 1 }, { "x.", 1, -1 }, { "b.", 1, 0 }, { "", 0, -1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(vgpu_card_done) VgpuCard card;
                const VgpuFunction *chosen;

                card_make(&card, cases[i].functions, GIB(48));
                chosen = vgpu_card_choose(&card, cases[i].type);
                if ((chosen ? (int)(chosen - card.functions) : -1) != cases[i].chosen)
                        fail_msg("\"%s\", type %d", cases[i].functions, cases[i].type);
        }
}

/* Gives vGPUs until none is left, and compares the number with the count at the start. */
static void test_choice_agrees_with_count(void **state)
{
        static const char *const all[] = { "........", "aA222222", "x.......",
                                           "xAB.",     "B---",     "t..t..-." };

        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                for (int type = 0; type < 2; type++) {
                        _cleanup_(vgpu_card_done) VgpuCard card;
                        VgpuFunction *function;
                        VgpuCount count;
                        uint64_t n = 0;

                        card_make(&card, all[i], GIB(148));
                        count = vgpu_card_count(&card, type);
                        while ((function = vgpu_card_choose(&card, type))) {
                                vgpu_card_take(&card, function->address, card.types[type].id);
                                n++;
                        }
                        assert_int_equal(n, count.n_idle + count.n_creatable);
                }
}

static void test_copy_and_types(void **state)
{
        _cleanup_(vgpu_card_done) VgpuCard card, copy;
        int index;

        card_make(&card, "xA", GIB(48));
        assert_int_equal(vgpu_card_copy(&card, &copy), 0);
        vgpu_card_take(&copy, addresses[1], "");
        vgpu_card_take(&copy, "0000:ff:00.0", "nvidia-1428");
        assert_int_equal(copy.functions[1].claimed_type, VGPU_TYPE_NONE);
        check_count("copy", &copy, 0, "2/0/0/2");
        assert_int_equal(vgpu_card_find_type(&copy, "nvidia-1436"), 1);
        assert_int_equal(vgpu_card_find_type(&copy, "nvidia-9"), VGPU_TYPE_NONE);
        for (int i = 2; i < VGPU_TYPES_MAX; i++) {
                char id[32];

                snprintf(id, sizeof(id), "t-%d", i);
                assert_int_equal(vgpu_card_ensure_type(&copy, id, &index), 0);
                assert_int_equal(index, i);
        }
        assert_int_equal(vgpu_card_ensure_type(&copy, "one more", &index), 0);
        assert_int_equal(index, VGPU_TYPE_NONE);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_counts),
                cmocka_unit_test(test_unknown_framebuffer),
                cmocka_unit_test(test_limit),
                cmocka_unit_test(test_prepared_card_offers_no_idle_function),
                cmocka_unit_test(test_choose),
                cmocka_unit_test(test_choice_agrees_with_count),
                cmocka_unit_test(test_copy_and_types),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
