/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/mappings.h"

#include "ctl/verbs/request.h"
#include "tests/fixtures/ctl-capture.h"

#define GPU  "12345678-1234-1234-1234-123456789abc"
#define ROOT "12345678-1234-1234-1234-123456789abd"

static bool maps(const CtlMappings *mappings, const char *suffix, const char *provider)
{
        Uuid uuid;

        assert_int_equal(uuid_from_text(provider, &uuid), 0);
        return request_mappings_contain(&mappings->known, suffix, &uuid);
}

static void test_wrong_texts(void **state)
{
        static const char *const wrong[] = { "", "gpu", GPU, "gpu=", "gpu:x", "=" };
        _cleanup_(ctl_mappings_done) CtlMappings mappings = { 0 };
        Error error = ERROR_NULL;

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                assert_int_equal(ctl_mappings_add(&mappings, wrong[i], &error), -EINVAL);
                assert_contains(error.text, "is not a mapping");
        }
}

static void test_groups(void **state)
{
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        static const struct {
                const char *text, *error;
        } cases[] = {
                { "gpu=" GPU, NULL },
                { "gpu=host_pci_1", NULL },
                { "=" ROOT, "--mapping: no group \"\" is asked for" },
                { "=host", "--mapping: no group \"\" is asked for" },
                { "g=host", "--mapping: no group \"g\" is asked for" },
                { "gpu2=host", "--mapping: no group \"gpu2\" is asked for" },
        };

        assert_int_equal(ctl_request_add_group(&request, "gpu:VGPU=1", NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(ctl_mappings_done) CtlMappings mappings = { 0 };
                Error error = ERROR_NULL;

                assert_int_equal(ctl_mappings_add(&mappings, cases[i].text, NULL), 0);
                assert_int_equal(ctl_mappings_check(&mappings, &request, &error),
                                 cases[i].error ? -EINVAL : 0);
                if (cases[i].error)
                        assert_string_equal(error.text, cases[i].error);
        }
}

static void test_names(void **state)
{
        _cleanup_(json_done) json_t *tree =
                parse_json("{\"providers\": [{\"uuid\": \"" ROOT "\", \"name\": \"host\"},"
                           " {\"uuid\": \"" GPU "\", \"name\": \"host_0000:41:00.0\"}]}");
        _cleanup_(ctl_mappings_done) CtlMappings mappings = { 0 };
        Error error = ERROR_NULL;

        assert_int_equal(ctl_mappings_add(&mappings, "=" ROOT, NULL), 0);
        assert_int_equal(ctl_mappings_add(&mappings, "gpu=host_0000:41:00.0", NULL), 0);
        assert_int_equal(ctl_mappings_add(&mappings, "a=host", NULL), 0);
        assert_int_equal(ctl_mappings_resolve(&mappings, tree, NULL), 0);
        assert_int_equal(mappings.known.n_items, 3);
        assert_true(maps(&mappings, "", ROOT));
        assert_true(maps(&mappings, "gpu", GPU));
        assert_true(maps(&mappings, "a", ROOT));

        assert_int_equal(ctl_mappings_add(&mappings, "b=other", NULL), 0);
        assert_int_equal(ctl_mappings_resolve(&mappings, tree, &error), -EINVAL);
        assert_contains(error.text, "this host has no provider \"other\"");
}

TEST_MAIN(test_wrong_texts, test_groups, test_names)
