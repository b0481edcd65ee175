/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses those options of a request of "claim" and "explain" that are not flags or plain texts.
 * Each option has a reader in one table.
 *
 * The main structure is CtlRequest. The first error of a value is stored in the request, and later
 * values are ignored. So options can be parsed before the verb is known. ctl_request_check()
 * reports the error. Names of providers stay texts until ctl_request_resolve() has the tree.
 * Limits: a number of the layout has at most nine digits, and cells are given in their order. */

#include "ctl/verbs/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/inventory.h"
#include "ctl/print/json.h"

/* Copies the part of text before colon, which points into text. The caller frees the copy. */
static int split_suffix(const char *text, const char *colon, char **ret_suffix, Error *reterr)
{
        char *suffix = strndup(text, (size_t)(colon - text));

        if (!suffix)
                return error_oom(reterr);
        *ret_suffix = suffix;
        return 0;
}

/* Adds amounts to the group with that suffix. A class that the group has already is an error. */
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
                        return error_setf(reterr, EINVAL, "%s is requested twice",
                                          more.items[i].resource_class);
                if (resources_set(&group->resources, more.items[i].resource_class,
                                  more.items[i].amount) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* Reads "VCPU=2,VGPU=1" for the group without a suffix. */
static int add_plain(CtlRequest *request, const char *text, Error *reterr)
{
        return add_resources(&request->resources, "", text, reterr);
}

/* Reads "1:VGPU=1": a group that one provider must satisfy alone. */
static int add_group(CtlRequest *request, const char *text, Error *reterr)
{
        _cleanup_free_ char *suffix = NULL;
        const char *colon = strchr(text, ':');
        int r;

        if (!colon || colon == text)
                return error_setf(
                        reterr, EINVAL,
                        "\"%.60s\" is not a group. Write SUFFIX:CLASS=AMOUNT, for example gpu:VGPU=1",
                        text);
        r = split_suffix(text, colon, &suffix, reterr);
        return r < 0 ? r : add_resources(&request->resources, suffix, colon + 1, reterr);
}

/* Adds a required trait, or a forbidden one with "!". */
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

/* Finds or makes the group of "SUFFIX:REST"; for "REST", the group without a suffix. */
static int find_group(CtlRequest *request, const char *text, RequestGroup **ret,
                      const char **ret_rest, Error *reterr)
{
        _cleanup_free_ char *suffix = NULL;
        const char *colon = strchr(text, ':');
        int r = colon ? split_suffix(text, colon, &suffix, reterr) : 0;

        *ret_rest = colon ? colon + 1 : text;
        return r < 0 ? r
                     : resource_request_group(&request->resources, suffix ? suffix : "", ret,
                                              reterr);
}

/* Reads "HW_CPU_X86_AVX,!CUSTOM_OLD", or with a group: "1:CUSTOM_FAST". */
static int add_traits(CtlRequest *request, const char *text, Error *reterr)
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

/* Reads "1,2": the suffixes of groups that must be placed in the subtree of one of their
 * providers. */
static int add_subtree(CtlRequest *request, const char *text, Error *reterr)
{
        _cleanup_(string_set_done) StringSet suffixes = STRING_SET_INIT;
        _cleanup_free_ char *copy = strdup(text);
        char *rest = copy, *suffix;

        if (!copy)
                return error_oom(reterr);
        while ((suffix = strsep(&rest, ",")))
                if (string_set_add(&suffixes, suffix) < 0)
                        return error_oom(reterr);
        return resource_request_add_subtree(&request->resources, &suffixes, reterr);
}

/* Reads "1:UUID" or "UUID": the group must be placed in the tree of that provider. */
static int add_tree(CtlRequest *request, const char *text, Error *reterr)
{
        RequestGroup *group;
        int r = find_group(request, text, &group, &text, reterr);

        if (r < 0)
                return r;
        return uuid_from_text(text, &group->in_tree) < 0
                       ? error_setf(reterr, EINVAL, "\"%.60s\" is not the uuid of a provider", text)
                       : 0;
}

/* Reads a decimal number of at most nine digits, which cannot overflow. */
static bool parse_number(const char *text, uint64_t *ret)
{
        size_t n = strlen(text);

        if (n == 0 || n > 9 || strspn(text, "0123456789") != n)
                return false;
        *ret = strtoull(text, NULL, 10);
        return true;
}

static int set_nodes(CtlRequest *request, const char *text, Error *reterr)
{
        if (!parse_number(text, &request->numa.nodes) || request->numa.nodes == 0)
                return error_setf(reterr, EINVAL, "\"%.40s\" is not a number of cells", text);
        return 0;
}

/* Splits "2:rest". Cells must be given in their order, and next is the expected number. */
static int split_cell(const char *text, size_t next, const char **ret_rest, Error *reterr)
{
        char expected[24];
        size_t n = (size_t)snprintf(expected, sizeof(expected), "%zu:", next);

        if (next >= NUMA_REQUEST_CELLS_MAX)
                return error_setf(reterr, EINVAL, "A guest has at most %d cells",
                                  NUMA_REQUEST_CELLS_MAX);
        if (strncmp(text, expected, n) != 0)
                return error_setf(
                        reterr, EINVAL,
                        "\"%.40s\" must begin with %s. Set the option once for each cell of the guest, in order",
                        text, expected);
        *ret_rest = text + n;
        return 0;
}

/* Reads "0:0-1": the guest CPUs of a cell. The text is borrowed. */
static int add_cpus(CtlRequest *request, const char *text, Error *reterr)
{
        size_t next = request->numa.n_cpus;
        int r = split_cell(text, next, &request->cpus[next], reterr);

        if (r < 0)
                return r;
        request->numa.cpus = request->cpus;
        request->numa.n_cpus++;
        return 0;
}

/* Reads "0:512": the memory of a cell in MiB. */
static int add_memory(CtlRequest *request, const char *text, Error *reterr)
{
        size_t next = request->numa.n_memory;
        const char *rest;
        int r = split_cell(text, next, &rest, reterr);

        if (r < 0)
                return r;
        if (!parse_number(rest, &request->memory_mb[next]))
                return error_setf(reterr, EINVAL, "\"%.40s\" is not a number of MiB", rest);
        request->numa.memory_mb = request->memory_mb;
        request->numa.n_memory++;
        return 0;
}

/* Adds a provider that is known by its uuid. The suffix is the text before "=". */
static int add_known(RequestMappings *known, const char *text, const Uuid *provider, Error *reterr)
{
        _cleanup_free_ char *suffix = strndup(text, strcspn(text, "="));

        if (!suffix || request_mappings_add(known, suffix, provider) < 0)
                return error_oom(reterr);
        return 0;
}

/* Reads "1=UUID" or "1=NAME": the provider of a group. "=NAME" is for the group without a suffix. A
 * name is looked up later, in the tree of the agent. */
static int add_mapping(CtlRequest *request, const char *text, Error *reterr)
{
        const char *sign = strchr(text, '=');
        Uuid provider;

        if (!sign || !sign[1])
                return error_setf(
                        reterr, EINVAL,
                        "\"%.60s\" is not a mapping. Write SUFFIX=PROVIDER, with a name or uuid of \"computectl tree\"",
                        text);
        if (uuid_from_text(sign + 1, &provider) == 0)
                return add_known(&request->mappings, text, &provider, reterr);
        return string_set_add(&request->named, text) < 0 ? error_oom(reterr) : 0;
}

void ctl_request_add(CtlRequest *request, const char *option, const char *text)
{
        static const struct {
                const char *option;
                int (*add)(CtlRequest *request, const char *text, Error *reterr);
        } readers[] = {
                { "resources", add_plain },  { "group", add_group },
                { "required", add_traits },  { "same-subtree", add_subtree },
                { "in-tree", add_tree },     { "mapping", add_mapping },
                { "numa-nodes", set_nodes }, { "numa-cpus", add_cpus },
                { "numa-mem", add_memory },
        };

        for (size_t i = 0; i < ARRAY_SIZE(readers) && !request->error.code; i++) {
                int r = strcmp(readers[i].option, option) == 0
                                ? readers[i].add(request, text, &request->error)
                                : 0;

                if (r < 0)
                        error_prefixf(&request->error, r, "--%s", option);
        }
}

void ctl_request_done(CtlRequest *request)
{
        resource_request_done(&request->resources);
        request_mappings_done(&request->mappings);
        string_set_done(&request->named);
}

/* Checks that each group has resources, or is in a list of --same-subtree. */
static int check_resources(const ResourceRequest *request, Error *reterr)
{
        for (size_t i = 0; i < request->n_groups; i++)
                if (request->groups[i].resources.n_items == 0 &&
                    !resource_request_in_subtree(request, request->groups[i].suffix))
                        return error_setf(reterr, EINVAL,
                                          "A group with required traits has no resources%s%s",
                                          request->groups[i].suffix[0] ? ": " : "",
                                          request->groups[i].suffix);
        return 0;
}

/* Checks that a mapping names a group of the request. n: length of the suffix. */
static int check_group(const ResourceRequest *request, const char *suffix, size_t n, Error *reterr)
{
        for (size_t i = 0; i < request->n_groups; i++)
                if (strlen(request->groups[i].suffix) == n &&
                    strncmp(request->groups[i].suffix, suffix, n) == 0)
                        return 0;
        return error_setf(reterr, EINVAL, "--mapping: the request has no group \"%.*s\"",
                          (int)MIN(n, (size_t)60), suffix);
}

int ctl_request_check(const CtlRequest *request, Error *reterr)
{
        int r = request->error.code ? error_setf(reterr, EINVAL, "%s", request->error.text)
                                    : check_resources(&request->resources, reterr);

        for (size_t i = 0; r == 0 && i < request->mappings.n_items; i++) {
                const char *suffix = request->mappings.items[i].suffix;

                r = check_group(&request->resources, suffix, strlen(suffix), reterr);
        }
        for (size_t i = 0; r == 0 && i < request->named.n_items; i++) {
                const char *text = request->named.items[i];

                r = check_group(&request->resources, text, strcspn(text, "="), reterr);
        }
        return r;
}

/* Yields the uuid of the provider with this name. Returns -EINVAL with words if the tree has none,
 * and without words if its uuid is not valid. */
static int find_provider(const json_t *tree, const char *name, Uuid *ret, Error *reterr)
{
        const json_t *provider = ctl_json_find(json_object_get(tree, "providers"), "name", name);

        if (provider)
                return uuid_from_text(ctl_json_text(provider, "uuid"), ret);
        return error_setf(
                reterr, EINVAL,
                "--mapping: this host has no provider \"%.100s\". See \"computectl tree\"", name);
}

int ctl_request_resolve(CtlRequest *request, const json_t *tree, Error *reterr)
{
        for (size_t i = 0; i < request->named.n_items; i++) {
                const char *text = request->named.items[i];
                Uuid provider;
                int r = find_provider(tree, strchr(text, '=') + 1, &provider, reterr);

                if (r == 0)
                        r = add_known(&request->mappings, text, &provider, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}
