/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl tree": a document of formats/tree-json.h as a tree of lines, one for each inventory.
 * Pure. */

#include <jansson.h>

#include "base/error.h"
#include "ctl/print/page.h"

/* Prints the tree. An empty tree is "No providers.", or nothing without a legend. Returns -EBADMSG
 * with words for another document and for more than 64 levels, or -ENOMEM. A failure prints
 * nothing. */
int ctl_tree_print(const json_t *tree, CtlPage *page, Error *reterr);
