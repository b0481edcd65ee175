/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/name-holder.h"

#include "base/json.h"
#include "tests/unit/test.h"

#define HOLDER "99999999-9999-9999-9999-999999999999"

static NameHolder make_holder(bool root, uint64_t modified_sec)
{
        PlacementProvider provider = { .name = NULL };

        assert_int_equal(uuid_from_text(HOLDER, &provider.uuid), 0);
        if (!root)
                provider.parent = uuid_make_random();
        return name_holder_from(&provider, modified_sec);
}

static void test_count(void **state)
{
        static const struct {
                const char *body;
                int r;
                size_t n;
        } cases[] = {
                { "{\"allocations\":{}}", 0, 0 },
                { "{\"allocations\":{\"a\":{},\"b\":{}}}", 0, 2 },
                { "{\"allocations\":[]}", -EBADMSG, 0 },
                { "{}", -EBADMSG, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *body = json_loads(cases[i].body, 0, NULL);
                NameHolder holder = make_holder(true, 0);
                Error error = ERROR_NULL;

                assert_int_equal(name_holder_count(&holder, body, &error), cases[i].r);
                assert_int_equal(error.code, -cases[i].r);
                assert_int_equal(strstr(error.text, "\"allocations\" is ") != NULL, cases[i].r < 0);
                assert_int_equal(holder.counted, cases[i].r == 0);
                assert_int_equal(holder.n_consumers, cases[i].n);
        }
}

static void test_words(void **state)
{
        static const struct {
                bool root, wants_root, counted;
                size_t n_consumers;
                uint64_t modified_sec;
                const char *words, *more, *last;
        } cases[] = {
                { true, true, true, 1, 1736164800, HOLDER " in Placement",
                  "(1 consumer has allocations of it, last changed 2025-01-06 12:00 UTC)",
                  "identity adopt --force" },
                { true, true, true, 12, 0, "(12 consumers have allocations of it).",
                  "Another running host", "rename one of them" },
                { true, true, true, 0, 0, "(it has no allocations)", "identity adopt --force",
                  "If not, delete it" },
                { true, true, false, 0, 0, "(its consumers are unknown", "Another running host",
                  "" },
                { true, false, true, 0, 0, "of another tree", "Delete that provider", "check" },
                { false, true, true, 0, 0, "of another tree", "Delete that provider", "check" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                NameHolder holder = make_holder(cases[i].root, cases[i].modified_sec);
                Error error = ERROR_NULL;

                holder.counted = cases[i].counted;
                holder.n_consumers = cases[i].n_consumers;
                assert_int_equal(name_holder_explain(&holder, cases[i].wants_root, &error),
                                 -EEXIST);
                if (!strstr(error.text, cases[i].words) || !strstr(error.text, cases[i].more) ||
                    !strstr(error.text, cases[i].last))
                        fail_msg("case %zu: %s", i, error.text);
        }
}

TEST_MAIN(test_count, test_words)
