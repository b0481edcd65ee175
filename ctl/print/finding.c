/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Adds findings to the list of "computectl doctor".
 *
 * Tests: tests/unit/ctl/print/test-doctor.c */

#include "ctl/print/finding.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"

int ctl_finding_add_caused(json_t *findings, const char *check, const char *state,
                           const char *advice, const char *text, const char *cause)
{
        return json_array_append_new(findings,
                                     json_pack("{ss ss ss ss ss}", "check", check, "state", state,
                                               "text", text, "cause", cause ? cause : "", "advice",
                                               advice ? advice : ""));
}

int ctl_finding_add(json_t *findings, const char *check, const char *state, const char *advice,
                    const char *format, ...)
{
        char text[2 * ERROR_TEXT_MAX];
        va_list ap;

        va_start(ap, format);
        vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        text_trim_cut(text); /* a text that was cut within a character is no JSON string */
        return ctl_finding_add_caused(findings, check, state, advice, text, NULL);
}
