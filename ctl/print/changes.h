/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl plan", "reshape" and "retire" on a terminal. Pure. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Prints the requests of a plan (the array of plan_to_json(), report/publish/plan.h). status: a
 * document of STATUS_FORMAT, which says what the requests leave different. So it also explains an
 * empty plan, which does not prove that Placement equals the host. NULL: not known. */
void ctl_plan_print(const json_t *plan, const json_t *status, CtlPage *page);

/* Prints each amount that moves, and the providers before and after, from a document of
 * RESHAPE_FORMAT; NULL: nothing moves. hint: the next command, printed as the last line if there
 * is a document and the style has a legend; NULL: none. */
void ctl_reshape_print(const json_t *document, const char *hint, CtlPage *page);

/* Checks whether a document of RETIRE_FORMAT names consumers, guests or providers that prevent the
 * retirement. */
bool ctl_retire_is_refused(const json_t *document);

/* Prints the consumers, guests and providers that prevent the retirement, else the providers that
 * are or will be removed. */
void ctl_retire_print(const json_t *document, CtlPage *page);
