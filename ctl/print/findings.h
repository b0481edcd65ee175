/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The findings of "computectl doctor". Pure. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Adds a finding to those of ctl/print/doctor.h. advice NULL: there is none. Not 0 if memory
 * ran out. */
int ctl_findings_add(json_t *findings, const char *check, const char *state, const char *advice,
                     const char *format, ...) _printf_(5, 6);

/* Checks whether a document of drivers/verify.h has an error, which keeps the host from being
 * published. */
bool ctl_findings_have_errors(const json_t *document);
