/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/findings.h"

#include "base/error.h"
#include "ctl/print/json.h"

#include <stdarg.h>
#include <string.h>

int ctl_findings_add(json_t *findings, const char *check, const char *state, const char *advice,
                     const char *format, ...)
{
        char text[2 * ERROR_TEXT_MAX];
        va_list ap;

        va_start(ap, format);
        vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        return json_array_append_new(findings,
                                     json_pack("{ss ss ss ss}", "check", check, "state", state,
                                               "text", text, "advice", advice ? advice : ""));
}

bool ctl_findings_have_errors(const json_t *document)
{
        return ctl_json_u64(document, "errors") > 0;
}
