/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement-answer.h"

#include <string.h>

#include "base/json.h"

/* Longer chains of parents, and longer lists of names, are not believed. Placement's own are far
 * shorter, and the sorted containers of base/ are not made for millions of items. */
#define DEPTH_MAX 64
#define NAMES_MAX 8192

void placement_providers_done(PlacementProviders *providers)
{
        for (size_t i = 0; i < providers->n_items; i++)
                free(providers->items[i].name);
        free(providers->items);
        *providers = PLACEMENT_PROVIDERS_INIT;
}

static int read_generation_member(const json_t *object, const char *key, int64_t *ret,
                                  Error *reterr)
{
        int64_t generation;
        int r = json_read_i64(object, key, &generation, reterr);

        if (r < 0)
                return r;
        if (generation < 0)
                return error_setf(reterr, EBADMSG, "\"%s\" is negative", key);
        *ret = generation;
        return 0;
}

static int read_parent(const json_t *object, Uuid *ret, Error *reterr)
{
        const json_t *parent = json_object_get(object, "parent_provider_uuid");

        if (json_is_null(parent)) {
                *ret = UUID_NULL;
                return 0;
        }
        return json_read_uuid(object, "parent_provider_uuid", ret, reterr);
}

static int read_provider(const json_t *object, PlacementProvider *ret, Error *reterr)
{
        PlacementProvider provider = { 0 };
        const char *name;
        size_t n;
        int r;

        if (!json_is_object(object))
                return error_setf(reterr, EBADMSG, "A provider is not an object");
        if ((r = json_read_uuid(object, "uuid", &provider.uuid, reterr)) < 0 ||
            (r = json_read_string(object, "name", &name, reterr)) < 0 ||
            (r = read_generation_member(object, "generation", &provider.generation, reterr)) < 0 ||
            (r = read_parent(object, &provider.parent, reterr)) < 0)
                return r;
        n = strnlen(name, PROVIDER_NAME_MAX + 1);
        if (n == 0 || n > PROVIDER_NAME_MAX)
                return error_setf(reterr, EBADMSG, "The name of provider %s is empty or too long",
                                  provider.uuid.text);
        provider.name = strdup(name);
        if (!provider.name)
                return error_oom(reterr);
        *ret = provider;
        return 0;
}

int placement_read_providers(const json_t *body, PlacementProviders *ret, Error *reterr)
{
        _cleanup_(placement_providers_done) PlacementProviders providers = PLACEMENT_PROVIDERS_INIT;
        json_t *array;
        size_t n;
        int r;

        r = json_read_array(body, "resource_providers", &array, reterr);
        if (r < 0)
                return r;
        n = json_array_size(array);
        if (n > PLACEMENT_PROVIDERS_MAX)
                return error_setf(reterr, EBADMSG, "%zu providers in one tree, more than %d", n,
                                  PLACEMENT_PROVIDERS_MAX);
        providers.items = calloc(MAX(n, (size_t)1), sizeof(PlacementProvider));
        if (!providers.items)
                return error_oom(reterr);
        for (size_t i = 0; i < n; i++) {
                r = read_provider(json_array_get(array, i), &providers.items[i], reterr);
                if (r < 0)
                        return r;
                providers.n_items++;
        }
        placement_providers_done(ret);
        *ret = providers;
        providers = PLACEMENT_PROVIDERS_INIT;
        return 0;
}

static int compare_uuids(const void *a, const void *b)
{
        return uuid_order(&((const PlacementProvider *)a)->uuid,
                          &((const PlacementProvider *)b)->uuid);
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Needs items sorted by uuid. */
static int check_unique(const PlacementProviders *providers, Error *reterr)
{
        _cleanup_free_ const char **names =
                calloc(MAX(providers->n_items, (size_t)1), sizeof(char *));

        if (!names)
                return error_oom(reterr);
        for (size_t i = 0; i < providers->n_items; i++)
                names[i] = providers->items[i].name;
        qsort(names, providers->n_items, sizeof(char *), compare_names);
        for (size_t i = 1; i < providers->n_items; i++) {
                if (uuid_equal(&providers->items[i - 1].uuid, &providers->items[i].uuid))
                        return error_setf(reterr, EBADMSG, "Provider %s comes twice",
                                          providers->items[i].uuid.text);
                if (strcmp(names[i - 1], names[i]) == 0)
                        return error_setf(reterr, EBADMSG, "The name %s comes twice", names[i]);
        }
        return 0;
}

/* The steps from each provider up to its root. Needs items sorted by uuid. */
static int find_depths(const PlacementProviders *providers, size_t *depths, Error *reterr)
{
        for (size_t i = 0; i < providers->n_items; i++) {
                const PlacementProvider *provider = &providers->items[i];

                while (!uuid_empty(&provider->parent)) {
                        PlacementProvider key = { .uuid = provider->parent };
                        const PlacementProvider *parent =
                                bsearch(&key, providers->items, providers->n_items,
                                        sizeof(PlacementProvider), compare_uuids);

                        if (!parent)
                                return error_setf(reterr, EBADMSG,
                                                  "Provider %s has a parent outside of the tree",
                                                  provider->uuid.text);
                        if (++depths[i] > DEPTH_MAX)
                                return error_setf(reterr, EBADMSG,
                                                  "Provider %s is its own ancestor, or lies more "
                                                  "than %d levels deep",
                                                  provider->uuid.text, DEPTH_MAX);
                        provider = parent;
                }
        }
        return 0;
}

/* A counting sort by depth: order stays by uuid among equals. */
static void sort_by_depth(PlacementProviders *providers, const size_t *depths,
                          PlacementProvider *sorted)
{
        size_t n = 0;

        for (size_t depth = 0; n < providers->n_items; depth++)
                for (size_t i = 0; i < providers->n_items; i++)
                        if (depths[i] == depth)
                                sorted[n++] = providers->items[i];
        memcpy(providers->items, sorted, n * sizeof(PlacementProvider));
}

int placement_read_tree(const json_t *body, PlacementProviders *ret, Error *reterr)
{
        _cleanup_(placement_providers_done) PlacementProviders providers = PLACEMENT_PROVIDERS_INIT;
        _cleanup_free_ PlacementProvider *sorted = NULL;
        _cleanup_free_ size_t *depths = NULL;
        int r;

        r = placement_read_providers(body, &providers, reterr);
        if (r < 0)
                return r;
        depths = calloc(MAX(providers.n_items, (size_t)1), sizeof(size_t));
        sorted = calloc(MAX(providers.n_items, (size_t)1), sizeof(PlacementProvider));
        if (!depths || !sorted)
                return error_oom(reterr);
        qsort(providers.items, providers.n_items, sizeof(PlacementProvider), compare_uuids);
        r = check_unique(&providers, reterr);
        if (r < 0)
                return r;
        r = find_depths(&providers, depths, reterr);
        if (r < 0)
                return r;
        sort_by_depth(&providers, depths, sorted);
        placement_providers_done(ret);
        *ret = providers;
        providers = PLACEMENT_PROVIDERS_INIT;
        return 0;
}

int placement_read_provider_generation(const json_t *body, int64_t *ret, Error *reterr)
{
        return read_generation_member(body, "generation", ret, reterr);
}

int placement_read_generation(const json_t *body, int64_t *ret, Error *reterr)
{
        return read_generation_member(body, "resource_provider_generation", ret, reterr);
}

static int check_size(size_t n, const char *key, Error *reterr)
{
        if (n <= NAMES_MAX)
                return 0;
        return error_setf(reterr, EBADMSG, "\"%s\" has %zu items, more than %d", key, n, NAMES_MAX);
}

int placement_read_inventories(const json_t *body, Provider *provider, Error *reterr)
{
        Provider copy = { 0 };
        const char *resource_class;
        json_t *object, *record;
        int r;

        r = json_read_object(body, "inventories", &object, reterr);
        if (r >= 0)
                r = check_size(json_object_size(object), "inventories", reterr);
        if (r < 0)
                return r;
        json_object_foreach(object, resource_class, record) {
                Inventory inventory;

                r = inventory_from_json(record, &inventory, reterr);
                if (r >= 0)
                        r = provider_set_inventory(&copy, resource_class, &inventory);
                if (r == -EINVAL)
                        r = error_setf(reterr, EBADMSG, "\"%.60s\" is not a resource class",
                                       resource_class);
                if (r < 0)
                        break;
        }
        if (r >= 0)
                r = provider_copy_inventories(provider, &copy);
        provider_clear_inventories(&copy);
        free(copy.inventories);
        return r == -ENOMEM ? error_oom(reterr) : r;
}

static int read_names(const json_t *body, const char *key, StringSet *ret, Error *reterr)
{
        json_t *array;
        int r = json_read_array(body, key, &array, reterr);

        if (r >= 0)
                r = check_size(json_array_size(array), key, reterr);
        return r < 0 ? r : string_set_from_json(array, ret, reterr);
}

int placement_read_traits(const json_t *body, StringSet *ret, Error *reterr)
{
        return read_names(body, "traits", ret, reterr);
}

int placement_read_aggregates(const json_t *body, StringSet *ret, Error *reterr)
{
        return read_names(body, "aggregates", ret, reterr);
}
