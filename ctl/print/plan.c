/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/plan.h"

#include "base/text.h"
#include "ctl/print/json.h"
#include "ctl/print/table.h"
#include "formats/interface.h"

#include <string.h>

static const CtlColumn columns[] = {
        { "METHOD", CTL_COLUMN_LEFT },
        { "WHAT", CTL_COLUMN_LEFT },
        { "NAME", CTL_COLUMN_LEFT },
        { "SUMMARY", CTL_COLUMN_WRAP },
};
static const CtlColumn all_columns[] = {
        { "METHOD", CTL_COLUMN_LEFT },
        { "PATH", CTL_COLUMN_LEFT },
        { "NAME", CTL_COLUMN_LEFT },
        { "SUMMARY", CTL_COLUMN_WRAP },
};

/* A path says too much for a narrow terminal: the provider's name is in the next column. */
static const char *name_path(const char *path)
{
        static const struct {
                const char *prefix;
                const char *name;
        } names[] = {
                { "/resource_classes", "class" },
                { "/traits", "trait" },
                { "/reshaper", "reshape" },
                { "/allocations", "allocations" },
        };
        const char *provider;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strncmp(path, names[i].prefix, strlen(names[i].prefix)) == 0)
                        return names[i].name;
        if (strncmp(path, "/resource_providers", strlen("/resource_providers")) != 0)
                return path;
        provider = strchr(path + 1, '/'); /* "/uuid/inventories" */
        provider = provider ? strchr(provider + 1, '/') : NULL;
        return provider && provider[1] ? provider + 1 : "provider";
}

static CtlColour method_colour(const char *method)
{
        return strcmp(method, "DELETE") == 0 ? CTL_RED
               : strcmp(method, "POST") == 0 ? CTL_GREEN
                                             : CTL_PLAIN;
}

static void add_step(CtlTable *table, const json_t *step, const CtlStyle *style)
{
        const char *method = ctl_json_text(step, "method"), *path = ctl_json_text(step, "path");

        ctl_table_cell(table, method_colour(method), "%s", method);
        ctl_table_cell(table, CTL_PLAIN, "%s", style->all ? path : name_path(path));
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(step, "name"));
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(step, "summary"));
}

/* Prints why there is nothing to send. Only a sync state that was reached by comparing says that
 * Placement is equal to the host. */
static void print_nothing(const json_t *status, CtlPage *page)
{
        const char *state = ctl_json_text(status, "sync_state"),
                   *error = ctl_json_text(status, "sync_error");

        if (strcmp(state, SYNC_STATE_SYNCED) == 0 || strcmp(state, SYNC_STATE_LEFT) == 0)
                ctl_page_write(page, CTL_PLAIN, "Nothing to do: Placement is equal to this host.");
        else if (strcmp(state, SYNC_STATE_STANDALONE) == 0)
                ctl_page_write(page, CTL_PLAIN, "Nothing to send: no Placement is configured.");
        else if (strcmp(state, SYNC_STATE_STALE) == 0)
                ctl_page_write(page, CTL_PLAIN,
                               "Nothing to send now, but Placement is not equal to this host: %s.",
                               error);
        else
                ctl_page_write(page, CTL_PLAIN, "Nothing to send now; the sync state is %s%s%s.",
                               state[0] ? state : "unknown", error[0] ? ": " : "", error);
        fputc('\n', page->output);
}

void ctl_plan_print(const json_t *plan, const json_t *status, CtlPage *page)
{
        size_t n = json_array_size(plan);

        if (n == 0) {
                print_nothing(status, page);
                return;
        }
        ctl_table_print_items(plan, page->style.all ? all_columns : columns, ARRAY_SIZE(columns),
                              add_step, page);
        if (page->style.legend)
                fprintf(page->output, "\n%zu request%s.\n", n, text_plural(n));
}
