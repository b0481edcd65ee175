/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/plan-summary.h"

#include <inttypes.h>

#include "base/text.h"

/* A line that grows. */
typedef struct Line {
        FILE *stream;
        char *text;
        size_t size;
        bool begun;
} Line;

static bool line_open(Line *line)
{
        line->stream = open_memstream(&line->text, &line->size);
        return line->stream != NULL;
}

static void line_separate(Line *line, const char *separator)
{
        if (line->begun)
                fputs(separator, line->stream);
        line->begun = true;
}

static char *line_close(Line *line)
{
        bool failed = ferror(line->stream);

        failed = fclose(line->stream) != 0 || failed;
        if (!failed)
                return line->text;
        free(line->text);
        return NULL;
}

/* Adds "(was 7)", or the fields other than total that changed. */
static void print_change(Line *line, const Inventory *want, const Inventory *was)
{
        if (want->total != was->total)
                fprintf(line->stream, " (was %" PRIu64 ")", was->total);
        if (want->reserved != was->reserved)
                fprintf(line->stream, " reserved %" PRIu64 " (was %" PRIu64 ")", want->reserved,
                        was->reserved);
        if ((float)want->allocation_ratio != (float)was->allocation_ratio)
                fprintf(line->stream, " ratio %g (was %g)", want->allocation_ratio,
                        was->allocation_ratio);
        if (want->min_unit != was->min_unit || want->max_unit != was->max_unit ||
            want->step_size != was->step_size)
                fprintf(line->stream,
                        " units %" PRIu64 "–%" PRIu64 " by %" PRIu64 " (was %" PRIu64 "–%" PRIu64
                        " by %" PRIu64 ")",
                        want->min_unit, want->max_unit, want->step_size, was->min_unit,
                        was->max_unit, was->step_size);
}

char *plan_summarize_inventories(const Provider *want, const Provider *was)
{
        Line line = { 0 };

        if (!line_open(&line))
                return NULL;
        for (size_t i = 0; i < want->n_inventories; i++) {
                const InventoryRecord *record = &want->inventories[i];
                const Inventory *old = provider_find_inventory(was, record->resource_class);

                line_separate(&line, ", ");
                fprintf(line.stream, "%s %" PRIu64, record->resource_class,
                        record->inventory.total);
                if (old)
                        print_change(&line, &record->inventory, old);
        }
        for (size_t i = 0; i < was->n_inventories; i++) {
                const InventoryRecord *record = &was->inventories[i];

                if (provider_find_inventory(want, record->resource_class))
                        continue;
                line_separate(&line, ", ");
                fprintf(line.stream, "no %s (was %" PRIu64 ")", record->resource_class,
                        record->inventory.total);
        }
        return line_close(&line);
}

char *plan_summarize_set(const StringSet *want, const StringSet *was)
{
        Line line = { 0 };

        if (!line_open(&line))
                return NULL;
        for (size_t i = 0; i < want->n_items; i++)
                if (!string_set_contains(was, want->items[i])) {
                        line_separate(&line, " ");
                        fprintf(line.stream, "+%s", want->items[i]);
                }
        for (size_t i = 0; i < was->n_items; i++)
                if (!string_set_contains(want, was->items[i])) {
                        line_separate(&line, " ");
                        fprintf(line.stream, "-%s", was->items[i]);
                }
        return line_close(&line);
}

char *plan_summarize_reshape(size_t n_providers, const Allocations *allocations)
{
        size_t n_consumers = allocations ? allocations->n_consumers : 0;

        if (n_consumers == 0)
                return text_format("inventories of %zu provider%s", n_providers,
                                   n_providers == 1 ? "" : "s");
        return text_format("inventories of %zu provider%s, allocations of %zu consumer%s",
                           n_providers, n_providers == 1 ? "" : "s", n_consumers,
                           n_consumers == 1 ? "" : "s");
}
