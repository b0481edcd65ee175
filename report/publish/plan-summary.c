/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/plan-summary.h"

#include <inttypes.h>

#include "base/text.h"

static char *close_text(FILE *stream, char **text)
{
        bool failed = ferror(stream);

        failed = fclose(stream) != 0 || failed;
        if (failed)
                free(*text);
        return failed ? NULL : *text;
}

/* Adds "(was 7)", or the fields other than total that changed. */
static void print_change(FILE *stream, const Inventory *want, const Inventory *was)
{
        if (want->total != was->total)
                fprintf(stream, " (was %" PRIu64 ")", was->total);
        if (want->reserved != was->reserved)
                fprintf(stream, " reserved %" PRIu64 " (was %" PRIu64 ")", want->reserved,
                        was->reserved);
        if ((float)want->allocation_ratio != (float)was->allocation_ratio)
                fprintf(stream, " ratio %g (was %g)", want->allocation_ratio,
                        was->allocation_ratio);
        if (want->min_unit != was->min_unit || want->max_unit != was->max_unit ||
            want->step_size != was->step_size)
                fprintf(stream,
                        " units %" PRIu64 "–%" PRIu64 " by %" PRIu64 " (was %" PRIu64 "–%" PRIu64
                        " by %" PRIu64 ")",
                        want->min_unit, want->max_unit, want->step_size, was->min_unit,
                        was->max_unit, was->step_size);
}

char *plan_summarize_inventories(const Provider *want, const Provider *was)
{
        const char *separator = "";
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        for (size_t i = 0; i < want->n_inventories; i++) {
                const InventoryRecord *record = &want->inventories[i];
                const Inventory *old = provider_find_inventory(was, record->resource_class);

                fprintf(stream, "%s%s %" PRIu64, separator, record->resource_class,
                        record->inventory.total);
                if (old)
                        print_change(stream, &record->inventory, old);
                separator = ", ";
        }
        for (size_t i = 0; i < was->n_inventories; i++) {
                const InventoryRecord *record = &was->inventories[i];

                if (provider_find_inventory(want, record->resource_class))
                        continue;
                fprintf(stream, "%sno %s (was %" PRIu64 ")", separator, record->resource_class,
                        record->inventory.total);
                separator = ", ";
        }
        return close_text(stream, &text);
}

char *plan_summarize_set(const StringSet *want, const StringSet *was)
{
        const char *separator = "";
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        for (size_t i = 0; i < want->n_items; i++)
                if (!string_set_contains(was, want->items[i])) {
                        fprintf(stream, "%s+%s", separator, want->items[i]);
                        separator = " ";
                }
        for (size_t i = 0; i < was->n_items; i++)
                if (!string_set_contains(want, was->items[i])) {
                        fprintf(stream, "%s-%s", separator, was->items[i]);
                        separator = " ";
                }
        return close_text(stream, &text);
}

char *plan_summarize_reshape(size_t n_providers, const Allocations *allocations)
{
        size_t n_consumers = allocations ? allocations->n_consumers : 0;

        if (n_consumers == 0)
                return text_format("inventories of %zu provider%s", n_providers,
                                   text_plural(n_providers));
        return text_format("inventories of %zu provider%s, allocations of %zu consumer%s",
                           n_providers, text_plural(n_providers), n_consumers,
                           text_plural(n_consumers));
}
