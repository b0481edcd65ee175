/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/status.h"

#include <errno.h>
#include <string.h>

#include "agent/cycle/verdict.h"
#include "base/json.h"
#include "formats/format-names.h"
#include "formats/interface.h"

static char *describe_unread(const Snapshot *snapshot)
{
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return NULL;
        for (size_t i = 0; snapshot && i < snapshot->problems.n_items; i++)
                fprintf(file, "%s%s", i > 0 ? "; " : "", snapshot->problems.items[i]);
        if (fclose(file) == 0)
                return text;
        free(text);
        return NULL;
}

static json_t *make_s(const char *text)
{
        return json_string(text ? text : "");
}

static json_t *make_t(uint64_t number)
{
        return json_integer((json_int_t)MIN(number, (uint64_t)INT64_MAX));
}

static json_t *make_u(uint64_t number)
{
        return json_integer((json_int_t)MIN(number, (uint64_t)UINT32_MAX));
}

static json_t *make_b(bool value)
{
        return json_boolean(value);
}

static json_t *make_reasons(const Verdict *verdict)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < verdict->n_reasons; i++) {
                const VerdictReason *reason = &verdict->reasons[i];

                if (json_array_append_new(
                            array, json_pack("{ss ss ss ss ss ss}", "check", reason->check, "state",
                                             verdict_state_to_text(reason->state), "summary",
                                             reason->summary, "text", reason->text, "command",
                                             reason->command, "advice", reason->advice)) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static int make_values(const BusFacts *facts, json_t **ret)
{
        _cleanup_free_ char *withheld = NULL, *unread = NULL, *contest = NULL;
        _cleanup_json_ json_t *values = json_object();
        const BusConfig *config = &facts->config;
        char text[VERDICT_LINE_MAX];
        const char *operation;
        Progress progress;
        Verdict verdict;
        CycleFacts f;

        cycle_facts_look(config->tracker, &facts->owed, facts->owed_trouble, &f);
        verdict_make(&f, &verdict);
        operation = bus_operations_get(facts->operations, &progress);
        withheld = f.devices ? device_ledger_describe_withheld(f.devices) : strdup("");
        unread = describe_unread(f.snapshot);
        contest = contest_describe(f.contest);
        if (!withheld || !unread || !contest)
                return -ENOMEM;
#define P(type, property, member, flags, value)                              \
        if (json_object_set_new(values, property, make_##type(value)) < 0) { \
                return -ENOMEM;                                              \
        }
        BUS_PROPERTIES(P)
#undef P
        if (json_object_set_new(values, "reasons", make_reasons(&verdict)) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(values);
        return 0;
}

/* In the order of the list. */
static const struct {
        const char *property, *member;
        char type[2];
        uint64_t flags;
} table[] = {
#define P(type, property, member, flags, value) { property, member, #type, flags },
        BUS_PROPERTIES(P)
#undef P
};

_Static_assert(ARRAY_SIZE(table) <= 64, "BusFacts.changed has a bit for each");

static uint64_t find_changes(const json_t *before, const json_t *now)
{
        uint64_t changed = 0;

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].flags == CHANGES &&
                    !json_equal(json_object_get(before, table[i].property),
                                json_object_get(now, table[i].property)))
                        changed |= UINT64_C(1) << i;
        return changed;
}

static int update(BusFacts *facts)
{
        uint64_t iteration = 0;
        json_t *values;
        int r;

        (void)sd_event_get_iteration(facts->event, &iteration);
        if (facts->values && !facts->is_old && facts->iteration == iteration)
                return 0;
        if (facts->is_old)
                facts->owed_trouble = claim_queue_count_owed(facts->config.queue, &facts->owed);
        r = make_values(facts, &values);
        if (r < 0)
                return r;
        facts->changed |= find_changes(facts->values, values);
        json_decref(facts->values);
        facts->values = values;
        facts->iteration = iteration;
        facts->is_old = false;
        return 0;
}

void bus_facts_done(BusFacts *facts)
{
        json_decref(facts->values);
        facts->values = NULL;
}

static int append(sd_bus_message *m, char type, const json_t *value)
{
        if (type == 's')
                return sd_bus_message_append(m, "s", json_string_value(value));
        if (type == 'b')
                return sd_bus_message_append(m, "b", json_is_true(value));
        if (type == 'u')
                return sd_bus_message_append(m, "u", (uint32_t)json_integer_value(value));
        return sd_bus_message_append(m, "t", (uint64_t)json_integer_value(value));
}

int bus_get_property(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        BusFacts *facts = userdata;
        const json_t *value;
        int r = update(facts);

        if (r < 0)
                return r;
        value = json_object_get(facts->values, property);
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (strcmp(table[i].property, property) == 0)
                        return append(reply, table[i].type[0], value);
        return -ENOENT;
}

int bus_facts_signal(BusFacts *facts, sd_bus *bus)
{
        char *names[ARRAY_SIZE(table) + 1];
        size_t n = 0;
        int r = update(facts);

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(table); i++)
                if (facts->changed & UINT64_C(1) << i)
                        names[n++] = (char *)table[i].property;
        names[n] = NULL;
        if (n > 0)
                r = sd_bus_emit_properties_changed_strv(bus, BUS_PATH, BUS_INTERFACE, names);
        if (r >= 0)
                facts->changed = 0;
        return r;
}

int bus_facts_describe(BusFacts *facts, json_t **ret, sd_bus_error *error)
{
        _cleanup_json_ json_t *document = json_pack("{ss}", "format", STATUS_FORMAT);
        int r = update(facts);

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(table); i++)
                if (table[i].member &&
                    json_object_set(document, table[i].member,
                                    json_object_get(facts->values, table[i].property)) < 0)
                        return -ENOMEM;
        if (r >= 0 &&
            json_object_set(document, "reasons", json_object_get(facts->values, "reasons")) < 0)
                return -ENOMEM;
        if (r >= 0)
                *ret = TAKE_PTR(document);
        return r;
}
