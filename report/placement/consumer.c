/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/consumer.h"

#include <string.h>

#include "base/json.h"

bool placement_consumer_type_valid(const char *type)
{
        return type && resource_class_valid(type);
}

int placement_check_consumer(const Consumer *consumer, Error *reterr)
{
        if (consumer->project_id && consumer->user_id)
                return 0;
        return error_setf(reterr, EINVAL, "Consumer %s has no project or user",
                          consumer->uuid.text);
}

int placement_check_consumers(const Allocations *consumers, Error *reterr)
{
        int r = 0;

        for (size_t i = 0; r == 0 && consumers && i < consumers->n_consumers; i++)
                r = placement_check_consumer(consumers->consumers[i], reterr);
        return r;
}

bool placement_consumers_typed(const Allocations *consumers)
{
        for (size_t i = 0; consumers && i < consumers->n_consumers; i++)
                if (!placement_consumer_type_valid(consumers->consumers[i]->type))
                        return false;
        return consumers && consumers->n_consumers > 0;
}

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

/* {"allocations": {"<provider>": {"resources": {…}}}}: adds to what the consumer holds. */
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

int placement_read_consumer(const json_t *body, const Uuid *uuid, Allocations *ret, Error *reterr)
{
        json_t *object;
        Consumer *consumer;
        int r = json_read_object(body, "allocations", &object, reterr);

        if (r < 0 || json_object_size(object) == 0)
                return r;
        if (allocations_ensure(ret, uuid, &consumer) < 0)
                return error_oom(reterr);
        r = read_owner(body, consumer, reterr);
        return r < 0 ? r : read_holdings(body, consumer, reterr);
}

/* {"<provider>": {"resources": {"VCPU": 2}}} */
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

json_t *placement_consumer_to_json(const Consumer *consumer, bool with_type)
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
                                        placement_consumer_to_json(consumer, with_types)) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}
