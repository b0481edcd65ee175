/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes the JSON document of the provider tree (members: tree-json.h). The tree keeps its providers
 * in the order in which they were added or moved, and the document sorts them.
 *
 * The main structure is Place, a provider with its parent and depth. In the document, a parent
 * precedes its children. Siblings are sorted by name, with numbers as numbers, and roots count as
 * siblings. So the order in which providers were added or moved does not change the document. The
 * file agent/reshape/image.c relies on parents before children, because a provider can be added
 * only below one that exists. */

#include "formats/tree-json.h"

#include <string.h>

#include "base/json.h"
#include "formats/format-names.h"

/* Makes {class: inventory}, with the computed members "capacity" and "used". */
static json_t *inventories_to_json(const Provider *provider, const HostView *view)
{
        _cleanup_json_ json_t *object = json_object();

        for (size_t i = 0; i < provider->n_inventories; i++) {
                const InventoryRecord *record = &provider->inventories[i];
                _cleanup_json_ json_t *inventory = inventory_to_json(&record->inventory);
                uint64_t used = host_view_usage(view, &provider->uuid, record->resource_class);

                if (json_object_set_new(inventory, "capacity",
                                        json_from_u64(inventory_capacity(&record->inventory))) <
                            0 ||
                    json_object_set_new(inventory, "used", json_from_u64(used)) < 0 ||
                    json_object_set(object, record->resource_class, inventory) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

static json_t *provider_to_json(const Provider *provider, const HostView *view)
{
        /* A NULL among the values makes json_pack() fail and free the others. */
        return json_pack("{ss ss so so so so}", "uuid", provider->uuid.text, "name", provider->name,
                         "parent",
                         uuid_empty(&provider->parent) ? json_null()
                                                       : json_string(provider->parent.text),
                         "traits", string_set_to_json(&provider->traits), "aggregates",
                         string_set_to_json(&provider->aggregates), "inventories",
                         inventories_to_json(provider, view));
}

/* The position of a provider in the tree. */
typedef struct Place {
        const Provider *provider;
        const struct Place *parent; /* NULL: a root */
        size_t depth;
} Place;

/* Compares two places for the order of the document. Both climb to the same depth, and then to
 * siblings, whose names decide, with numbers as numbers. If one is an ancestor of the other one, it
 * comes first. */
static int order_places(const void *a, const void *b)
{
        const Place *x = *(Place *const *)a, *y = *(Place *const *)b;
        bool x_is_deeper = x->depth > y->depth;
        int r;

        while (x->depth > y->depth)
                x = x->parent;
        while (y->depth > x->depth)
                y = y->parent;
        if (x == y)
                return x_is_deeper ? 1 : -1;
        while (x->parent != y->parent) {
                x = x->parent;
                y = y->parent;
        }
        r = strverscmp(x->provider->name, y->provider->name);
        return r != 0 ? r : uuid_order(&x->provider->uuid, &y->provider->uuid);
}

static int order_by_index(const void *a, const void *b)
{
        return uuid_order(&(*(Place *const *)a)->provider->uuid,
                          &(*(Place *const *)b)->provider->uuid);
}

/* Finds the place of a provider in an array that is sorted by uuid. Returns NULL if there is
 * none. */
static const Place *find_place(Place *const *by_uuid, size_t n, const Uuid *uuid)
{
        const Provider provider = { .uuid = *uuid };
        const Place key = { .provider = &provider }, *const p = &key;
        Place *const *found = bsearch(&p, by_uuid, n, sizeof(Place *), order_by_index);

        return found ? *found : NULL;
}

/* Fills the places and sorts order, which has space for one pointer of each. The order by uuid is
 * needed only to find the parents. A parent's depth is known before its children's, because parents
 * precede children in the tree. */
static void place_all(const ProviderTree *tree, Place *places, Place **order)
{
        for (size_t i = 0; i < tree->n_providers; i++) {
                places[i] = (Place){ .provider = tree->providers[i] };
                order[i] = &places[i];
        }
        qsort(order, tree->n_providers, sizeof(Place *), order_by_index);
        for (size_t i = 0; i < tree->n_providers; i++) {
                const Uuid *parent = &tree->providers[i]->parent;

                if (!uuid_empty(parent))
                        places[i].parent = find_place(order, tree->n_providers, parent);
                places[i].depth = places[i].parent ? places[i].parent->depth + 1 : 0;
        }
        qsort(order, tree->n_providers, sizeof(Place *), order_places);
}

json_t *tree_to_json(const ProviderTree *tree, const HostView *view, const Uuid *root,
                     const char *node, const char *sync_state)
{
        _cleanup_json_ json_t *providers = json_array();
        _cleanup_free_ Place *places = calloc(tree->n_providers + 1, sizeof(Place));
        _cleanup_free_ Place **order = calloc(tree->n_providers + 1, sizeof(Place *));

        if (!places || !order)
                return NULL;
        place_all(tree, places, order);
        for (size_t i = 0; i < tree->n_providers; i++)
                if (json_array_append_new(providers, provider_to_json(order[i]->provider, view)) <
                    0)
                        return NULL;
        return json_pack("{ss ss ss ss sO}", "format", TREE_FORMAT, "node", node, "root",
                         root->text, "sync_state", sync_state, "providers", providers);
}
