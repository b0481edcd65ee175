/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/request.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "report/placement/consumer.h"

void placement_request_done(PlacementRequest *request)
{
        free(request->path);
        free(request->body);
        *request = PLACEMENT_REQUEST_INIT;
}

bool placement_request_writes(const PlacementRequest *request)
{
        return strcmp(request->method, "GET") != 0 && !request->harmless;
}

int placement_request_fill(PlacementRequest *ret, const char *method, char *path, json_t *body)
{
        char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

        if (!path || (body && !text)) {
                free(path);
                free(text);
                json_decref(body);
                return -ENOMEM;
        }
        json_decref(body);
        placement_request_done(ret);
        *ret = (PlacementRequest){
                .method = method,
                .path = path,
                .microversion = PLACEMENT_MICROVERSION,
                .body = text,
        };
        return 0;
}

/* The same for a request that should have a body: NULL means out of memory. */
static int fill_with_body(PlacementRequest *ret, const char *method, char *path, json_t *body)
{
        if (!body) {
                free(path);
                return -ENOMEM;
        }
        return placement_request_fill(ret, method, path, body);
}

static char *quote(const char *text)
{
        static const char digits[] = "0123456789ABCDEF";
        char *quoted = malloc(strlen(text) * 3 + 1), *to = quoted;

        if (!quoted)
                return NULL;
        for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
                bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                             (*c >= '0' && *c <= '9') || strchr("-._~", *c);

                if (plain) {
                        *to++ = (char)*c;
                        continue;
                }
                *to++ = '%';
                *to++ = digits[*c >> 4];
                *to++ = digits[*c & 15];
        }
        *to = '\0';
        return quoted;
}

int placement_get_tree(const Uuid *provider, PlacementRequest *ret)
{
        return placement_request_fill(
                ret, "GET", text_format("/resource_providers?in_tree=%s", provider->text), NULL);
}

int placement_get_provider_by_name(const char *name, PlacementRequest *ret)
{
        _cleanup_free_ char *quoted = quote(name);

        if (!quoted)
                return -ENOMEM;
        return placement_request_fill(ret, "GET",
                                      text_format("/resource_providers?name=%s", quoted), NULL);
}

static char *provider_path(const Uuid *provider, const char *what)
{
        return text_format("/resource_providers/%s%s", provider->text, what);
}

int placement_get_provider(const Uuid *provider, PlacementRequest *ret)
{
        return placement_request_fill(ret, "GET", provider_path(provider, ""), NULL);
}

static char *part_path(const Uuid *provider, PlacementPart part)
{
        return text_format("/resource_providers/%s/%s", provider->text,
                           placement_part_to_text(part));
}

int placement_get_part(const Uuid *provider, PlacementPart part, PlacementRequest *ret)
{
        return placement_request_fill(ret, "GET", part_path(provider, part), NULL);
}

int placement_get_provider_allocations(const Uuid *provider, PlacementRequest *ret)
{
        return placement_request_fill(ret, "GET", provider_path(provider, "/allocations"), NULL);
}

int placement_get_consumer(const Uuid *consumer, bool with_type, PlacementRequest *ret)
{
        int r = placement_request_fill(ret, "GET", text_format("/allocations/%s", consumer->text),
                                       NULL);

        if (r == 0 && with_type)
                ret->microversion = PLACEMENT_MICROVERSION_CONSUMER_TYPES;
        return r;
}

/* "PREFIXa,b,c" with names from *first on, as many as fit; *first moves behind them. */
static int fill_names(PlacementRequest *ret, const char *prefix, const StringSet *names,
                      size_t *first)
{
        size_t length = strlen(prefix), next = *first;
        char *path, *to;
        int r;

        for (; next < names->n_items; next++) {
                size_t more = strlen(names->items[next]) + 1;

                if (next > *first && length + more > PLACEMENT_PATH_MAX)
                        break;
                length += more;
        }
        path = malloc(length + 1);
        if (!path)
                return -ENOMEM;
        to = stpcpy(path, prefix);
        for (size_t i = *first; i < next; i++) {
                if (i > *first)
                        *to++ = ',';
                to = stpcpy(to, names->items[i]);
        }
        r = placement_request_fill(ret, "GET", path, NULL);
        if (r == 0)
                *first = next;
        return r;
}

int placement_get_known_traits(const StringSet *names, size_t *first, PlacementRequest *ret)
{
        return fill_names(ret, "/traits?name=in:", names, first);
}

int placement_get_sharing_providers(const StringSet *aggregates, size_t *first,
                                    PlacementRequest *ret)
{
        return fill_names(ret,
                          "/resource_providers?required=MISC_SHARES_VIA_AGGREGATE&member_of=in:",
                          aggregates, first);
}

int placement_put_resource_class(const char *name, PlacementRequest *ret)
{
        return placement_request_fill(ret, "PUT", text_format("/resource_classes/%s", name), NULL);
}

int placement_put_trait(const char *name, PlacementRequest *ret)
{
        return placement_request_fill(ret, "PUT", text_format("/traits/%s", name), NULL);
}

int placement_post_provider(const Provider *provider, PlacementRequest *ret)
{
        json_t *body = json_pack("{ss ss}", "uuid", provider->uuid.text, "name", provider->name);

        if (body && !uuid_empty(&provider->parent) &&
            json_object_set_new(body, "parent_provider_uuid", json_string(provider->parent.text)) <
                    0) {
                json_decref(body);
                return -ENOMEM;
        }
        return fill_with_body(ret, "POST", strdup("/resource_providers"), body);
}

int placement_put_provider(const Provider *provider, PlacementRequest *ret)
{
        json_t *body = json_pack("{ss ss}", "name", provider->name, "parent_provider_uuid",
                                 provider->parent.text);
        int r = fill_with_body(ret, "PUT", provider_path(&provider->uuid, ""), body);

        if (r == 0)
                ret->microversion = PLACEMENT_MICROVERSION_MOVE;
        return r;
}

int placement_rename_provider(const Uuid *provider, const char *name, PlacementRequest *ret)
{
        return fill_with_body(ret, "PUT", provider_path(provider, ""),
                              json_pack("{ss}", "name", name));
}

/* {"VCPU": {"total": 8, …}, …} */
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

/* json_pack() steals each "o", and fails for a NULL one. */
static json_t *pack_with_generation(const char *key, json_t *value, int64_t generation)
{
        if (!value)
                return NULL;
        return json_pack("{so sI}", key, value, "resource_provider_generation",
                         (json_int_t)generation);
}

static json_t *part_to_json(const Provider *provider, PlacementPart part)
{
        if (part == PLACEMENT_INVENTORIES)
                return inventories_to_json(provider);
        return string_set_to_json(part == PLACEMENT_TRAITS ? &provider->traits
                                                           : &provider->aggregates);
}

int placement_put_part(const Provider *provider, PlacementPart part, int64_t generation,
                       PlacementRequest *ret)
{
        return fill_with_body(ret, "PUT", part_path(&provider->uuid, part),
                              pack_with_generation(placement_part_to_text(part),
                                                   part_to_json(provider, part), generation));
}

int placement_delete_inventories(const Uuid *provider, PlacementRequest *ret)
{
        return placement_request_fill(ret, "DELETE", part_path(provider, PLACEMENT_INVENTORIES),
                                      NULL);
}

int placement_delete_provider(const Uuid *provider, PlacementRequest *ret)
{
        return placement_request_fill(ret, "DELETE", provider_path(provider, ""), NULL);
}

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

int placement_post_reshaper(const PlacementReshapeItem *items, size_t n_items,
                            const Allocations *allocations, PlacementRequest *ret, Error *reterr)
{
        json_t *inventories, *consumers, *body = NULL;
        bool with_types;
        int r = placement_check_consumers(allocations, &with_types, reterr);

        if (r < 0)
                return r;
        inventories = reshape_inventories_to_json(items, n_items);
        consumers = placement_consumers_to_json(allocations, with_types);
        if (inventories && consumers)
                body = json_pack("{sO sO}", "inventories", inventories, "allocations", consumers);
        json_decref(inventories);
        json_decref(consumers);
        r = fill_with_body(ret, "POST", strdup("/reshaper"), body);
        if (r < 0)
                return error_oom(reterr);
        if (with_types)
                ret->microversion = PLACEMENT_MICROVERSION_CONSUMER_TYPES;
        return 0;
}

int placement_probe_reshaper(PlacementRequest *ret)
{
        int r = placement_request_fill(ret, "POST", strdup("/reshaper"), NULL);

        if (r < 0)
                return r;
        ret->harmless = true;
        ret->body = strdup("");
        return ret->body ? 0 : -ENOMEM;
}
