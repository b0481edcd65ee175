/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl plan": the array of plan_to_json() (report/publish/step.h) as a table. Pure. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Prints the requests. status: a document of STATUS_FORMAT, read if plan is empty: an empty plan is
 * no proof that Placement is equal to the host. NULL if plan is not empty. */
void ctl_plan_print(const json_t *plan, const json_t *status, CtlPage *page);
