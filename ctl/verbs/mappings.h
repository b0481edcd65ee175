/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* --mapping of "computectl claim": which provider each group is to come from. A provider that is
 * given by its name is looked up when the tree of the agent is at hand. Pure. */

#include <jansson.h>

#include "base/resource-request.h"

typedef struct CtlMappings {
        RequestMappings known;
        StringSet named; /* "SUFFIX=NAME" */
} CtlMappings;

void ctl_mappings_done(CtlMappings *mappings);

/* "1=UUID" or "1=NAME": what the group got comes from that provider; "=NAME" of the group without a
 * suffix. -EINVAL with words, -ENOMEM. */
int ctl_mappings_add(CtlMappings *mappings, const char *text, Error *reterr);

/* -EINVAL when one is of a group that is not asked for. */
int ctl_mappings_check(const CtlMappings *mappings, const ResourceRequest *request, Error *reterr);

/* Makes the names known, by a document of the tree (formats/tree-json.h). -EINVAL when it has
 * no such provider, -ENOMEM. */
int ctl_mappings_resolve(CtlMappings *mappings, const json_t *tree, Error *reterr);
