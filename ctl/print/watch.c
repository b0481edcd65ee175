/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/watch.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "ctl/print/json.h"
#include "ctl/print/status.h"
#include "ctl/print/table.h"
#include "ctl/print/text.h"
#include "ctl/print/tree.h"
#include "formats/interface.h"

#define BAR_WIDTH         20
#define SHORT_UUID_LENGTH 8 /* of a guest without a name, where there is no room */

static const CtlColumn usage_columns[] = {
        { "PROVIDER", CTL_COLUMN_CUT },   { "CLASS", CTL_COLUMN_LEFT },
        { "USED", CTL_COLUMN_RIGHT },     { "FREE", CTL_COLUMN_RIGHT },
        { "CAPACITY", CTL_COLUMN_RIGHT }, { "USAGE", CTL_COLUMN_LEFT },
};
static const CtlColumn claim_columns[] = {
        { "CLAIM", CTL_COLUMN_RIGHT },   { "GUEST", CTL_COLUMN_CUT },
        { "STATE", CTL_COLUMN_LEFT },    { "SINCE", CTL_COLUMN_LEFT },
        { "RESOURCES", CTL_COLUMN_CUT }, { "DEVICES", CTL_COLUMN_CUT },
};

static const char *since(char buffer[static CTL_TEXT_MAX], uint64_t usec, const CtlStyle *style)
{
        return usec == 0 ? "never" : ctl_text_relative(buffer, usec, style->now_usec);
}

static void print_reasons(const json_t *status, CtlPage *page)
{
        const json_t *reason;
        size_t i;

        json_array_foreach(json_object_get(status, "reasons"), i, reason) {
                fputs("  ", page->output);
                ctl_page_rest(page, 2, ctl_status_colour(reason), "%s",
                              ctl_json_text(reason, "text"));
        }
}

static void print_figures(const json_t *status, CtlPage *page)
{
        uint64_t n_owed = ctl_status_owed(status),
                 published_usec = ctl_json_u64(status, "last_sync_usec");
        char polled[CTL_TEXT_MAX], published[CTL_TEXT_MAX], requests[2 * CTL_TEXT_MAX] = "",
                                                                         owed[CTL_TEXT_MAX] = "";

        if (strcmp(ctl_json_text(status, "sync_state"), SYNC_STATE_STANDALONE) != 0)
                snprintf(requests, sizeof(requests),
                         "; %spublished %s; %" PRIu64 " requests, %" PRIu64 " writes, %" PRIu64
                         " conflicts",
                         published_usec == 0 ? "not " : "",
                         published_usec == 0 ? "since the start"
                                             : since(published, published_usec, &page->style),
                         ctl_json_u64(status, "n_requests"), ctl_json_u64(status, "n_writes"),
                         ctl_json_u64(status, "n_conflicts"));
        if (n_owed > 0)
                snprintf(owed, sizeof(owed), ", %" PRIu64 " owed", n_owed);
        fputs("  ", page->output);
        ctl_page_rest(page, 2, CTL_PLAIN, "Polled %s%s%s",
                      since(polled, ctl_json_u64(status, "last_poll_usec"), &page->style), requests,
                      owed);
}

static void print_head(const json_t *status, CtlPage *page)
{
        ctl_status_print_verdict(status, page);
        if (ctl_status_exit(status) == CTL_STATUS_NOT_RUNNING)
                return;
        print_figures(status, page);
        print_reasons(status, page);
}

/* provider NULL: it stands in a line above. */
static void add_usage(CtlTable *table, const json_t *provider, const char *resource_class,
                      const json_t *inventory, const CtlStyle *style)
{
        uint64_t used = ctl_json_u64(inventory, "used"),
                 capacity = ctl_json_u64(inventory, "capacity");
        CtlColour colour = CTL_PLAIN;
        const char *mark = "";
        char bar[CTL_TEXT_MAX], percent[CTL_TEXT_MAX] = "   -";

        ctl_table_line(table);
        if (provider)
                mark = ctl_tree_mark(provider, &colour);
        ctl_table_cell(table, colour, "%s%s", provider ? ctl_json_text(provider, "name") : "",
                       mark);
        ctl_table_cell(table, CTL_PLAIN, "%s", resource_class);
        ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, used);
        ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, capacity > used ? capacity - used : 0);
        ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, capacity);
        if (capacity > 0)
                snprintf(percent, sizeof(percent), "%3.0f%%",
                         (double)used * 100 / (double)capacity);
        ctl_table_cell(table, ctl_usage_colour(used, capacity), "%s %s",
                       ctl_text_bar(bar, used, capacity, BAR_WIDTH, style->utf8), percent);
}

static void print_usage(const json_t *tree, CtlPage *page)
{
        CtlTable *table = ctl_table_new(page, usage_columns, ARRAY_SIZE(usage_columns));
        const json_t *provider;
        size_t i;

        json_array_foreach(json_object_get(tree, "providers"), i, provider) {
                const json_t *named = provider;
                const char *resource_class;
                json_t *inventory;

                json_object_foreach(json_object_get(provider, "inventories"), resource_class,
                                    inventory) {
                        add_usage(table, named, resource_class, inventory, &page->style);
                        named = NULL;
                }
        }
        if (ctl_table_count(table) > 0)
                fputc('\n', page->output);
        ctl_table_print(table);
}

/* What a claim has of each class, of whichever provider. */
static char *format_resources(const json_t *claim)
{
        _cleanup_json_ json_t *sums = json_object();
        const json_t *allocation;
        size_t i;

        if (!sums)
                return NULL;
        json_array_foreach(json_object_get(claim, "allocations"), i, allocation)
                if (ctl_json_add_amounts(sums, json_object_get(allocation, "resources")) < 0)
                        return NULL;
        return ctl_json_format_resources(sums);
}

static void write_devices(const json_t *devices, FILE *stream)
{
        const json_t *device;
        size_t i;

        json_array_foreach((json_t *)devices, i, device) {
                const char *address = ctl_json_text(device, "address");

                fprintf(stream, "%s%s", i > 0 ? ", " : "",
                        address[0] ? address : ctl_json_text(device, "device"));
        }
}

static void add_claim(CtlTable *table, const json_t *claim, const CtlStyle *style)
{
        const char *state = ctl_json_text(claim, "state");
        const char *guest = ctl_json_text(claim, "guest");
        char age[CTL_TEXT_MAX];

        ctl_table_cell(table, CTL_BOLD, "%" PRIu64, ctl_json_u64(claim, "id"));
        if (guest[0])
                ctl_table_cell(table, CTL_PLAIN, "%s", guest);
        else
                ctl_table_cell(table, CTL_PLAIN, "%.*s",
                               ctl_style_is_roomy(style) ? INT_MAX : SHORT_UUID_LENGTH,
                               ctl_json_text(claim, "consumer"));
        ctl_table_cell(table, strcmp(state, "confirmed") == 0 ? CTL_GREEN : CTL_YELLOW, "%s",
                       state);
        ctl_table_cell(table, CTL_PLAIN, "%s",
                       since(age, ctl_json_u64(claim, "created_usec"), style));
        ctl_table_take(table, format_resources(claim), "");
        ctl_table_take(table, ctl_json_format(json_object_get(claim, "devices"), write_devices),
                       "");
}

static void print_claims(const json_t *document, CtlPage *page)
{
        const json_t *claims = json_object_get(document, "claims");

        fputs(json_array_size(claims) == 0 ? "\nNo claims.\n" : "\n", page->output);
        ctl_table_print_items(claims, claim_columns, ARRAY_SIZE(claim_columns), add_claim, page);
}

void ctl_watch_print(const CtlWatchFacts *facts, CtlPage *page)
{
        print_head(facts->status, page);
        if (facts->tree)
                print_usage(facts->tree, page);
        if (facts->claims)
                print_claims(facts->claims, page);
}

/* One member per class: {"VCPU": {"used", "capacity"}}. */
static int sum_usage(const json_t *tree, json_t *sums)
{
        const json_t *provider;
        size_t i;

        json_array_foreach(json_object_get(tree, "providers"), i, provider) {
                const char *resource_class;
                json_t *inventory;

                json_object_foreach(json_object_get(provider, "inventories"), resource_class,
                                    inventory) {
                        json_t *sum = json_object_get(sums, resource_class);
                        _cleanup_json_ json_t *amounts =
                                json_pack("{sO? sO?}", "used", json_object_get(inventory, "used"),
                                          "capacity", json_object_get(inventory, "capacity"));

                        if (!sum &&
                            json_object_set_new(sums, resource_class, sum = json_object()) < 0)
                                return -ENOMEM;
                        if (!amounts || ctl_json_add_amounts(sum, amounts) < 0)
                                return -ENOMEM;
                }
        }
        return 0;
}

void ctl_watch_print_line(const CtlWatchFacts *facts, CtlPage *page)
{
        const json_t *status = facts->status;
        _cleanup_json_ json_t *sums = json_object();
        const char *resource_class, *separator = "; ";
        json_t *sum;
        uint64_t n_providers = ctl_json_u64(status, "n_providers"),
                 n_claims = ctl_json_u64(status, "n_claims");

        if (ctl_status_exit(status) == CTL_STATUS_NOT_RUNNING) {
                ctl_page_write(page, CTL_PLAIN, "%s", ctl_json_text(status, "summary"));
                return;
        }
        page->failed |= !sums || (facts->tree && sum_usage(facts->tree, sums) < 0);
        ctl_page_write(page, CTL_PLAIN, "%s: %s; %" PRIu64 " provider%s, %" PRIu64 " claim%s",
                       ctl_json_text(status, "sync_state"), ctl_json_text(status, "summary"),
                       n_providers, text_plural(n_providers), n_claims, text_plural(n_claims));
        json_object_foreach(sums, resource_class, sum) {
                ctl_page_write(page, CTL_PLAIN, "%s%s %" PRIu64 "/%" PRIu64, separator,
                               resource_class, ctl_json_u64(sum, "used"),
                               ctl_json_u64(sum, "capacity"));
                separator = ", ";
        }
}
