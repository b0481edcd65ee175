/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A finding of "computectl doctor": {"check", "state": "ok" | "warning" | "bad", "text": the fact,
 * "cause", "advice"}. */

#include <jansson.h>

#include "base/macros.h"

/* Adds a finding: the fact as text, and its cause and an advice (NULL or "": none). Returns -1 if
 * memory ran out. */
int ctl_finding_add_caused(json_t *findings, const char *check, const char *state,
                           const char *advice, const char *text, const char *cause);

/* Adds a finding whose text is its own cause. advice NULL: none. Returns -1 if memory ran out. */
int ctl_finding_add(json_t *findings, const char *check, const char *state, const char *advice,
                    const char *format, ...) _printf_(5, 6);
