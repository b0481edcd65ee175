/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads Placement's answers: lists and trees of providers, the parts of one provider, names,
 * usages, allocations and free capacity. Each reader converts JSON into values. A reader builds its
 * result separately and moves it to ret at the end, so a failure leaves ret unchanged. Two readers
 * add to the content of ret and do not replace it: placement_read_consumer() at the end, and
 * placement_read_provider_allocations() in steps, also before a failure. Trees are sorted here,
 * parents before children, because Placement guarantees no order.
 *
 * The limits on the number of providers, traits, aggregates, inventories and usages protect the
 * sorted arrays of base/, where an insertion moves all later items. The number of classes,
 * consumers, allocations and free amounts is limited only by the size of the body. All algorithms
 * are bounded for any answer, also for a tree with a cycle. */

#include "report/placement/answer.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* Limit for a list of traits, aggregates, inventories or usages; Placement's own lists are far
 * shorter. */
#define NAMES_MAX 8192

#define NAME_SHOWN 100 /* bytes of an odd name that are shown */

void placement_providers_done(PlacementProviders *providers)
{
        for (size_t i = 0; i < providers->n_items; i++)
                free(providers->items[i].name);
        free(providers->items);
        *providers = PLACEMENT_PROVIDERS_INIT;
}

int placement_read_generation(const json_t *object, const char *key, int64_t *ret, Error *reterr)
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

/* Reads the parent; null becomes UUID_NULL. A missing member is an error. */
static int read_parent(const json_t *object, Uuid *ret, Error *reterr)
{
        const json_t *parent = json_object_get(object, "parent_provider_uuid");

        if (json_is_null(parent)) {
                *ret = UUID_NULL;
                return 0;
        }
        return json_read_uuid(object, "parent_provider_uuid", ret, reterr);
}

/* Makes a name from the first NAME_SHOWN bytes of an odd name, with "?" for characters that cannot
 * be printed, and from the uuid. The agent gives no provider an odd name, so no new provider gets
 * the result. */
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

/* Reads a name. A name that is empty, too long, or has a NUL is replaced (make_odd_name()), so that
 * one odd provider does not make the whole list unreadable. */
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

/* Reads the name last, so that a failure leaves no memory to free. */
static int read_provider(const json_t *object, PlacementProvider *ret, Error *reterr)
{
        PlacementProvider provider = { 0 };
        int r;

        if (!json_is_object(object))
                return error_setf(reterr, EBADMSG, "A provider is not an object");
        if ((r = json_read_uuid(object, "uuid", &provider.uuid, reterr)) < 0 ||
            (r = placement_read_generation(object, PLACEMENT_GENERATION, &provider.generation,
                                           reterr)) < 0 ||
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
                return error_setf(reterr, EBADMSG, "The tree has %zu providers, more than %d", n,
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

/* Rejects a uuid or a name that occurs twice. The items must be sorted by uuid. */
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
                        return error_setf(reterr, EBADMSG, "Provider %s is listed twice",
                                          providers->items[i].uuid.text);
                if (strcmp(names[i - 1], names[i]) == 0)
                        return error_setf(reterr, EBADMSG, "The name %s is listed twice", names[i]);
        }
        return 0;
}

/* Returns the position of the parent, or of the provider itself for a root. The items must be
 * sorted by uuid. */
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

/* Computes the levels of all providers: 1 is a root, 0 is not known yet. Each walk ends at a root
 * or a known level, so the work grows with the number of providers and not with the depth. A walk
 * that is longer than the list is in a cycle. */
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

/* Sorts by level: one pass over all items for each level. The order by uuid stays within a
 * level. */
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

/* Sorts in steps that depend on each other: the order by uuid is needed for unique uuids and
 * parents, the parents for the levels, and the levels for the final order. */
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

static int check_size(size_t n, const char *key, Error *reterr)
{
        if (n <= NAMES_MAX)
                return 0;
        return error_setf(reterr, EBADMSG, "\"%s\" has %zu items, more than %d", key, n, NAMES_MAX);
}

/* Reads the inventories into an empty provider (copy). At the end they replace the inventories of
 * provider. */
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

/* A cloud can have thousands of classes, so only the wanted names are copied. */
int placement_read_classes(const json_t *body, const StringSet *wanted, StringSet *ret,
                           Error *reterr)
{
        _cleanup_(string_set_done) StringSet found = STRING_SET_INIT;
        json_t *array, *item;
        const char *name;
        size_t i;
        int r = json_read_array(body, "resource_classes", &array, reterr);

        if (r < 0)
                return r;
        json_array_foreach(array, i, item) {
                r = json_read_string(item, "name", &name, reterr);
                if (r < 0)
                        return r;
                if (string_set_contains(wanted, name) && string_set_add(&found, name) < 0)
                        return error_oom(reterr);
        }
        string_set_done(ret);
        *ret = TAKE_STRUCT(found);
        return 0;
}

int placement_read_part(const json_t *body, PlacementPart part, Provider *provider, Error *reterr)
{
        if (part == PLACEMENT_INVENTORIES)
                return read_inventories(body, provider, reterr);
        if (part == PLACEMENT_TRAITS)
                return read_names(body, "traits", &provider->traits, reterr);
        return read_names(body, "aggregates", &provider->aggregates, reterr);
}

/* Allocations. */

/* Sets the consumer's allocations from one provider, of the form {"resources": {"VCPU": 3, …}}. */
static int add_resources(Consumer *consumer, const Uuid *provider, const json_t *holding,
                         Error *reterr)
{
        Resources resources = RESOURCES_INIT;
        json_t *object;
        int r = json_read_object(holding, "resources", &object, reterr);

        if (r >= 0)
                r = resources_from_json(object, &resources, reterr);
        for (size_t i = 0; r >= 0 && i < resources.n_items; i++)
                if (consumer_set(consumer, provider, resources.items[i].resource_class,
                                 resources.items[i].amount) < 0)
                        r = error_oom(reterr);
        resources_done(&resources);
        return r;
}

static int read_uuid(const char *text, Uuid *ret, Error *reterr)
{
        return uuid_from_text(text, ret) < 0
                       ? error_setf(reterr, EBADMSG, "\"%.60s\" is not a uuid", text)
                       : 0;
}

int placement_read_provider_allocations(const json_t *body, const Uuid *provider, Allocations *ret,
                                        Error *reterr)
{
        json_t *object, *holding;
        const char *key;
        int r = json_read_object(body, "allocations", &object, reterr);

        if (r < 0)
                return r;
        json_object_foreach(object, key, holding) {
                Consumer *consumer;
                Uuid uuid;

                r = read_uuid(key, &uuid, reterr);
                if (r < 0)
                        return r;
                if (allocations_ensure(ret, &uuid, &consumer) < 0)
                        return error_oom(reterr);
                r = add_resources(consumer, provider, holding, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Copies a member to *text. Frees the old text. */
static int read_text(const json_t *body, const char *key, char **text, Error *reterr)
{
        const char *value;
        int r = json_read_string(body, key, &value, reterr);

        if (r < 0)
                return r;
        free(*text);
        *text = strdup(value);
        return *text ? 0 : error_oom(reterr);
}

/* Reads project, user, generation and, if Placement sent it, the type. */
static int read_owner(const json_t *body, Consumer *consumer, Error *reterr)
{
        int r;

        if ((r = read_text(body, "project_id", &consumer->project_id, reterr)) < 0 ||
            (r = read_text(body, "user_id", &consumer->user_id, reterr)) < 0 ||
            (r = json_read_i64(body, "consumer_generation", &consumer->generation, reterr)) < 0)
                return r;
        return json_object_get(body, "consumer_type")
                       ? read_text(body, "consumer_type", &consumer->type, reterr)
                       : 0;
}

/* Adds the allocations of a body {"allocations": {"<provider>": {"resources": {…}}}} to the
 * consumer. */
static int read_holdings(const json_t *body, Consumer *consumer, Error *reterr)
{
        json_t *object, *holding;
        const char *key;
        int r = json_read_object(body, "allocations", &object, reterr);

        if (r < 0)
                return r;
        json_object_foreach(object, key, holding) {
                Uuid provider;

                r = read_uuid(key, &provider, reterr);
                if (r >= 0)
                        r = add_resources(consumer, &provider, holding, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads the owner only if there are allocations: an answer without allocations has neither owner
 * nor generation. */
int placement_read_whole(const json_t *body, const Uuid *uuid, Consumer **ret, Error *reterr)
{
        _cleanup_(consumer_freep) Consumer *consumer = NULL;
        int r;

        if (consumer_new(&consumer, uuid) < 0)
                return error_oom(reterr);
        r = read_holdings(body, consumer, reterr);
        if (r >= 0 && consumer->n_allocations > 0)
                r = read_owner(body, consumer, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(consumer);
        return 0;
}

/* Rejects a second answer for a consumer, because the set has each consumer once. */
int placement_read_consumer(const json_t *body, const Uuid *uuid, Allocations *ret, Error *reterr)
{
        _cleanup_(consumer_freep) Consumer *consumer = NULL;
        int r = placement_read_whole(body, uuid, &consumer, reterr);

        if (r < 0 || consumer->n_allocations == 0)
                return r;
        r = allocations_add(ret, consumer);
        if (r == -EEXIST)
                return error_setf(reterr, EBADMSG, "Consumer %s is listed twice", uuid->text);
        if (r < 0)
                return error_oom(reterr);
        consumer = NULL;
        return 0;
}

/* Adds the free amounts of one provider: capacity without the used part. An amount of 0, also of an
 * overcommitted class, is left out. */
static int add_capacity(const json_t *summary, const Uuid *provider, Consumer *free_capacity,
                        Error *reterr)
{
        const char *resource_class;
        json_t *resources, *item;
        int r = json_read_object(summary, "resources", &resources, reterr);

        if (r < 0)
                return r;
        json_object_foreach(resources, resource_class, item) {
                uint64_t capacity, used;

                if ((r = json_read_u64(item, "capacity", &capacity, reterr)) < 0 ||
                    (r = json_read_u64(item, "used", &used, reterr)) < 0)
                        return r;
                if (consumer_set(free_capacity, provider, resource_class,
                                 capacity - MIN(used, capacity)) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

int placement_read_capacity(const json_t *body, Consumer **ret, Error *reterr)
{
        _cleanup_(consumer_freep) Consumer *free_capacity = NULL;
        json_t *object, *summary;
        const char *key;
        int r = json_read_object(body, "provider_summaries", &object, reterr);

        if (r < 0)
                return r;
        if (consumer_new(&free_capacity, &UUID_NULL) < 0)
                return error_oom(reterr);
        json_object_foreach(object, key, summary) {
                Uuid provider;

                r = read_uuid(key, &provider, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "\"provider_summaries\"");
                r = add_capacity(summary, &provider, free_capacity, reterr);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(free_capacity);
        return 0;
}
