/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl verify": what of the configuration does not fit the host, as a table. Pure. */

#include <jansson.h>

#include "agent/ctl/print/style.h"

/* The document of drivers/verify.h. -ENOMEM. */
int ctl_findings_print(const json_t *document, const CtlStyle *style, FILE *output);

/* True when something in it keeps the host from being published. */
bool ctl_findings_have_errors(const json_t *document);
