/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/claims.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/cpu-set.h"
#include "base/text.h"
#include "base/uuid.h"
#include "ctl/print/devices.h"
#include "ctl/print/json.h"
#include "ctl/print/table.h"
#include "ctl/print/text.h"

#define COLUMNS_MAX 9

/* What is shown of each claim. */
typedef struct View {
        bool history; /* how it ended, not when it expires */
        bool roomy;   /* whole consumers, and when it was made */
        bool guests;  /* some have a name */
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
                   *consumer = ctl_json_text(claim, "consumer"),
                   *guest = ctl_json_text(claim, "guest");
        bool resize_target = json_is_true(json_object_get(claim, "resize_target"));

        ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, ctl_json_u64(claim, "id"));
        if (view->guests && (view->roomy || guest[0]))
                ctl_table_text(table, guest);
        if (view->roomy || !view->guests || !guest[0])
                ctl_table_uuid(table, consumer);
        ctl_table_cell(table, state_colour(state), "%s%s", state, resize_target ? ", resize" : "");
        if (view->roomy)
                add_time_cell(table, ctl_json_u64(claim, "created_usec"), style);
        add_time_cell(table, ctl_json_u64(claim, view->history ? "ended_usec" : "expires_usec"),
                      style);
}

/* One line per provider; what the claim itself has stands in the first. */
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
                ctl_allocation_cells(table, json_array_get(allocations, i), style);
                if (view->history && i == 0)
                        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(claim, "end_reason"));
        }
}

/* A line with the claims of which Placement has more than their domains show; nothing if none. */
static void print_beyond_domains(const json_t *claims, CtlPage *page)
{
        const json_t *claim, *amount;
        const char *name;
        bool any = false;
        size_t i;

        json_array_foreach((json_t *)claims, i, claim)
                json_object_foreach(json_object_get(claim, "beyond_domain"), name, amount) {
                        fprintf(page->output, "%sclaim %" PRIu64 " %s=%" JSON_INTEGER_FORMAT,
                                any ? ", "
                                    : "Set in Placement by another writer, not shown by the domain: ",
                                ctl_json_u64(claim, "id"), name, json_integer_value(amount));
                        any = true;
                }
        if (any)
                fputs(".\n", page->output);
}

void ctl_claims_print(const json_t *document, bool history, CtlPage *page)
{
        const json_t *claims = json_object_get(document, "claims"), *claim;
        View view = { history, ctl_style_is_roomy(&page->style),
                      have_names(claims) || page->columns };
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

/* A device or provider of that name. */
static bool has_name(const json_t *claim, const char *name)
{
        const json_t *devices = json_object_get(claim, "devices"),
                     *allocations = json_object_get(claim, "allocations");

        return ctl_json_find(devices, "device", name) || ctl_json_find(devices, "mdev", name) ||
               ctl_json_find(allocations, "name", name) ||
               ctl_json_find(allocations, "provider", name);
}

void ctl_claims_keep(json_t *document, const char *name)
{
        json_t *claims = json_object_get(document, "claims");

        for (size_t i = json_array_size(claims); i-- > 0;)
                if (!has_name(json_array_get(claims, i), name))
                        (void)json_array_remove(claims, i);
}

/* "cpu:5", "cell:1". False when it is something else. */
static bool parse_place(const char *what, bool *ret_cpu, unsigned *ret)
{
        const char *colon = strchr(what, ':');

        *ret_cpu = strncmp(what, "cpu:", 4) == 0;
        if ((!*ret_cpu && strncmp(what, "cell:", 5) != 0) || !colon[1] || strlen(colon + 1) > 9 ||
            strspn(colon + 1, "0123456789") != strlen(colon + 1))
                return false;
        *ret = (unsigned)strtoul(colon + 1, NULL, 10);
        return true;
}

static bool has_cpu(const char *list, unsigned cpu)
{
        _cleanup_(cpu_set_done) CpuSet set = CPU_SET_INIT;

        return cpu_set_parse(list, &set, NULL) == 0 && cpu_set_contains(&set, cpu);
}

static bool is_there(const json_t *claim, bool cpu, unsigned number)
{
        const json_t *item;
        size_t i;

        if (cpu && has_cpu(ctl_json_text(claim, "held"), number))
                return true;
        json_array_foreach(json_object_get(claim, cpu ? "cpus" : "cells"), i, item)
                if (cpu ? has_cpu(ctl_json_text(item, "cpus"), number)
                        : ctl_json_u64(item, "host_cell") == number)
                        return true;
        return false;
}

void ctl_claims_find(json_t *document, const char *what)
{
        json_t *claims = json_object_get(document, "claims");
        const char *name = what;
        unsigned number;
        bool cpu, is_place = parse_place(what, &cpu, &number);
        Uuid uuid;

        if (uuid_from_text(what, &uuid) == 0)
                what = uuid.text;
        for (size_t i = json_array_size(claims); i-- > 0;) {
                const json_t *claim = json_array_get(claims, i),
                             *devices = json_object_get(claim, "devices");

                if (is_place ? !is_there(claim, cpu, number)
                             : strcmp(ctl_json_text(claim, "consumer"), what) != 0 &&
                                       strcmp(ctl_json_text(claim, "guest"), name) != 0 &&
                                       !has_name(claim, what) &&
                                       !ctl_json_find(devices, "address", what))
                        (void)json_array_remove(claims, i);
        }
}

static bool has_place(const json_t *host, bool cpu, unsigned number)
{
        const json_t *cell, *item;
        size_t i, j;

        json_array_foreach(json_object_get(host, "cells"), i, cell)
                if (!cpu && ctl_json_u64(cell, "id") == number)
                        return true;
                else
                        json_array_foreach(json_object_get(cell, "cpus"), j, item)
                                if (cpu && ctl_json_u64(item, "id") == number)
                                        return true;
        return false;
}

const json_t *ctl_host_find_device(const json_t *host, const char *what)
{
        const json_t *device;
        size_t i;

        json_array_foreach(json_object_get(host, "devices"), i, device)
                if (strcasecmp(ctl_json_text(device, "name"), what) == 0 ||
                    strcasecmp(ctl_json_text(device, "address"), what) == 0)
                        return device;
        return NULL;
}

bool ctl_host_has(const json_t *host, const char *what)
{
        unsigned number;
        bool cpu;
        Uuid uuid;

        if (parse_place(what, &cpu, &number))
                return has_place(host, cpu, number);
        return uuid_from_text(what, &uuid) == 0 || ctl_host_find_device(host, what) ||
               ctl_json_find(json_object_get(host, "domains"), "name", what);
}

const json_t *ctl_claims_get(const json_t *document, uint64_t id)
{
        const json_t *claim;
        size_t i;

        json_array_foreach(json_object_get(document, "claims"), i, claim)
                if (ctl_json_u64(claim, "id") == id)
                        return claim;
        return NULL;
}

void ctl_claim_print(const json_t *document, CtlPage *page)
{
        uint64_t id = ctl_json_u64(document, "id");

        fputs("Claim ", page->output);
        ctl_page_write(page, CTL_BOLD, "%" PRIu64, id);
        fputc('\n', page->output);
        ctl_held_print(document, page);
        if (page->style.legend && ctl_json_text(document, "guest")[0])
                fputs("\nIts guest is here: it is kept as long as that is.\n", page->output);
        else if (page->style.legend)
                fprintf(page->output,
                        "\nWhen the guest runs, keep it: computectl confirm %" PRIu64
                        "\nWhen it is gone, give it back: computectl release %" PRIu64 "\n",
                        id, id);
}

/* Guests that have a device without a claim that names it. */

static bool lists(const json_t *array, const char *what)
{
        const json_t *item;
        size_t i;

        json_array_foreach(array, i, item)
                if (strcasecmp(json_string_value(item) ? json_string_value(item) : "", what) == 0)
                        return true;
        return false;
}

static bool has_by(const json_t *domain, const char *mdevs, const char *addresses, const char *what)
{
        return lists(json_object_get(domain, mdevs), what) ||
               lists(json_object_get(domain, addresses), what);
}

static bool is_listed(const json_t *document, const char *consumer)
{
        const json_t *claims = json_object_get(document, "claims");

        return ctl_json_find(claims, "consumer", consumer);
}

static json_t *make_guest(const json_t *domain, bool live)
{
        return json_pack("{ss ss sb}", "uuid", ctl_json_text(domain, "uuid"), "name",
                         ctl_json_text(domain, "name"), "next_start", !live);
}

int ctl_claims_add_guests(json_t *document, const json_t *host, const char *what)
{
        const json_t *device = ctl_host_find_device(host, what), *domain;
        const char *address = device ? ctl_json_text(device, "address") : "";
        json_t *guests = json_array();
        size_t i;

        if (json_object_set_new(document, "guests", guests) < 0)
                return -ENOMEM;
        if (address[0])
                what = address;
        json_array_foreach(json_object_get(host, "domains"), i, domain) {
                bool live = has_by(domain, "mdevs", "pci_addresses", what);

                if (!live && !has_by(domain, "config_mdevs", "config_pci_addresses", what))
                        continue;
                if (!is_listed(document, ctl_json_text(domain, "uuid")) &&
                    json_array_append_new(guests, make_guest(domain, live)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

void ctl_claims_print_guests(const json_t *document, CtlPage *page)
{
        const json_t *guest;
        size_t i;

        json_array_foreach(json_object_get(document, "guests"), i, guest)
                fprintf(page->output, "Guest %s %s; its claim does not name it.\n",
                        ctl_json_text(guest, "name"),
                        json_is_true(json_object_get(guest, "next_start"))
                                ? "needs it for its next start"
                                : "has it");
}
