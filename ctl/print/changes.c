/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints changes of Placement, planned or done: the requests of "plan", the inventories and
 * allocations that "reshape" moves, and the providers that "retire" removes. Pure.
 *
 * A plan is an array of requests, one line for each. A reshape is two states of the tree and its
 * consumers, "before" and "after". Only their differences are printed, then the amounts that are
 * not moved ("problems"). A retirement is a list of providers, or the reasons against it. Limits:
 * the amounts in a cell are cut at 511 bytes, and a consumer that is only in "before" is not
 * printed. */

#include "ctl/print/changes.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "ctl/print/json.h"
#include "ctl/print/table.h"
#include "formats/interface.h"

/* Plan. */

static const CtlColumn plan_columns[] = {
        { "METHOD", CTL_COLUMN_LEFT },
        { "OBJECT", CTL_COLUMN_LEFT },
        { "NAME", CTL_COLUMN_LEFT },
        { "SUMMARY", CTL_COLUMN_WRAP },
};
static const CtlColumn all_plan_columns[] = {
        { "METHOD", CTL_COLUMN_LEFT },
        { "PATH", CTL_COLUMN_LEFT },
        { "NAME", CTL_COLUMN_LEFT },
        { "SUMMARY", CTL_COLUMN_WRAP },
};

/* Returns a short name for the path of a request, for the second column. The path with its uuid is
 * too long for a narrow terminal, and the next column has the provider's name. */
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

/* Prints why the plan is empty. Only the sync states "synced" and, without an error,
 * "left-to-nova" prove that Placement equals the host. */
static void print_nothing(const json_t *status, CtlPage *page)
{
        const char *state = ctl_json_text(status, "sync_state"),
                   *error = ctl_json_text(status, "sync_error");
        bool is_left = strcmp(state, SYNC_STATE_LEFT_TO_NOVA) == 0;

        if (strcmp(state, SYNC_STATE_SYNCED) == 0 || (is_left && !error[0]))
                ctl_page_write(page, CTL_PLAIN, "Nothing to do: Placement is equal to this host.");
        else if (strcmp(state, SYNC_STATE_STANDALONE) == 0)
                ctl_page_write(page, CTL_PLAIN, "Nothing to send: no Placement is configured.");
        else if (is_left || strcmp(state, SYNC_STATE_STALE) == 0)
                ctl_page_write(page, CTL_PLAIN,
                               "Nothing to send now, but Placement is not equal to this host: %s.",
                               error);
        else
                ctl_page_write(page, CTL_PLAIN, "Nothing to send now. The sync state is %s%s%s.",
                               state[0] ? state : "unknown", error[0] ? ": " : "", error);
        fputc('\n', page->output);
}

void ctl_plan_print(const json_t *plan, const json_t *status, CtlPage *page)
{
        const char *error = ctl_json_text(status, "sync_error");
        size_t n = json_array_size(plan);

        if (n == 0) {
                print_nothing(status, page);
                return;
        }
        ctl_table_print_items(plan, page->style.all ? all_plan_columns : plan_columns,
                              ARRAY_SIZE(plan_columns), add_step, page);
        if (!page->style.legend)
                return;
        fprintf(page->output, "\n%zu request%s.", n, text_plural(n));
        if (error[0])
                ctl_page_write(page, CTL_PLAIN, " The sync state is %s: %s.",
                               ctl_json_text(status, "sync_state"), error);
        fputc('\n', page->output);
}

/* Reshape. */

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

/* Returns the member a.b.c of an object, borrowed. b and c can be NULL. Returns NULL if a member is
 * missing. */
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

/* Returns the name of a provider after or before the reshape; its uuid if neither state has it. */
static const char *provider_name(const json_t *document, const char *uuid)
{
        const json_t *provider = find_provider(json_object_get(document, "after"), uuid);

        if (!provider)
                provider = find_provider(json_object_get(document, "before"), uuid);
        return provider ? ctl_json_text(provider, "name") : uuid;
}

/* Writes "VCPU 2, MEMORY_MB 512" from {"VCPU": 2, …}, or the totals of inventories. Writes "-" for
 * an empty object. */
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

/* Adds a line with the amounts before and after. second: the second column; NULL: the table has
 * none. */
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

/* Adds a line for each provider on which the allocations of the consumer change. Providers on which
 * it has allocations only in "after" come last. */
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
                fputs("No consumer has allocations that move.\n", page->output);
        json_object_foreach((json_t *)consumers, uuid, consumer)
                add_consumer(table, document, uuid);
        ctl_table_print(table);
}

/* Adds lines for the providers of one state. With key "after" these are the providers whose
 * inventories are new or changed, with "before" those that "after" lacks. The caller asks for
 * both. */
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
                fputs("Nothing to do: the tree in Placement has the shape of this host.\n",
                      page->output);
                return;
        }
        print_providers(document, page);
        fputc('\n', page->output);
        print_consumers(document, page);
        json_array_foreach(json_object_get(document, "problems"), i, problem) {
                fputs(i == 0 ? "\n" : "", page->output);
                ctl_page_write(page, CTL_PLAIN, "Consumer %s: %s is not moved: %s",
                               ctl_json_text(problem, "consumer"),
                               ctl_json_text(problem, "resource_class"),
                               ctl_json_text(problem, "reason"));
                fputc('\n', page->output);
        }
        if (page->style.legend && hint)
                fprintf(page->output, "\n%s\n", hint);
}

/* Retire. */

static size_t count(const json_t *document, const char *key)
{
        return json_array_size(json_object_get(document, key));
}

bool ctl_retire_is_refused(const json_t *document)
{
        return count(document, "holders") > 0 || count(document, "foreign") > 0;
}

static void print_names(const json_t *document, const char *key, CtlPage *page)
{
        const json_t *name;
        size_t i;

        json_array_foreach(json_object_get(document, key), i, name) {
                ctl_page_write(page, CTL_PLAIN, "  %s",
                               json_is_string(name) ? json_string_value(name) : "?");
                fputc('\n', page->output);
        }
}

/* Prints a consumer that prevents the retirement, with the reason: its claim, its allocations, or
 * its domain. */
static void print_holder(const json_t *holder, CtlPage *page)
{
        const char *guest = ctl_json_text(holder, "guest");
        bool placed = json_is_true(json_object_get(holder, "placed"));
        uint64_t claim = ctl_json_u64(holder, "claim");

        ctl_page_write(page, CTL_PLAIN, "  %s%s%s", guest, guest[0] ? "  " : "",
                       ctl_json_text(holder, "consumer"));
        if (claim > 0)
                fprintf(page->output, ", claim %" PRIu64, claim);
        if (placed)
                fputs(", has allocations in Placement", page->output);
        if (claim == 0 && !placed)
                fputs(", runs here", page->output);
        fputc('\n', page->output);
}

static void print_refusal(const json_t *document, CtlPage *page)
{
        const json_t *holder;
        size_t i;

        if (count(document, "holders") > 0)
                fputs("Still on this host:\n", page->output);
        json_array_foreach(json_object_get(document, "holders"), i, holder)
                print_holder(holder, page);
        if (count(document, "foreign") > 0)
                fputs("Providers of this host that another service created:\n", page->output);
        print_names(document, "foreign", page);
        if (!page->style.legend)
                return;
        fputs("\nNothing was changed.", page->output);
        if (count(document, "holders") > 0)
                fputs(" Move the guests away. If a server is deleted, \"computectl heal CONSUMER\" removes its allocations.",
                      page->output);
        if (count(document, "foreign") > 0)
                fputs(" Remove these providers with the service that created them (Neutron, Cyborg).",
                      page->output);
        fputc('\n', page->output);
}

void ctl_retire_print(const json_t *document, CtlPage *page)
{
        bool done = json_is_true(json_object_get(document, "done"));

        if (ctl_retire_is_refused(document)) {
                print_refusal(document, page);
                return;
        }
        fputs(done ? "Removed from Placement:\n" : "To be removed from Placement:\n", page->output);
        print_names(document, "providers", page);
        if (page->style.legend)
                fputs(done ? "\nThe host is retired. To undo this, run \"computectl retire --undo\".\n"
                           : "\nNothing was changed. To retire the host, run \"computectl retire\".\n",
                      page->output);
}
