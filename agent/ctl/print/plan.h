/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl plan": the array of plan_to_json() (report/publish/plan.h) as a table. Pure. */

#include <jansson.h>

#include "agent/ctl/print/page.h"

/* differs: why Placement is not equal to the host all the same, when nothing is left to send; ""
 * when it is. */
void ctl_plan_print(const json_t *plan, const char *differs, CtlPage *page);
