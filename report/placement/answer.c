/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/answer.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* Longer lists of names are not believed. Placement's own are far shorter, and the sorted
 * containers of base/ are not made for millions of items. */
#define NAMES_MAX 8192

#define NAME_SHOWN 100 /* bytes of a name that cannot be taken as it is */

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

/* What somebody else named oddly is known by what can be shown of its name, and its uuid. None of
 * ours ever has such a name, so it is never sent. */
static char *make_odd_name(const char *name, size_t n, const Uuid *uuid)
{
        char shown[NAME_SHOWN + 1];

        n = MIN(n, (size_t)NAME_SHOWN);
        for (size_t i = 0; i < n; i++)
                shown[i] = name[i] ? name[i] : '?';
        shown[n] = '\0';
        text_trim_cut(shown);
        text_sanitize(shown, '?');
        return text_format("%s (%s)", shown, uuid->text);
}

static int read_name(const json_t *object, const Uuid *uuid, char **ret, Error *reterr)
{
        const json_t *member = json_object_get(object, "name");
        const char *name = json_string_value(member);
        size_t n = json_string_length(member), n_characters;

        if (!name)
                return error_setf(reterr, EBADMSG, "\"name\" is %s",
                                  member ? "not a string" : "missing");
        n_characters = text_count_characters(name);
        *ret = strlen(name) == n && n_characters > 0 && n_characters <= PROVIDER_NAME_MAX
                       ? strdup(name)
                       : make_odd_name(name, n, uuid);
        return *ret ? 0 : error_oom(reterr);
}

static int read_provider(const json_t *object, PlacementProvider *ret, Error *reterr)
{
        PlacementProvider provider = { 0 };
        int r;

        if (!json_is_object(object))
                return error_setf(reterr, EBADMSG, "A provider is not an object");
        if ((r = json_read_uuid(object, "uuid", &provider.uuid, reterr)) < 0 ||
            (r = read_generation_member(object, "generation", &provider.generation, reterr)) < 0 ||
            (r = read_parent(object, &provider.parent, reterr)) < 0 ||
            (r = read_name(object, &provider.uuid, &provider.name, reterr)) < 0)
                return r;
        *ret = provider;
        return 0;
}

int placement_read_providers(const json_t *body, PlacementProviders *ret, Error *reterr)
{
        _cleanup_(placement_providers_done) PlacementProviders providers = PLACEMENT_PROVIDERS_INIT;
        json_t *array;
        size_t n;
        int r = json_read_array(body, "resource_providers", &array, reterr);

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
        *ret = TAKE_STRUCT(providers);
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

/* Its parent's position; its own for a root. Needs items sorted by uuid. */
static int find_parent(const PlacementProviders *providers, size_t position, size_t *ret,
                       Error *reterr)
{
        const PlacementProvider *provider = &providers->items[position], *parent = provider;
        PlacementProvider key = { .uuid = provider->parent };

        if (!uuid_empty(&provider->parent))
                parent = bsearch(&key, providers->items, providers->n_items,
                                 sizeof(PlacementProvider), compare_uuids);
        if (!parent)
                return error_setf(reterr, EBADMSG, "Provider %s has a parent outside of the tree",
                                  provider->uuid.text);
        *ret = (size_t)(parent - providers->items);
        return 0;
}

/* The levels of all providers; 1 is a root's, 0 not known yet. Each is walked over twice at most,
 * however deep the tree. */
static int find_levels(const PlacementProviders *providers, const size_t *parents, size_t *levels,
                       Error *reterr)
{
        for (size_t i = 0; i < providers->n_items; i++) {
                size_t n = 0, at, level;

                for (at = i; levels[at] == 0 && !uuid_empty(&providers->items[at].parent);
                     at = parents[at])
                        if (++n > providers->n_items)
                                return error_setf(reterr, EBADMSG,
                                                  "Provider %s is its own ancestor",
                                                  providers->items[i].uuid.text);
                level = MAX(levels[at], (size_t)1) + n;
                for (at = i; levels[at] == 0; at = parents[at])
                        levels[at] = level--;
        }
        return 0;
}

/* A counting sort: order stays by uuid among equals. */
static void sort_by_level(PlacementProviders *providers, const size_t *levels,
                          PlacementProvider *sorted)
{
        size_t n = 0;

        for (size_t level = 1; n < providers->n_items; level++)
                for (size_t i = 0; i < providers->n_items; i++)
                        if (levels[i] == level)
                                sorted[n++] = providers->items[i];
        memcpy(providers->items, sorted, n * sizeof(PlacementProvider));
}

int placement_read_tree(const json_t *body, PlacementProviders *ret, Error *reterr)
{
        _cleanup_(placement_providers_done) PlacementProviders providers = PLACEMENT_PROVIDERS_INIT;
        _cleanup_free_ PlacementProvider *sorted = NULL;
        _cleanup_free_ size_t *levels = NULL, *parents = NULL;
        int r = placement_read_providers(body, &providers, reterr);

        if (r < 0)
                return r;
        levels = calloc(MAX(providers.n_items, (size_t)1), sizeof(size_t));
        parents = calloc(MAX(providers.n_items, (size_t)1), sizeof(size_t));
        sorted = calloc(MAX(providers.n_items, (size_t)1), sizeof(PlacementProvider));
        if (!levels || !parents || !sorted)
                return error_oom(reterr);
        qsort(providers.items, providers.n_items, sizeof(PlacementProvider), compare_uuids);
        r = check_unique(&providers, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; r >= 0 && i < providers.n_items; i++)
                r = find_parent(&providers, i, &parents[i], reterr);
        if (r >= 0)
                r = find_levels(&providers, parents, levels, reterr);
        if (r < 0)
                return r;
        sort_by_level(&providers, levels, sorted);
        placement_providers_done(ret);
        *ret = TAKE_STRUCT(providers);
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

const char *placement_part_to_text(PlacementPart part)
{
        static const char *const texts[_PLACEMENT_PART_MAX] = { "inventories", "traits",
                                                                "aggregates" };

        return texts[part];
}

static int check_size(size_t n, const char *key, Error *reterr)
{
        if (n <= NAMES_MAX)
                return 0;
        return error_setf(reterr, EBADMSG, "\"%s\" has %zu items, more than %d", key, n, NAMES_MAX);
}

static int read_inventories(const json_t *body, Provider *provider, Error *reterr)
{
        Provider copy = { 0 };
        const char *resource_class;
        json_t *object, *record;
        int r = json_read_object(body, "inventories", &object, reterr);

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

int placement_read_usages(const json_t *body, Resources *ret, Error *reterr)
{
        json_t *object;
        int r = json_read_object(body, "usages", &object, reterr);

        if (r >= 0)
                r = check_size(json_object_size(object), "usages", reterr);
        return r < 0 ? r : resources_from_json(object, ret, reterr);
}

int placement_read_traits(const json_t *body, StringSet *ret, Error *reterr)
{
        return read_names(body, "traits", ret, reterr);
}

int placement_read_part(const json_t *body, PlacementPart part, Provider *provider, Error *reterr)
{
        if (part == PLACEMENT_INVENTORIES)
                return read_inventories(body, provider, reterr);
        return read_names(body, placement_part_to_text(part),
                          part == PLACEMENT_TRAITS ? &provider->traits : &provider->aggregates,
                          reterr);
}
