/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/reshape.h"

#include <inttypes.h>
#include <string.h>

#include "ctl/print/json.h"
#include "ctl/print/table.h"

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

static void print_consumers(const json_t *document, CtlPage *page)
{
        const json_t *consumers = member(document, "after", "consumers", NULL);
        CtlTable *table = ctl_table_new(page, move_columns, ARRAY_SIZE(move_columns));
        const char *uuid;
        json_t *consumer;

        if (json_object_size(consumers) == 0)
                fputs("No guest holds anything that moves.\n", page->output);
        json_object_foreach((json_t *)consumers, uuid, consumer)
                add_consumer(table, document, uuid);
        ctl_table_print(table);
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

static void print_providers(const json_t *document, CtlPage *page)
{
        CtlTable *table = ctl_table_new(page, provider_columns, ARRAY_SIZE(provider_columns));

        add_providers(table, document, "after", "before");
        add_providers(table, document, "before", "after");
        ctl_table_print(table);
}

void ctl_reshape_print(const json_t *document, const char *hint, CtlPage *page)
{
        const json_t *problem;
        size_t i;

        if (!document) {
                fputs("Nothing to do: the tree has the shape of this host.\n", page->output);
                return;
        }
        print_providers(document, page);
        fputc('\n', page->output);
        print_consumers(document, page);
        json_array_foreach(json_object_get(document, "problems"), i, problem) {
                fputs(i == 0 ? "\n" : "", page->output);
                ctl_page_write(page, CTL_PLAIN, "Consumer %s: %s stays where it is: %s",
                               ctl_json_text(problem, "consumer"),
                               ctl_json_text(problem, "resource_class"),
                               ctl_json_text(problem, "reason"));
                fputc('\n', page->output);
        }
        if (page->style.legend && hint)
                fprintf(page->output, "\n%s\n", hint);
}
