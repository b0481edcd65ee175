/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The document IDENTITY_FORMAT for people: the identity of this host in Placement. Pure. */

#include "base/json.h"
#include "ctl/print/page.h"

/* Prints the output of "computectl identity show", "check", "adopt" or "rename". word: that order.
 * "check" prints the verdict, why Placement could not be read, and the advice. */
void ctl_identity_print(const json_t *document, const char *word, CtlPage *page);

/* Returns EXIT_SUCCESS if the order was not rejected; for "check", if the state is good. */
int ctl_identity_exit(const json_t *document, const char *word);
