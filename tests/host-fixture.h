/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Hosts for the tests of what is made of a snapshot, in few words: the JSON form with its members
 * mostly left out. */

#include "base/json.h"
#include "base/provider-tree.h"
#include "drivers/driver.h"
#include "tests/test.h"

#define UUID_ROOT "aaaaaaaa-0000-4000-8000-000000000001"

/* A literal where the configuration has an owned string. */
#define TEXT(literal) ((char *)(literal))

/* One type of enabled_mdev_types. */
#define MDEV_TYPE(type_, addresses_, class_, max_)                                                 \
        {                                                                                          \
                .type = TEXT(type_), .device_addresses = (addresses_), .mdev_class = TEXT(class_), \
                .max_instances = (max_)                                                            \
        }

/* Members of a host besides its name. */
static inline Snapshot *host_new(const char *members)
{
        _cleanup_json_ json_t *json = NULL;
        Snapshot *snapshot = NULL;
        Error error = ERROR_NULL;
        _cleanup_free_ char *text = NULL;

        assert_true(asprintf(&text,
                             "{\"format\": \"compute-agent-host/1\", \"nodename\": \"cn1\"%s%s}",
                             members[0] ? ", " : "", members) > 0);
        if (json_parse(text, strlen(text), &json, &error) < 0 ||
            snapshot_from_json(json, &snapshot, &error) < 0)
                fail_msg("%s: %s", text, error.text);
        return snapshot;
}

/* What a fresh configuration has; ratios as Nova's defaults. */
static inline DriverConfig config_make(DriverMdevType *types, size_t n_types)
{
        return (DriverConfig){
                .connection_uri = "test:///default",
                .instances_path = "/",
                .static_path = "",
                .initial_cpu_allocation_ratio = 4.0,
                .initial_ram_allocation_ratio = 1.0,
                .initial_disk_allocation_ratio = 1.0,
                .owner_trait = "OWNER_COMPUTE_AGENT",
                .mdev_types = types,
                .n_mdev_types = n_types,
        };
}

/* A tree with nothing but the root "cn1". */
static inline ProviderTree *tree_new(Provider **ret_root)
{
        ProviderTree *tree = NULL;
        Uuid uuid;

        assert_int_equal(uuid_from_text(UUID_ROOT, &uuid), 0);
        assert_int_equal(provider_tree_new(&tree), 0);
        assert_int_equal(provider_tree_add(tree, &uuid, "cn1", NULL, ret_root, NULL), 0);
        return tree;
}
