/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Turns a step of a plan into text, JSON and a request, and applies its result to the mirror. One
 * table has the name, method and route of each operation. The functions come in three groups: steps
 * as text and as JSON, steps as requests with the mirror's generations, and the changes of the
 * mirror after an answer.
 *
 * The answer to most writes of a provider has its generation. The answer to a reshape has none, so
 * the new generations are computed (rise_of()). The answer to a creation has no body, and the
 * generation is 0. The answer to the deletion of inventories has none either, so the mirror forgets
 * the provider. The function step_keep_used() keeps inventories of classes that the desired tree
 * lacks and that are in use. */

#include "report/publish/step.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"

/* Number of steps that plan_describe() shows. */
#define DESCRIBED_MAX 3
/* Generation of a provider that was just created. The next write of the provider shows another one
 * as a conflict. */
#define GENERATION_NEW 0

static const struct {
        const char *text, *method, *route;
} ops[_PLAN_OP_MAX] = {
        [PLAN_ENSURE_CLASS] = { "ensure-class", "PUT", "/resource_classes/{name}" },
        [PLAN_ENSURE_TRAIT] = { "ensure-trait", "PUT", "/traits/{name}" },
        [PLAN_CREATE_PROVIDER] = { "create-provider", "POST", "/resource_providers" },
        [PLAN_MOVE_PROVIDER] = { "move-provider", "PUT", "/resource_providers/{uuid}" },
        [PLAN_RESHAPE] = { "reshape", "POST", "/reshaper" },
        [PLAN_PUT_INVENTORIES] = { "put-inventories", "PUT",
                                   "/resource_providers/{uuid}/inventories" },
        [PLAN_PUT_AGGREGATES] = { "put-aggregates", "PUT",
                                  "/resource_providers/{uuid}/aggregates" },
        [PLAN_PUT_TRAITS] = { "put-traits", "PUT", "/resource_providers/{uuid}/traits" },
        [PLAN_EMPTY_PROVIDER] = { "empty-provider", "DELETE",
                                  "/resource_providers/{uuid}/inventories" },
        [PLAN_DELETE_PROVIDER] = { "delete-provider", "DELETE", "/resource_providers/{uuid}" },
};

const char *plan_op_to_text(PlanOp op)
{
        return ops[op].text;
}

PlacementRequest plan_step_request(const PlanStep *step)
{
        return placement_request(ops[step->op].method, ops[step->op].route,
                                 uuid_empty(&step->provider) ? step->name : step->provider.text);
}

/* Returns the first word of the description of a step; NULL for steps that only prepare others. */
static const char *name_part(PlanOp op)
{
        static const char *const names[_PLAN_OP_MAX] = {
                [PLAN_CREATE_PROVIDER] = "provider",       [PLAN_MOVE_PROVIDER] = "provider",
                [PLAN_DELETE_PROVIDER] = "provider",       [PLAN_RESHAPE] = "reshape",
                [PLAN_PUT_INVENTORIES] = "inventories of", [PLAN_PUT_AGGREGATES] = "aggregates of",
                [PLAN_PUT_TRAITS] = "traits of",
        };

        return names[op];
}

/* Describes at most DESCRIBED_MAX steps. n is the length of the whole text, as snprintf() counts
 * it. When n reaches size, nothing more is written. */
const char *plan_describe(const Plan *plan, char *text, size_t size)
{
        size_t n = 0, n_shown = 0, n_left = 0;

        text[0] = '\0';
        for (size_t i = 0; i < plan->n_steps; i++) {
                const PlanStep *step = &plan->steps[i];

                if (!name_part(step->op))
                        continue;
                if (n_shown == DESCRIBED_MAX) {
                        n_left++;
                        continue;
                }
                if (n_shown++ > 0 && n < size)
                        n += (size_t)snprintf(text + n, size - n, "; ");
                if (n < size)
                        n += (size_t)snprintf(text + n, size - n, "%s%s%.80s: %.120s%s",
                                              name_part(step->op), step->name[0] ? " " : "",
                                              step->name, step->summary,
                                              strlen(step->summary) > 120 ? "…" : "");
        }
        if (n_left > 0 && n < size)
                (void)snprintf(text + n, size - n, " (and %zu more)", n_left);
        return text;
}

static json_t *after_to_json(const PlanStep *step)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < step->n_after; i++)
                if (json_array_append_new(array, json_integer((json_int_t)step->after[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

static json_t *step_to_json(const PlanStep *step)
{
        _cleanup_(placement_request_done) PlacementRequest request = plan_step_request(step);
        json_t *after = after_to_json(step);

        if (!request.path || !after) {
                json_decref(after);
                return NULL;
        }
        return json_pack("{ss ss ss ss ss ss so}", "method", request.method, "path", request.path,
                         "op", plan_op_to_text(step->op), "provider", step->provider.text, "name",
                         step->name, "summary", step->summary, "after", after);
}

json_t *plan_to_json(const Plan *plan)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < plan->n_steps; i++)
                if (json_array_append_new(array, step_to_json(&plan->steps[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

/* Requests and answers. */

static const Provider *desired_of(const Plan *plan, const PlanStep *step)
{
        return provider_tree_find(plan->desired, &step->provider);
}

/* Makes the reshape with the mirror's generations. -ESTALE if one of them is unknown. */
static int make_reshape_request(const Plan *plan, const Mirror *mirror, PlacementRequest *ret,
                                Error *reterr)
{
        _cleanup_free_ PlacementReshapeItem *items =
                calloc(plan->n_reshaped + 1, sizeof(PlacementReshapeItem));
        int r = placement_check_consumers(plan->allocations, reterr);

        if (r < 0)
                return r;
        if (!items)
                return error_oom(reterr);
        for (size_t i = 0; i < plan->n_reshaped; i++) {
                const Uuid *uuid = &plan->reshaped[i];

                items[i] = (PlacementReshapeItem){
                        .provider = *uuid,
                        .generation = mirror_get_generation(mirror, uuid),
                        .inventories = provider_tree_find(plan->desired, uuid),
                };
                if (items[i].generation < 0)
                        return error_setf(reterr, ESTALE,
                                          "The generation of provider %s is not known", uuid->text);
        }
        *ret = placement_post_reshaper(items, plan->n_reshaped, plan->allocations);
        return 0;
}

static PlacementPart part_of(PlanOp op)
{
        return op == PLAN_PUT_INVENTORIES  ? PLACEMENT_INVENTORIES
               : op == PLAN_PUT_AGGREGATES ? PLACEMENT_AGGREGATES
                                           : PLACEMENT_TRAITS;
}

int step_make_request(const Plan *plan, const PlanStep *step, const Mirror *mirror,
                      PlacementRequest *ret, Error *reterr)
{
        const Provider *provider = desired_of(plan, step);
        int64_t generation;

        switch (step->op) {
        case PLAN_CREATE_PROVIDER:
                *ret = placement_post_provider(provider);
                return 0;
        case PLAN_MOVE_PROVIDER:
                *ret = placement_put_provider(&step->provider, step->name, &step->parent);
                return 0;
        case PLAN_RESHAPE:
                return make_reshape_request(plan, mirror, ret, reterr);
        case PLAN_PUT_INVENTORIES:
        case PLAN_PUT_AGGREGATES:
        case PLAN_PUT_TRAITS:
                generation = mirror_get_generation(mirror, &step->provider);
                if (generation < 0)
                        return error_setf(reterr, ESTALE,
                                          "The generation of provider %s is not known", step->name);
                *ret = placement_put_part(desired_of(plan, step), part_of(step->op), generation);
                return 0;
        default: /* no body */
                *ret = plan_step_request(step);
                return 0;
        }
}

static int apply_move(const PlanStep *step, Mirror *mirror, const json_t *body, Error *reterr)
{
        int64_t generation;
        int r = placement_read_generation(body, PLACEMENT_GENERATION, &generation, reterr);

        return r < 0 ? r : mirror_move(mirror, &step->provider, &step->parent, generation);
}

static int apply_put(const Plan *plan, const PlanStep *step, Mirror *mirror, const json_t *body,
                     Error *reterr)
{
        int64_t generation;
        int r = placement_read_generation(body, PLACEMENT_GENERATION_OF_PART, &generation, reterr);

        if (r < 0)
                return r;
        return mirror_write(mirror, desired_of(plan, step), part_of(step->op), generation);
}

/* Checks whether a consumer of the reshape has an allocation of the provider. */
static bool is_allocated(const Allocations *allocations, const Uuid *uuid)
{
        for (size_t i = 0; allocations && i < allocations->n_consumers; i++)
                if (consumer_find(allocations->consumers[i], uuid))
                        return true;
        return false;
}

/* Returns by how much a reshape raises a generation (facts E6): by one for the union of old and new
 * inventories (unless the final set is empty), by one for the allocations, and by one for the final
 * inventories. */
static int64_t rise_of(const Plan *plan, const Uuid *uuid, const Provider *desired)
{
        int64_t rise = is_allocated(plan->allocations, uuid) ? 1 : 0;

        if (plan_is_reshaped(plan, uuid))
                rise += desired && desired->n_inventories > 0 ? 2 : 1;
        return rise;
}

/* Writes the inventories and the generation of one provider after a reshape that changed its
 * inventories or allocations. current: the provider in the mirror's tree. */
static int settle(const Plan *plan, Mirror *mirror, const Provider *current)
{
        const Provider *desired = provider_tree_find(plan->desired, &current->uuid);
        Provider emptied = { .uuid = current->uuid };
        int64_t before = mirror_get_generation(mirror, &current->uuid);
        int64_t rise = rise_of(plan, &current->uuid, desired);

        if (before < 0 || rise == 0)
                return 0;
        if (plan_is_reshaped(plan, &current->uuid))
                current = desired ? desired : &emptied;
        return mirror_write(mirror, current, PLACEMENT_INVENTORIES, before + rise);
}

/* Writes the result of a reshape into the mirror. The answer has no generations. But the reshape
 * succeeded, so the generations that were sent were right, and it raised them by a known number. */
static int apply_reshape(const Plan *plan, Mirror *mirror)
{
        const ProviderTree *tree = mirror->tree;
        int r = 0;

        if (plan->allocations)
                mirror_clear_new(mirror); /* a new provider can have allocations now */
        for (size_t i = 0; r >= 0 && i < tree->n_providers; i++)
                r = settle(plan, mirror, tree->providers[i]);
        return r;
}

/* Changes the mirror by the kind of the step. After a failure the mirror forgets as in
 * step_forget(), because it can be wrong. */
int step_apply(const Plan *plan, const PlanStep *step, Mirror *mirror, const json_t *body,
               Error *reterr)
{
        int r;

        switch (step->op) {
        case PLAN_ENSURE_CLASS:
                r = mirror_learn(mirror, PLACEMENT_INVENTORIES, step->name, true);
                break;
        case PLAN_ENSURE_TRAIT:
                r = mirror_learn(mirror, PLACEMENT_TRAITS, step->name, true);
                break;
        case PLAN_CREATE_PROVIDER:
                r = mirror_add(mirror, desired_of(plan, step), GENERATION_NEW);
                break;
        case PLAN_MOVE_PROVIDER:
                r = apply_move(step, mirror, body, reterr);
                break;
        case PLAN_EMPTY_PROVIDER: /* the answer has no generation, and the deletion follows */
                mirror_forget(mirror, &step->provider);
                return 0;
        case PLAN_DELETE_PROVIDER:
                mirror_remove(mirror, &step->provider);
                return 0;
        case PLAN_RESHAPE:
                r = apply_reshape(plan, mirror);
                break;
        default:
                r = apply_put(plan, step, mirror, body, reterr);
        }
        if (r < 0)
                step_forget(step, mirror);
        return r == -ENOMEM ? error_oom(reterr) : r;
}

void step_forget(const PlanStep *step, Mirror *mirror)
{
        switch (step->op) {
        case PLAN_ENSURE_CLASS:
        case PLAN_ENSURE_TRAIT:
                break;
        case PLAN_RESHAPE:
                /* Placement can have done the reshape, although its answer is lost or an error.
                 * Only a new list shows the generations then. */
                mirror_forget(mirror, NULL);
                break;
        default:
                mirror_forget(mirror, &step->provider);
        }
}

/* The allocations of a class on one provider. */
typedef struct ClassUse {
        uint64_t amount;
        size_t n_consumers;
        const Uuid *first; /* the first consumer */
} ClassUse;

/* Sums the allocations of a class on the provider over all consumers. The sum saturates. */
static ClassUse use_of(const Allocations *holdings, const Uuid *provider, const char *class)
{
        ClassUse use = { 0 };

        for (size_t i = 0; i < holdings->n_consumers; i++) {
                const Consumer *consumer = holdings->consumers[i];
                const Resources *held = consumer_find(consumer, provider);
                uint64_t amount = held ? resources_get(held, class) : 0;

                if (amount == 0)
                        continue;
                if (u64_add_overflow(use.amount, amount, &use.amount))
                        use.amount = UINT64_MAX;
                if (use.n_consumers++ == 0)
                        use.first = &consumer->uuid;
        }
        return use;
}

/* Writes a text such as "VGPU (3 in use by <uuid> and 1 more)". Returns its length, as snprintf()
 * does. */
static size_t describe_use(const ClassUse *use, const char *class, const char *separator,
                           char *text, size_t size)
{
        char more[40] = "";

        if (use->n_consumers > 1)
                snprintf(more, sizeof(more), " and %zu more", use->n_consumers - 1);
        return (size_t)snprintf(text, size, "%s%s (%" PRIu64 " in use by %s%s)", separator, class,
                                use->amount, use->first->text, more);
}

int step_keep_used(const Provider *desired, const Provider *mirror, const Allocations *holdings,
                   Provider *ret, char *words, size_t size)
{
        size_t n = 0;
        int r;

        words[0] = '\0';
        ret->uuid = desired->uuid;
        r = provider_copy_inventories(ret, desired);
        for (size_t i = 0; r >= 0 && i < mirror->n_inventories; i++) {
                const InventoryRecord *record = &mirror->inventories[i];
                ClassUse use = use_of(holdings, &mirror->uuid, record->resource_class);

                if (use.n_consumers == 0 ||
                    provider_find_inventory(desired, record->resource_class))
                        continue;
                r = provider_set_inventory(ret, record->resource_class, &record->inventory);
                if (n < size)
                        n += describe_use(&use, record->resource_class, n > 0 ? ", " : "",
                                          words + n, size - n);
        }
        return r < 0 ? -ENOMEM : 0;
}
