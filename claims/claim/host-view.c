/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds providers of a view of the host, and those that a claim can use. Compares views, and merges
 * the tree of a new poll with the providers that claims still use. The providers are found by uuid
 * with a binary search, since "places" has the order of tree->by_uuid. A tree lists parents before
 * their children; the merge relies on that. The tree of a view does not change after the view was
 * made. The store fills in rows, generations, usages and withheld. A merge and claims/ withhold
 * further providers, and claims/ sets the limits of devices. Only host_view_new() and
 * host_view_merge() can fail, and yield no view then.
 *
 * Tests: tests/unit/claims/claim/test-host-view.c */

#include "claims/claim/host-view.h"

#include <string.h>

#include "base/array.h"

static int order_provider(const void *key, const void *item)
{
        return uuid_order(key, &(*(Provider *const *)item)->uuid);
}

/* Finds the position of a uuid in tree->by_uuid. */
static size_t find_position(const ProviderTree *tree, const Uuid *uuid, bool *ret_found)
{
        return array_find(tree->by_uuid, sizeof(Provider *), tree->n_providers, uuid,
                          order_provider, ret_found);
}

int host_view_new(HostView **ret, ProviderTree *tree)
{
        _cleanup_(host_view_freep) HostView *view = NULL;
        _cleanup_(provider_tree_freep) ProviderTree *taken = tree;
        bool found;

        view = calloc(1, sizeof(HostView));
        if (!view)
                return -ENOMEM;
        /* One more than needed: calloc(0) can yield NULL. */
        view->providers = calloc(tree->n_providers + 1, sizeof(HostProvider));
        view->places = calloc(tree->n_providers + 1, sizeof(size_t));
        if (!view->providers || !view->places)
                return -ENOMEM;
        for (size_t i = 0; i < tree->n_providers; i++)
                view->places[find_position(tree, &tree->providers[i]->uuid, &found)] = i;
        view->n_providers = tree->n_providers;
        view->tree = TAKE_PTR(taken);
        *ret = TAKE_PTR(view);
        return 0;
}

HostView *host_view_free(HostView *view)
{
        if (!view)
                return NULL;
        for (size_t i = 0; i < view->n_providers; i++)
                resources_done(&view->providers[i].used);
        free(view->providers);
        free(view->places);
        free(view->cell_usages);
        free(view->limits);
        cpu_set_done(&view->held);
        provider_tree_free(view->tree);
        free(view);
        return NULL;
}

bool host_view_find(const HostView *view, const Uuid *uuid, size_t *ret_index)
{
        bool found;
        size_t position = find_position(view->tree, uuid, &found);

        if (found)
                *ret_index = view->places[position];
        return found;
}

uint64_t host_view_usage(const HostView *view, const Uuid *provider, const char *resource_class)
{
        size_t index;

        if (!view || !host_view_find(view, provider, &index))
                return 0;
        return resources_get(&view->providers[index].used, resource_class);
}

static bool shares(const Provider *provider)
{
        return string_set_contains(&provider->traits, TRAIT_SHARES_VIA_AGGREGATE);
}

bool host_view_shares(const HostView *view, size_t index)
{
        return shares(view->tree->providers[index]);
}

bool host_view_root(const HostView *view, const char *node, size_t *ret_index)
{
        bool found = false;

        for (size_t i = 0; i < view->n_providers; i++) {
                const Provider *provider = view->tree->providers[i];

                if (!uuid_empty(&provider->parent) || shares(provider) ||
                    view->providers[i].withheld)
                        continue;
                if (!found || strcmp(provider->name, node) == 0)
                        *ret_index = i;
                if (strcmp(provider->name, node) == 0)
                        return true;
                found = true;
        }
        return found;
}

static bool have_common_aggregate(const Provider *a, const Provider *b)
{
        for (size_t i = 0; i < a->aggregates.n_items; i++)
                if (string_set_contains(&b->aggregates, a->aggregates.items[i]))
                        return true;
        return false;
}

void host_view_usable(const HostView *view, const char *node, bool usable[])
{
        const ProviderTree *tree = view->tree;
        size_t root;

        memset(usable, 0, view->n_providers * sizeof(bool));
        if (!host_view_root(view, node, &root))
                return;
        for (size_t i = 0; i < view->n_providers; i++)
                usable[i] = !view->providers[i].withheld &&
                            provider_tree_in_subtree(tree, tree->providers[i],
                                                     &tree->providers[root]->uuid);
        for (size_t i = 0; i < view->n_providers; i++) {
                if (usable[i] || !shares(tree->providers[i]) || view->providers[i].withheld)
                        continue;
                for (size_t j = 0; j < view->n_providers && !usable[i]; j++)
                        usable[i] = usable[j] && !shares(tree->providers[j]) &&
                                    have_common_aggregate(tree->providers[i], tree->providers[j]);
        }
}

/* Finds the provider of tree that continues a provider of seen: the one with its uuid, or one of
 * the same name with a uuid that seen lacks. The name gets a new uuid when Placement turns out to
 * have the provider under another uuid than the one that this host chose. */
static const Provider *find_successor(const HostView *seen, const Provider *provider,
                                      const ProviderTree *tree)
{
        const Provider *successor = provider_tree_find(tree, &provider->uuid);

        if (successor)
                return successor;
        successor = provider_tree_find_name(tree, provider->name);
        return successor && !provider_tree_find(seen->tree, &successor->uuid) ? successor : NULL;
}

/* Marks the providers of seen that the new tree lacks and that must stay, because claims use them
 * or a provider below them. Returns true if there is one. */
static bool mark_kept(const HostView *seen, const ProviderTree *tree, bool kept[])
{
        bool any = false;

        for (size_t i = seen->n_providers; i > 0; i--) {
                const Provider *provider = seen->tree->providers[i - 1];
                size_t parent;

                if (find_successor(seen, provider, tree)) {
                        kept[i - 1] = false;
                        continue;
                }
                kept[i - 1] = kept[i - 1] || seen->providers[i - 1].used.n_items > 0;
                any |= kept[i - 1];
                /* Children come after their parents: this backward loop visits parents later. */
                if (kept[i - 1] && host_view_find(seen, &provider->parent, &parent))
                        kept[parent] = true;
        }
        return any;
}

/* Makes a distinct name of a withheld provider, because the new tree has another provider of its
 * name. The result is its name and its uuid, with the name cut if it is too long. */
static void distinct_name(const Provider *provider, char text[PROVIDER_NAME_MAX + 1])
{
        size_t capacity = PROVIDER_NAME_MAX - UUID_TEXT_LENGTH - 1,
               n = strnlen(provider->name, capacity + 1);

        if (n > capacity)
                n = capacity;
        /* Do not cut inside a UTF-8 sequence. */
        while (n > 0 && provider->name[n] != '\0' && (provider->name[n] & 0xc0) == 0x80)
                n--;
        snprintf(text, PROVIDER_NAME_MAX + 1, "%.*s.%s", (int)n, provider->name,
                 provider->uuid.text);
}

/* Adds a provider that will be withheld below parent, a uuid in tree, or as a root if parent is
 * empty. */
static int keep_provider(ProviderTree *tree, const Provider *provider, const Uuid *parent,
                         Error *reterr)
{
        char distinct[PROVIDER_NAME_MAX + 1];
        const char *name = provider->name;
        Provider *copy;
        int r;

        if (provider_tree_find_name(tree, name)) {
                distinct_name(provider, distinct);
                name = distinct;
        }
        r = provider_tree_add(tree, &provider->uuid, name, parent, &copy, reterr);
        if (r < 0)
                return r;
        return provider_copy_contents(copy, provider) < 0 ? error_oom(reterr) : 0;
}

/* Returns true if drop_invalid() would change the tree. */
static bool has_invalid(const ProviderTree *tree)
{
        for (size_t i = 0; i < tree->n_providers; i++)
                for (size_t j = 0; j < tree->providers[i]->n_inventories; j++)
                        if (inventory_invalid_field(&tree->providers[i]->inventories[j].inventory))
                                return true;
        return false;
}

/* Removes inventories that Placement would reject, such as a total of 0. They cannot be claimed. */
static void drop_invalid(ProviderTree *tree)
{
        for (size_t i = 0; i < tree->n_providers; i++) {
                Provider *provider = tree->providers[i];

                for (size_t j = provider->n_inventories; j > 0; j--) {
                        const InventoryRecord *record = &provider->inventories[j - 1];

                        if (inventory_invalid_field(&record->inventory))
                                provider_remove_inventory(provider, record->resource_class);
                }
        }
}

/* Makes the merged tree: the new one, and the kept providers. Shares the new tree if nothing must
 * be added or removed. */
static int merge_trees(ProviderTree **ret, const HostView *seen, const ProviderTree *tree,
                       Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *merged = NULL;
        _cleanup_free_ bool *kept = calloc(seen->n_providers + 1, sizeof(bool));
        int r;

        if (!kept)
                return error_oom(reterr);
        if (!mark_kept(seen, tree, kept) && !has_invalid(tree)) {
                *ret = provider_tree_ref(tree);
                return 0;
        }
        if (provider_tree_copy(&merged, tree) < 0)
                return error_oom(reterr);
        drop_invalid(merged);
        for (size_t i = 0; i < seen->n_providers; i++) {
                const Provider *provider = seen->tree->providers[i],
                               *parent = provider_tree_find(seen->tree, &provider->parent),
                               *successor = parent ? find_successor(seen, parent, tree) : NULL;

                if (!kept[i] || find_successor(seen, provider, tree))
                        continue;
                r = keep_provider(merged, provider,
                                  successor ? &successor->uuid : &provider->parent, reterr);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(merged);
        return 0;
}

int host_view_merge(HostView **ret, const HostView *seen, const ProviderTree *tree, Error *reterr)
{
        _cleanup_(host_view_freep) HostView *view = NULL;
        ProviderTree *merged;
        int r = merge_trees(&merged, seen, tree, reterr);

        if (r < 0)
                return r;
        r = host_view_new(&view, merged);
        if (r < 0)
                return error_oom(reterr);
        view->epoch = seen->epoch;
        for (size_t i = 0; i < seen->n_providers; i++) {
                const HostProvider *from = &seen->providers[i];
                const Provider *provider = seen->tree->providers[i],
                               *successor = find_successor(seen, provider, tree);
                HostProvider *to;
                size_t index;

                if (!host_view_find(view, successor ? &successor->uuid : &provider->uuid, &index))
                        continue;
                to = &view->providers[index];
                to->id = from->id;
                to->generation = from->generation;
                to->withheld = !successor;
                if (resources_copy(&to->used, &from->used) < 0)
                        return error_oom(reterr);
        }
        *ret = TAKE_PTR(view);
        return 0;
}

bool host_view_provider_equal(const HostView *a, size_t index_a, const HostView *b, size_t index_b)
{
        return a->providers[index_a].withheld == b->providers[index_b].withheld &&
               provider_equal(a->tree->providers[index_a], b->tree->providers[index_b]);
}

bool host_view_same_host(const HostView *a, const HostView *b)
{
        if (a->n_providers != b->n_providers)
                return false;
        for (size_t i = 0; i < a->n_providers; i++) {
                size_t index;

                if (!host_view_find(b, &a->tree->providers[i]->uuid, &index) ||
                    !host_view_provider_equal(a, i, b, index))
                        return false;
        }
        return true;
}
