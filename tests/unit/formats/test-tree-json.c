/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "formats/format-names.h"
#include "formats/tree-json.h"

#include "tests/fixtures/ctl-capture.h"

#define ROOT "b5ef2f5c-74c4-4a0a-8dd7-9f6a8f0d3b11"
#define GPU  "9f7ed411-c9da-5464-ab12-a6b879d7da08"

static Uuid uuid(const char *text)
{
        Uuid parsed;

        assert_int_equal(uuid_from_text(text, &parsed), 0);
        return parsed;
}

static ProviderTree *make_tree(void)
{
        Inventory vcpu = INVENTORY_DEFAULT(8), vgpu = INVENTORY_DEFAULT(4);
        Uuid root = uuid(ROOT), gpu = uuid(GPU);
        ProviderTree *tree;
        Provider *provider;

        vcpu.reserved = 1;
        vcpu.allocation_ratio = 1.5;
        assert_int_equal(provider_tree_new(&tree), 0);
        assert_int_equal(provider_tree_add(tree, &root, "host1", NULL, &provider, NULL), 0);
        assert_int_equal(provider_set_inventory(provider, "VCPU", &vcpu), 0);
        assert_int_equal(string_set_add(&provider->traits, "OWNER_NOVA"), 1);
        assert_int_equal(provider_tree_add(tree, &gpu, "gpu", &root, &provider, NULL), 0);
        assert_int_equal(provider_set_inventory(provider, "VGPU", &vgpu), 0);
        return tree;
}

static void check_member(const json_t *object, const char *key, const char *expected)
{
        json_t *value = json_object_get(object, key);
        _cleanup_free_ char *text =
                json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

        assert_non_null(text);
        assert_string_equal(text, expected);
}

static void test_document(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree();
        Uuid root = uuid(ROOT);
        _cleanup_(json_done) json_t *json = tree_to_json(tree, NULL, &root, "host1", "synced");
        const json_t *providers, *first, *second;

        assert_non_null(json);
        check_member(json, "format", "\"" TREE_FORMAT "\"");
        check_member(json, "node", "\"host1\"");
        check_member(json, "root", "\"" ROOT "\"");
        check_member(json, "sync_state", "\"synced\"");
        providers = json_object_get(json, "providers");
        assert_int_equal(json_array_size(providers), 2);
        first = json_array_get(providers, 0);
        second = json_array_get(providers, 1);
        check_member(first, "name", "\"host1\"");
        check_member(first, "parent", "null");
        check_member(first, "traits", "[\"OWNER_NOVA\"]");
        check_member(first, "aggregates", "[]");
        check_member(first, "inventories",
                     "{\"VCPU\":{\"total\":8,\"reserved\":1,\"min_unit\":1,"
                     "\"max_unit\":2147483647,\"step_size\":1,\"allocation_ratio\":1.5,"
                     "\"capacity\":10,\"used\":0}}");
        check_member(second, "parent", "\"" ROOT "\"");
}

static void test_usage_is_what_claims_have(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree();
        _cleanup_(host_view_freep) HostView *view = NULL;
        Uuid root = uuid(ROOT);
        _cleanup_(json_done) json_t *json = NULL;
        const json_t *providers;

        assert_int_equal(host_view_new(&view, make_tree()), 0);
        assert_int_equal(resources_set(&view->providers[0].used, "VCPU", 5), 0);
        json = tree_to_json(tree, view, &root, "host1", "pending");
        providers = json_object_get(json, "providers");
        check_member(json_object_get(json_object_get(json_array_get(providers, 0), "inventories"),
                                     "VCPU"),
                     "used", "5");
        check_member(json_object_get(json_object_get(json_array_get(providers, 1), "inventories"),
                                     "VGPU"),
                     "used", "0");
}

static void test_huge_amounts_stay_numbers(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree();
        _cleanup_(json_done) json_t *json = NULL;
        Uuid root = uuid(ROOT);
        Inventory *vcpu = provider_find_inventory(tree->providers[0], "VCPU");

        vcpu->allocation_ratio = INVENTORY_MAX_RATIO;
        json = tree_to_json(tree, NULL, &root, "host1", "synced");
        assert_non_null(json);
        check_member(json_object_get(
                             json_object_get(json_array_get(json_object_get(json, "providers"), 0),
                                             "inventories"),
                             "VCPU"),
                     "capacity", "9223372036854775807");
}

TEST_MAIN(test_document, test_usage_is_what_claims_have, test_huge_amounts_stay_numbers)
