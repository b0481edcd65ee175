/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/inventory.h"
#include "claims/claim/claim-request.h"
#include "claims/claim/claim.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

static void check(ClaimRequest *request, const char *words)
{
        Error error = ERROR_NULL;
        int r = claim_request_check(request, &error);

        if (words && (r != -EINVAL || !strstr(error.text, words)))
                fail_msg("%d \"%s\" does not say \"%s\"", r, error.text, words);
        if (!words && r != 0)
                fail_msg("%d %s", r, error.text);
}

static void test_format(void **state)
{
        static const struct {
                const char *request, *text;
        } cases[] = {
                { "VCPU=2", "resources=VCPU:2" },
                { "VCPU=2,DISK_GB=1:HW_B,HW_A,!HW_C",
                  "resources=DISK_GB:1,VCPU:2&required=HW_A,HW_B,!HW_C" },
                { "_A:VGPU=1:!X", "resources_A=VGPU:1&required_A=!X" },
                { "_B:VGPU=1 _A:VGPU=2 VCPU=1 isolate",
                  "resources=VCPU:1&resources_A=VGPU:2&resources_B=VGPU:1&group_policy=isolate" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimRequest request = { .consumer = make_uuid("vm") };
                _cleanup_free_ char *text = NULL;

                make_request(&request.resources, cases[i].request);
                check(&request, NULL);
                text = resource_request_format(&request.resources);
                assert_string_equal(text, cases[i].text);
                resource_request_done(&request.resources);
        }
}

static void test_amounts(void **state)
{
        static const struct {
                uint64_t amount;
                const char *words;
        } cases[] = {
                { 0, "VCPU: 0 is not an amount (1 to 2147483647)" },
                { 1, NULL },
                { INVENTORY_MAX_AMOUNT, NULL },
                { INVENTORY_MAX_AMOUNT + 1, "VCPU: 2147483648 is not an amount" },
                { INT64_MAX, "is not an amount" },
                { UINT64_C(1) << 63, "is not an amount" },
                { (uint64_t)-1, "VCPU: 18446744073709551615 is not an amount" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ResourceAmount amount = { (char *)"VCPU", cases[i].amount };
                RequestGroup group = { .suffix = (char *)"",
                                       .resources = { .items = &amount, .n_items = 1 } };
                ClaimRequest request = { .consumer = make_uuid("vm"),
                                         .resources = { .groups = &group, .n_groups = 1 } };

                check(&request, cases[i].words);
        }
}

static void test_sums(void **state)
{
        ResourceAmount amounts[] = { { (char *)"VCPU", INVENTORY_MAX_AMOUNT },
                                     { (char *)"VCPU", 1 } };
        RequestGroup groups[] = {
                { .suffix = (char *)"", .resources = { .items = &amounts[0], .n_items = 1 } },
                { .suffix = (char *)"_A", .resources = { .items = &amounts[1], .n_items = 1 } },
        };
        ClaimRequest request = { .consumer = make_uuid("vm"),
                                 .resources = { .groups = groups, .n_groups = 2 } };

        check(&request, "VCPU over all groups: 2147483648 is not an amount");
        amounts[0].amount--;
        check(&request, NULL);
}

/* The largest amount of the group is not that of a cell above it. */
static void test_memory_of_cells(void **state)
{
        static const struct {
                uint64_t memory_mb;
                const char *words;
        } cases[] = {
                { INVENTORY_MAX_AMOUNT, NULL },
                { INVENTORY_MAX_AMOUNT + 1, "does not match" },
                { UINT64_MAX, "does not match" },
        };
        ClaimRequest request = { .consumer = make_uuid("vm") };
        NumaRequestCell cell = { 0 };
        RequestGroup *group;

        assert_int_equal(resource_request_group(&request.resources, "", &group, NULL), 0);
        assert_int_equal(resources_set(&group->resources, "VCPU", 1), 0);
        assert_int_equal(resources_set(&group->resources, "MEMORY_MB", INVENTORY_MAX_AMOUNT), 0);
        assert_true(cpu_set_add(&cell.vcpus, 0) >= 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                cell.memory_mb = cases[i].memory_mb;
                request.resources.numa.cells = &cell;
                request.resources.numa.n_cells = 1;
                check(&request, cases[i].words);
        }
        request.resources.numa = NUMA_REQUEST_INIT;
        cpu_set_done(&cell.vcpus);
        resource_request_done(&request.resources);
}

static void test_mappings(void **state)
{
        ClaimRequest request = { .consumer = make_uuid("vm") };
        Uuid one = make_uuid("one"), other = make_uuid("other");

        make_request(&request.resources, "VCPU=2 _A:VGPU=1");
        for (int i = 0; i < 2; i++) {
                assert_int_equal(request_mappings_add(&request.mappings, "", i ? &other : &one), 0);
                assert_int_equal(request_mappings_add(&request.mappings, i ? "_B" : "_A", &one), 0);
                check(&request, NULL);
        }
        assert_int_equal(request_mappings_add(&request.mappings, "_A", &other), 0);
        check(&request, "Group \"_A\" is mapped to several providers");
        resource_request_done(&request.resources);
        request_mappings_done(&request.mappings);
}

static void test_shapes(void **state)
{
        ClaimRequest request = { .consumer = make_uuid("vm") };
        RequestGroup *group;
        char text[300], trait[16];

        check(&request, "The request asks for no resources");
        assert_int_equal(resource_request_group(&request.resources, "_A", &group, NULL), 0);
        check(&request, "Group \"_A\" asks for no resources");
        assert_int_equal(resources_set(&group->resources, "vcpu", 1), 0);
        check(&request, "\"vcpu\" is not a resource class");
        resources_done(&group->resources);
        assert_int_equal(resources_set(&group->resources, "VCPU", 1), 0);
        check(&request, NULL);

        assert_true(string_set_add(&group->required, "hw") > 0);
        check(&request, "\"hw\" is not a trait");
        string_set_done(&group->required);
        assert_true(string_set_add(&group->required, "HW") > 0);
        assert_true(string_set_add(&group->forbidden, "HW") > 0);
        check(&request, "Trait HW is both required and forbidden");
        string_set_done(&group->forbidden);
        for (int i = 0; i < CLAIM_TRAITS_MAX; i++) {
                check(&request, NULL);
                snprintf(trait, sizeof(trait), "HW_%d", i);
                assert_true(string_set_add(&group->required, trait) > 0);
        }
        check(&request, "Group \"_A\" has more than 64 traits");
        string_set_done(&group->required);

        request.consumer = UUID_NULL;
        check(&request, "\"\" is not a consumer's uuid");
        strcpy(request.consumer.text, "AAAAAAAA-2222-4333-8444-555555555502");
        check(&request, "is not a consumer's uuid");
        request.consumer = make_uuid("vm");

        memset(text, 'p', sizeof(text));
        text[256] = '\0';
        request.project_id = text;
        check(&request, "The project has more than 255 bytes");
        text[255] = '\0';
        check(&request, NULL);
        request.user_id = "a\nb";
        check(&request, "The user has a control character");
        resource_request_done(&request.resources);
}

static void test_counts(void **state)
{
        ClaimRequest request = { .consumer = make_uuid("vm") };
        RequestGroup *group;
        char name[24];

        for (int i = 0; i < CLAIM_GROUPS_MAX; i++) {
                snprintf(name, sizeof(name), "_%d", i);
                assert_int_equal(resource_request_group(&request.resources, name, &group, NULL), 0);
                assert_int_equal(resources_set(&group->resources, "VCPU", 1), 0);
        }
        check(&request, NULL);
        assert_int_equal(resource_request_group(&request.resources, "_x", &group, NULL), 0);
        check(&request, "The request has 257 groups, but at most 256 are allowed");
        resource_request_done(&request.resources);
        assert_int_equal(resource_request_group(&request.resources, "", &group, NULL), 0);
        for (int i = 0; i <= CLAIM_CLASSES_MAX; i++) {
                snprintf(name, sizeof(name), "CUSTOM_%d", i);
                assert_int_equal(resources_set(&group->resources, name, 1), 0);
        }
        check(&request, "Group \"\" has more than 256 classes");
        resource_request_done(&request.resources);
}

TEST_MAIN(test_format, test_amounts, test_sums, test_memory_of_cells, test_mappings, test_shapes,
          test_counts)
