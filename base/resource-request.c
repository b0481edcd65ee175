/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/resource-request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"

#define SUFFIX_MAX 64

static void group_done(RequestGroup *group)
{
        free(group->suffix);
        resources_done(&group->resources);
        string_set_done(&group->required);
        string_set_done(&group->forbidden);
}

void resource_request_done(ResourceRequest *request)
{
        for (size_t i = 0; i < request->n_groups; i++)
                group_done(&request->groups[i]);
        free(request->groups);
        for (size_t i = 0; i < request->n_subtrees; i++)
                string_set_done(&request->subtrees[i].suffixes);
        numa_request_done(&request->numa);
        *request = RESOURCE_REQUEST_INIT;
}

static bool suffix_valid(const char *suffix)
{
        size_t n = strnlen(suffix, SUFFIX_MAX + 1);

        return n <= SUFFIX_MAX &&
               strspn(suffix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
                       n;
}

static int order_group(const void *key, const void *item)
{
        return strcmp(key, ((const RequestGroup *)item)->suffix);
}

int resource_request_group(ResourceRequest *request, const char *suffix, RequestGroup **ret,
                           Error *reterr)
{
        size_t position;
        bool found;
        char *copy;

        if (!suffix_valid(suffix))
                return error_setf(
                        reterr, EINVAL,
                        "\"%.70s\" is not a group suffix (letters, digits, _ and -, at most %d)",
                        suffix, SUFFIX_MAX);
        position = array_find(request->groups, sizeof(RequestGroup), request->n_groups, suffix,
                              order_group, &found);
        if (found) {
                *ret = &request->groups[position];
                return 0;
        }
        if (array_grow(&request->groups, sizeof(RequestGroup), request->n_groups,
                       &request->n_allocated) < 0)
                return error_oom(reterr);
        copy = strdup(suffix);
        if (!copy)
                return error_oom(reterr);
        array_open(request->groups, sizeof(RequestGroup), &request->n_groups, position);
        request->groups[position] = (RequestGroup){ .suffix = copy };
        *ret = &request->groups[position];
        return 0;
}

void resource_request_remove(ResourceRequest *request, size_t group)
{
        group_done(&request->groups[group]);
        array_close(request->groups, sizeof(RequestGroup), &request->n_groups, group);
}

int resource_request_add_subtree(ResourceRequest *request, const StringSet *suffixes, Error *reterr)
{
        RequestSubtree *subtree = &request->subtrees[request->n_subtrees];

        if (request->n_subtrees >= RESOURCE_REQUEST_SUBTREES_MAX)
                return error_setf(reterr, EINVAL, "More than %d lists of groups in one subtree",
                                  RESOURCE_REQUEST_SUBTREES_MAX);
        if (suffixes->n_items < 2)
                return error_setf(reterr, EINVAL, "Two groups at least share a subtree");
        for (size_t i = 0; i < suffixes->n_items; i++)
                if (!suffixes->items[i][0] || !suffix_valid(suffixes->items[i]))
                        return error_setf(reterr, EINVAL, "\"%.70s\" is not a group suffix",
                                          suffixes->items[i]);
        if (string_set_copy(&subtree->suffixes, suffixes) < 0)
                return error_oom(reterr);
        request->n_subtrees++;
        return 0;
}

bool resource_request_in_subtree(const ResourceRequest *request, const char *suffix)
{
        for (size_t i = 0; i < request->n_subtrees; i++)
                if (string_set_contains(&request->subtrees[i].suffixes, suffix))
                        return true;
        return false;
}

int resource_request_copy(ResourceRequest *ret, const ResourceRequest *request)
{
        _cleanup_(resource_request_done) ResourceRequest copy = RESOURCE_REQUEST_INIT;

        copy.isolate = request->isolate;
        if (numa_request_copy(&copy.numa, &request->numa) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < request->n_subtrees; i++)
                if (string_set_copy(&copy.subtrees[copy.n_subtrees++].suffixes,
                                    &request->subtrees[i].suffixes) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < request->n_groups; i++) {
                const RequestGroup *from = &request->groups[i];
                RequestGroup *to;

                if (resource_request_group(&copy, from->suffix, &to, NULL) < 0 ||
                    resources_copy(&to->resources, &from->resources) < 0 ||
                    string_set_copy(&to->required, &from->required) < 0 ||
                    string_set_copy(&to->forbidden, &from->forbidden) < 0)
                        return -ENOMEM;
                to->in_tree = from->in_tree;
                to->provider = from->provider;
        }
        resource_request_done(ret);
        *ret = TAKE_STRUCT(copy);
        return 0;
}

int resource_request_sum(const ResourceRequest *request, Resources *ret)
{
        _cleanup_(resources_done) Resources sum = RESOURCES_INIT;

        for (size_t i = 0; i < request->n_groups; i++) {
                const Resources *resources = &request->groups[i].resources;

                for (size_t j = 0; j < resources->n_items; j++) {
                        int r = resources_add(&sum, resources->items[j].resource_class,
                                              resources->items[j].amount);
                        if (r < 0)
                                return r;
                }
        }
        resources_done(ret);
        *ret = TAKE_STRUCT(sum);
        return 0;
}

static void write_resources(FILE *file, const char *begin, const RequestGroup *group)
{
        const Resources *resources = &group->resources;

        fprintf(file, "%sresources%s=", begin, group->suffix);
        for (size_t i = 0; i < resources->n_items; i++)
                fprintf(file, "%s%s:%" PRIu64, i > 0 ? "," : "", resources->items[i].resource_class,
                        resources->items[i].amount);
}

static void write_traits(FILE *file, const char *begin, const RequestGroup *group)
{
        const char *separator = "";

        if (group->required.n_items + group->forbidden.n_items == 0)
                return;
        fprintf(file, "%srequired%s=", begin, group->suffix);
        for (size_t i = 0; i < group->required.n_items; i++, separator = ",")
                fprintf(file, "%s%s", separator, group->required.items[i]);
        for (size_t i = 0; i < group->forbidden.n_items; i++, separator = ",")
                fprintf(file, "%s!%s", separator, group->forbidden.items[i]);
}

static void write_subtrees(FILE *file, const ResourceRequest *request)
{
        for (size_t i = 0; i < request->n_subtrees; i++) {
                const StringSet *suffixes = &request->subtrees[i].suffixes;

                for (size_t j = 0; j < suffixes->n_items; j++)
                        fprintf(file, "%s%s", j == 0 ? "&same_subtree=" : ",", suffixes->items[j]);
        }
}

void resource_request_write(const ResourceRequest *request, FILE *file)
{
        for (size_t i = 0; i < request->n_groups; i++) {
                const RequestGroup *group = &request->groups[i];
                bool asks = group->resources.n_items > 0;

                if (asks)
                        write_resources(file, i > 0 ? "&" : "", group);
                write_traits(file, i > 0 || asks ? "&" : "", group);
                if (!uuid_empty(&group->in_tree))
                        fprintf(file, "&in_tree%s=%s", group->suffix, group->in_tree.text);
        }
        write_subtrees(file, request);
        if (request->isolate)
                fputs("&group_policy=isolate", file);
}
