/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/resource-request.h"

#include "tests/shims/fail-alloc.h"
#include "tests/unit/test.h"

static RequestGroup *group(ResourceRequest *request, const char *suffix)
{
        RequestGroup *found = NULL;

        assert_int_equal(resource_request_group(request, suffix, &found, NULL), 0);
        return found;
}

static void fill(ResourceRequest *request)
{
        RequestGroup *to = group(request, "_GPU1");

        request->isolate = true;
        assert_int_equal(resources_parse("VGPU=1", &to->resources, NULL), 0);
        assert_int_equal(string_set_add(&to->required, "CUSTOM_NVIDIA_35"), 1);
        assert_int_equal(string_set_add(&to->forbidden, "CUSTOM_OLD"), 1);
        to = group(request, "");
        assert_int_equal(resources_parse("VCPU=2,MEMORY_MB=512", &to->resources, NULL), 0);
        to = group(request, "_GPU0");
        assert_int_equal(resources_parse("VGPU=2", &to->resources, NULL), 0);
}

static void assert_filled(const ResourceRequest *request)
{
        static const char *const suffixes[] = { "", "_GPU0", "_GPU1" };

        assert_int_equal(request->n_groups, 3);
        assert_true(request->isolate);
        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
                assert_string_equal(request->groups[i].suffix, suffixes[i]);
        assert_int_equal(resources_get(&request->groups[0].resources, "VCPU"), 2);
        assert_int_equal(resources_get(&request->groups[1].resources, "VGPU"), 2);
        assert_int_equal(resources_get(&request->groups[2].resources, "VGPU"), 1);
        assert_true(string_set_contains(&request->groups[2].required, "CUSTOM_NVIDIA_35"));
        assert_true(string_set_contains(&request->groups[2].forbidden, "CUSTOM_OLD"));
        assert_int_equal(request->groups[1].required.n_items, 0);
}

static void test_suffix_table(void **state)
{
        static const struct {
                const char *suffix;
                int r;
        } cases[] = {
                { "", 0 },
                { "1", 0 },
                { "_COMPUTE", 0 },
                { "a-Z_09", 0 },
                { "0123456789012345678901234567890123456789012345678901234567890123", 0 },
                { "01234567890123456789012345678901234567890123456789012345678901234", -EINVAL },
                { " ", -EINVAL },
                { "a b", -EINVAL },
                { "a\n", -EINVAL },
                { "a=1", -EINVAL },
                { "a&b", -EINVAL },
                { "\xc3\xa9", -EINVAL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
                RequestGroup *found = NULL;
                Error error = ERROR_NULL;
                int r = resource_request_group(&request, cases[i].suffix, &found, &error);

                if (r != cases[i].r)
                        fail_msg("\"%s\": %d, expected %d", cases[i].suffix, r, cases[i].r);
                assert_int_equal(request.n_groups, r == 0);
                assert_int_equal(error.text[0] != '\0', r < 0);
                if (r == 0)
                        assert_ptr_equal(group(&request, cases[i].suffix), found);
                else
                        assert_null(found);
        }
}

static void test_groups_are_sorted(void **state)
{
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;

        fill(&request);
        assert_filled(&request);
        for (unsigned i = 0; i < 20; i++) {
                char suffix[8];

                snprintf(suffix, sizeof(suffix), "%u", i * 7 % 20);
                group(&request, suffix);
        }
        assert_int_equal(request.n_groups, 23);
        for (size_t i = 1; i < request.n_groups; i++)
                assert_true(strcmp(request.groups[i - 1].suffix, request.groups[i].suffix) < 0);
}

static void test_copy(void **state)
{
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(resource_request_done) ResourceRequest copy = RESOURCE_REQUEST_INIT;

        fill(&request);
        group(&copy, "_OLD");
        assert_int_equal(resource_request_copy(&copy, &request), 0);
        assert_filled(&copy);
        assert_int_equal(resource_request_copy(&request, &request), 0);
        assert_filled(&request);
        resource_request_done(&request);
        assert_filled(&copy);
}

static void test_sum(void **state)
{
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(resources_done) Resources sum = RESOURCES_INIT;
        _cleanup_free_ char *text = NULL;

        fill(&request);
        assert_int_equal(resources_set(&sum, "CUSTOM_OLD", 5), 0);
        assert_int_equal(resource_request_sum(&request, &sum), 0);
        text = resources_format(&sum);
        assert_string_equal(text, "MEMORY_MB=512,VCPU=2,VGPU=3");
}

/* A failure leaves the result unchanged, without a partial sum. */
static void test_sum_failures(void **state)
{
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(resources_done) Resources sum = RESOURCES_INIT;
        unsigned at;
        int r;

        fill(&request);
        assert_int_equal(resources_set(&sum, "CUSTOM_OLD", 5), 0);
        FAIL_ALLOC_EACH(at, r = resource_request_sum(&request, &sum)) {
                assert_int_equal(r, -ENOMEM);
                assert_int_equal(sum.n_items, 1);
                assert_int_equal(resources_get(&sum, "CUSTOM_OLD"), 5);
        }
        assert_true(at > 2);

        resources_done(&sum);
        assert_int_equal(resources_set(&sum, "CUSTOM_OLD", 5), 0);
        assert_int_equal(resources_set(&group(&request, "_GPU0")->resources, "VGPU", UINT64_MAX),
                         0);
        assert_int_equal(resource_request_sum(&request, &sum), -EOVERFLOW);
        assert_int_equal(sum.n_items, 1);
}

static void test_without_memory(void **state)
{
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(resource_request_done) ResourceRequest copy = RESOURCE_REQUEST_INIT;
        RequestGroup *found = NULL;
        unsigned at;
        int r;

        for (at = 0; at < 2; at++) {
                fail_alloc_at(at);
                assert_int_equal(resource_request_group(&request, "_A", &found, NULL), -ENOMEM);
                assert_true(fail_alloc_done());
                assert_null(found);
                assert_int_equal(request.n_groups, 0);
        }

        fill(&request);
        group(&copy, "_OLD");
        FAIL_ALLOC_EACH(at, r = resource_request_copy(&copy, &request)) {
                assert_int_equal(r, -ENOMEM);
                assert_int_equal(copy.n_groups, 1);
                assert_string_equal(copy.groups[0].suffix, "_OLD");
        }
        assert_true(at > 10);
        assert_filled(&copy);
}

static const Uuid a = { "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa" };
static const Uuid b = { "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb" };

static void test_mappings_are_sorted(void **state)
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
}

static void test_many_mappings(void **state)
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

TEST_MAIN(test_suffix_table, test_groups_are_sorted, test_copy, test_sum, test_sum_failures,
          test_without_memory, test_mappings_are_sorted, test_many_mappings)
