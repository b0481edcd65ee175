/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The steps of a plan as requests and as JSON. */

#include "report/publish/plan.h"

#include <string.h>

#define DESCRIBED_MAX 3

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
        json_t *array = json_array();

        for (size_t i = 0; array && i < step->n_after; i++)
                if (json_array_append_new(array, json_integer((json_int_t)step->after[i])) < 0) {
                        json_decref(array);
                        return NULL;
                }
        return array;
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
        json_t *array = json_array();

        for (size_t i = 0; array && i < plan->n_steps; i++)
                if (json_array_append_new(array, step_to_json(&plan->steps[i])) < 0) {
                        json_decref(array);
                        return NULL;
                }
        return array;
}
