/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/fit/group-match.h"

#include <string.h>

#include "claims/fit/matching.h"

/* The groups (left) and the providers (right) of one matching. */
typedef struct Table {
        RequestGroup **groups;
        size_t n_groups;
        const Provider **providers;
        Resources *left; /* what is held of each that no group is bound to yet */
        size_t n_shares;
        const RequestGroup *plain; /* the group without a suffix, or NULL */
        uint64_t *times;           /* group * n_shares + share: how often it is in there; 0: not */
} Table;

static void table_done(Table *table)
{
        for (size_t i = 0; table->left && i < table->n_shares; i++)
                resources_done(&table->left[i]);
        free(table->groups);
        free(table->left);
        free(table->providers);
        free(table->times);
}

static bool asked_by_plain(const Table *table, const char *resource_class)
{
        return table->plain && resources_get(&table->plain->resources, resource_class) > 0;
}

static bool has_traits(const Provider *provider, const RequestGroup *group)
{
        for (size_t i = 0; i < group->required.n_items; i++)
                if (!string_set_contains(&provider->traits, group->required.items[i]))
                        return false;
        for (size_t i = 0; i < group->forbidden.n_items; i++)
                if (string_set_contains(&provider->traits, group->forbidden.items[i]))
                        return false;
        return true;
}

/* How many groups like this one make up what is held; 0: no number does. */
static uint64_t count_times(const Table *table, const RequestGroup *group, size_t share)
{
        const Resources *held = &table->left[share];
        uint64_t times = 0;

        if (!has_traits(table->providers[share], group))
                return 0;
        for (size_t i = 0; i < group->resources.n_items; i++) {
                const ResourceAmount *need = &group->resources.items[i];
                uint64_t amount = resources_get(held, need->resource_class);

                if (amount == 0 || amount % need->amount != 0 ||
                    (times > 0 && amount / need->amount != times))
                        return 0;
                times = amount / need->amount;
        }
        for (size_t i = 0; i < held->n_items; i++)
                if (resources_get(&group->resources, held->items[i].resource_class) == 0 &&
                    !asked_by_plain(table, held->items[i].resource_class))
                        return 0;
        return times;
}

static void list_groups(Table *table, ResourceRequest *request)
{
        for (size_t i = 0; i < request->n_groups; i++) {
                RequestGroup *group = &request->groups[i];

                if (!group->suffix[0])
                        table->plain = group;
                else if (group->resources.n_items > 0 && uuid_empty(&group->provider))
                        table->groups[table->n_groups++] = group;
        }
}

/* What is held of a provider, without what the groups take that are bound to it. */
static int make_left(const ResourceRequest *request, const Allocation *held, Resources *ret)
{
        if (resources_copy(ret, &held->resources) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < request->n_groups; i++) {
                const RequestGroup *group = &request->groups[i];

                for (size_t j = 0;
                     uuid_equal(&group->provider, &held->provider) && j < group->resources.n_items;
                     j++) {
                        const ResourceAmount *need = &group->resources.items[j];
                        uint64_t amount = resources_get(ret, need->resource_class);

                        if (resources_set(ret, need->resource_class,
                                          amount - MIN(amount, need->amount)) < 0)
                                return -ENOMEM;
                }
        }
        return 0;
}

static int fill(Table *table, const HostView *view, const Consumer *holding,
                ResourceRequest *request)
{
        table->groups = calloc(request->n_groups + 1, sizeof(RequestGroup *));
        table->left = calloc(holding->n_allocations + 1, sizeof(Resources));
        table->providers = calloc(holding->n_allocations + 1, sizeof(Provider *));
        if (!table->groups || !table->left || !table->providers)
                return -ENOMEM;
        list_groups(table, request);
        for (size_t i = 0; i < holding->n_allocations; i++) {
                size_t index;

                if (!host_view_find(view, &holding->allocations[i].provider, &index))
                        continue;
                table->providers[table->n_shares] = view->tree->providers[index];
                if (make_left(request, &holding->allocations[i], &table->left[table->n_shares++]) <
                    0)
                        return -ENOMEM;
        }
        table->times = calloc(table->n_groups * table->n_shares + 1, sizeof(uint64_t));
        if (!table->times)
                return -ENOMEM;
        for (size_t i = 0; i < table->n_groups; i++)
                for (size_t j = 0; j < table->n_shares; j++)
                        table->times[i * table->n_shares + j] =
                                count_times(table, table->groups[i], j);
        return 0;
}

static bool mixes_with_plain(const Table *table)
{
        for (size_t i = 0; i < table->n_groups; i++)
                for (size_t j = 0; j < table->groups[i]->resources.n_items; j++)
                        if (asked_by_plain(table,
                                           table->groups[i]->resources.items[j].resource_class))
                                return true;
        return false;
}

/* Which pairs count, and how many groups a provider takes: one, or the multiple that all groups
 * that could be there agree on. False when they do not. */
static bool make_edges(const Table *table, bool shared, bool *edges, size_t *capacity)
{
        for (size_t j = 0; j < table->n_shares; j++) {
                capacity[j] = shared ? 0 : 1;
                for (size_t i = 0; i < table->n_groups; i++) {
                        uint64_t times = table->times[i * table->n_shares + j];

                        edges[i * table->n_shares + j] = shared ? times > 0 : times == 1;
                        if (!shared || times == 0)
                                continue;
                        if (capacity[j] > 0 && capacity[j] != times)
                                return false;
                        capacity[j] = times;
                }
        }
        return true;
}

static int match_once(const Table *table, bool shared)
{
        _cleanup_free_ bool *edges = calloc(table->n_groups * table->n_shares + 1, sizeof(bool));
        _cleanup_free_ size_t *capacity = calloc(table->n_shares + 1, sizeof(size_t));
        _cleanup_free_ size_t *right = calloc(table->n_groups + 1, sizeof(size_t));
        MatchingProblem problem = {
                .n_left = table->n_groups,
                .n_right = table->n_shares,
                .edges = edges,
                .capacity = capacity,
        };
        bool ambiguous;
        size_t n;

        if (!edges || !capacity || !right)
                return -ENOMEM;
        if (!make_edges(table, shared, edges, capacity))
                return GROUP_MATCH_E_NONE;
        if (matching_find(&problem, right, &n) < 0)
                return -ENOMEM;
        if (n < table->n_groups)
                return GROUP_MATCH_E_NONE;
        if (matching_is_ambiguous(&problem, right, &ambiguous) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < table->n_groups; i++)
                table->groups[i]->provider = table->providers[right[i]]->uuid;
        return ambiguous ? GROUP_MATCH_AMBIGUOUS : GROUP_MATCH_DONE;
}

int group_match(const HostView *view, const Consumer *holding, ResourceRequest *request)
{
        _cleanup_(table_done) Table table = { 0 };
        int r;

        if (fill(&table, view, holding, request) < 0)
                return -ENOMEM;
        if (mixes_with_plain(&table))
                return GROUP_MATCH_E_NONE;
        r = match_once(&table, false);
        return r == GROUP_MATCH_E_NONE && !request->isolate ? match_once(&table, true) : r;
}
