/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/consumer-request.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "report/placement/consumer.h"

/* {"": ["uuid", …], "1": ["uuid"]} */
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

PlacementRequest placement_put_consumer(const Consumer *consumer, const RequestMappings *mappings,
                                        bool old)
{
        bool typed = !old && placement_consumer_type_valid(consumer->type);
        json_t *body = placement_consumer_to_json(consumer, typed);
        PlacementRequest request;

        if (body && typed && mappings && mappings->n_items > 0 &&
            json_object_set_new(body, "mappings", mappings_to_json(mappings)) < 0) {
                json_decref(body);
                body = NULL;
        }
        request = placement_request_with("PUT", "/allocations/{uuid}", consumer->uuid.text, body);
        if (typed)
                request.microversion = PLACEMENT_MICROVERSION_CONSUMER_TYPES;
        return request;
}

PlacementRequest placement_post_consumers(const Allocations *consumers, bool old)
{
        bool typed = !old && placement_consumers_typed(consumers);
        PlacementRequest request = placement_request_with(
                "POST", "/allocations", "", placement_consumers_to_json(consumers, typed));

        if (typed)
                request.microversion = PLACEMENT_MICROVERSION_CONSUMER_TYPES;
        return request;
}

PlacementRequest placement_get_room(const Uuid *root, const char *resource_class, uint64_t amount)
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

static int add_room(const json_t *summary, const Uuid *provider, Consumer *room, Error *reterr)
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
                if (consumer_set(room, provider, resource_class, capacity - MIN(used, capacity)) <
                    0)
                        return error_oom(reterr);
        }
        return 0;
}

int placement_read_room(const json_t *body, Consumer **ret, Error *reterr)
{
        _cleanup_(consumer_freep) Consumer *room = NULL;
        json_t *object, *summary;
        const char *key;
        int r = json_read_object(body, "provider_summaries", &object, reterr);

        if (r < 0)
                return r;
        if (consumer_new(&room, &UUID_NULL) < 0)
                return error_oom(reterr);
        json_object_foreach(object, key, summary) {
                Uuid provider;

                if (uuid_from_text(key, &provider) < 0)
                        return error_setf(reterr, EBADMSG,
                                          "\"provider_summaries\": \"%.60s\" is not a uuid", key);
                r = add_room(summary, &provider, room, reterr);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(room);
        return 0;
}
