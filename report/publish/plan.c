/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the desired tree with the mirror and makes the steps that remove the differences. The
 * phases are: names, creations, moves, the reshape, inventories with aggregates and traits,
 * deletions. So each step follows its prerequisites. A creation that needs the name of another
 * provider comes after the deletion of that one, and the deletion after the moves of children that
 * stay. Each provider has a Node for each tree, found by uuid, with the steps that create, delete
 * or move it.
 *
 * The builder looks at two trees: desired, and the mirror's. A provider in only one of them is
 * created or deleted; one in both is compared part by part. find_old() and before() look into the
 * mirror. Invariant: all dependencies are indexes of earlier steps, so the plan has no cycle. */

#include "report/publish/plan.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

#define NO_STEP SIZE_MAX

/* Smallest number of providers for a batch. Fewer are sent one by one: that needs few more
 * requests, and these are independent of each other. */
#define BATCH_MIN 4

typedef struct Node {
        const Provider *provider;
        size_t step; /* the step that creates or deletes it, or NO_STEP */
        size_t move; /* the step that moves it below its parent, or NO_STEP */
        size_t away; /* the step that first moves it below an ancestor, or NO_STEP */
} Node;

/* The providers of a tree, sorted by uuid. */
typedef struct NodeTable {
        Node *nodes;
        size_t n_nodes;
} NodeTable;

typedef struct Builder {
        Plan *plan;
        const ProviderTree *desired; /* equal to plan->desired */
        const ProviderTree *mirror;
        const MirrorNames *names;
        bool may_batch;
        NodeTable creates; /* the nodes of desired */
        NodeTable deletes; /* the nodes of the mirror */
        StringSet new_classes, new_traits;
        size_t first_class, first_trait; /* index of the first step of each set; the steps have the
                                            order of the sets */
        /* Index of the step of the reshape, or NO_STEP. */
        size_t reshape;
        Error *reterr;
} Builder;

/* Summaries. A function summarize_…() returns a text that the caller frees, or NULL without
 * memory. */

/* Appends "(was 7)", and the changed fields other than total. */
static void print_change(FILE *stream, const Inventory *want, const Inventory *was)
{
        if (want->total != was->total)
                fprintf(stream, " (was %" PRIu64 ")", was->total);
        if (want->reserved != was->reserved)
                fprintf(stream, " reserved %" PRIu64 " (was %" PRIu64 ")", want->reserved,
                        was->reserved);
        if ((float)want->allocation_ratio != (float)was->allocation_ratio)
                fprintf(stream, " ratio %g (was %g)", want->allocation_ratio,
                        was->allocation_ratio);
        if (want->min_unit != was->min_unit || want->max_unit != was->max_unit ||
            want->step_size != was->step_size)
                fprintf(stream,
                        " units %" PRIu64 "–%" PRIu64 " by %" PRIu64 " (was %" PRIu64 "–%" PRIu64
                        " by %" PRIu64 ")",
                        want->min_unit, want->max_unit, want->step_size, was->min_unit,
                        was->max_unit, was->step_size);
}

/* Makes a text such as "VCPU 8, MEMORY_MB 16384 (was 15872), no VGPU (was 4)". */
static char *summarize_inventories(const Provider *want, const Provider *was)
{
        const char *separator = "";
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        for (size_t i = 0; i < want->n_inventories; i++) {
                const InventoryRecord *record = &want->inventories[i];
                const Inventory *old = provider_find_inventory(was, record->resource_class);

                fprintf(stream, "%s%s %" PRIu64, separator, record->resource_class,
                        record->inventory.total);
                if (old)
                        print_change(stream, &record->inventory, old);
                separator = ", ";
        }
        for (size_t i = 0; i < was->n_inventories; i++) {
                const InventoryRecord *record = &was->inventories[i];

                if (provider_find_inventory(want, record->resource_class))
                        continue;
                fprintf(stream, "%sno %s (was %" PRIu64 ")", separator, record->resource_class,
                        record->inventory.total);
                separator = ", ";
        }
        return text_close(stream, &text);
}

/* Makes a text such as "+HW_CPU_X86_AVX2 -CUSTOM_OLD". */
static char *summarize_set(const StringSet *want, const StringSet *was)
{
        const char *separator = "";
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        for (size_t i = 0; i < want->n_items; i++)
                if (!string_set_contains(was, want->items[i])) {
                        fprintf(stream, "%s+%s", separator, want->items[i]);
                        separator = " ";
                }
        for (size_t i = 0; i < was->n_items; i++)
                if (!string_set_contains(want, was->items[i])) {
                        fprintf(stream, "%s-%s", separator, was->items[i]);
                        separator = " ";
                }
        return text_close(stream, &text);
}

/* Makes a text such as "inventories of 3 providers, allocations of 12 consumers". */
static char *summarize_reshape(size_t n_providers, const Allocations *allocations)
{
        size_t n_consumers = allocations ? allocations->n_consumers : 0;

        if (n_consumers == 0)
                return text_format("inventories of %zu provider%s", n_providers,
                                   text_plural(n_providers));
        return text_format("inventories of %zu provider%s, allocations of %zu consumer%s",
                           n_providers, text_plural(n_providers), n_consumers,
                           text_plural(n_consumers));
}

/* Steps. */

static int table_init(NodeTable *table, const ProviderTree *tree)
{
        table->nodes = calloc(MAX(tree->n_providers, (size_t)1), sizeof(Node));
        if (!table->nodes)
                return -ENOMEM;
        table->n_nodes = tree->n_providers;
        for (size_t i = 0; i < tree->n_providers; i++)
                table->nodes[i] = (Node){ .provider = tree->by_uuid[i],
                                          .step = NO_STEP,
                                          .move = NO_STEP,
                                          .away = NO_STEP };
        return 0;
}

static int compare_nodes(const void *a, const void *b)
{
        return uuid_order(&((const Node *)a)->provider->uuid, &((const Node *)b)->provider->uuid);
}

static Node *table_find(const NodeTable *table, const Uuid *uuid)
{
        Provider provider = { .uuid = *uuid };
        Node key = { .provider = &provider };

        return bsearch(&key, table->nodes, table->n_nodes, sizeof(Node), compare_nodes);
}

static void builder_done(Builder *builder)
{
        free(builder->creates.nodes);
        free(builder->deletes.nodes);
        string_set_done(&builder->new_classes);
        string_set_done(&builder->new_traits);
}

Plan *plan_free(Plan *plan)
{
        if (!plan)
                return NULL;
        for (size_t i = 0; i < plan->n_steps; i++) {
                free(plan->steps[i].name);
                free(plan->steps[i].summary);
                free(plan->steps[i].after);
        }
        free(plan->steps);
        provider_tree_free(plan->desired);
        allocations_free(plan->allocations);
        free(plan->reshaped);
        free(plan);
        return NULL;
}

/* Adds a step and owns summary, also on failure; a NULL summary means out of memory. provider can
 * be NULL. */
static int add_step(Builder *builder, PlanOp op, const Provider *provider, const char *name,
                    char *summary, size_t *ret)
{
        Plan *plan = builder->plan;
        PlanStep step = { .op = op, .summary = summary };

        if (provider)
                step.provider = provider->uuid;
        step.name = strdup(name);
        if (!step.name || !summary ||
            array_grow(&plan->steps, sizeof(PlanStep), plan->n_steps, &plan->n_allocated) < 0) {
                free(step.name);
                free(summary);
                return -ENOMEM;
        }
        *ret = plan->n_steps;
        plan->steps[plan->n_steps++] = step;
        return 0;
}

/* Adds a dependency, unless before is NO_STEP. */
static int add_after(Builder *builder, size_t index, size_t before)
{
        PlanStep *step = &builder->plan->steps[index];
        size_t *after;

        if (before == NO_STEP)
                return 0;
        after = reallocarray(step->after, step->n_after + 1, sizeof(size_t));
        if (!after)
                return -ENOMEM;
        step->after = after;
        step->after[step->n_after++] = before;
        return 0;
}

static const Provider *find_old(const Builder *builder, const Provider *provider)
{
        return provider_tree_find(builder->mirror, &provider->uuid);
}

/* Returns the provider as Placement has it, or an empty one. */
static const Provider *before(const Builder *builder, const Provider *provider)
{
        static const Provider none = { 0 };
        const Provider *old = find_old(builder, provider);

        return old ? old : &none;
}

static bool inventories_change(const Builder *builder, const Provider *provider)
{
        return !provider_inventories_equal(provider, before(builder, provider));
}

static bool traits_change(const Builder *builder, const Provider *provider)
{
        return !string_set_equal(&provider->traits, &before(builder, provider)->traits);
}

static bool aggregates_change(const Builder *builder, const Provider *provider)
{
        return !string_set_equal(&provider->aggregates, &before(builder, provider)->aggregates);
}

/* Checks whether a trait can be written. A custom trait can be created. A standard trait must not
 * be one that Placement is known to lack. A text that is no name of a trait cannot be written. */
static bool trait_usable(const Builder *builder, const char *trait)
{
        if (!resource_class_valid(trait))
                return false;
        return resource_class_is_custom(trait) ||
               !string_set_contains(&builder->names->missing_traits, trait);
}

/* Returns true if the tree has a trait that cannot be written. */
static bool has_unusable_trait(const Builder *builder, const ProviderTree *tree)
{
        for (size_t i = 0; i < tree->n_providers; i++) {
                const StringSet *traits = &tree->providers[i]->traits;

                for (size_t j = 0; j < traits->n_items; j++)
                        if (!trait_usable(builder, traits->items[j]))
                                return true;
        }
        return false;
}

static void leave_out_traits(const Builder *builder, Provider *provider)
{
        for (size_t i = provider->traits.n_items; i > 0; i--)
                if (!trait_usable(builder, provider->traits.items[i - 1]))
                        string_set_remove(&provider->traits, provider->traits.items[i - 1]);
}

/* Checks that the provider keeps its name, and that it stays a root or stays below a parent. A plan
 * has no step for another change. */
static int check_identity(const Builder *builder, const Provider *provider)
{
        const Provider *old = find_old(builder, provider);

        if (!old)
                return 0;
        if (strcmp(old->name, provider->name) != 0)
                return error_setf(builder->reterr, EINVAL,
                                  "Provider %s is named %s in Placement and cannot become %s",
                                  provider->uuid.text, old->name, provider->name);
        if (uuid_empty(&old->parent) != uuid_empty(&provider->parent))
                return error_setf(
                        builder->reterr, EINVAL,
                        "Provider %s cannot become a root, and a root cannot get a parent",
                        provider->name);
        return 0;
}

static int check_desired(Builder *builder)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < builder->desired->n_providers; i++)
                r = check_identity(builder, builder->desired->providers[i]);
        return r;
}

/* Stores the tree in the plan: a reference, or a copy without the traits that cannot be written. */
static int take_desired(Builder *builder, const ProviderTree *desired)
{
        ProviderTree *copy;

        if (!has_unusable_trait(builder, desired)) {
                builder->plan->desired = provider_tree_ref(desired);
                return 0;
        }
        if (provider_tree_copy(&builder->plan->desired, desired) < 0)
                return -ENOMEM;
        copy = builder->plan->desired;
        for (size_t i = 0; i < copy->n_providers; i++)
                leave_out_traits(builder, copy->providers[i]);
        return 0;
}

/* Adds a custom name that Placement might lack. */
static int collect_new(StringSet *ret, const char *name, const StringSet *known)
{
        if (!resource_class_is_custom(name) || string_set_contains(known, name))
                return 0;
        return string_set_add(ret, name) < 0 ? -ENOMEM : 0;
}

/* Collects the new classes and traits of a provider, but only from parts that are written. */
static int collect_new_of_provider(Builder *builder, const Provider *provider)
{
        if (inventories_change(builder, provider))
                for (size_t i = 0; i < provider->n_inventories; i++)
                        if (collect_new(&builder->new_classes,
                                        provider->inventories[i].resource_class,
                                        &builder->names->known_classes) < 0)
                                return -ENOMEM;
        if (traits_change(builder, provider))
                for (size_t i = 0; i < provider->traits.n_items; i++)
                        if (collect_new(&builder->new_traits, provider->traits.items[i],
                                        &builder->names->known_traits) < 0)
                                return -ENOMEM;
        return 0;
}

static int add_ensures(Builder *builder, PlanOp op, const StringSet *names, size_t *ret_first)
{
        size_t index;

        *ret_first = builder->plan->n_steps;
        for (size_t i = 0; i < names->n_items; i++) {
                char *summary =
                        strdup(op == PLAN_ENSURE_CLASS ? "new resource class" : "new trait");

                if (add_step(builder, op, NULL, names->items[i], summary, &index) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Makes the steps for new classes and traits. They come first, because other steps depend on
 * them. */
static int make_names(Builder *builder)
{
        for (size_t i = 0; i < builder->desired->n_providers; i++)
                if (collect_new_of_provider(builder, builder->desired->providers[i]) < 0)
                        return -ENOMEM;
        if (add_ensures(builder, PLAN_ENSURE_CLASS, &builder->new_classes, &builder->first_class) <
            0)
                return -ENOMEM;
        return add_ensures(builder, PLAN_ENSURE_TRAIT, &builder->new_traits, &builder->first_trait);
}

/* Returns the step that makes a name, or NO_STEP. */
static size_t find_ensure(const StringSet *names, size_t first, const char *name)
{
        for (size_t i = 0; i < names->n_items; i++)
                if (strcmp(names->items[i], name) == 0)
                        return first + i;
        return NO_STEP;
}

/* Adds the deletion of a provider, unless it has one. It waits for the reshape, unless it comes
 * before a creation, and for the deletions and moves of its children. All these steps exist: the
 * caller walks the mirror backwards, and moves come before deletions. The inventories are deleted
 * first, unless the reshape removes them. */
static int add_delete(Builder *builder, const Provider *provider)
{
        Node *node = table_find(&builder->deletes, &provider->uuid);
        size_t index, empty = NO_STEP;

        if (node->step != NO_STEP)
                return 0;
        if (provider->n_inventories > 0 && !plan_is_reshaped(builder->plan, &provider->uuid) &&
            (add_step(builder, PLAN_EMPTY_PROVIDER, provider, provider->name,
                      strdup("before its deletion"), &empty) < 0 ||
             add_after(builder, empty, builder->reshape) < 0))
                return -ENOMEM;
        if (add_step(builder, PLAN_DELETE_PROVIDER, provider, provider->name,
                     strdup("no longer in the tree"), &index) < 0 ||
            add_after(builder, index, builder->reshape) < 0 || add_after(builder, index, empty) < 0)
                return -ENOMEM;
        node->step = index;
        for (size_t i = 0; i < index; i++) {
                const PlanStep *step = &builder->plan->steps[i];
                const Provider *child =
                        step->op == PLAN_DELETE_PROVIDER || step->op == PLAN_MOVE_PROVIDER
                                ? provider_tree_find(builder->mirror, &step->provider)
                                : NULL;

                if (child && uuid_equal(&child->parent, &provider->uuid) &&
                    add_after(builder, index, i) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Deletes the providers that are in the mirror and not in desired: all of them, or those in the
 * subtree of one. */
static int make_deletes(Builder *builder, const Uuid *below)
{
        for (size_t i = builder->mirror->n_providers; i > 0; i--) {
                const Provider *provider = builder->mirror->providers[i - 1];

                if (provider_tree_find(builder->desired, &provider->uuid))
                        continue;
                if (below && !provider_tree_in_subtree(builder->mirror, provider, below))
                        continue;
                if (add_delete(builder, provider) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Adds a move of a provider of both trees. from: the uuid of its parent before. parent: the new
 * one. */
static int add_move_step(Builder *builder, const Provider *provider, const Uuid *from,
                         const Provider *parent, size_t *ret)
{
        const Provider *was = provider_tree_find(builder->mirror, from);
        char *summary =
                text_format("below %s (was below %s)", parent->name, was ? was->name : from->text);

        if (add_step(builder, PLAN_MOVE_PROVIDER, provider, provider->name, summary, ret) < 0)
                return -ENOMEM;
        builder->plan->steps[*ret].parent = parent->uuid;
        return 0;
}

/* Returns the nearest ancestor in the mirror that is in desired too; NULL: there is none. */
static const Provider *find_kept_ancestor(const Builder *builder, const Provider *provider)
{
        const Provider *ancestor = provider_tree_find(builder->mirror, &provider->parent);

        while (ancestor && !provider_tree_find(builder->desired, &ancestor->uuid))
                ancestor = provider_tree_find(builder->mirror, &ancestor->parent);
        return ancestor;
}

/* Moves the kept children of a provider, and of its descendants that are deleted with it, below
 * ancestors that stay. Their own parents can be providers that do not exist yet. A move below an
 * ancestor never makes a loop. -EINVAL if no ancestor stays. */
static int make_moves_away(Builder *builder, const Provider *holder)
{
        for (size_t i = 0; i < builder->mirror->n_providers; i++) {
                const Provider *provider = builder->mirror->providers[i], *ancestor;
                Node *node = table_find(&builder->creates, &provider->uuid);

                if (!node || node->away != NO_STEP ||
                    provider_tree_find(builder->desired, &provider->parent) ||
                    !provider_tree_in_subtree(builder->mirror, provider, &holder->uuid))
                        continue;
                ancestor = find_kept_ancestor(builder, provider);
                if (!ancestor)
                        return error_setf(
                                builder->reterr, EINVAL,
                                "A new provider has the name of %s (%s), whose child %s must stay",
                                holder->name, holder->uuid.text, provider->name);
                if (add_move_step(builder, provider, &provider->parent, ancestor, &node->away) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Deletes the provider of the mirror that has the name of a new one, with its descendants that are
 * not desired, before the creation. Names are unique in Placement. -EINVAL if the plan has a
 * reshape of allocations, which must come first, or from make_moves_away(). */
static int make_room_for_name(Builder *builder, const Provider *provider)
{
        const Provider *holder = provider_tree_find_name(builder->mirror, provider->name);
        int r;

        if (!holder)
                return 0;
        if (builder->plan->n_reshaped > 0 && !builder->plan->is_batch)
                return error_setf(
                        builder->reterr, EINVAL,
                        "The new provider %s has the name of %s, which can only be deleted after the reshape",
                        provider->name, holder->uuid.text);
        r = make_moves_away(builder, holder);
        return r < 0 ? r : make_deletes(builder, &holder->uuid);
}

/* Adds the creation of a provider, after that of its parent and after the deletion of the holder of
 * its name. */
static int add_create(Builder *builder, const Provider *provider)
{
        const Provider *holder = provider_tree_find_name(builder->mirror, provider->name);
        Node *node = table_find(&builder->creates, &provider->uuid);
        const Node *parent = table_find(&builder->creates, &provider->parent);
        char *summary = text_format("new%s%s", parent ? ", below " : "",
                                    parent ? parent->provider->name : "");
        size_t index;

        if (add_step(builder, PLAN_CREATE_PROVIDER, provider, provider->name, summary, &index) < 0)
                return -ENOMEM;
        node->step = index;
        if (parent && add_after(builder, index, parent->step) < 0)
                return -ENOMEM;
        if (holder &&
            add_after(builder, index, table_find(&builder->deletes, &holder->uuid)->step) < 0)
                return -ENOMEM;
        return 0;
}

static int make_creates(Builder *builder)
{
        for (size_t i = 0; i < builder->desired->n_providers; i++) {
                const Provider *provider = builder->desired->providers[i];
                int r;

                if (find_old(builder, provider))
                        continue;
                r = make_room_for_name(builder, provider);
                if (r >= 0)
                        r = add_create(builder, provider);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Returns the move of the first provider that moves among parent and its ancestors, or NO_STEP. A
 * move below parent must wait for it: until then, that ancestor can still be below the provider
 * that moves, and Placement would reject a loop. */
static size_t find_move_above(const Builder *builder, const Node *parent)
{
        while (parent && parent->move == NO_STEP)
                parent = table_find(&builder->creates, &parent->provider->parent);
        return parent ? parent->move : NO_STEP;
}

/* Adds the move of a provider below its parent. from: the uuid of its parent before. The caller
 * walks desired forwards, so the ancestors have their moves already. */
static int add_move(Builder *builder, Node *node, const Uuid *from)
{
        const Node *parent = table_find(&builder->creates, &node->provider->parent);
        size_t above = find_move_above(builder, parent);

        if (add_move_step(builder, node->provider, from, parent->provider, &node->move) < 0 ||
            add_after(builder, node->move, node->away) < 0 ||
            add_after(builder, node->move, parent->step) < 0)
                return -ENOMEM;
        return above == parent->step ? 0 : add_after(builder, node->move, above);
}

static int make_moves(Builder *builder)
{
        for (size_t i = 0; i < builder->desired->n_providers; i++) {
                const Provider *provider = builder->desired->providers[i];
                const Provider *old = find_old(builder, provider);
                Node *node = table_find(&builder->creates, &provider->uuid);
                Uuid from;

                if (!old)
                        continue;
                from = node->away == NO_STEP ? old->parent
                                             : builder->plan->steps[node->away].parent;
                if (!uuid_equal(&from, &provider->parent) && add_move(builder, node, &from) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Returns a provider for a reshape that changes only allocations, because Placement demands at
 * least one inventory. */
static const Provider *pick_unchanged_provider(const Builder *builder)
{
        const Allocations *allocations = builder->plan->allocations;

        for (size_t i = 0; i < allocations->n_consumers; i++)
                for (size_t j = 0; j < allocations->consumers[i]->n_allocations; j++) {
                        const Uuid *uuid = &allocations->consumers[i]->allocations[j].provider;
                        const Provider *provider = provider_tree_find(builder->desired, uuid);

                        if (provider)
                                return provider;
                }
        return builder->desired->n_providers > 0 ? builder->desired->providers[0] : NULL;
}

bool plan_is_reshaped(const Plan *plan, const Uuid *provider)
{
        for (size_t i = 0; i < plan->n_reshaped; i++)
                if (uuid_equal(&plan->reshaped[i], provider))
                        return true;
        return false;
}

/* Checks whether a provider can be part of a batch. The reshaper sets many inventories in one
 * transaction, so it rejects all if it rejects one. So a provider gets a request of its own if
 * Placement might reject its inventories: a class is removed, which can be in use, or no class is
 * left. The same is true if only the reshaper would accept them (facts E6: reserved above total),
 * so that the rejection is noticed. */
static bool fits_batch(const Builder *builder, const Provider *provider)
{
        const Provider *old = before(builder, provider);

        for (size_t i = 0; i < provider->n_inventories; i++) {
                const Inventory *inventory = &provider->inventories[i].inventory;

                if (inventory->reserved > inventory->total)
                        return false;
        }
        for (size_t i = 0; i < old->n_inventories; i++)
                if (!provider_find_inventory(provider, old->inventories[i].resource_class))
                        return false;
        return provider->n_inventories > 0;
}

/* Chooses the providers of a batch, a reshape that moves no allocation and only saves requests.
 * Chooses none if the caller does not permit a batch, or if fewer than BATCH_MIN fit. */
static void choose_batch(Builder *builder)
{
        const ProviderTree *desired = builder->desired;
        Plan *plan = builder->plan;

        for (size_t i = 0; builder->may_batch && i < desired->n_providers; i++) {
                const Provider *provider = desired->providers[i];

                if (inventories_change(builder, provider) && fits_batch(builder, provider))
                        plan->reshaped[plan->n_reshaped++] = provider->uuid;
        }
        plan->is_batch = plan->n_reshaped >= BATCH_MIN;
        if (!plan->is_batch)
                plan->n_reshaped = 0;
}

/* Chooses the providers of the reshape. With consumers these are all whose inventories change, also
 * those that are deleted, or else one unchanged provider. Without consumers they are the batch. */
static int choose_reshaped(Builder *builder)
{
        const ProviderTree *desired = builder->desired, *mirror = builder->mirror;
        Plan *plan = builder->plan;
        const Provider *unchanged;

        plan->reshaped = calloc(desired->n_providers + mirror->n_providers + 1, sizeof(Uuid));
        if (!plan->reshaped)
                return -ENOMEM;
        if (!plan->allocations || plan->allocations->n_consumers == 0) {
                choose_batch(builder);
                return 0;
        }
        for (size_t i = 0; i < desired->n_providers; i++)
                if (inventories_change(builder, desired->providers[i]))
                        plan->reshaped[plan->n_reshaped++] = desired->providers[i]->uuid;
        for (size_t i = 0; i < mirror->n_providers; i++)
                if (mirror->providers[i]->n_inventories > 0 &&
                    !provider_tree_find(desired, &mirror->providers[i]->uuid))
                        plan->reshaped[plan->n_reshaped++] = mirror->providers[i]->uuid;
        unchanged = plan->n_reshaped == 0 ? pick_unchanged_provider(builder) : NULL;
        if (unchanged)
                plan->reshaped[plan->n_reshaped++] = unchanged->uuid;
        return 0;
}

/* Adds the reshape, which depends on all earlier steps but new traits and moves. Traits do not
 * matter to it. The executor runs one move or reshape at a time, in the order of the plan, so the
 * moves begin first without a dependency. */
static int make_reshape(Builder *builder)
{
        const Plan *plan = builder->plan;
        size_t index;

        if (plan->n_reshaped == 0)
                return 0;
        if (add_step(builder, PLAN_RESHAPE, NULL, "",
                     summarize_reshape(plan->n_reshaped, plan->allocations), &index) < 0)
                return -ENOMEM;
        builder->reshape = index;
        for (size_t i = 0; i < index; i++)
                if (plan->steps[i].op != PLAN_ENSURE_TRAIT &&
                    plan->steps[i].op != PLAN_MOVE_PROVIDER && add_after(builder, index, i) < 0)
                        return -ENOMEM;
        return 0;
}

/* Adds a step for a part of a provider, after its creation and the reshape. */
static int add_put(Builder *builder, PlanOp op, const Provider *provider, char *summary,
                   size_t *ret)
{
        if (add_step(builder, op, provider, provider->name, summary, ret) < 0 ||
            add_after(builder, *ret, table_find(&builder->creates, &provider->uuid)->step) < 0)
                return -ENOMEM;
        return add_after(builder, *ret, builder->reshape);
}

static int make_put_inventories(Builder *builder, const Provider *provider)
{
        size_t index;

        if (plan_is_reshaped(builder->plan, &provider->uuid) ||
            !inventories_change(builder, provider))
                return 0;
        if (add_put(builder, PLAN_PUT_INVENTORIES, provider,
                    summarize_inventories(provider, before(builder, provider)), &index) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < provider->n_inventories; i++)
                if (add_after(builder, index,
                              find_ensure(&builder->new_classes, builder->first_class,
                                          provider->inventories[i].resource_class)) < 0)
                        return -ENOMEM;
        return 0;
}

static int make_put_aggregates(Builder *builder, const Provider *provider)
{
        size_t index;

        if (!aggregates_change(builder, provider))
                return 0;
        return add_put(builder, PLAN_PUT_AGGREGATES, provider,
                       summarize_set(&provider->aggregates, &before(builder, provider)->aggregates),
                       &index);
}

static int make_put_traits(Builder *builder, const Provider *provider)
{
        size_t index;

        if (!traits_change(builder, provider))
                return 0;
        if (add_put(builder, PLAN_PUT_TRAITS, provider,
                    summarize_set(&provider->traits, &before(builder, provider)->traits),
                    &index) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < provider->traits.n_items; i++)
                if (add_after(builder, index,
                              find_ensure(&builder->new_traits, builder->first_trait,
                                          provider->traits.items[i])) < 0)
                        return -ENOMEM;
        return 0;
}

static int make_puts(Builder *builder)
{
        for (size_t i = 0; i < builder->desired->n_providers; i++) {
                const Provider *provider = builder->desired->providers[i];

                if (make_put_inventories(builder, provider) < 0 ||
                    make_put_aggregates(builder, provider) < 0 ||
                    make_put_traits(builder, provider) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int build(Builder *builder)
{
        int r;

        if (table_init(&builder->creates, builder->desired) < 0 ||
            table_init(&builder->deletes, builder->mirror) < 0)
                return -ENOMEM;
        r = check_desired(builder);
        if (r < 0)
                return r;
        if (choose_reshaped(builder) < 0 || make_names(builder) < 0)
                return -ENOMEM;
        r = make_creates(builder);
        if (r < 0)
                return r;
        if (make_moves(builder) < 0 || make_reshape(builder) < 0 || make_puts(builder) < 0)
                return -ENOMEM;
        return make_deletes(builder, NULL);
}

/* Checks whether the provider is new and can be created before the reshape: its name is free and
 * its parent exists or is created too. */
static bool is_groundwork(const Builder *builder, const Provider *provider)
{
        const Node *parent = table_find(&builder->creates, &provider->parent);

        if (find_old(builder, provider) || provider_tree_find_name(builder->mirror, provider->name))
                return false;
        return !parent || parent->step != NO_STEP || find_old(builder, parent->provider);
}

/* Builds the part of the plan that needs no allocations. */
static int build_groundwork(Builder *builder)
{
        const ProviderTree *desired = builder->desired;
        int r;

        if (table_init(&builder->creates, desired) < 0)
                return -ENOMEM;
        r = check_desired(builder);
        if (r < 0)
                return r;
        if (make_names(builder) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < desired->n_providers; i++)
                if (is_groundwork(builder, desired->providers[i]) &&
                    add_create(builder, desired->providers[i]) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < desired->n_providers; i++)
                if (table_find(&builder->creates, &desired->providers[i]->uuid)->step != NO_STEP &&
                    (make_put_aggregates(builder, desired->providers[i]) < 0 ||
                     make_put_traits(builder, desired->providers[i]) < 0))
                        return -ENOMEM;
        return 0;
}

/* Makes a plan with the function how: build() or build_groundwork(). */
static int make(const ProviderTree *desired, const Mirror *mirror, const Allocations *allocations,
                bool may_batch, int (*how)(Builder *builder), Plan **ret, Error *reterr)
{
        _cleanup_(plan_freep) Plan *plan = calloc(1, sizeof(Plan));
        Builder builder = {
                .plan = plan,
                .mirror = mirror->tree,
                .names = &mirror->names,
                .may_batch = may_batch,
                .reshape = NO_STEP,
                .reterr = reterr,
        };
        int r;

        if (!plan || take_desired(&builder, desired) < 0 ||
            (allocations && allocations_copy(&plan->allocations, allocations) < 0))
                return error_oom(reterr);
        builder.desired = plan->desired;
        r = how(&builder);
        builder_done(&builder);
        if (r == -ENOMEM)
                return error_oom(reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(plan);
        return 0;
}

int plan_make(const ProviderTree *desired, const Mirror *mirror, const Allocations *allocations,
              bool may_batch, Plan **ret, Error *reterr)
{
        return make(desired, mirror, allocations, may_batch, build, ret, reterr);
}

int plan_make_groundwork(const ProviderTree *desired, const Mirror *mirror, Plan **ret,
                         Error *reterr)
{
        return make(desired, mirror, NULL, false, build_groundwork, ret, reterr);
}
