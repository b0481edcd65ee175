/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/devices.h"

#include <inttypes.h>
#include <string.h>

#include "base/cpu-set.h"
#include "ctl/print/json.h"
#include "ctl/print/text.h"

#define LABEL_WIDTH 9

static void add_device(CtlTable *table, const json_t *device, const CtlStyle *style)
{
        bool exists = json_is_true(json_object_get(device, "exists"));

        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(device, "device"));
        ctl_table_text(table, ctl_json_text(device, "address"));
        ctl_table_text(table, ctl_json_text(device, "mdev_type"));
        ctl_table_text(table, ctl_json_text(device, "mdev"));
        ctl_table_cell(table, exists ? CTL_PLAIN : CTL_YELLOW, "%s", exists ? "" : "to be made");
}

/* Nothing when there is none. */
static void print_devices(const json_t *claim, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "DEVICE", CTL_COLUMN_LEFT }, { "ADDRESS", CTL_COLUMN_LEFT },
                { "TYPE", CTL_COLUMN_LEFT },   { "MDEV", CTL_COLUMN_LEFT },
                { "", CTL_COLUMN_LEFT },
        };

        ctl_table_print_items(json_object_get(claim, "devices"), columns, ARRAY_SIZE(columns),
                              add_device, page);
}

/* "0=4 1=2-3": guest CPUs of the cell and their host CPUs. */
static char *format_pins(const json_t *claim, const json_t *cell)
{
        _cleanup_(cpu_set_done) CpuSet vcpus = CPU_SET_INIT;
        const json_t *cpu;
        char *text = NULL;
        size_t size, i;
        FILE *stream = open_memstream(&text, &size);
        const char *separator = "";

        if (!stream)
                return NULL;
        if (cpu_set_parse(ctl_json_text(cell, "vcpus"), &vcpus, NULL) == 0)
                json_array_foreach(json_object_get(claim, "cpus"), i, cpu) {
                        uint64_t vcpu = ctl_json_u64(cpu, "vcpu");

                        if (vcpu >= CPU_SET_MAX || !cpu_set_contains(&vcpus, (unsigned)vcpu))
                                continue;
                        fprintf(stream, "%s%" PRIu64 "=%s", separator, vcpu,
                                ctl_json_text(cpu, "cpus"));
                        separator = " ";
                }
        if (fclose(stream) == 0)
                return text;
        free(text);
        return NULL;
}

/* An empty line, and the table of the guest's cells; nothing when there is none. */
static void print_layout(const json_t *claim, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "CELL", CTL_COLUMN_RIGHT },      { "HOST CELL", CTL_COLUMN_RIGHT },
                { "MEMORY_MB", CTL_COLUMN_RIGHT }, { "PAGES", CTL_COLUMN_RIGHT },
                { "CPUS", CTL_COLUMN_LEFT },       { "HOST CPUS", CTL_COLUMN_WRAP },
        };
        const json_t *cells = json_object_get(claim, "cells"), *cell;
        CtlTable *table;
        size_t i;

        if (json_array_size(cells) == 0)
                return;
        table = ctl_table_new(page, columns, ARRAY_SIZE(columns));
        fputc('\n', page->output);
        json_array_foreach(cells, i, cell) {
                uint64_t page_kib = ctl_json_u64(cell, "page_kib");

                ctl_table_line(table);
                ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, ctl_json_u64(cell, "cell"));
                ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, ctl_json_u64(cell, "host_cell"));
                ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, ctl_json_u64(cell, "memory_mb"));
                if (page_kib > 0)
                        ctl_table_cell(table, CTL_PLAIN, "%" PRIu64 " KiB", page_kib);
                else
                        ctl_table_cell(table, CTL_PLAIN, "small");
                ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(cell, "vcpus"));
                ctl_table_take(table, format_pins(claim, cell), "");
        }
        ctl_table_print(table);
}

static const char *provider_name(const json_t *claim, const char *uuid)
{
        const json_t *allocation =
                ctl_json_find(json_object_get(claim, "allocations"), "provider", uuid);

        return allocation ? ctl_json_text(allocation, "name") : uuid;
}

static void add_mapping_line(CtlTable *table, const char *suffix, const char *provider,
                             const char *device)
{
        ctl_table_line(table);
        ctl_table_cell(table, CTL_PLAIN, "%s", suffix);
        ctl_table_cell(table, CTL_PLAIN, "%s", provider);
        ctl_table_cell(table, CTL_PLAIN, "%s", device);
}

/* One line for each device of the group there; an mdev is shown by its uuid. */
static void add_mapping(CtlTable *table, const json_t *claim, const char *suffix, const char *uuid)
{
        const char *name = provider_name(claim, uuid);
        const json_t *device;
        bool any = false;
        size_t i;

        json_array_foreach(json_object_get(claim, "devices"), i, device) {
                const char *mdev = ctl_json_text(device, "mdev");

                if (strcmp(ctl_json_text(device, "group"), suffix) != 0 ||
                    strcmp(ctl_json_text(device, "provider"), uuid) != 0)
                        continue;
                add_mapping_line(table, suffix, name,
                                 mdev[0] ? mdev : ctl_json_text(device, "device"));
                any = true;
        }
        if (!any)
                add_mapping_line(table, suffix, name, "-");
}

void ctl_mappings_print(const json_t *claim, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "GROUP", CTL_COLUMN_LEFT },
                { "PROVIDER", CTL_COLUMN_LEFT },
                { "DEVICE", CTL_COLUMN_LEFT },
        };
        json_t *mappings = json_object_get(claim, "mappings"), *providers, *provider;
        CtlTable *table = ctl_table_new(page, columns, ARRAY_SIZE(columns));
        const char *suffix;
        size_t i;

        json_object_foreach(mappings, suffix, providers)
                json_array_foreach(providers, i, provider)
                        if (suffix[0] && json_is_string(provider))
                                add_mapping(table, claim, suffix, json_string_value(provider));
        if (ctl_table_count(table) > 0)
                fputc('\n', page->output);
        ctl_table_print(table);
}

void ctl_allocation_cells(CtlTable *table, const json_t *allocation, const CtlStyle *style)
{
        const json_t *resources = json_object_get(allocation, "resources");

        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(allocation, "name"));
        ctl_table_take(table, ctl_json_format_resources(resources), "");
}

static void print_allocations(const json_t *claim, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "PROVIDER", CTL_COLUMN_LEFT },
                { "RESOURCES", CTL_COLUMN_WRAP },
        };

        ctl_table_print_items(json_object_get(claim, "allocations"), columns, ARRAY_SIZE(columns),
                              ctl_allocation_cells, page);
}

static void print_fields(const json_t *claim, CtlPage *page)
{
        static const struct {
                const char *title, *member;
        } texts[] = { { "Guest", "guest" },       { "Consumer", "consumer" },
                      { "State", "state" },       { "Project", "project" },
                      { "User", "user" },         { "Type", "consumer_type" },
                      { "Reason", "end_reason" }, { "Boot", "boot_id" } },
          times[] = { { "Created", "created_usec" },
                      { "Expires", "expires_usec" },
                      { "Ended", "ended_usec" } };

        fputs("Claim ", page->output);
        ctl_page_write(page, CTL_BOLD, "%" PRIu64, ctl_json_u64(claim, "id"));
        fputs(json_is_true(json_object_get(claim, "resize_target")) ? " (resize target)\n" : "\n",
              page->output);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                const char *text = ctl_json_text(claim, texts[i].member);

                if (text[0])
                        ctl_page_field(page, LABEL_WIDTH, texts[i].title, CTL_PLAIN, "%s", text);
        }
        for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
                uint64_t usec = ctl_json_u64(claim, times[i].member);
                char time[CTL_TEXT_MAX];

                if (usec > 0)
                        ctl_page_field(page, LABEL_WIDTH, times[i].title, CTL_PLAIN, "%s",
                                       ctl_text_time(time, usec));
        }
}

/* An empty line, and what the domain of the guest does not show; nothing if it shows all. */
static void print_beyond_domain(const json_t *claim, CtlPage *page)
{
        const json_t *amounts = json_object_get(claim, "beyond_domain"), *amount;
        const char *name, *separator = "";

        if (json_object_size(amounts) == 0)
                return;
        fputs("\nSet in Placement by another writer, not shown by the domain: ", page->output);
        json_object_foreach((json_t *)amounts, name, amount) {
                fprintf(page->output, "%s%s=%" JSON_INTEGER_FORMAT, separator, name,
                        json_integer_value(amount));
                separator = ", ";
        }
        fputc('\n', page->output);
}

/* An empty line, and the host CPUs that no guest CPU has; nothing if there are none. */
static void print_other_cpus(const json_t *claim, CtlPage *page)
{
        _cleanup_(cpu_set_done) CpuSet held = CPU_SET_INIT;
        _cleanup_free_ char *text = NULL;
        const json_t *item;
        size_t i;

        if (cpu_set_parse(ctl_json_text(claim, "held"), &held, NULL) < 0)
                return;
        json_array_foreach(json_object_get(claim, "cpus"), i, item) {
                _cleanup_(cpu_set_done) CpuSet cpus = CPU_SET_INIT;

                if (cpu_set_parse(ctl_json_text(item, "cpus"), &cpus, NULL) == 0)
                        CPU_SET_FOREACH(cpu, &cpus)
                                cpu_set_remove(&held, cpu);
        }
        if (cpu_set_count(&held) > 0 && (text = cpu_set_format(&held)))
                fprintf(page->output, "\nHost CPUs held for other threads: %s\n", text);
}

void ctl_held_print(const json_t *claim, CtlPage *page)
{
        print_allocations(claim, page);
        print_beyond_domain(claim, page);
        ctl_mappings_print(claim, page);
        print_layout(claim, page);
        print_other_cpus(claim, page);
        if (json_array_size(json_object_get(claim, "devices")) > 0)
                fputc('\n', page->output);
        print_devices(claim, page);
}

void ctl_show_print(const json_t *claim, CtlPage *page)
{
        print_fields(claim, page);
        fputc('\n', page->output);
        ctl_held_print(claim, page);
}

static void add_problem(CtlTable *table, const json_t *problem, const CtlStyle *style)
{
        ctl_table_number(table, ctl_json_u64(problem, "claim"));
        ctl_table_text(table, ctl_json_text(problem, "consumer"));
        ctl_table_cell(table, CTL_YELLOW, "%s", ctl_json_text(problem, "text"));
}

void ctl_problems_print(const json_t *document, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "CLAIM", CTL_COLUMN_RIGHT },
                { "GUEST", CTL_COLUMN_LEFT },
                { "PROBLEM", CTL_COLUMN_WRAP },
        };
        const json_t *problems = json_object_get(document, "problems");

        if (json_array_size(problems) == 0 && page->style.legend)
                fputs("Claims and guests agree.\n", page->output);
        ctl_table_print_items(problems, columns, ARRAY_SIZE(columns), add_problem, page);
}

static void add_verdict(CtlTable *table, const json_t *verdict, const CtlStyle *style)
{
        const char *term = ctl_json_text(verdict, "term");

        ctl_table_text(table, ctl_json_text(verdict, "group"));
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(verdict, "class"));
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(verdict, "name"));
        ctl_table_cell(table, strcmp(term, "fits") == 0 ? CTL_GREEN : CTL_YELLOW, "%s", term);
        ctl_table_number(table, ctl_json_u64(verdict, "missing"));
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(verdict, "text"));
}

void ctl_explain_print(const json_t *document, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "GROUP", CTL_COLUMN_LEFT },    { "CLASS", CTL_COLUMN_LEFT },
                { "PROVIDER", CTL_COLUMN_LEFT }, { "FAILS AT", CTL_COLUMN_LEFT },
                { "MISSING", CTL_COLUMN_RIGHT }, { "WHY", CTL_COLUMN_WRAP },
        };
        const json_t *providers = json_object_get(document, "providers");
        bool fits = json_is_true(json_object_get(document, "fits"));

        ctl_page_write(page, fits ? CTL_GREEN : CTL_YELLOW, "%s",
                       fits ? "It fits." : "It does not fit");
        fputs(fits ? "\n" : ":\n", page->output);
        if (!fits) {
                ctl_page_write(page, CTL_PLAIN, "%s", ctl_json_text(document, "summary"));
                fputc('\n', page->output);
        }
        if (json_array_size(providers) > 0)
                fputc('\n', page->output);
        ctl_table_print_items(providers, columns, ARRAY_SIZE(columns), add_verdict, page);
}
