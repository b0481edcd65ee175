/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a claim has for itself (agent/formats/claim-json.h): "computectl show", the devices and
 * cells of "claim"; and the table of "explain". Pure. */

#include <jansson.h>

#include "agent/ctl/print/style.h"
#include "agent/ctl/print/table.h"
#include "base/error.h"

/* The provider of an allocation, and what it has of it. -ENOMEM. */
int ctl_allocation_cells(CtlTable *table, const json_t *allocation);

/* The table of providers and what it has of each. -ENOMEM. */
int ctl_allocations_print(const json_t *claim, const CtlStyle *style, FILE *output);

/* The table of devices; nothing when there is none. -ENOMEM. */
int ctl_devices_print(const json_t *claim, const CtlStyle *style, FILE *output);

/* An empty line, and which provider and which of its devices each group with a suffix got; nothing
 * when there is no such group. -ENOMEM. */
int ctl_mappings_print(const json_t *claim, const CtlStyle *style, FILE *output);

/* One claim of agent/ctl/print/claims.h with all that is known of it. -ENOMEM. */
int ctl_show_print(const json_t *claim, const CtlStyle *style, FILE *output);

/* An empty line, and the table of the guest's cells; nothing when there is none. -ENOMEM. */
int ctl_layout_print(const json_t *claim, const CtlStyle *style, FILE *output);

/* {"problems": [{"consumer", "claim", "text"}]}. -ENOMEM. */
int ctl_problems_print(const json_t *document, const CtlStyle *style, FILE *output);

/* {"fits", "summary", "providers": [{"group", "provider", "name", "class", "term", "asked", "free",
 * "missing", "text"}]}. -ENOMEM. */
int ctl_explain_print(const json_t *document, const CtlStyle *style, FILE *output);
