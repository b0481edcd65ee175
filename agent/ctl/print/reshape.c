/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/reshape.h"

#include <inttypes.h>
#include <string.h>

#include "agent/ctl/print/json.h"
#include "agent/ctl/print/table.h"

static const CtlColumn move_columns[] = {
        { "CONSUMER", CTL_COLUMN_LEFT },
        { "PROVIDER", CTL_COLUMN_LEFT },
        { "BEFORE", CTL_COLUMN_WRAP },
        { "AFTER", CTL_COLUMN_WRAP },
};
static const CtlColumn provider_columns[] = {
        { "PROVIDER", CTL_COLUMN_LEFT },
        { "BEFORE", CTL_COLUMN_WRAP },
        { "AFTER", CTL_COLUMN_WRAP },
};

static const json_t *member(const json_t *object, const char *a, const char *b, const char *c)
{
        const char *const keys[] = { a, b, c };

        for (size_t i = 0; i < ARRAY_SIZE(keys) && keys[i]; i++)
                object = json_object_get(object, keys[i]);
        return object;
}

static const json_t *find_provider(const json_t *shape, const char *uuid)
{
        return ctl_json_find(json_object_get(shape, "providers"), "uuid", uuid);
}

static const char *provider_name(const json_t *document, const char *uuid)
{
        const json_t *provider = find_provider(json_object_get(document, "after"), uuid);

        if (!provider)
                provider = find_provider(json_object_get(document, "before"), uuid);
        return provider ? ctl_json_text(provider, "name") : uuid;
}

/* "VCPU 2, MEMORY_MB 512" of {"VCPU": 2, …}, or of inventories their totals. */
static void format_amounts(const json_t *object, char *text, size_t size)
{
        const char *name;
        json_t *value;
        size_t n = 0;

        snprintf(text, size, "-");
        json_object_foreach((json_t *)object, name, value) {
                const json_t *amount =
                        json_is_object(value) ? json_object_get(value, "total") : value;

                if (n < size)
                        n += (size_t)snprintf(text + n, size - n, "%s%s %" PRIu64,
                                              n > 0 ? ", " : "", name,
                                              (uint64_t)json_integer_value(amount));
        }
}

static void add_line(CtlTable *table, const char *first, const char *second, const json_t *before,
                     const json_t *after)
{
        char text[512];

        ctl_table_line(table);
        ctl_table_cell(table, CTL_PLAIN, "%s", first);
        if (second)
                ctl_table_cell(table, CTL_PLAIN, "%s", second);
        format_amounts(before, text, sizeof(text));
        ctl_table_cell(table, CTL_PLAIN, "%s", text);
        format_amounts(after, text, sizeof(text));
        ctl_table_cell(table, CTL_PLAIN, "%s", text);
}

static void add_consumer(CtlTable *table, const json_t *document, const char *uuid)
{
        const json_t *before = member(document, "before", "consumers", uuid);
        const json_t *after = member(document, "after", "consumers", uuid);
        const char *provider;
        json_t *held;

        before = json_object_get(before, "allocations");
        after = json_object_get(after, "allocations");
        json_object_foreach((json_t *)before, provider, held) {
                const json_t *then = member(after, provider, "resources", NULL);
                const json_t *now = json_object_get(held, "resources");

                if (!json_equal(now, then))
                        add_line(table, uuid, provider_name(document, provider), now, then);
        }
        json_object_foreach((json_t *)after, provider, held) {
                if (!json_object_get(before, provider))
                        add_line(table, uuid, provider_name(document, provider), NULL,
                                 json_object_get(held, "resources"));
        }
}

static int print_consumers(const json_t *document, const CtlStyle *style, FILE *output)
{
        _cleanup_(ctl_table_freep) CtlTable *table = NULL;
        const json_t *consumers = member(document, "after", "consumers", NULL);
        const char *uuid;
        json_t *consumer;

        if (json_object_size(consumers) == 0) {
                fputs("No guest holds anything that moves.\n", output);
                return 0;
        }
        if (ctl_table_new(&table, style, move_columns, ARRAY_SIZE(move_columns)) < 0)
                return -ENOMEM;
        json_object_foreach((json_t *)consumers, uuid, consumer) {
                add_consumer(table, document, uuid);
        }
        return ctl_table_print(table, output);
}

static void add_providers(CtlTable *table, const json_t *document, const char *key,
                          const char *other)
{
        const json_t *provider;
        size_t i;

        json_array_foreach(member(document, key, "providers", NULL), i, provider) {
                const json_t *there = find_provider(json_object_get(document, other),
                                                    ctl_json_text(provider, "uuid"));
                const json_t *own = json_object_get(provider, "inventories");
                const json_t *theirs = json_object_get(there, "inventories");
                bool is_after = strcmp(key, "after") == 0;

                if (is_after ? !json_equal(own, theirs) : !there)
                        add_line(table, ctl_json_text(provider, "name"), NULL,
                                 is_after ? theirs : own, is_after ? own : theirs);
        }
}

static int print_providers(const json_t *document, const CtlStyle *style, FILE *output)
{
        _cleanup_(ctl_table_freep) CtlTable *table = NULL;

        if (ctl_table_new(&table, style, provider_columns, ARRAY_SIZE(provider_columns)) < 0)
                return -ENOMEM;
        add_providers(table, document, "after", "before");
        add_providers(table, document, "before", "after");
        return ctl_table_print(table, output);
}

int ctl_reshape_print(const json_t *document, const char *hint, const CtlStyle *style, FILE *output,
                      Error *reterr)
{
        const json_t *problem;
        size_t i;

        if (!document) {
                fputs("Nothing to do: the tree has the shape of this host.\n", output);
                return 0;
        }
        if (print_providers(document, style, output) < 0)
                return error_oom(reterr);
        fputc('\n', output);
        if (print_consumers(document, style, output) < 0)
                return error_oom(reterr);
        json_array_foreach(json_object_get(document, "problems"), i, problem) {
                fprintf(output, "%sConsumer %s: %s stays where it is: %s\n", i == 0 ? "\n" : "",
                        ctl_json_text(problem, "consumer"),
                        ctl_json_text(problem, "resource_class"), ctl_json_text(problem, "reason"));
        }
        if (style->legend)
                fprintf(output, "\n%s\n", hint);
        return 0;
}
