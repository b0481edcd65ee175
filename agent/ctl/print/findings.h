/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What "computectl doctor" found, and what "computectl verify" did: what of the configuration does
 * not fit the host, as a table. Pure. */

#include <jansson.h>

#include "agent/ctl/print/page.h"

/* Adds a finding to those of agent/ctl/print/doctor.h. advice NULL: all is well. Not 0 when memory
 * is out. */
int ctl_findings_add(json_t *findings, const char *check, const char *state, const char *advice,
                     const char *format, ...) _printf_(5, 6);

/* The document of drivers/verify.h. */
void ctl_findings_print(const json_t *document, CtlPage *page);

/* True when something in it keeps the host from being published. */
bool ctl_findings_have_errors(const json_t *document);
