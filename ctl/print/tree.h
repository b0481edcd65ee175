/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl tree": a document of formats/tree-json.h as a tree of lines, one per inventory.
 * Pure.
 */

#include <jansson.h>

#include "base/error.h"
#include "ctl/print/page.h"

/* What is to be said behind the name of a provider of such a document: " cordoned", " missing", or
 * "", and in which colour. */
const char *ctl_tree_mark(const json_t *provider, CtlColour *ret_colour);

/* -EBADMSG for a document that is none, with words; -ENOMEM. */
int ctl_tree_print(const json_t *tree, CtlPage *page, Error *reterr);
