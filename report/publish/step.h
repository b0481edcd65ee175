/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One step of a plan as text, as JSON and as a request, and the change of the mirror after its
 * answer. Pure except for the mirror. */

#include <jansson.h>

#include "report/placement/request.h"
#include "report/publish/mirror.h"
#include "report/publish/plan.h"

/* Returns the request of a step without a body: "PUT", "/resource_providers/…/inventories". The
 * caller frees it. */
PlacementRequest plan_step_request(const PlanStep *step);

/* Returns the name of an operation, for example "put-inventories". */
const char *plan_op_to_text(PlanOp op);

/* Writes a description of the first steps, in at most size bytes: "traits of demo: +A -B; provider
 * gpu: no longer in the tree (and 2 more)". Steps that only prepare others are omitted. Returns
 * text. */
const char *plan_describe(const Plan *plan, char *text, size_t size);

/* Makes [{"method", "path", "op", "provider", "name", "summary", "after": []}] for computectl plan
 * --json. NULL when out of memory. */
json_t *plan_to_json(const Plan *plan);

/* Makes the request of a step, with the mirror's generation if the request needs one. -ESTALE if
 * the mirror does not know that generation, -EINVAL, -ENOMEM. */
int step_make_request(const Plan *plan, const PlanStep *step, const Mirror *mirror,
                      PlacementRequest *ret, Error *reterr);

/* Writes the result of a successful step into the mirror. The generations after a reshape are
 * computed from the old ones. If another writer changed the provider, the next write is a conflict,
 * or the next refresh finds the difference. Returns -EBADMSG for an answer that is not Placement's,
 * -ENOMEM, or an errno of the mirror. After each of them the mirror has forgotten as after
 * step_forget(). After a deletion of inventories it forgets the provider, too. */
int step_apply(const Plan *plan, const PlanStep *step, Mirror *mirror, const json_t *body,
               Error *reterr);

/* Makes the mirror forget the provider of the step, or for a reshape the list of providers. The
 * result of the step is unknown then, or Placement and the mirror differ. A step for a class or
 * trait changes nothing. */
void step_forget(const PlanStep *step, Mirror *mirror);

/* Makes the inventories to send while classes of the provider are in use: the desired ones, and the
 * mirror's records of the classes in use that desired lacks. They replace the inventories of ret,
 * which must be initialised; the caller frees them. The text in words names the classes that
 * desired lacks and that are in use, with their consumers, for example "VGPU (3 in use by <uuid>
 * and 1 more)". It is empty if there is none. -ENOMEM. */
int step_keep_used(const Provider *desired, const Provider *mirror, const Allocations *holdings,
                   Provider *ret, char *words, size_t size);
