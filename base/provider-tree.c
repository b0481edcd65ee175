/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes, edits, copies and compares trees of providers, and the inventories of one provider. A tree
 * has three arrays of the same pointers. The first, providers, has parents before children and
 * otherwise the order of insertion; a moved subtree goes to the end. The others, by_uuid and
 * by_name, are sorted, for lookups in O(log n). Each change must keep the contents of all three
 * equal. A name never changes, so by_name stays sorted. The inventories of a provider are an array
 * that is sorted by class.
 *
 * A tree with references (n_shares above 0) is sealed: functions that add, remove or move a
 * provider assert that there are none. Functions that change one provider do not check this. A
 * function that fails changes nothing, except that provider_copy_contents() can leave a part
 * copied. */

#include "base/provider-tree.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

static Provider *provider_free(Provider *provider)
{
        if (!provider)
                return NULL;
        provider_clear_inventories(provider);
        free(provider->inventories);
        string_set_done(&provider->traits);
        string_set_done(&provider->aggregates);
        free(provider->name);
        free(provider);
        return NULL;
}
DEFINE_CLEANUP(Provider *, provider_free);

int provider_tree_new(ProviderTree **ret)
{
        ProviderTree *tree = calloc(1, sizeof(ProviderTree));

        if (!tree)
                return -ENOMEM;
        *ret = tree;
        return 0;
}

ProviderTree *provider_tree_ref(const ProviderTree *tree)
{
        ProviderTree *shared = (ProviderTree *)(uintptr_t)tree; /* a const tree can be shared too:
                                                                 * the count is not content */

        shared->n_shares++;
        return shared;
}

ProviderTree *provider_tree_free(ProviderTree *tree)
{
        if (!tree)
                return NULL;
        if (tree->n_shares > 0) {
                tree->n_shares--;
                return NULL;
        }
        for (size_t i = 0; i < tree->n_providers; i++)
                provider_free(tree->providers[i]);
        free(tree->providers);
        free(tree->by_uuid);
        free(tree->by_name);
        free(tree);
        return NULL;
}

static int order_provider(const void *key, const void *item)
{
        return uuid_order(key, &(*(Provider *const *)item)->uuid);
}

/* Returns the position of the uuid in by_uuid, or the position at which to insert it. */
static size_t find_position(const ProviderTree *tree, const Uuid *uuid, bool *ret_found)
{
        return array_find(tree->by_uuid, sizeof(Provider *), tree->n_providers, uuid,
                          order_provider, ret_found);
}

static int order_name(const void *key, const void *item)
{
        return strcmp(key, (*(Provider *const *)item)->name);
}

/* Returns the position of the name in by_name, or the position at which to insert it. */
static size_t find_name(const ProviderTree *tree, const char *name, bool *ret_found)
{
        return array_find(tree->by_name, sizeof(Provider *), tree->n_providers, name, order_name,
                          ret_found);
}

Provider *provider_tree_find(const ProviderTree *tree, const Uuid *uuid)
{
        bool found;
        size_t position = find_position(tree, uuid, &found);

        return found ? tree->by_uuid[position] : NULL;
}

Provider *provider_tree_find_name(const ProviderTree *tree, const char *name)
{
        bool found;
        size_t place = find_name(tree, name, &found);

        return found ? tree->by_name[place] : NULL;
}

/* Allocates one more place in each of the three arrays. -ENOMEM leaves the tree usable. */
static int grow_tree(ProviderTree *tree)
{
        Provider ***orders[] = { &tree->by_uuid, &tree->by_name };

        /* n_allocated is common to all arrays. It changes with the last array, so after a failure
         * it is not larger than any array. */
        for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
                size_t n_allocated = tree->n_allocated;

                if (array_grow(orders[i], sizeof(Provider *), tree->n_providers, &n_allocated) < 0)
                        return -ENOMEM;
        }
        return array_grow(&tree->providers, sizeof(Provider *), tree->n_providers,
                          &tree->n_allocated);
}

/* Checks the uuid, the name and the parent of a new provider. -EINVAL, -EEXIST or -ENOENT, with
 * words. */
static int check_new(const ProviderTree *tree, const Uuid *uuid, const char *name,
                     const Uuid *parent, Error *reterr)
{
        size_t length = text_count_characters(name);

        if (length == 0 || length > PROVIDER_NAME_MAX)
                return error_setf(reterr, EINVAL,
                                  "A provider's name has 1 to %d characters: \"%.40s\"%s",
                                  PROVIDER_NAME_MAX, name, length ? "…" : "");
        if (uuid_empty(uuid))
                return error_setf(reterr, EINVAL, "Provider %s has no uuid", name);
        if (provider_tree_find(tree, uuid))
                return error_setf(reterr, EEXIST, "Provider %s is already in the tree", uuid->text);
        if (provider_tree_find_name(tree, name))
                return error_setf(reterr, EEXIST, "A provider named %s is already in the tree",
                                  name);
        if (parent && !provider_tree_find(tree, parent))
                return error_setf(reterr, ENOENT, "Provider %s: its parent %s is not in the tree",
                                  name, parent->text);
        return 0;
}

/* Inserts a provider into one of the sorted arrays, which has n providers and a free place. */
static void put(Provider **order, size_t n, size_t place, Provider *provider)
{
        array_open(order, sizeof(Provider *), &n, place);
        order[place] = provider;
}

/* Removes a provider from one of the sorted arrays, which has n providers. */
static void take(Provider **order, size_t n, size_t place)
{
        array_close(order, sizeof(Provider *), &n, place);
}

/* Allocates all memory before the first array changes, so a failure leaves the tree unchanged. */
int provider_tree_add(ProviderTree *tree, const Uuid *uuid, const char *name, const Uuid *parent,
                      Provider **ret_provider, Error *reterr)
{
        _cleanup_(provider_freep) Provider *provider = NULL;
        bool found;
        int r;

        assert(tree->n_shares == 0);
        if (parent && uuid_empty(parent))
                parent = NULL;
        r = check_new(tree, uuid, name, parent, reterr);
        if (r < 0)
                return r;

        provider = calloc(1, sizeof(Provider));
        if (!provider)
                return error_oom(reterr);
        provider->uuid = *uuid;
        if (parent)
                provider->parent = *parent;
        provider->name = strdup(name);
        if (!provider->name || grow_tree(tree) < 0)
                return error_oom(reterr);
        put(tree->by_uuid, tree->n_providers, find_position(tree, uuid, &found), provider);
        put(tree->by_name, tree->n_providers, find_name(tree, name, &found), provider);
        tree->providers[tree->n_providers++] = provider;
        if (ret_provider)
                *ret_provider = provider;
        provider = NULL;
        return 0;
}

/* Removes one provider from the three arrays and frees it. The positions are computed while the
 * provider still exists. */
static void remove_one(ProviderTree *tree, size_t index)
{
        Provider *provider = tree->providers[index];
        bool found;

        take(tree->by_uuid, tree->n_providers, find_position(tree, &provider->uuid, &found));
        take(tree->by_name, tree->n_providers, find_name(tree, provider->name, &found));
        array_close(tree->providers, sizeof(Provider *), &tree->n_providers, index);
        provider_free(provider);
}

bool provider_tree_remove(ProviderTree *tree, const Uuid *uuid)
{
        Uuid root = *uuid; /* uuid can point into the provider that is removed */

        assert(tree->n_shares == 0);
        if (!provider_tree_find(tree, &root))
                return false;
        /* Parents come before children, so this backward walk removes each provider after its
         * descendants. */
        for (size_t i = tree->n_providers; i > 0; i--)
                if (provider_tree_in_subtree(tree, tree->providers[i - 1], &root))
                        remove_one(tree, i - 1);
        return true;
}

bool provider_tree_in_subtree(const ProviderTree *tree, const Provider *provider, const Uuid *root)
{
        /* Parents come before children, so the tree has no cycle and this walk ends. */
        while (provider) {
                if (uuid_equal(&provider->uuid, root))
                        return true;
                if (uuid_empty(&provider->parent))
                        return false;
                provider = provider_tree_find(tree, &provider->parent);
        }
        return false;
}

bool provider_tree_has_children(const ProviderTree *tree, const Uuid *uuid)
{
        for (size_t i = 0; i < tree->n_providers; i++)
                if (uuid_equal(&tree->providers[i]->parent, uuid))
                        return true;
        return false;
}

/* Moves the subtree behind all other providers. Both groups keep their order, so parents stay
 * before children when the subtree gets a new parent. -ENOMEM. */
static int put_behind(ProviderTree *tree, const Uuid *root)
{
        Provider **ordered = reallocarray(NULL, tree->n_providers, sizeof(Provider *));
        size_t n = 0;

        if (!ordered)
                return -ENOMEM;
        for (int inside = 0; inside <= 1; inside++)
                for (size_t i = 0; i < tree->n_providers; i++)
                        if (provider_tree_in_subtree(tree, tree->providers[i], root) == inside)
                                ordered[n++] = tree->providers[i];
        memcpy(tree->providers, ordered, n * sizeof(Provider *));
        free(ordered);
        return 0;
}

/* Changes the order of tree->providers and the parent. The sorted arrays depend on neither. */
int provider_tree_move(ProviderTree *tree, Provider *provider, const Uuid *parent)
{
        const Provider *target = provider_tree_find(tree, parent);

        assert(tree->n_shares == 0);
        if (!target)
                return -ENOENT;
        if (provider_tree_in_subtree(tree, target, &provider->uuid))
                return -ELOOP;
        if (put_behind(tree, &provider->uuid) < 0)
                return -ENOMEM;
        provider->parent = target->uuid;
        return 0;
}

static int copy_provider(Provider **ret, const Provider *from)
{
        _cleanup_(provider_freep) Provider *copy = calloc(1, sizeof(Provider));

        if (!copy)
                return -ENOMEM;
        copy->uuid = from->uuid;
        copy->parent = from->parent;
        copy->name = strdup(from->name);
        if (!copy->name || provider_copy_contents(copy, from) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(copy);
        return 0;
}

/* Returns the copy of a provider. Both trees have the same order by uuid, so the position is the
 * same. */
static Provider *copy_of(const ProviderTree *copy, const ProviderTree *tree,
                         const Provider *provider)
{
        bool found;

        return copy->by_uuid[find_position(tree, &provider->uuid, &found)];
}

int provider_tree_copy(ProviderTree **ret, const ProviderTree *tree)
{
        _cleanup_(provider_tree_freep) ProviderTree *copy = NULL;
        int r = provider_tree_new(&copy);

        if (r < 0)
                return r;
        copy->providers = calloc(tree->n_providers + 1, sizeof(Provider *));
        copy->by_uuid = calloc(tree->n_providers + 1, sizeof(Provider *));
        copy->by_name = calloc(tree->n_providers + 1, sizeof(Provider *));
        if (!copy->providers || !copy->by_uuid || !copy->by_name)
                return -ENOMEM;
        copy->n_allocated = tree->n_providers + 1;
        /* The array is filled in the order of by_uuid first. An early return then frees all
         * providers that exist. */
        for (size_t i = 0; i < tree->n_providers; i++) {
                r = copy_provider(&copy->providers[i], tree->by_uuid[i]);
                if (r < 0)
                        return r;
                copy->n_providers++;
        }
        memcpy(copy->by_uuid, copy->providers, tree->n_providers * sizeof(Provider *));
        for (size_t i = 0; i < tree->n_providers; i++) {
                copy->providers[i] = copy_of(copy, tree, tree->providers[i]);
                copy->by_name[i] = copy_of(copy, tree, tree->by_name[i]);
        }
        *ret = TAKE_PTR(copy);
        return 0;
}

bool provider_equal(const Provider *a, const Provider *b)
{
        return uuid_equal(&a->uuid, &b->uuid) && uuid_equal(&a->parent, &b->parent) &&
               strcmp(a->name, b->name) == 0 && provider_inventories_equal(a, b) &&
               string_set_equal(&a->traits, &b->traits) &&
               string_set_equal(&a->aggregates, &b->aggregates);
}

bool provider_tree_equal(const ProviderTree *a, const ProviderTree *b)
{
        if (a->n_providers != b->n_providers)
                return false;
        for (size_t i = 0; i < a->n_providers; i++)
                if (!provider_equal(a->by_uuid[i], b->by_uuid[i]))
                        return false;
        return true;
}

static int order_inventory(const void *key, const void *item)
{
        return strcmp(key, ((const InventoryRecord *)item)->resource_class);
}

/* Returns the position of the class, or the position at which to insert it. */
static size_t find_inventory_position(const Provider *provider, const char *resource_class,
                                      bool *ret_found)
{
        return array_find(provider->inventories, sizeof(InventoryRecord), provider->n_inventories,
                          resource_class, order_inventory, ret_found);
}

Inventory *provider_find_inventory(const Provider *provider, const char *resource_class)
{
        bool found;
        size_t position = find_inventory_position(provider, resource_class, &found);

        return found ? &provider->inventories[position].inventory : NULL;
}

bool provider_offers(const Provider *provider, const char *resource_class)
{
        const Inventory *inventory = provider_find_inventory(provider, resource_class);

        return inventory && inventory->reserved < inventory->total;
}

/* Sets a record without a check, because provider_copy_inventories() copies each record as it is. A
 * caller can make one invalid through provider_find_inventory(). */
static int set_inventory(Provider *provider, const char *resource_class, const Inventory *inventory)
{
        Inventory value = *inventory; /* inventory can point into the array that grows */
        size_t position;
        bool found;
        char *copy;

        position = find_inventory_position(provider, resource_class, &found);
        if (found) {
                provider->inventories[position].inventory = value;
                return 0;
        }
        if (array_grow(&provider->inventories, sizeof(InventoryRecord), provider->n_inventories,
                       &provider->n_inventories_allocated) < 0)
                return -ENOMEM;
        copy = strdup(resource_class);
        if (!copy)
                return -ENOMEM;
        array_open(provider->inventories, sizeof(InventoryRecord), &provider->n_inventories,
                   position);
        provider->inventories[position] =
                (InventoryRecord){ .resource_class = copy, .inventory = value };
        return 0;
}

int provider_set_inventory(Provider *provider, const char *resource_class,
                           const Inventory *inventory)
{
        if (!resource_class_valid(resource_class) || inventory_invalid_field(inventory))
                return -EINVAL;
        return set_inventory(provider, resource_class, inventory);
}

bool provider_remove_inventory(Provider *provider, const char *resource_class)
{
        bool found;
        size_t position = find_inventory_position(provider, resource_class, &found);

        if (!found)
                return false;
        free(provider->inventories[position].resource_class);
        array_close(provider->inventories, sizeof(InventoryRecord), &provider->n_inventories,
                    position);
        return true;
}

void provider_clear_inventories(Provider *provider)
{
        for (size_t i = 0; i < provider->n_inventories; i++)
                free(provider->inventories[i].resource_class);
        provider->n_inventories = 0;
}

bool provider_inventories_equal(const Provider *a, const Provider *b)
{
        if (a->n_inventories != b->n_inventories)
                return false;
        for (size_t i = 0; i < a->n_inventories; i++)
                if (strcmp(a->inventories[i].resource_class, b->inventories[i].resource_class) !=
                            0 ||
                    !inventory_equal(&a->inventories[i].inventory, &b->inventories[i].inventory))
                        return false;
        return true;
}

/* Completes the copy before it frees the old records, so a failure changes nothing. */
int provider_copy_inventories(Provider *a, const Provider *b)
{
        Provider copy = { 0 };

        for (size_t i = 0; i < b->n_inventories; i++) {
                int r = set_inventory(&copy, b->inventories[i].resource_class,
                                      &b->inventories[i].inventory);
                if (r < 0) {
                        provider_clear_inventories(&copy);
                        free(copy.inventories);
                        return r;
                }
        }
        provider_clear_inventories(a);
        free(a->inventories);
        a->inventories = copy.inventories;
        a->n_inventories = copy.n_inventories;
        a->n_inventories_allocated = copy.n_inventories_allocated;
        return 0;
}

int provider_copy_contents(Provider *to, const Provider *from)
{
        return provider_copy_inventories(to, from) < 0 ||
                               string_set_copy(&to->traits, &from->traits) < 0 ||
                               string_set_copy(&to->aggregates, &from->aggregates) < 0
                       ? -ENOMEM
                       : 0;
}
