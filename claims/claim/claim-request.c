/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks the requests of callers. claim_request_check() is the only gate before the fit and the
 * store: it checks the uuid, texts, number of groups, classes, traits, amounts, subtrees, layout
 * and mappings, and at last the sums over all groups. The first fault ends the check with -EINVAL,
 * and reterr describes it. It does not keep or change the request.
 *
 * Tests: tests/unit/claims/claim/test-claim-request.c */

#include "claims/claim/claim-request.h"

#include <inttypes.h>
#include <string.h>

#include "base/inventory.h"
#include "claims/claim/claim.h"

/* Checks a text of at most CLAIM_TEXT_MAX bytes without control characters. NULL is valid. */
static int check_text(const char *text, const char *what, Error *reterr)
{
        if (!text)
                return 0;
        if (strnlen(text, CLAIM_TEXT_MAX + 1) > CLAIM_TEXT_MAX)
                return error_setf(reterr, EINVAL, "The %s has more than %d bytes", what,
                                  CLAIM_TEXT_MAX);
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
                if (*c < 0x20 || *c == 0x7f)
                        return error_setf(reterr, EINVAL, "The %s has a control character", what);
        return 0;
}

/* Checks the names of the traits, which follow the same rule as names of classes, and that no trait
 * is both required and forbidden. */
static int check_traits(const RequestGroup *group, Error *reterr)
{
        const StringSet *sets[] = { &group->required, &group->forbidden };

        for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
                for (size_t j = 0; j < sets[i]->n_items; j++)
                        if (!resource_class_valid(sets[i]->items[j]))
                                return error_setf(reterr, EINVAL, "\"%.80s\" is not a trait",
                                                  sets[i]->items[j]);
        for (size_t i = 0; i < group->required.n_items; i++)
                if (string_set_contains(&group->forbidden, group->required.items[i]))
                        return error_setf(reterr, EINVAL, "Trait %s is both required and forbidden",
                                          group->required.items[i]);
        return 0;
}

/* Checks classes and amounts. which: ends the name of a class in messages. */
static int check_amounts(const Resources *resources, const char *which, Error *reterr)
{
        for (size_t i = 0; i < resources->n_items; i++) {
                const ResourceAmount *item = &resources->items[i];

                if (!resource_class_valid(item->resource_class))
                        return error_setf(reterr, EINVAL, "\"%.80s\" is not a resource class",
                                          item->resource_class);
                if (item->amount < 1 || item->amount > INVENTORY_MAX_AMOUNT)
                        return error_setf(reterr, EINVAL,
                                          "%s%s: %" PRIu64 " is not an amount (1 to %" PRIu64 ")",
                                          item->resource_class, which, item->amount,
                                          INVENTORY_MAX_AMOUNT);
        }
        return 0;
}

static int check_group(const ResourceRequest *request, const RequestGroup *group, Error *reterr)
{
        int r;

        if (group->resources.n_items == 0 && !resource_request_in_subtree(request, group->suffix))
                return error_setf(reterr, EINVAL, "Group \"%.70s\" asks for no resources",
                                  group->suffix);
        if (group->resources.n_items > CLAIM_CLASSES_MAX)
                return error_setf(reterr, EINVAL, "Group \"%.70s\" has more than %d classes",
                                  group->suffix, CLAIM_CLASSES_MAX);
        if (group->required.n_items > CLAIM_TRAITS_MAX ||
            group->forbidden.n_items > CLAIM_TRAITS_MAX)
                return error_setf(reterr, EINVAL, "Group \"%.70s\" has more than %d traits",
                                  group->suffix, CLAIM_TRAITS_MAX);
        r = check_amounts(&group->resources, "", reterr);
        return r < 0 ? r : check_traits(group, reterr);
}

static const RequestGroup *find_group(const ResourceRequest *request, const char *suffix)
{
        for (size_t i = 0; i < request->n_groups; i++)
                if (strcmp(request->groups[i].suffix, suffix) == 0)
                        return &request->groups[i];
        return NULL;
}

static int check_subtrees(const ResourceRequest *request, Error *reterr)
{
        for (size_t i = 0; i < request->n_subtrees; i++) {
                const StringSet *suffixes = &request->subtrees[i];

                for (size_t j = 0; j < suffixes->n_items; j++)
                        if (!find_group(request, suffixes->items[j]))
                                return error_setf(
                                        reterr, EINVAL,
                                        "same_subtree names \"%.70s\", which is not a group",
                                        suffixes->items[j]);
        }
        return 0;
}

/* Returns true for the classes that a layout divides among its cells. */
static bool is_laid_out(const char *resource_class)
{
        return strcmp(resource_class, "VCPU") == 0 || strcmp(resource_class, "PCPU") == 0 ||
               strcmp(resource_class, "MEMORY_MB") == 0;
}

/* Rejects suffixed groups with CPUs or memory: a layout divides those of the group without a suffix
 * alone. */
static int check_layout_of_groups(const ResourceRequest *request, Error *reterr)
{
        for (size_t i = 0; i < request->n_groups; i++) {
                const RequestGroup *group = &request->groups[i];

                for (size_t j = 0; group->suffix[0] && j < group->resources.n_items; j++)
                        if (is_laid_out(group->resources.items[j].resource_class))
                                return error_setf(
                                        reterr, EINVAL,
                                        "Group \"%.70s\" asks for %s. With a layout, only the group without a suffix can ask for it",
                                        group->suffix, group->resources.items[j].resource_class);
        }
        return 0;
}

/* Checks the numbers of cells and CPUs, and that the cells add up to the amounts of the group
 * without a suffix, because both are written. */
static int check_layout(const ResourceRequest *request, Error *reterr)
{
        const RequestGroup *group = find_group(request, "");
        uint64_t n_cpus = 0, memory_mb = 0, n_dedicated = cpu_set_count(&request->numa.dedicated);

        if (request->numa.n_cells == 0)
                return 0;
        if (request->numa.n_cells > NUMA_REQUEST_CELLS_MAX)
                return error_setf(reterr, EINVAL, "The layout has more than %d cells",
                                  NUMA_REQUEST_CELLS_MAX);
        for (size_t i = 0; i < request->numa.n_cells; i++) {
                n_cpus += cpu_set_count(&request->numa.cells[i].vcpus);
                /* One more than the largest amount of a group, so that the sum cannot match one. */
                memory_mb += MIN(request->numa.cells[i].memory_mb, INVENTORY_MAX_AMOUNT + 1);
        }
        if (!group || n_cpus == 0 || n_cpus > NUMA_REQUEST_CPUS_MAX ||
            resources_get(&group->resources, "PCPU") != n_dedicated ||
            resources_get(&group->resources, "VCPU") != n_cpus - n_dedicated ||
            resources_get(&group->resources, "MEMORY_MB") != memory_mb)
                return error_setf(reterr, EINVAL,
                                  "The layout does not match the requested CPUs and memory");
        return check_layout_of_groups(request, reterr);
}

/* Checks that no suffixed group is mapped twice. The mappings are sorted by suffix, so equal
 * suffixes are neighbours. */
static int check_mappings(const RequestMappings *mappings, Error *reterr)
{
        for (size_t i = 1; i < mappings->n_items; i++) {
                const char *suffix = mappings->items[i].suffix;

                if (suffix[0] && strcmp(suffix, mappings->items[i - 1].suffix) == 0)
                        return error_setf(reterr, EINVAL,
                                          "Group \"%.70s\" is mapped to several providers", suffix);
        }
        return 0;
}

int claim_request_check(const ClaimRequest *request, Error *reterr)
{
        _cleanup_(resources_done) Resources sum = RESOURCES_INIT;
        Uuid uuid;
        int r;

        if (uuid_from_text(request->consumer.text, &uuid) < 0 ||
            !uuid_equal(&uuid, &request->consumer))
                return error_setf(reterr, EINVAL, "\"%.40s\" is not a consumer's uuid",
                                  request->consumer.text);
        if ((r = check_text(request->project_id, "project", reterr)) < 0 ||
            (r = check_text(request->user_id, "user", reterr)) < 0 ||
            (r = check_text(request->consumer_type, "consumer type", reterr)) < 0)
                return r;
        if (request->resources.n_groups == 0)
                return error_setf(reterr, EINVAL, "The request asks for no resources");
        if (request->resources.n_groups > CLAIM_GROUPS_MAX)
                return error_setf(reterr, EINVAL,
                                  "The request has %zu groups, but at most %d are allowed",
                                  request->resources.n_groups, CLAIM_GROUPS_MAX);
        for (size_t i = 0; i < request->resources.n_groups; i++) {
                r = check_group(&request->resources, &request->resources.groups[i], reterr);
                if (r < 0)
                        return r;
        }
        if ((r = check_subtrees(&request->resources, reterr)) < 0 ||
            (r = check_layout(&request->resources, reterr)) < 0 ||
            (r = check_mappings(&request->mappings, reterr)) < 0)
                return r;
        r = resource_request_sum(&request->resources, &sum);
        if (r == -EOVERFLOW)
                return error_setf(reterr, EINVAL, "The amounts of the groups overflow");
        if (r < 0)
                return error_oom(reterr);
        return check_amounts(&sum, " over all groups", reterr);
}
