/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/findings.h"

#include "agent/ctl/print/json.h"
#include "agent/ctl/print/table.h"
#include "base/error.h"

#include <stdarg.h>
#include <string.h>

static const CtlColumn columns[] = {
        { "LEVEL", CTL_COLUMN_LEFT },
        { "OPTION", CTL_COLUMN_LEFT },
        { "WHAT", CTL_COLUMN_WRAP },
};

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

static void add_finding(CtlTable *table, const json_t *finding, const CtlStyle *style)
{
        const char *level = ctl_json_text(finding, "level");

        ctl_table_cell(table, strcmp(level, "error") == 0 ? CTL_RED : CTL_YELLOW, "%s", level);
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(finding, "option"));
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(finding, "text"));
}

void ctl_findings_print(const json_t *document, CtlPage *page)
{
        const json_t *findings = json_object_get(document, "findings");

        if (json_array_size(findings) == 0)
                fputs("The configuration fits this host.\n", page->output);
        ctl_table_print_items(findings, columns, ARRAY_SIZE(columns), add_finding, page);
}
