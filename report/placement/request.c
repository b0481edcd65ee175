/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes Placement's requests: those about providers, then those about consumers. A route is a
 * literal with at most one placeholder, which is filled for the path; the session counts requests
 * by route. A request that cannot be made has no path, and session_send() then returns -ENOMEM.
 * Types of consumers need 1.38, and mappings need 1.34. A write with either uses 1.38, so they are
 * written only if each consumer has a valid type and the caller does not set "old" (Placement lacks
 * 1.38). */

#include "report/placement/request.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

void placement_request_done(PlacementRequest *request)
{
        free(request->path);
        free(request->body);
        *request = PLACEMENT_REQUEST_INIT;
}

/* Fills the placeholder of the route, if it has one. NULL: out of memory. */
static char *make_path(const char *route, const char *what)
{
        int n = (int)strcspn(route, "{");
        const char *rest = strchr(route, '}');

        return rest ? text_format("%.*s%s%s", n, route, what, rest + 1) : strdup(route);
}

PlacementRequest placement_request(const char *method, const char *route, const char *what)
{
        return (PlacementRequest){
                .method = method,
                .route = route,
                .path = make_path(route, what),
                .microversion = PLACEMENT_MICROVERSION,
        };
}

/* Makes a request with a body, and owns the reference to body. If body is NULL, because it could
 * not be made, the request has no path. */
static PlacementRequest request_with(const char *method, const char *route, const char *what,
                                     json_t *body)
{
        PlacementRequest request = placement_request(method, route, what);

        request.body = body ? json_dumps(body, JSON_COMPACT) : NULL;
        json_decref(body);
        if (!request.body)
                placement_request_done(&request);
        return request;
}

/* Makes a GET of a path that has a query behind the route, and owns path. */
static PlacementRequest get_list(const char *route, char *path)
{
        return (PlacementRequest){
                .method = "GET",
                .route = route,
                .path = path,
                .microversion = PLACEMENT_MICROVERSION,
        };
}

PlacementRequest placement_get_tree(const Uuid *provider)
{
        return get_list("/resource_providers",
                        text_format("/resource_providers?in_tree=%s", provider->text));
}

/* Quotes a part of a query: all bytes but letters, digits and "-._~" become %XX. The caller frees
 * the result. NULL: out of memory. */
static char *quote(const char *text)
{
        static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "abcdefghijklmnopqrstuvwxyz0123456789-._~";
        char *ret = malloc(3 * strlen(text) + 1), *end = ret;

        if (!ret)
                return NULL;
        for (; *text; text++)
                if (strchr(plain, *text))
                        *end++ = *text;
                else
                        end += snprintf(end, 4, "%%%02X", (unsigned)(unsigned char)*text);
        *end = '\0';
        return ret;
}

PlacementRequest placement_get_provider_by_name(const char *name)
{
        _cleanup_free_ char *quoted = quote(name);

        return get_list("/resource_providers",
                        quoted ? text_format("/resource_providers?name=%s", quoted) : NULL);
}

static const char *part_route(PlacementPart part)
{
        static const char *const routes[_PLACEMENT_PART_MAX] = {
                [PLACEMENT_INVENTORIES] = "/resource_providers/{uuid}/inventories",
                [PLACEMENT_TRAITS] = "/resource_providers/{uuid}/traits",
                [PLACEMENT_AGGREGATES] = "/resource_providers/{uuid}/aggregates",
        };

        return routes[part];
}

PlacementRequest placement_get_part(const Uuid *provider, PlacementPart part)
{
        return placement_request("GET", part_route(part), provider->text);
}

PlacementRequest placement_get_provider_allocations(const Uuid *provider)
{
        return placement_request("GET", "/resource_providers/{uuid}/allocations", provider->text);
}

PlacementRequest placement_get_consumer(const Uuid *consumer, bool with_type)
{
        PlacementRequest request = placement_request("GET", "/allocations/{uuid}", consumer->text);

        if (with_type)
                request.microversion = PLACEMENT_MICROVERSION_CONSUMER_TYPES;
        return request;
}

/* Makes "PREFIXa,b,c" with as many names from *first on as fit into PLACEMENT_PATH_MAX, at least
 * one, and moves *first behind them. */
static char *join_names(const char *prefix, const StringSet *names, size_t *first)
{
        size_t length = strlen(prefix), next = *first;
        char *path, *to;

        for (; next < names->n_items; next++) {
                size_t more = strlen(names->items[next]) + 1;

                if (next > *first && length + more > PLACEMENT_PATH_MAX)
                        break;
                length += more;
        }
        path = malloc(length + 1);
        if (!path)
                return NULL;
        to = stpcpy(path, prefix);
        for (size_t i = *first; i < next; i++) {
                if (i > *first)
                        *to++ = ',';
                to = stpcpy(to, names->items[i]);
        }
        *first = next;
        return path;
}

PlacementRequest placement_get_in(const char *route, const char *query, const StringSet *names,
                                  size_t *first)
{
        _cleanup_free_ char *prefix = text_format("%s%s", route, query);

        return get_list(route, prefix ? join_names(prefix, names, first) : NULL);
}

/* Makes the request for a new provider. A root has no parent: json_pack() omits a key of "ss*"
 * whose value is NULL. */
PlacementRequest placement_post_provider(const Provider *provider)
{
        const char *parent = uuid_empty(&provider->parent) ? NULL : provider->parent.text;

        PlacementRequest request =
                request_with("POST", "/resource_providers", "",
                             json_pack("{ss ss ss*}", "uuid", provider->uuid.text, "name",
                                       provider->name, "parent_provider_uuid", parent));

        request.microversion = PLACEMENT_MICROVERSION_CREATE;
        return request;
}

PlacementRequest placement_put_provider(const Uuid *provider, const char *name, const Uuid *parent)
{
        json_t *body = json_pack("{ss ss*}", "name", name, "parent_provider_uuid",
                                 parent ? parent->text : NULL);
        PlacementRequest request =
                request_with("PUT", "/resource_providers/{uuid}", provider->text, body);

        if (parent)
                request.microversion = PLACEMENT_MICROVERSION_MOVE;
        return request;
}

/* Makes {"VCPU": {"total": 8, …}, …}; provider NULL makes an empty object. */
static json_t *inventories_to_json(const Provider *provider)
{
        _cleanup_json_ json_t *object = json_object();

        if (!object)
                return NULL;
        for (size_t i = 0; provider && i < provider->n_inventories; i++)
                if (json_object_set_new(object, provider->inventories[i].resource_class,
                                        inventory_to_json(&provider->inventories[i].inventory)) < 0)
                        return NULL;
        return TAKE_PTR(object);
}

/* Makes an object of the value and the generation. json_pack() steals each "o" and fails for
 * NULL. */
static json_t *pack_with_generation(const char *key, json_t *value, int64_t generation)
{
        if (!value)
                return NULL;
        return json_pack("{so sI}", key, value, "resource_provider_generation",
                         (json_int_t)generation);
}

/* Makes the value of a part, an object or an array. NULL when out of memory. */
static json_t *part_to_json(const Provider *provider, PlacementPart part)
{
        if (part == PLACEMENT_INVENTORIES)
                return inventories_to_json(provider);
        return string_set_to_json(part == PLACEMENT_TRAITS ? &provider->traits
                                                           : &provider->aggregates);
}

/* Takes the key of the body from the last segment of the route. */
PlacementRequest placement_put_part(const Provider *provider, PlacementPart part,
                                    int64_t generation)
{
        return request_with("PUT", part_route(part), provider->uuid.text,
                            pack_with_generation(strrchr(part_route(part), '/') + 1,
                                                 part_to_json(provider, part), generation));
}

/* Consumers. */

/* Checks for a type that can be sent. Placement shows "unknown" for writers before 1.38, and
 * rejects it in a write. */
static bool type_valid(const char *type)
{
        return type && resource_class_valid(type);
}

int placement_check_consumers(const Allocations *consumers, Error *reterr)
{
        for (size_t i = 0; consumers && i < consumers->n_consumers; i++) {
                const Consumer *consumer = consumers->consumers[i];

                if (!consumer->project_id || !consumer->user_id)
                        return error_setf(reterr, EINVAL, "Consumer %s has no project or user",
                                          consumer->uuid.text);
        }
        return 0;
}

/* Returns true if there are consumers and each has a type that can be sent. */
static bool consumers_typed(const Allocations *consumers)
{
        for (size_t i = 0; consumers && i < consumers->n_consumers; i++)
                if (!type_valid(consumers->consumers[i]->type))
                        return false;
        return consumers && consumers->n_consumers > 0;
}

/* Makes {"<provider>": {"resources": {"VCPU": 2}}}. */
static json_t *consumer_allocations_to_json(const Consumer *consumer)
{
        _cleanup_json_ json_t *object = json_object();

        if (!object)
                return NULL;
        for (size_t i = 0; i < consumer->n_allocations; i++) {
                json_t *resources = resources_to_json(&consumer->allocations[i].resources);

                if (!resources ||
                    json_object_set_new(object, consumer->allocations[i].provider.text,
                                        json_pack("{so}", "resources", resources)) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

/* Makes the object of one consumer. A new consumer has null as its generation. */
static json_t *consumer_to_json(const Consumer *consumer, bool with_type)
{
        _cleanup_json_ json_t *object = NULL;
        json_t *allocations = consumer_allocations_to_json(consumer);
        json_t *generation;

        if (!allocations)
                return NULL;
        object = json_pack("{so ss ss}", "allocations", allocations, "project_id",
                           consumer->project_id, "user_id", consumer->user_id);
        generation = consumer->generation < 0 ? json_null() : json_integer(consumer->generation);
        if (!object || json_object_set_new(object, "consumer_generation", generation) < 0)
                return NULL;
        if (with_type && consumer->type &&
            json_object_set_new(object, "consumer_type", json_string(consumer->type)) < 0)
                return NULL;
        return TAKE_PTR(object);
}

json_t *placement_consumers_to_json(const Allocations *allocations, bool with_types)
{
        _cleanup_json_ json_t *object = json_object();

        if (!object)
                return NULL;
        for (size_t i = 0; allocations && i < allocations->n_consumers; i++) {
                const Consumer *consumer = allocations->consumers[i];

                if (json_object_set_new(object, consumer->uuid.text,
                                        consumer_to_json(consumer, with_types)) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

/* Makes {"": ["uuid", …], "1": ["uuid"]}. */
static json_t *mappings_to_json(const RequestMappings *mappings)
{
        _cleanup_json_ json_t *object = json_object();

        if (!object)
                return NULL;
        for (size_t i = 0; i < mappings->n_items; i++) {
                const RequestMapping *mapping = &mappings->items[i];
                json_t *providers = json_object_get(object, mapping->suffix);

                if (!providers) {
                        providers = json_array();
                        if (json_object_set_new(object, mapping->suffix, providers) < 0)
                                return NULL;
                }
                if (json_array_append_new(providers, json_string(mapping->provider.text)) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

/* Sends mappings only together with a type, because a request without one uses 1.30. */
PlacementRequest placement_put_consumer(const Consumer *consumer, const RequestMappings *mappings,
                                        bool old)
{
        bool typed = !old && type_valid(consumer->type);
        json_t *body = consumer_to_json(consumer, typed);
        PlacementRequest request;

        if (body && typed && mappings && mappings->n_items > 0 &&
            json_object_set_new(body, "mappings", mappings_to_json(mappings)) < 0) {
                json_decref(body);
                body = NULL;
        }
        request = request_with("PUT", "/allocations/{uuid}", consumer->uuid.text, body);
        if (typed)
                request.microversion = PLACEMENT_MICROVERSION_CONSUMER_TYPES;
        return request;
}

/* Sends the types only if all consumers have one, because the request has one microversion. */
PlacementRequest placement_post_consumers(const Allocations *consumers, bool old)
{
        bool typed = !old && consumers_typed(consumers);
        PlacementRequest request = request_with("POST", "/allocations", "",
                                                placement_consumers_to_json(consumers, typed));

        if (typed)
                request.microversion = PLACEMENT_MICROVERSION_CONSUMER_TYPES;
        return request;
}

/* Asks for one candidate only, because the summaries cover the whole tree anyway. */
PlacementRequest placement_get_capacity(const Uuid *root, const char *resource_class,
                                        uint64_t amount)
{
        return (PlacementRequest){
                .method = "GET",
                .route = "/allocation_candidates",
                .path = text_format("/allocation_candidates?limit=1&resources=%s:%" PRIu64
                                    "&in_tree=%s",
                                    resource_class, amount, root->text),
                .microversion = PLACEMENT_MICROVERSION_IN_TREE,
        };
}

/* Makes {"<provider>": {"inventories": {…}, "resource_provider_generation": 3}} of all items. */
static json_t *reshape_inventories_to_json(const PlacementReshapeItem *items, size_t n_items)
{
        _cleanup_json_ json_t *object = json_object();

        if (!object)
                return NULL;
        for (size_t i = 0; i < n_items; i++) {
                json_t *item = pack_with_generation("inventories",
                                                    inventories_to_json(items[i].inventories),
                                                    items[i].generation);

                if (json_object_set_new(object, items[i].provider.text, item) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

/* Leaves a missing object to json_pack(), which fails for NULL; request_with() reports that. */
PlacementRequest placement_post_reshaper(const PlacementReshapeItem *items, size_t n_items,
                                         const Allocations *allocations)
{
        bool typed = consumers_typed(allocations);
        json_t *inventories = reshape_inventories_to_json(items, n_items);
        json_t *consumers = placement_consumers_to_json(allocations, typed);
        PlacementRequest request = request_with(
                "POST", "/reshaper", "",
                json_pack("{so so}", "inventories", inventories, "allocations", consumers));

        if (typed)
                request.microversion = PLACEMENT_MICROVERSION_CONSUMER_TYPES;
        return request;
}
