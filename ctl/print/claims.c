/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints claims and their history: the list of "claims", one claim of "show" and "claim", the
 * guests of "who" and "drain", "claims --problems", "explain" and "history". All functions are
 * pure, except that they write to the page's output and use the time zone.
 *
 * A list has one line for each provider of a claim, and the table cells about the whole claim are
 * in its first line. View decides the columns of a list by the width of the terminal, the content,
 * --history and --columns. One claim is a sequence of parts: fields, allocations and others
 * (print_held()). Each part after the allocations begins with an empty line, and is left out if it
 * would be empty. */

#include "ctl/print/claims.h"

#include <inttypes.h>
#include <string.h>

#include "base/cpu-set.h"
#include "base/text.h"
#include "ctl/print/json.h"
#include "ctl/print/table.h"
#include "ctl/print/text.h"

#define COLUMNS_MAX       9
#define LABEL_WIDTH       9
#define SHORT_UUID_LENGTH 8
#define ROOMY             130 /* columns */

/* Checks whether lines have space for whole uuids: at 130 columns or more, without a limit of the
 * width, or with "all". */
static bool is_roomy(const CtlStyle *style)
{
        return style->all || style->width == 0 || style->width >= ROOMY;
}

/* Adds the two table cells of an allocation: its provider and the amounts there. */
static void add_allocation(CtlTable *table, const json_t *allocation, const CtlStyle *style)
{
        const json_t *resources = json_object_get(allocation, "resources");

        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(allocation, "name"));
        ctl_table_take(table, ctl_json_format(resources, ctl_json_write_resources), "");
}

/* Decides the columns of a list of claims. */
typedef struct View {
        bool history; /* the list shows time and reason of the end instead of the time of expiry */
        bool roomy;   /* the terminal has space for whole uuids and the time of creation */
        bool guests;  /* at least one claim has a guest with a name, or --columns is given */
} View;

static bool have_names(const json_t *claims)
{
        const json_t *claim;
        size_t i;

        json_array_foreach((json_t *)claims, i, claim)
                if (ctl_json_text(claim, "guest")[0])
                        return true;
        return false;
}

/* Fills the columns of a view and returns their number. add_claim_cells() adds cells in the same
 * order. */
static size_t choose_columns(const View *view, CtlColumn columns[static COLUMNS_MAX])
{
        size_t n = 0;

        columns[n++] = (CtlColumn){ "ID", CTL_COLUMN_RIGHT };
        if (view->guests)
                columns[n++] = (CtlColumn){ "GUEST", CTL_COLUMN_LEFT };
        if (view->roomy || !view->guests)
                columns[n++] = (CtlColumn){ "CONSUMER", CTL_COLUMN_LEFT };
        columns[n++] = (CtlColumn){ "STATE", CTL_COLUMN_LEFT };
        if (view->roomy)
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

/* Adds a time as its distance from now, for example "3min ago". "-": the claim has no such time. */
static void add_time_cell(CtlTable *table, uint64_t usec, const CtlStyle *style)
{
        char text[CTL_TEXT_MAX];

        ctl_table_cell(table, CTL_PLAIN, "%s",
                       usec ? ctl_text_relative(text, usec, style->now_usec) : "-");
}

/* Adds the first letters of a uuid; the whole uuid if the style is roomy. */
static void add_uuid(CtlTable *table, const char *uuid, const CtlStyle *style)
{
        if (is_roomy(style))
                ctl_table_cell(table, CTL_PLAIN, "%s", uuid);
        else
                ctl_table_cell(table, CTL_PLAIN, "%.*s%s", SHORT_UUID_LENGTH, uuid,
                               style->utf8 ? "…" : "~");
}

/* Adds the cells that belong to the claim and not to one of its providers. In a narrow list the
 * consumer replaces a missing name of the guest. */
static void add_claim_cells(CtlTable *table, const json_t *claim, const View *view,
                            const CtlStyle *style)
{
        const char *state = ctl_json_text(claim, "state"),
                   *consumer = ctl_json_text(claim, "consumer"),
                   *guest = ctl_json_text(claim, "guest");
        bool resize_target = json_is_true(json_object_get(claim, "resize_target"));

        ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, ctl_json_u64(claim, "id"));
        if (view->guests && (view->roomy || guest[0]))
                ctl_table_text(table, guest);
        if (view->roomy || !view->guests || !guest[0])
                add_uuid(table, consumer, style);
        ctl_table_cell(table, state_colour(state), "%s%s", state, resize_target ? ", resize" : "");
        if (view->roomy)
                add_time_cell(table, ctl_json_u64(claim, "created_usec"), style);
        add_time_cell(table, ctl_json_u64(claim, view->history ? "ended_usec" : "expires_usec"),
                      style);
}

/* Adds the lines of a claim: one for each provider, at least one. The first line has the cells of
 * the claim. In the other lines these n_of_claim cells are empty. */
static void add_claim(CtlTable *table, const json_t *claim, const View *view, const CtlStyle *style)
{
        const json_t *allocations = json_object_get(claim, "allocations");
        size_t n_lines = MAX(json_array_size(allocations), (size_t)1);
        size_t n_of_claim = view->roomy ? 5 + (size_t)view->guests : 4;

        for (size_t i = 0; i < n_lines; i++) {
                ctl_table_line(table);
                if (i == 0)
                        add_claim_cells(table, claim, view, style);
                else
                        ctl_table_skip(table, n_of_claim);
                add_allocation(table, json_array_get(allocations, i), style);
                if (view->history && i == 0)
                        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(claim, "end_reason"));
        }
}

/* Explains in one line why claims have larger amounts than their domains: another writer set these
 * in Placement. Prints nothing without such claims. */
static void print_beyond_domains(const json_t *claims, CtlPage *page)
{
        const json_t *claim, *amount;
        const char *name;
        bool any = false;
        size_t i;

        json_array_foreach((json_t *)claims, i, claim)
                json_object_foreach(json_object_get(claim, "beyond_domain"), name, amount) {
                        ctl_page_write(
                                page, CTL_PLAIN, "%sclaim %" PRIu64 " %s=%" JSON_INTEGER_FORMAT,
                                any ? ", "
                                    : "Set in Placement by another writer, not shown by the domain: ",
                                ctl_json_u64(claim, "id"), name, json_integer_value(amount));
                        any = true;
                }
        if (any)
                fputs(".\n", page->output);
}

/* Prints a line for each guest of the document (ctl/print/filter.h). One with "next_start" has the
 * sought device, but no listed claim. The member is true if the guest is off, or only its
 * persistent definition has the device. One without "next_start" has no claim at all, and perhaps
 * not the device. */
static void print_guests(const json_t *guests, CtlPage *page)
{
        const json_t *guest;
        size_t i;

        json_array_foreach(guests, i, guest) {
                const json_t *next_start = json_object_get(guest, "next_start");

                ctl_page_write(page, CTL_PLAIN, "Guest %s %s.", ctl_json_text(guest, "name"),
                               !next_start ? "is on this host without a claim"
                               : json_is_true(next_start)
                                       ? "needs it for its next start, but has no claim of it"
                                       : "uses it, but has no claim of it");
                fputc('\n', page->output);
        }
}

static void print_list(const json_t *claims, bool history, CtlPage *page)
{
        const json_t *claim;
        View view = { history, is_roomy(&page->style), have_names(claims) || page->columns };
        CtlColumn columns[COLUMNS_MAX];
        CtlTable *table;
        size_t i;

        if (json_array_size(claims) == 0) {
                if (page->style.legend)
                        fputs(history ? "No claims, and none in the history.\n" : "No claims.\n",
                              page->output);
                return;
        }
        table = ctl_table_new(page, columns, choose_columns(&view, columns));
        json_array_foreach(claims, i, claim)
                add_claim(table, claim, &view, &page->style);
        ctl_table_print(table);
        if (page->style.legend)
                fprintf(page->output, "\n%zu claim%s.\n", i, text_plural(i));
        if (page->style.legend)
                print_beyond_domains(claims, page);
}

void ctl_claims_print(const json_t *document, bool history, CtlPage *page)
{
        const json_t *claims = json_object_get(document, "claims");
        const json_t *guests = json_object_get(document, "guests");

        if (json_array_size(claims) > 0 || json_array_size(guests) == 0)
                print_list(claims, history, page);
        print_guests(guests, page);
}

static void add_device(CtlTable *table, const json_t *device, const CtlStyle *style)
{
        bool exists = json_is_true(json_object_get(device, "exists"));

        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(device, "device"));
        ctl_table_text(table, ctl_json_text(device, "address"));
        ctl_table_text(table, ctl_json_text(device, "mdev_type"));
        ctl_table_text(table, ctl_json_text(device, "mdev"));
        ctl_table_cell(table, exists ? CTL_PLAIN : CTL_YELLOW, "%s", exists ? "" : "not created");
}

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

/* Formats "0=4 1=2-3": the guest CPUs of a cell and their host CPUs. Returns NULL if memory ran
 * out; the caller frees. */
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

/* Prints the table of the guest's NUMA cells, with the empty line before it. */
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

/* Returns the name of a provider of the claim; its uuid if the claim has no allocation there. */
static const char *provider_name(const json_t *claim, const char *uuid)
{
        const json_t *allocation =
                ctl_json_find(json_object_get(claim, "allocations"), "provider", uuid);

        return allocation ? ctl_json_text(allocation, "name") : uuid;
}

/* Adds one line of the table of groups. */
static void add_mapping_line(CtlTable *table, const char *suffix, const char *provider,
                             const char *device)
{
        ctl_table_line(table);
        ctl_table_cell(table, CTL_PLAIN, "%s", suffix);
        ctl_table_cell(table, CTL_PLAIN, "%s", provider);
        ctl_table_cell(table, CTL_PLAIN, "%s", device);
}

/* Adds a line for each device that the group has on the provider; "-" if it has none. An mdev is
 * shown by its uuid, and any other device by its name. */
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

/* Prints the provider and devices of each group with a suffix. */
static void print_mappings(const json_t *claim, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "GROUP", CTL_COLUMN_LEFT },
                { "PROVIDER", CTL_COLUMN_LEFT },
                { "DEVICE", CTL_COLUMN_LEFT },
        };
        json_t *mappings = json_object_get(claim, "mappings"), *providers, *provider;
        CtlTable *table = ctl_table_new(page, columns, ARRAY_SIZE(columns));
        const char *suffix;
        bool any = false;
        size_t i;

        json_object_foreach(mappings, suffix, providers)
                json_array_foreach(providers, i, provider) {
                        if (!suffix[0] || !json_is_string(provider))
                                continue;
                        add_mapping(table, claim, suffix, json_string_value(provider));
                        any = true;
                }
        if (any && table)
                fputc('\n', page->output);
        ctl_table_print(table);
}

static void print_allocations(const json_t *claim, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "PROVIDER", CTL_COLUMN_LEFT },
                { "RESOURCES", CTL_COLUMN_WRAP },
        };

        ctl_table_print_items(json_object_get(claim, "allocations"), columns, ARRAY_SIZE(columns),
                              add_allocation, page);
}

/* Prints one line for each text and time of a claim. Empty texts and times of 0 are left out. */
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

/* Prints the amounts in Placement that the domain of the guest does not show. */
static void print_beyond_domain(const json_t *claim, CtlPage *page)
{
        const json_t *amounts = json_object_get(claim, "beyond_domain"), *amount;
        const char *name, *separator = "";

        if (json_object_size(amounts) == 0)
                return;
        fputs("\nSet in Placement by another writer, not shown by the domain: ", page->output);
        json_object_foreach((json_t *)amounts, name, amount) {
                ctl_page_write(page, CTL_PLAIN, "%s%s=%" JSON_INTEGER_FORMAT, separator, name,
                               json_integer_value(amount));
                separator = ", ";
        }
        fputc('\n', page->output);
}

/* Prints the host CPUs of the claim to which no guest CPU is pinned, for example those of emulator
 * threads. */
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
                fprintf(page->output, "\nHost CPUs allocated to other threads: %s\n", text);
}

/* Prints the parts of a claim: its allocations, amounts that the domain does not show, groups,
 * cells, other host CPUs and devices. */
static void print_held(const json_t *claim, CtlPage *page)
{
        print_allocations(claim, page);
        print_beyond_domain(claim, page);
        print_mappings(claim, page);
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
        print_held(claim, page);
}

void ctl_claim_print(const json_t *document, CtlPage *page)
{
        uint64_t id = ctl_json_u64(document, "id");

        fputs("Claim ", page->output);
        ctl_page_write(page, CTL_BOLD, "%" PRIu64, id);
        fputc('\n', page->output);
        print_held(document, page);
        if (page->style.legend && ctl_json_text(document, "guest")[0])
                fputs("\nThe claim is kept while its guest is on this host.\n", page->output);
        else if (page->style.legend)
                fprintf(page->output,
                        "\nAfter the guest started, confirm the claim: computectl confirm %" PRIu64
                        "\nAfter the guest ended, release the claim: computectl release %" PRIu64
                        "\n",
                        id, id);
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

/* Adds a line for the answer of one provider to one part of a request (FitVerdict). */
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
                { "MISSING", CTL_COLUMN_RIGHT }, { "REASON", CTL_COLUMN_WRAP },
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

/* Writes "host1: VCPU=2, MEMORY_MB=512; gpu: VGPU=1". Amounts of the same provider are adjacent in
 * the event. */
static void write_allocations(const json_t *allocations, FILE *stream)
{
        const char *last = "";
        const json_t *item;
        size_t i;

        json_array_foreach((json_t *)allocations, i, item) {
                const char *name = ctl_json_text(item, "name");

                if (i > 0)
                        fputs(strcmp(name, last) == 0 ? ", " : "; ", stream);
                if (i == 0 || strcmp(name, last) != 0)
                        fprintf(stream, "%s: ", name);
                fprintf(stream, "%s=%" PRIu64, ctl_json_text(item, "class"),
                        ctl_json_u64(item, "amount"));
                last = name;
        }
}

/* Returns the most exact name of a device of an event: the uuid of the mdev, else the PCI address,
 * else libvirt's name. */
static const char *device_name(const json_t *device)
{
        static const char *const keys[] = { "mdev", "address", "device" };

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (ctl_json_text(device, keys[i])[0])
                        return ctl_json_text(device, keys[i]);
        return "";
}

/* Writes the allocations and devices of an event: "host1: VCPU=2, MEMORY_MB=512; gpu: VGPU=1;
 * 0000:41:00.0". */
static void write_held(const json_t *event, FILE *stream)
{
        const json_t *allocations = json_object_get(event, "allocations"),
                     *devices = json_object_get(event, "devices"), *device;
        size_t i;

        write_allocations(allocations, stream);
        json_array_foreach((json_t *)devices, i, device)
                fprintf(stream, "%s%s", i > 0 || json_array_size(allocations) > 0 ? "; " : "",
                        device_name(device));
}

/* Adds a line for an event. A roomy page shows the local time, and a narrow one the age. The
 * consumer replaces a missing name of the guest. */
static void add_event(CtlTable *table, const json_t *event, const CtlStyle *style)
{
        const char *author = ctl_json_text(event, "author"), *guest = ctl_json_text(event, "guest"),
                   *consumer = ctl_json_text(event, "consumer");
        uint64_t usec = ctl_json_u64(event, "usec");
        char text[CTL_TEXT_MAX];

        ctl_table_cell(table, CTL_PLAIN, "%s",
                       is_roomy(style) ? ctl_text_time(text, usec)
                                       : ctl_text_relative(text, usec, style->now_usec));
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(event, "event"));
        ctl_table_number(table, ctl_json_u64(event, "claim"));
        if (guest[0] || !consumer[0])
                ctl_table_text(table, guest);
        else
                add_uuid(table, consumer, style);
        ctl_table_take(table, ctl_json_format(event, write_held), "-");
        ctl_table_cell(table, CTL_PLAIN, "%s", author[0] ? author : "the agent");
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(event, "reason"));
}

void ctl_events_print(const json_t *document, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "TIME", CTL_COLUMN_LEFT },      { "EVENT", CTL_COLUMN_LEFT },
                { "CLAIM", CTL_COLUMN_RIGHT },    { "GUEST", CTL_COLUMN_CUT },
                { "RESOURCES", CTL_COLUMN_WRAP }, { "AUTHOR", CTL_COLUMN_WRAP },
                { "REASON", CTL_COLUMN_WRAP },
        };
        const json_t *events = json_object_get(document, "events");

        if (json_array_size(events) == 0 && page->style.legend)
                fputs("No events found.\n", page->output);
        ctl_table_print_items(events, columns, ARRAY_SIZE(columns), add_event, page);
}
