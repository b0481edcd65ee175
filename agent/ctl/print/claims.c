/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/claims.h"

#include <inttypes.h>
#include <string.h>

#include "agent/ctl/print/devices.h"
#include "agent/ctl/print/json.h"
#include "agent/ctl/print/table.h"
#include "agent/ctl/print/text.h"

#define SHORT_UUID_LENGTH 8
#define ROOMY             130 /* columns; below, a consumer is shown by its first letters */
#define COLUMNS_MAX       8

/* What is shown of each claim. */
typedef struct View {
        bool history;      /* how it ended, not when it expires */
        bool long_uuids;   /* whole consumers */
        bool created;      /* when it was made */
        size_t n_of_claim; /* columns before those of the allocation */
} View;

static View choose_view(bool history, const CtlStyle *style)
{
        bool roomy = style->all || style->width == 0 || style->width >= ROOMY;

        return (View){
                .history = history,
                .long_uuids = roomy,
                .created = roomy,
                .n_of_claim = roomy ? 5 : 4,
        };
}

static size_t choose_columns(const View *view, CtlColumn columns[static COLUMNS_MAX])
{
        size_t n = 0;

        columns[n++] = (CtlColumn){ "ID", CTL_COLUMN_RIGHT };
        columns[n++] = (CtlColumn){ "CONSUMER", CTL_COLUMN_LEFT };
        columns[n++] = (CtlColumn){ "STATE", CTL_COLUMN_LEFT };
        if (view->created)
                columns[n++] = (CtlColumn){ "CREATED", CTL_COLUMN_LEFT };
        columns[n++] = (CtlColumn){ view->history ? "ENDED" : "EXPIRES", CTL_COLUMN_LEFT };
        columns[n++] = (CtlColumn){ "PROVIDER", CTL_COLUMN_CUT };
        columns[n++] = (CtlColumn){ "RESOURCES", CTL_COLUMN_WRAP };
        if (view->history)
                columns[n++] = (CtlColumn){ "REASON", CTL_COLUMN_WRAP };
        return n;
}

static CtlColour state_colour(const char *state)
{
        return strcmp(state, "confirmed") == 0  ? CTL_GREEN
               : strcmp(state, "claimed") == 0  ? CTL_YELLOW
               : strcmp(state, "released") == 0 ? CTL_DIM
                                                : CTL_PLAIN;
}

static void add_time_cell(CtlTable *table, uint64_t usec, const CtlStyle *style)
{
        char text[CTL_TEXT_MAX];

        ctl_table_cell(table, CTL_PLAIN, "%s",
                       usec ? ctl_text_relative(text, usec, style->now_usec) : "-");
}

static void add_claim_cells(CtlTable *table, const json_t *claim, const View *view,
                            const CtlStyle *style)
{
        const char *state = ctl_json_text(claim, "state"),
                   *consumer = ctl_json_text(claim, "consumer");
        bool resize_target = json_is_true(json_object_get(claim, "resize_target"));

        ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, ctl_json_u64(claim, "id"));
        if (view->long_uuids)
                ctl_table_cell(table, CTL_PLAIN, "%s", consumer);
        else
                ctl_table_cell(table, CTL_PLAIN, "%.*s%s", SHORT_UUID_LENGTH, consumer,
                               style->utf8 ? "…" : "~");
        ctl_table_cell(table, state_colour(state), "%s%s", state, resize_target ? ", resize" : "");
        if (view->created)
                add_time_cell(table, ctl_json_u64(claim, "created_usec"), style);
        add_time_cell(table, ctl_json_u64(claim, view->history ? "ended_usec" : "expires_usec"),
                      style);
}

static int add_allocation_cells(CtlTable *table, const json_t *allocation)
{
        _cleanup_free_ char *resources =
                ctl_json_format_resources(json_object_get(allocation, "resources"));

        if (!resources)
                return -ENOMEM;
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(allocation, "name"));
        ctl_table_cell(table, CTL_PLAIN, "%s", resources);
        return 0;
}

/* One line per provider; what the claim itself has stands in the first. */
static int add_claim(CtlTable *table, const json_t *claim, const View *view, const CtlStyle *style)
{
        const json_t *allocations = json_object_get(claim, "allocations");
        size_t n_lines = MAX(json_array_size(allocations), (size_t)1);

        for (size_t i = 0; i < n_lines; i++) {
                ctl_table_line(table);
                if (i == 0)
                        add_claim_cells(table, claim, view, style);
                else
                        for (size_t j = 0; j < view->n_of_claim; j++)
                                ctl_table_cell(table, CTL_PLAIN, "%s", "");
                if (add_allocation_cells(table, json_array_get(allocations, i)) < 0)
                        return -ENOMEM;
                if (view->history && i == 0)
                        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(claim, "end_reason"));
        }
        return 0;
}

int ctl_claims_print(const json_t *document, bool history, const CtlStyle *style, FILE *output)
{
        const json_t *claims = json_object_get(document, "claims"), *claim;
        _cleanup_(ctl_table_freep) CtlTable *table = NULL;
        View view = choose_view(history, style);
        CtlColumn columns[COLUMNS_MAX];
        size_t i;

        if (json_array_size(claims) == 0) {
                if (style->legend)
                        fputs(history ? "No claims, and none in the history.\n" : "No claims.\n",
                              output);
                return 0;
        }
        if (ctl_table_new(&table, style, columns, choose_columns(&view, columns)) < 0)
                return -ENOMEM;
        json_array_foreach(claims, i, claim)
                if (add_claim(table, claim, &view, style) < 0)
                        return -ENOMEM;
        if (ctl_table_print(table, output) < 0)
                return -ENOMEM;
        if (style->legend)
                fprintf(output, "\n%zu claim%s.\n", i, i == 1 ? "" : "s");
        return 0;
}

static bool has(const json_t *array, const char *first, const char *second, const char *name)
{
        const json_t *item;
        size_t i;

        json_array_foreach((json_t *)array, i, item)
                if (strcmp(ctl_json_text(item, first), name) == 0 ||
                    strcmp(ctl_json_text(item, second), name) == 0)
                        return true;
        return false;
}

void ctl_claims_keep(json_t *document, const char *name)
{
        json_t *claims = json_object_get(document, "claims");

        for (size_t i = json_array_size(claims); i-- > 0;) {
                const json_t *claim = json_array_get(claims, i);

                if (!has(json_object_get(claim, "devices"), "device", "mdev", name) &&
                    !has(json_object_get(claim, "allocations"), "name", "provider", name))
                        (void)json_array_remove(claims, i);
        }
}

int ctl_claim_print(const json_t *document, const CtlStyle *style, FILE *output)
{
        static const CtlColumn given[] = {
                { "PROVIDER", CTL_COLUMN_LEFT },
                { "RESOURCES", CTL_COLUMN_WRAP },
        };
        const json_t *allocations = json_object_get(document, "allocations"), *allocation;
        uint64_t id = ctl_json_u64(document, "id");
        _cleanup_(ctl_table_freep) CtlTable *table = NULL;
        size_t i;
        int r = ctl_table_new(&table, style, given, ARRAY_SIZE(given));

        if (r < 0)
                return r;
        json_array_foreach(allocations, i, allocation) {
                ctl_table_line(table);
                r = add_allocation_cells(table, allocation);
                if (r < 0)
                        return r;
        }
        fprintf(output, "Claim %s%" PRIu64 "%s\n", ctl_colour(style, CTL_BOLD), id,
                ctl_colour_end(style));
        r = ctl_table_print(table, output);
        if (r >= 0)
                r = ctl_mappings_print(document, style, output);
        if (r >= 0)
                r = ctl_layout_print(document, style, output);
        if (r >= 0 && json_array_size(json_object_get(document, "devices")) > 0) {
                fputc('\n', output);
                r = ctl_devices_print(document, style, output);
        }
        if (r >= 0 && style->legend)
                fprintf(output,
                        "\nWhen the guest runs, keep it: computectl confirm %" PRIu64
                        "\nWhen it is gone, give it back: computectl release %" PRIu64 "\n",
                        id, id);
        return r;
}
