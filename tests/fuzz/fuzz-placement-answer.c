/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One answer, parsed as each answer of Placement. The caller knows which one it expects. */

#include "base/json.h"
#include "report/http/http.h"
#include "report/placement/answer.h"
#include "report/placement/outcome.h"
#include "report/placement/request.h"
#include "report/publish/name-holder.h"
#include "tests/fuzz/fuzz.h"

static Uuid make_uuid(void)
{
        Uuid uuid;

        assert(uuid_from_text("11111111-2222-4333-8444-555555555555", &uuid) == 0);
        return uuid;
}

static void read_providers(const json_t *body)
{
        PlacementProviders list = PLACEMENT_PROVIDERS_INIT, tree = PLACEMENT_PROVIDERS_INIT;
        int64_t generation;

        (void)placement_read_providers(body, &list, NULL);
        if (placement_read_tree(body, &tree, NULL) == 0)
                for (size_t i = 0; i < tree.n_items; i++)
                        assert(tree.items[i].name);
        (void)placement_read_generation(body, PLACEMENT_GENERATION, &generation, NULL);
        (void)placement_read_generation(body, PLACEMENT_GENERATION_OF_PART, &generation, NULL);
        placement_providers_done(&list);
        placement_providers_done(&tree);
}

static void read_provider(const json_t *body)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        const Uuid uuid = make_uuid(), null = { 0 };
        Provider *provider;

        assert(provider_tree_new(&tree) == 0);
        assert(provider_tree_add(tree, &uuid, "host", &null, &provider, NULL) == 0);
        if (placement_read_part(body, PLACEMENT_INVENTORIES, provider, NULL) == 0)
                for (size_t i = 0; i < provider->n_inventories; i++)
                        assert(resource_class_valid(provider->inventories[i].resource_class));
        (void)placement_read_part(body, PLACEMENT_TRAITS, provider, NULL);
        (void)placement_read_part(body, PLACEMENT_AGGREGATES, provider, NULL);
}

static void read_consumers(const json_t *body)
{
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        _cleanup_(consumer_freep) Consumer *whole = NULL;
        const Uuid uuid = make_uuid();
        NameHolder holder = { 0 };

        assert(allocations_new(&allocations) == 0);
        (void)placement_read_provider_allocations(body, &uuid, allocations, NULL);
        (void)placement_read_consumer(body, &uuid, allocations, NULL);
        (void)placement_read_whole(body, &uuid, &whole, NULL);
        (void)name_holder_count(&holder, body, NULL);
}

void fuzz_text(const char *text)
{
        static const PlacementRequest request = { .method = "PUT", .path = (char *)"/x" };
        static const int statuses[] = { 200, 400, 409, 500, 503 };
        _cleanup_json_ json_t *body = NULL;
        HttpResponse response = { .body = text, .body_size = strlen(text), .content_type = "" };
        Error error = ERROR_NULL;

        for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
                response.status = statuses[i];
                (void)placement_judge(&request, &response, &error);
        }
        if (json_parse(text, strlen(text), &body, NULL) < 0)
                return;
        read_providers(body);
        read_provider(body);
        read_consumers(body);
}
