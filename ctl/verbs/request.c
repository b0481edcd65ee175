/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/inventory.h"

/* Splits "SUFFIX:rest" in two; the suffix is a copy. */
static int split_suffix(const char *text, const char *colon, char **ret_suffix, Error *reterr)
{
        char *suffix = strndup(text, (size_t)(colon - text));

        if (!suffix)
                return error_oom(reterr);
        *ret_suffix = suffix;
        return 0;
}

static int add_resources(ResourceRequest *request, const char *suffix, const char *text,
                         Error *reterr)
{
        _cleanup_(resources_done) Resources more = RESOURCES_INIT;
        RequestGroup *group;
        int r = resource_request_group(request, suffix, &group, reterr);

        if (r < 0)
                return r;
        r = resources_parse(text, &more, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; i < more.n_items; i++) {
                if (resources_get(&group->resources, more.items[i].resource_class) > 0)
                        return error_setf(reterr, EINVAL, "%s is asked for twice",
                                          more.items[i].resource_class);
                if (resources_set(&group->resources, more.items[i].resource_class,
                                  more.items[i].amount) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

int ctl_request_add_resources(ResourceRequest *request, const char *text, Error *reterr)
{
        return add_resources(request, "", text, reterr);
}

int ctl_request_add_group(ResourceRequest *request, const char *text, Error *reterr)
{
        _cleanup_free_ char *suffix = NULL;
        const char *colon = strchr(text, ':');
        int r;

        if (!colon || colon == text)
                return error_setf(
                        reterr, EINVAL,
                        "\"%.60s\" is not a group: SUFFIX:CLASS=AMOUNT, for example gpu:VGPU=1",
                        text);
        r = split_suffix(text, colon, &suffix, reterr);
        return r < 0 ? r : add_resources(request, suffix, colon + 1, reterr);
}

static int add_trait(RequestGroup *group, const char *text, Error *reterr)
{
        bool forbidden = text[0] == '!';
        const char *trait = text + forbidden;

        if (!resource_class_valid(trait))
                return error_setf(reterr, EINVAL,
                                  "\"%.60s\" is not a trait (A-Z, 0-9 and _, after an optional !)",
                                  text);
        if (string_set_contains(forbidden ? &group->required : &group->forbidden, trait))
                return error_setf(reterr, EINVAL, "%.60s is both required and forbidden", trait);
        if (string_set_add(forbidden ? &group->forbidden : &group->required, trait) < 0)
                return error_oom(reterr);
        return 0;
}

/* The group of "SUFFIX:REST", or of "REST" the one without a suffix. */
static int find_group(ResourceRequest *request, const char *text, RequestGroup **ret,
                      const char **ret_rest, Error *reterr)
{
        _cleanup_free_ char *suffix = NULL;
        const char *colon = strchr(text, ':');
        int r = colon ? split_suffix(text, colon, &suffix, reterr) : 0;

        *ret_rest = colon ? colon + 1 : text;
        return r < 0 ? r : resource_request_group(request, suffix ? suffix : "", ret, reterr);
}

int ctl_request_add_traits(ResourceRequest *request, const char *text, Error *reterr)
{
        _cleanup_free_ char *traits = NULL;
        RequestGroup *group;
        char *rest, *trait;
        int r = find_group(request, text, &group, &text, reterr);

        if (r < 0)
                return r;
        rest = traits = strdup(text);
        if (!traits)
                return error_oom(reterr);
        while ((trait = strsep(&rest, ","))) {
                r = add_trait(group, trait, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

int ctl_request_add_subtree(ResourceRequest *request, const char *text, Error *reterr)
{
        _cleanup_(string_set_done) StringSet suffixes = STRING_SET_INIT;
        _cleanup_free_ char *copy = strdup(text);
        char *rest = copy, *suffix;

        if (!copy)
                return error_oom(reterr);
        while ((suffix = strsep(&rest, ",")))
                if (string_set_add(&suffixes, suffix) < 0)
                        return error_oom(reterr);
        return resource_request_add_subtree(request, &suffixes, reterr);
}

int ctl_request_add_tree(ResourceRequest *request, const char *text, Error *reterr)
{
        RequestGroup *group;
        int r = find_group(request, text, &group, &text, reterr);

        if (r < 0)
                return r;
        return uuid_from_text(text, &group->in_tree) < 0
                       ? error_setf(reterr, EINVAL, "\"%.60s\" is not a provider's uuid", text)
                       : 0;
}

static bool parse_number(const char *text, uint64_t *ret)
{
        size_t n = strlen(text);

        if (n == 0 || n > 9 || strspn(text, "0123456789") != n)
                return false;
        *ret = strtoull(text, NULL, 10);
        return true;
}

int ctl_numa_set_nodes(CtlNuma *numa, const char *text, Error *reterr)
{
        if (!parse_number(text, &numa->options.nodes) || numa->options.nodes == 0)
                return error_setf(reterr, EINVAL, "\"%.40s\" is not a number of cells", text);
        return 0;
}

/* "2:rest" with the number that comes next. */
static int split_cell(const char *text, size_t next, const char **ret_rest, Error *reterr)
{
        char expected[24];
        size_t n = (size_t)snprintf(expected, sizeof(expected), "%zu:", next);

        if (next >= NUMA_REQUEST_CELLS_MAX || strncmp(text, expected, n) != 0)
                return error_setf(
                        reterr, EINVAL,
                        "\"%.40s\": give it for every cell of the guest, in their order: this one begins with %s",
                        text, expected);
        *ret_rest = text + n;
        return 0;
}

int ctl_numa_add_cpus(CtlNuma *numa, const char *text, Error *reterr)
{
        size_t next = numa->options.n_cpus;
        int r = split_cell(text, next, &numa->cpus[next], reterr);

        if (r < 0)
                return r;
        numa->options.cpus = numa->cpus;
        numa->options.n_cpus++;
        return 0;
}

int ctl_numa_add_memory(CtlNuma *numa, const char *text, Error *reterr)
{
        size_t next = numa->options.n_memory;
        const char *rest;
        int r = split_cell(text, next, &rest, reterr);

        if (r < 0)
                return r;
        if (!parse_number(rest, &numa->memory_mb[next]))
                return error_setf(reterr, EINVAL, "\"%.40s\" is not a number of MiB", rest);
        numa->options.memory_mb = numa->memory_mb;
        numa->options.n_memory++;
        return 0;
}

int ctl_request_check(const ResourceRequest *request, Error *reterr)
{
        for (size_t i = 0; i < request->n_groups; i++)
                if (request->groups[i].resources.n_items == 0 &&
                    !resource_request_in_subtree(request, request->groups[i].suffix))
                        return error_setf(reterr, EINVAL,
                                          "Traits are required of a group without resources%s%s",
                                          request->groups[i].suffix[0] ? ": " : "",
                                          request->groups[i].suffix);
        return 0;
}
