/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl tree": a document of formats/tree-json.h as a tree of lines, one per inventory.
 * Pure.
 */

#include <jansson.h>

#include "base/error.h"
#include "ctl/print/page.h"

/* -EBADMSG for a document that is none, with words; -ENOMEM. */
int ctl_tree_print(const json_t *tree, CtlPage *page, Error *reterr);
