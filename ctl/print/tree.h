/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl tree": a document of formats/tree-json.h as a tree of lines, one for each inventory,
 * and at least one for each provider. Pure. */

#include <jansson.h>

#include "base/error.h"
#include "ctl/print/page.h"

/* Prints the tree. An empty tree is "No providers.", or nothing without a legend. Returns -EBADMSG
 * with words for another document and for more than 64 levels below a root, or -ENOMEM, also if
 * page->failed is set. A failure prints nothing. If the page names an unknown column, only the
 * sharing providers are printed, and the result is 0 (page->usage). */
int ctl_tree_print(const json_t *tree, CtlPage *page, Error *reterr);
