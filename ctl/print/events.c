/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/events.h"

#include <inttypes.h>
#include <string.h>

#include "base/uuid.h"
#include "ctl/print/table.h"
#include "ctl/print/text.h"

static bool has(const json_t *array, const char *const keys[], const char *what)
{
        const json_t *item;
        size_t i;

        json_array_foreach((json_t *)array, i, item)
                for (const char *const *key = keys; *key; key++)
                        if (strcmp(ctl_json_text(item, *key), what) == 0)
                                return true;
        return false;
}

static bool is_of(const json_t *event, const char *what, bool is_uuid)
{
        static const char *const of_event[] = { "consumer", "of", "guest" },
                                 *const of_device[] = { "device", "address", "mdev", NULL },
                                 *const of_allocation[] = { "name", NULL };
        char claim[24];

        snprintf(claim, sizeof(claim), "%" PRIu64, ctl_json_u64(event, "claim"));
        if (!what[0] || strcmp(what, "0") == 0)
                return false;
        if (strcmp(claim, what) == 0)
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(of_event); i++)
                if (strcmp(ctl_json_text(event, of_event[i]), what) == 0)
                        return true;
        /* whose it was before it was handed over */
        if (is_uuid && strstr(ctl_json_text(event, "reason"), what))
                return true;
        return has(json_object_get(event, "devices"), of_device, what) ||
               has(json_object_get(event, "allocations"), of_allocation, what);
}

void ctl_events_find(json_t *document, const char *what)
{
        json_t *events = json_object_get(document, "events");
        Uuid uuid;
        bool is_uuid = uuid_from_text(what, &uuid) == 0;

        for (size_t i = json_array_size(events); i-- > 0;) {
                const json_t *event = json_array_get(events, i);

                /* a uuid may be the name of a guest */
                if (!is_of(event, what, false) && !(is_uuid && is_of(event, uuid.text, true)))
                        (void)json_array_remove(events, i);
        }
}

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

static const char *device_name(const json_t *device)
{
        static const char *const keys[] = { "mdev", "address", "device" };

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (ctl_json_text(device, keys[i])[0])
                        return ctl_json_text(device, keys[i]);
        return "";
}

/* "host1: VCPU=2, MEMORY_MB=512; gpu: VGPU=1; 0000:41:00.0" */
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

static void add_event(CtlTable *table, const json_t *event, const CtlStyle *style)
{
        const char *author = ctl_json_text(event, "author"), *guest = ctl_json_text(event, "guest"),
                   *consumer = ctl_json_text(event, "consumer");
        uint64_t usec = ctl_json_u64(event, "usec");
        char text[CTL_TEXT_MAX];

        ctl_table_cell(table, CTL_PLAIN, "%s",
                       ctl_style_is_roomy(style) ? ctl_text_time(text, usec)
                                                 : ctl_text_relative(text, usec, style->now_usec));
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(event, "event"));
        ctl_table_number(table, ctl_json_u64(event, "claim"));
        if (guest[0] || !consumer[0])
                ctl_table_text(table, guest);
        else
                ctl_table_uuid(table, consumer);
        ctl_table_take(table, ctl_json_format(event, write_held), "-");
        ctl_table_cell(table, CTL_PLAIN, "%s", author[0] ? author : "the agent itself");
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(event, "reason"));
}

void ctl_events_print(const json_t *document, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "WHEN", CTL_COLUMN_LEFT },   { "EVENT", CTL_COLUMN_LEFT },
                { "CLAIM", CTL_COLUMN_RIGHT }, { "WHOSE", CTL_COLUMN_CUT },
                { "WHAT", CTL_COLUMN_WRAP },   { "BY", CTL_COLUMN_WRAP },
                { "WHY", CTL_COLUMN_WRAP },
        };
        const json_t *events = json_object_get(document, "events");

        if (json_array_size(events) == 0 && page->style.legend)
                fputs("Nothing happened that is still known.\n", page->output);
        ctl_table_print_items(events, columns, ARRAY_SIZE(columns), add_event, page);
}
