/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims and events as tables. Pure, except for the time zone. The documents are those of
 * formats/format-names.h. The members of a claim and of an event are described in
 * formats/claim-json.h. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Prints the list of claims, and a line for each guest that ctl/print/filter.h has added. An empty
 * list is left out if there are guests. history: with the columns of ended claims. */
void ctl_claims_print(const json_t *document, bool history, CtlPage *page);

/* Prints the claim that a call created, or found for an equal request. With a legend, prints the
 * next commands, which a claim with a guest does not need. */
void ctl_claim_print(const json_t *document, CtlPage *page);

/* Prints the texts, times and parts of one claim. */
void ctl_show_print(const json_t *claim, CtlPage *page);

/* Prints a document of PROBLEMS_FORMAT. */
void ctl_problems_print(const json_t *document, CtlPage *page);

/* Prints a document of EXPLAIN_FORMAT: {"fits", "summary", "providers": [{"group", "provider",
 * "name", "class", "term", "asked", "free", "missing", "text"}]}. */
void ctl_explain_print(const json_t *document, CtlPage *page);

/* Prints a document of EVENTS_FORMAT. */
void ctl_events_print(const json_t *document, CtlPage *page);
