/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl reshape" on a terminal: each amount that moves, and what the providers become. */

#include <jansson.h>

#include "agent/ctl/print/page.h"

/* document: see agent/reshape/image.h; NULL: nothing moves. hint: what to do next, as the last
 * line. */
void ctl_reshape_print(const json_t *document, const char *hint, CtlPage *page);
