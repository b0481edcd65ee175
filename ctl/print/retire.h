/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl retire": who is in the way, or what goes. Pure. */

#include <jansson.h>

#include "ctl/print/page.h"

/* document: RETIRE_FORMAT. Does anything keep the host from being retired? */
bool ctl_retire_is_refused(const json_t *document);

void ctl_retire_print(const json_t *document, CtlPage *page);
