/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The steps of a plan as requests and as JSON. */

#include "report/publish/plan.h"

static const struct {
        const char *text, *method;
        const char *before, *after; /* of the path, around the provider's uuid or the name */
} ops[_PLAN_OP_MAX] = {
        [PLAN_ENSURE_CLASS] = { "ensure-class", "PUT", "/resource_classes/", "" },
        [PLAN_ENSURE_TRAIT] = { "ensure-trait", "PUT", "/traits/", "" },
        [PLAN_CREATE_PROVIDER] = { "create-provider", "POST", "/resource_providers", NULL },
        [PLAN_MOVE_PROVIDER] = { "move-provider", "PUT", "/resource_providers/", "" },
        [PLAN_RESHAPE] = { "reshape", "POST", "/reshaper", NULL },
        [PLAN_PUT_INVENTORIES] = { "put-inventories", "PUT", "/resource_providers/",
                                   "/inventories" },
        [PLAN_PUT_AGGREGATES] = { "put-aggregates", "PUT", "/resource_providers/", "/aggregates" },
        [PLAN_PUT_TRAITS] = { "put-traits", "PUT", "/resource_providers/", "/traits" },
        [PLAN_EMPTY_PROVIDER] = { "empty-provider", "DELETE", "/resource_providers/",
                                  "/inventories" },
        [PLAN_DELETE_PROVIDER] = { "delete-provider", "DELETE", "/resource_providers/", "" },
};

const char *plan_op_to_text(PlanOp op)
{
        return ops[op].text;
}

const char *plan_step_method(const PlanStep *step)
{
        return ops[step->op].method;
}

char *plan_step_path(const PlanStep *step)
{
        bool named = step->op == PLAN_ENSURE_CLASS || step->op == PLAN_ENSURE_TRAIT;
        bool fixed = ops[step->op].after == NULL;
        char *path;

        if (asprintf(&path, "%s%s%s", ops[step->op].before,
                     fixed   ? ""
                     : named ? step->name
                             : step->provider.text,
                     fixed ? "" : ops[step->op].after) < 0)
                return NULL;
        return path;
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
        _cleanup_free_ char *path = plan_step_path(step);
        json_t *after = after_to_json(step);

        if (!path || !after) {
                json_decref(after);
                return NULL;
        }
        return json_pack("{ss ss ss ss ss ss so}", "method", plan_step_method(step), "path", path,
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
