/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl reshape" on a terminal: each amount that moves, and what the providers become. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Prints a document of agent/reshape/image.h; NULL: nothing moves. hint: the next command, as the
 * last line; NULL: none. */
void ctl_reshape_print(const json_t *document, const char *hint, CtlPage *page);
