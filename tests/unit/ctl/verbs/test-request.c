/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/request.h"

#include "tests/unit/test.h"

static void test_a_whole_request(void **state)
{
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;

        assert_int_equal(ctl_request_add_group(&request, "gpu:VGPU=1", NULL), 0);
        assert_int_equal(ctl_request_add_resources(&request, "VCPU=2,MEMORY_MB=512", NULL), 0);
        assert_int_equal(ctl_request_add_resources(&request, "DISK_GB=1", NULL), 0);
        assert_int_equal(ctl_request_add_group(&request, "gpu:CUSTOM_X=3", NULL), 0);
        assert_int_equal(ctl_request_add_traits(&request, "HW_A,!HW_B", NULL), 0);
        assert_int_equal(ctl_request_add_traits(&request, "gpu:CUSTOM_C", NULL), 0);
        assert_int_equal(ctl_request_check(&request, NULL), 0);

        assert_int_equal(request.n_groups, 2);
        assert_string_equal(request.groups[0].suffix, "");
        assert_int_equal(request.groups[0].resources.n_items, 3);
        assert_true(string_set_contains(&request.groups[0].required, "HW_A"));
        assert_true(string_set_contains(&request.groups[0].forbidden, "HW_B"));
        assert_string_equal(request.groups[1].suffix, "gpu");
        assert_int_equal(resources_get(&request.groups[1].resources, "VGPU"), 1);
        assert_int_equal(resources_get(&request.groups[1].resources, "CUSTOM_X"), 3);
        assert_true(string_set_contains(&request.groups[1].required, "CUSTOM_C"));
}

static void test_wrong_texts(void **state)
{
        static const struct {
                int (*add)(ResourceRequest *request, const char *text, Error *reterr);
                const char *text;
                const char *words;
        } cases[] = {
                { ctl_request_add_resources, "", "" },
                { ctl_request_add_resources, "VCPU", "" },
                { ctl_request_add_resources, "VCPU=0", "VCPU" },
                { ctl_request_add_resources, "vcpu=1", "vcpu" },
                { ctl_request_add_resources, "DISK_GB=1", "twice" },
                { ctl_request_add_group, "VGPU=1", "not a group" },
                { ctl_request_add_group, ":VGPU=1", "not a group" },
                { ctl_request_add_group, "a b:VGPU=1", "suffix" },
                { ctl_request_add_group, "1:", "" },
                { ctl_request_add_group, "1:VGPU=-1", "" },
                { ctl_request_add_traits, "", "trait" },
                { ctl_request_add_traits, "HW_A,", "trait" },
                { ctl_request_add_traits, "!", "trait" },
                { ctl_request_add_traits, "!!HW_A", "trait" },
                { ctl_request_add_traits, "hw_a", "hw_a" },
                { ctl_request_add_traits, "1:", "trait" },
                { ctl_request_add_traits, "HW_A,!HW_A", "both" },
                { ctl_request_add_traits, "!HW_Z,HW_Z", "both" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
                Error error = ERROR_NULL;

                assert_int_equal(ctl_request_add_resources(&request, "DISK_GB=1", NULL), 0);
                assert_int_equal(cases[i].add(&request, cases[i].text, &error), -EINVAL);
                if (!error.text[0] || !strstr(error.text, cases[i].words))
                        fail_msg("\"%s\": %s", cases[i].text, error.text);
        }
}

static void test_check(void **state)
{
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        Error error = ERROR_NULL;

        assert_int_equal(ctl_request_add_traits(&request, "gpu:HW_A", NULL), 0);
        assert_int_equal(ctl_request_check(&request, &error), -EINVAL);
        assert_non_null(strstr(error.text, "gpu"));
        assert_int_equal(ctl_request_add_group(&request, "gpu:VGPU=1", NULL), 0);
        assert_int_equal(ctl_request_check(&request, &error), 0);
}

TEST_MAIN(test_a_whole_request, test_wrong_texts, test_check)
