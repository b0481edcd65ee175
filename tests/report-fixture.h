/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Trees in one line, for the tests of report/:
 *
 *   "host VCPU=8 +HW_A @AGG | gpu<host VGPU=4 | gpu#2<host"
 *
 * A provider is its name, "#seed" for another uuid under the same name, "<parent" (by name), then
 * inventories, traits and aggregates. The uuid follows from name and seed. */

#include "base/provider-tree.h"
#include "tests/test.h"

/* The uuid of "name" or "name#seed". */
static inline Uuid fixture_uuid(const char *name)
{
        static const Uuid space = { "12345678-1234-1234-1234-123456789abc" };

        return uuid_make_child(&space, name);
}

static inline void fixture_add_word(Provider *provider, const char *word)
{
        const char *equals = strchr(word, '=');
        char name[RESOURCE_CLASS_MAX + 1];
        Inventory inventory;

        if (word[0] == '+') {
                assert_true(string_set_add(&provider->traits, word + 1) >= 0);
        } else if (word[0] == '@') {
                assert_true(string_set_add(&provider->aggregates, word + 1) >= 0);
        } else {
                assert_non_null(equals);
                snprintf(name, sizeof(name), "%.*s", (int)(equals - word), word);
                inventory = INVENTORY_DEFAULT(strtoull(equals + 1, NULL, 10));
                assert_int_equal(provider_set_inventory(provider, name, &inventory), 0);
        }
}

static inline void fixture_add_provider(ProviderTree *tree, char *text)
{
        char *rest = text, *head = strtok_r(rest, " ", &rest), *parent_name, *word;
        const Provider *parent;
        Provider *provider;
        char *name, *hash;
        Error error;
        Uuid uuid;

        if (!head)
                return;
        parent_name = strchr(head, '<');
        if (parent_name)
                *parent_name++ = '\0';
        uuid = fixture_uuid(head);
        name = strdup(head);
        assert_non_null(name);
        hash = strchr(name, '#');
        if (hash)
                *hash = '\0';
        parent = parent_name ? provider_tree_find_name(tree, parent_name) : NULL;
        if (provider_tree_add(tree, &uuid, name, parent ? &parent->uuid : NULL, &provider, &error) <
            0)
                fail_msg("%s", error.text);
        free(name);
        while ((word = strtok_r(rest, " ", &rest)))
                fixture_add_word(provider, word);
}

static inline ProviderTree *fixture_tree(const char *text)
{
        _cleanup_free_ char *copy = strdup(text);
        char *rest = copy, *item;
        ProviderTree *tree;

        assert_non_null(copy);
        assert_int_equal(provider_tree_new(&tree), 0);
        while ((item = strtok_r(rest, "|", &rest)))
                fixture_add_provider(tree, item);
        return tree;
}
