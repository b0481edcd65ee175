/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One step of a plan in words, as JSON and as a request, and the change of the mirror that its
 * answer means. Pure but for the mirror. */

#include <jansson.h>

#include "report/placement/request.h"
#include "report/publish/mirror.h"
#include "report/publish/plan.h"

/* Returns the request of a step without a body: "PUT", "/resource_providers/…/inventories". The
 * caller frees. */
PlacementRequest plan_step_request(const PlanStep *step);

/* "put-inventories", … */
const char *plan_op_to_text(PlanOp op);

/* Writes the first steps in words, at most size bytes: "traits of demo: +A -B; provider gpu: no
 * longer there (and 2 more)". Steps that only prepare others are left out. Returns text. */
const char *plan_describe(const Plan *plan, char *text, size_t size);

/* [{"method", "path", "op", "provider", "name", "summary", "after": []}], for computectl plan
 * --json. NULL when out of memory. */
json_t *plan_to_json(const Plan *plan);

/* The request of a step, with the mirror's generation. -ENOMEM; -ESTALE
 * when the mirror does not know the provider's generation; -EINVAL. */
int step_make_request(const Plan *plan, const PlanStep *step, const Mirror *mirror,
                      PlacementRequest *ret, Error *reterr);

/* Takes the answer to a step that went well. A reshape gives no generations: they are those that it
 * must have made of the old ones, and should somebody have written since, the next write is a
 * conflict, or the next refresh finds others. -EBADMSG for an answer that is not Placement's,
 * -ENOMEM; the provider is forgotten then. */
int step_apply(const Plan *plan, const PlanStep *step, Mirror *mirror, const json_t *body,
               Error *reterr);

/* It is not known what became of the step, or Placement holds something else than the mirror:
 * whatever it touches must be read again. */
void step_forget(const PlanStep *step, Mirror *mirror);

/* What can be sent when classes of the provider are in use and cannot go: the desired inventories
 * and the mirror's records of those classes that somebody holds something of. inventories (of ret,
 * zeroed) are freed by the caller. words names the classes and who it is ("VGPU (3 in use by <uuid>
 * and 1 more)"); it is empty when no class that has to go is in use. -ENOMEM. */
int step_keep_used(const Provider *desired, const Provider *mirror, const Allocations *holdings,
                   Provider *ret, char *words, size_t size);
