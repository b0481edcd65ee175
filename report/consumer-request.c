/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/consumer-request.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "report/placement-consumer.h"

/* More candidates in one answer than this are not believed. */
#define CANDIDATES_MAX 8192

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

int placement_put_consumer(const Consumer *consumer, const RequestMappings *mappings, bool old,
                           PlacementRequest *ret, Error *reterr)
{
        bool typed = !old && placement_consumer_type_valid(consumer->type);
        char *path = NULL;
        json_t *body;
        int r = placement_check_consumer(consumer, reterr);

        if (r < 0)
                return r;
        body = placement_consumer_to_json(consumer, typed);
        if (body && typed && mappings && mappings->n_items > 0 &&
            json_object_set_new(body, "mappings", mappings_to_json(mappings)) < 0) {
                json_decref(body);
                body = NULL;
        }
        if (!body)
                return error_oom(reterr);
        if (asprintf(&path, "/allocations/%s", consumer->uuid.text) < 0)
                path = NULL;
        r = placement_request_fill(ret, "PUT", path, body);
        if (r < 0)
                return error_oom(reterr);
        if (typed)
                ret->microversion = PLACEMENT_MICROVERSION_CONSUMER_TYPES;
        return 0;
}

int placement_post_consumers(const Allocations *consumers, bool old, PlacementRequest *ret,
                             Error *reterr)
{
        json_t *body;
        bool typed;
        int r = placement_check_consumers(consumers, &typed, reterr);

        if (r < 0)
                return r;
        typed = typed && !old;
        body = placement_consumers_to_json(consumers, typed);
        if (!body)
                return error_oom(reterr);
        r = placement_request_fill(ret, "POST", strdup("/allocations"), body);
        if (r < 0)
                return error_oom(reterr);
        if (typed)
                ret->microversion = PLACEMENT_MICROVERSION_CONSUMER_TYPES;
        return 0;
}

/* In which tree each group is to be looked for, and whether the groups need a policy. */
static int bind_to_tree(const ResourceRequest *request, const Uuid *root, ResourceRequest *ret,
                        bool *ret_several)
{
        size_t n_suffixed = 0;

        if (resource_request_copy(ret, request) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < ret->n_groups; i++) {
                if (uuid_empty(&ret->groups[i].in_tree))
                        ret->groups[i].in_tree = *root;
                n_suffixed += ret->groups[i].suffix[0] != '\0';
        }
        *ret_several = n_suffixed > 1;
        return 0;
}

static char *candidates_path(const ResourceRequest *request, bool several, uint64_t limit)
{
        _cleanup_free_ char *path = NULL;
        size_t size;
        FILE *file = open_memstream(&path, &size);
        bool failed;

        if (!file)
                return NULL;
        fprintf(file, "/allocation_candidates?limit=%" PRIu64 "&", limit);
        resource_request_write(request, file);
        if (several && !request->isolate)
                fputs("&group_policy=none", file);
        failed = ferror(file);
        if (fclose(file) != 0 || failed)
                return NULL;
        return TAKE_PTR(path);
}

int placement_get_candidates(const ResourceRequest *request, const Uuid *root, uint64_t limit,
                             bool old, PlacementRequest *ret, Error *reterr)
{
        _cleanup_(resource_request_done) ResourceRequest bound = RESOURCE_REQUEST_INIT;
        bool several;

        if (bind_to_tree(request, root, &bound, &several) < 0 ||
            placement_request_fill(ret, "GET", candidates_path(&bound, several, limit), NULL) < 0)
                return error_oom(reterr);
        ret->microversion = request->n_subtrees > 0 ? PLACEMENT_MICROVERSION_SAME_SUBTREE
                            : old                   ? PLACEMENT_MICROVERSION_IN_TREE
                                                    : PLACEMENT_MICROVERSION_MAPPINGS;
        return 0;
}

CandidateList *candidate_list_free(CandidateList *list)
{
        if (!list)
                return NULL;
        for (size_t i = 0; i < list->n_items; i++) {
                consumer_free(list->items[i].holding);
                request_mappings_done(&list->items[i].mappings);
        }
        free(list->items);
        free(list);
        return NULL;
}

static int read_mapping(const char *suffix, const json_t *providers, RequestMappings *ret,
                        Error *reterr)
{
        const json_t *item;
        size_t i;

        if (!json_is_array(providers))
                return error_setf(reterr, EBADMSG, "\"mappings\" has no list for group \"%.70s\"",
                                  suffix);
        json_array_foreach(providers, i, item) {
                const char *text = json_string_value(item);
                Uuid provider;

                if (!text || uuid_from_text(text, &provider) < 0)
                        return error_setf(reterr, EBADMSG,
                                          "\"mappings\" of group \"%.70s\" is not of uuids",
                                          suffix);
                if (request_mappings_add(ret, suffix, &provider) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

static int read_mappings(const json_t *body, Candidate *candidate, Error *reterr)
{
        json_t *object, *providers;
        const char *suffix;
        int r;

        if (!json_object_get(body, "mappings"))
                return 0;
        r = json_read_object(body, "mappings", &object, reterr);
        if (r < 0)
                return r;
        json_object_foreach(object, suffix, providers) {
                r = read_mapping(suffix, providers, &candidate->mappings, reterr);
                if (r < 0)
                        return r;
        }
        candidate->mapped = true;
        return 0;
}

static int read_candidate(const json_t *body, Candidate *candidate, Error *reterr)
{
        int r;

        if (!json_is_object(body))
                return error_setf(reterr, EBADMSG, "A candidate is not an object");
        if (consumer_new(&candidate->holding, &UUID_NULL) < 0)
                return error_oom(reterr);
        r = placement_read_holdings(body, candidate->holding, reterr);
        return r < 0 ? r : read_mappings(body, candidate, reterr);
}

int placement_read_candidates(const json_t *body, CandidateList **ret, Error *reterr)
{
        _cleanup_(candidate_list_freep) CandidateList *list = calloc(1, sizeof(CandidateList));
        json_t *array;
        int r;

        if (!list)
                return error_oom(reterr);
        r = json_read_array(body, "allocation_requests", &array, reterr);
        if (r < 0)
                return r;
        if (json_array_size(array) > CANDIDATES_MAX)
                return error_setf(reterr, EBADMSG, "%zu candidates, more than %d",
                                  json_array_size(array), CANDIDATES_MAX);
        list->items = calloc(json_array_size(array) + 1, sizeof(Candidate));
        if (!list->items)
                return error_oom(reterr);
        for (size_t i = 0; i < json_array_size(array); i++) {
                list->n_items++;
                r = read_candidate(json_array_get(array, i), &list->items[i], reterr);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(list);
        return 0;
}
