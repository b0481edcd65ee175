/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a claim has for itself (formats/claim-json.h): "computectl show", the devices and
 * cells of "claim"; and the table of "explain". Pure. */

#include <jansson.h>

#include "base/error.h"
#include "ctl/print/page.h"
#include "ctl/print/table.h"

/* The provider of an allocation, and what it has of it. */
void ctl_allocation_cells(CtlTable *table, const json_t *allocation, const CtlStyle *style);

/* All that a claim has, in tables: of each provider, for each group, its cells and its devices. */
void ctl_held_print(const json_t *claim, CtlPage *page);

/* An empty line, and which provider and which of its devices each group with a suffix got; nothing
 * when there is no such group. */
void ctl_mappings_print(const json_t *claim, CtlPage *page);

/* One claim of ctl/print/claims.h with all that is known of it. */
void ctl_show_print(const json_t *claim, CtlPage *page);

/* {"problems": [{"consumer", "claim", "text"}]}. */
void ctl_problems_print(const json_t *document, CtlPage *page);

/* {"fits", "summary", "providers": [{"group", "provider", "name", "class", "term", "asked", "free",
 * "missing", "text"}]}. */
void ctl_explain_print(const json_t *document, CtlPage *page);
