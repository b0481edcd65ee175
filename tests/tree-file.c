/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/tree-file.h"

#include <string.h>

#include "base/json.h"

int tree_file_read(const char *path, json_t **ret, Error *reterr)
{
        json_error_t error;
        json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

        if (!json)
                return error_setf(reterr, EBADMSG, "%s:%d: %s", path, error.line, error.text);
        *ret = json;
        return 0;
}

static int add_names(StringSet *set, const json_t *array)
{
        json_t *item;
        size_t i;

        json_array_foreach(array, i, item) {
                if (string_set_add(set, json_string_value(item)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int set_inventories(Provider *provider, const json_t *object, Error *reterr)
{
        const char *resource_class;
        json_t *record;

        provider_clear_inventories(provider);
        json_object_foreach((json_t *)object, resource_class, record) {
                Inventory inventory;
                int r = inventory_from_json(record, &inventory, reterr);

                if (r >= 0)
                        r = provider_set_inventory(provider, resource_class, &inventory);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int lay_provider(ProviderTree *tree, const json_t *item, Error *reterr)
{
        const char *name = json_string_value(json_object_get(item, "name"));
        const json_t *parent = json_object_get(item, "parent");
        Uuid uuid, parent_uuid = UUID_NULL;
        Provider *provider;
        int r;

        r = json_read_uuid(item, "uuid", &uuid, reterr);
        if (r >= 0 && json_is_string(parent))
                r = json_read_uuid(item, "parent", &parent_uuid, reterr);
        if (r < 0)
                return r;
        provider = provider_tree_find(tree, &uuid);
        if (!provider)
                r = provider_tree_add(tree, &uuid, name, &parent_uuid, &provider, reterr);
        else if (!uuid_equal(&provider->parent, &parent_uuid))
                r = provider_tree_move(tree, provider, &parent_uuid);
        if (r >= 0)
                r = set_inventories(provider, json_object_get(item, "inventories"), reterr);
        if (r >= 0)
                r = add_names(&provider->traits, json_object_get(item, "traits"));
        if (r >= 0)
                r = add_names(&provider->aggregates, json_object_get(item, "aggregates"));
        return r;
}

static void remove_traits(ProviderTree *tree, const json_t *names)
{
        json_t *name;
        size_t i;

        json_array_foreach(names, i, name) {
                for (size_t j = 0; j < tree->n_providers; j++)
                        string_set_remove(&tree->providers[j]->traits, json_string_value(name));
        }
}

int tree_file_lay(const json_t *json, ProviderTree *tree, Error *reterr)
{
        json_t *item;
        size_t i;
        int r;

        remove_traits(tree, json_object_get(json, "remove_traits"));
        json_array_foreach(json_object_get(json, "remove"), i, item) {
                const Provider *provider = provider_tree_find_name(tree, json_string_value(item));

                if (provider)
                        provider_tree_remove(tree, &provider->uuid);
        }
        json_array_foreach(json_object_get(json, "providers"), i, item) {
                r = lay_provider(tree, item, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int lay_consumer(Allocations *allocations, const char *text, const json_t *item,
                        Error *reterr)
{
        const json_t *generation = json_object_get(item, "consumer_generation");
        const char *type = json_string_value(json_object_get(item, "consumer_type"));
        const char *provider_text, *resource_class;
        json_t *on_provider, *amount;
        Consumer *consumer;
        Uuid uuid;

        if (uuid_from_text(text, &uuid) < 0 ||
            allocations_ensure(allocations, &uuid, &consumer) < 0)
                return error_setf(reterr, EINVAL, "Not a consumer: %s", text);
        consumer->project_id = strdup(json_string_value(json_object_get(item, "project_id")));
        consumer->user_id = strdup(json_string_value(json_object_get(item, "user_id")));
        consumer->type = type ? strdup(type) : NULL;
        consumer->generation = json_is_integer(generation) ? json_integer_value(generation) : -1;
        json_object_foreach(json_object_get(item, "allocations"), provider_text, on_provider) {
                if (uuid_from_text(provider_text, &uuid) < 0)
                        return error_setf(reterr, EINVAL, "Not a provider: %s", provider_text);
                json_object_foreach(json_object_get(on_provider, "resources"), resource_class,
                                    amount) {
                        if (consumer_set(consumer, &uuid, resource_class,
                                         (uint64_t)json_integer_value(amount)) < 0)
                                return error_oom(reterr);
                }
        }
        return 0;
}

int tree_file_read_allocations(const json_t *json, Allocations **ret, Error *reterr)
{
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        const char *consumer;
        json_t *item;
        int r;

        if (allocations_new(&allocations) < 0)
                return error_oom(reterr);
        json_object_foreach((json_t *)json, consumer, item) {
                r = lay_consumer(allocations, consumer, item, reterr);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(allocations);
        return 0;
}
