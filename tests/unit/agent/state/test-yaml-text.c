/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/state/yaml-text.h"

#include "tests/unit/test.h"

static void test_values(void **state)
{
        static const char text[] = "a: {b: one, c: [two], b: three}\nd: \"nul \\0 here\"\n";
        yaml_document_t document;
        yaml_node_t *root, *a;

        assert_int_equal(yaml_text_parse(text, strlen(text), &document, NULL), 0);
        root = yaml_document_get_root_node(&document);
        a = yaml_text_member(&document, root, "a");
        assert_string_equal(yaml_text_scalar(yaml_text_member(&document, a, "b")), "three");
        assert_null(yaml_text_scalar(a));
        assert_null(yaml_text_scalar(yaml_text_member(&document, a, "c")));
        assert_null(yaml_text_scalar(yaml_text_member(&document, root, "d")));
        assert_null(yaml_text_member(&document, root, "e"));
        assert_null(yaml_text_member(&document, NULL, "e"));
        assert_null(yaml_text_member(&document, yaml_text_member(&document, a, "b"), "e"));
        yaml_document_delete(&document);
}

static void test_refusals(void **state)
{
        _cleanup_free_ char *large = calloc(1, YAML_TEXT_MAX_BYTES + 1);
        char deep[300], *dashes = large;
        static const struct {
                const char *text, *words;
        } cases[] = {
                { "a: [1", "not YAML: line" },
                { "a: 1\nb: 2: 3\n", "not YAML: line" },
                { "\xff\xfe\xfd", "not YAML" },
        };
        yaml_document_t document;
        Error error = ERROR_NULL;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(
                        yaml_text_parse(cases[i].text, strlen(cases[i].text), &document, &error),
                        -EINVAL);
                assert_non_null(strstr(error.text, cases[i].words));
        }
        memset(deep, '[', sizeof(deep));
        assert_int_equal(yaml_text_parse(deep, sizeof(deep), &document, &error), -EINVAL);
        assert_non_null(strstr(error.text, "deep"));
        memset(dashes, '-', YAML_TEXT_MAX_BYTES);
        assert_int_equal(yaml_text_parse(dashes, YAML_TEXT_MAX_BYTES, &document, &error), -EINVAL);
        assert_non_null(strstr(error.text, "deep"));
        assert_int_equal(yaml_text_parse(large, YAML_TEXT_MAX_BYTES + 1, &document, &error),
                         -EINVAL);
        assert_non_null(strstr(error.text, "larger"));
}

TEST_MAIN(test_values, test_refusals)
