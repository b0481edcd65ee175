/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/properties.h"

#include <errno.h>
#include <string.h>

#include "agent/cycle/verdict.h"
#include "agent/formats/format-names.h"
#include "agent/formats/interface.h"
#include "base/json.h"

/* What BUS_PROPERTIES takes its values from. Owns the texts that are not const. */
typedef struct Sources {
        const BusConfig *config;
        const TrackerStatus *status;
        const ReporterStatistics *statistics;
        const Snapshot *snapshot; /* may be NULL */
        size_t n_providers, n_claims;
        ClaimsOwed owed;
        const char *operation, *owed_error;
        Progress progress;
        char *withheld, *unread, *contest;
        Verdict verdict;
        char summary[VERDICT_SUMMARY_MAX], line[VERDICT_LINE_MAX];
} Sources;

static void sources_done(Sources *sources)
{
        free(sources->withheld);
        free(sources->unread);
        free(sources->contest);
}

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

static int sources_init(Sources *s, const BusFacts *facts)
{
        const BusConfig *config = &facts->config;
        const ProviderTree *tree = tracker_get_tree(config->tracker);
        const DeviceLedger *devices = tracker_get_devices(config->tracker);

        *s = (Sources){
                .config = config,
                .status = tracker_get_status(config->tracker),
                .statistics = tracker_get_statistics(config->tracker),
                .snapshot = tracker_get_snapshot(config->tracker),
                .n_providers = tree ? tree->n_providers : 0,
                .n_claims = claim_service_count(config->claims),
                .owed = facts->owed,
                .owed_error = claims_owed_sum(&facts->owed) > 0
                                      ? claim_queue_get_trouble(config->queue)
                                      : "",
                .operation = "",
                .progress = { .phase = "" },
                .withheld = devices ? device_ledger_describe_withheld(devices) : strdup(""),
                .contest = contest_describe(tracker_get_contest(config->tracker)),
        };
        s->unread = describe_unread(s->snapshot);
        if (facts->operations)
                s->operation = bus_operations_get(facts->operations, &s->progress);
        verdict_look(config->tracker, config->claims, config->cordon, &s->owed,
                     claim_queue_get_trouble(config->queue), &s->verdict);
        (void)verdict_summary(&s->verdict, s->summary, sizeof(s->summary));
        (void)verdict_line(&s->verdict, s->line, sizeof(s->line));
        return s->withheld && s->contest && s->unread ? 0 : -ENOMEM;
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

static int make_values(const BusFacts *facts, json_t **ret, json_t **ret_reasons)
{
        _cleanup_(sources_done) Sources sources;
        _cleanup_json_ json_t *values = json_object(), *reasons = NULL;
        const Sources *s = &sources;

        if (sources_init(&sources, facts) < 0)
                return -ENOMEM;
#define P(type, property, member, flags, value)                              \
        if (json_object_set_new(values, property, make_##type(value)) < 0) { \
                return -ENOMEM;                                              \
        }
        BUS_PROPERTIES(P)
#undef P
        reasons = make_reasons(&s->verdict);
        if (!reasons)
                return -ENOMEM;
        *ret_reasons = TAKE_PTR(reasons);
        *ret = TAKE_PTR(values);
        return 0;
}

/* In the order of the list. */
static const struct {
        const char *property, *member;
        char type[2];
} table[] = {
#define P(type, property, member, flags, value) { property, member, #type },
        BUS_PROPERTIES(P)
#undef P
};

_Static_assert(ARRAY_SIZE(table) <= 64, "BusFacts.changed has a bit for each");

static uint64_t find_changes(const json_t *before, const json_t *now)
{
        uint64_t changed = 0;

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (!json_equal(json_object_get(before, table[i].property),
                                json_object_get(now, table[i].property)))
                        changed |= UINT64_C(1) << i;
        return changed;
}

static int update(BusFacts *facts)
{
        uint64_t iteration = 0;
        json_t *values, *reasons;
        int r;

        (void)sd_event_get_iteration(facts->event, &iteration);
        if (facts->values && !facts->is_old && facts->iteration == iteration)
                return 0;
        if (facts->is_old)
                facts->owed = claim_queue_count_owed(facts->config.queue);
        r = make_values(facts, &values, &reasons);
        if (r < 0)
                return r;
        facts->changed |= find_changes(facts->values, values);
        json_decref(facts->values);
        json_decref(facts->reasons);
        facts->values = values;
        facts->reasons = reasons;
        facts->iteration = iteration;
        facts->is_old = false;
        return 0;
}

void bus_facts_note(BusFacts *facts)
{
        facts->is_old = true;
}

void bus_facts_done(BusFacts *facts)
{
        json_decref(facts->values);
        json_decref(facts->reasons);
        facts->values = facts->reasons = NULL;
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

/* One entry of a{sv}. */
static int append_changed(sd_bus_message *m, size_t i, const json_t *value)
{
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append(m, "s", table[i].property);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', table[i].type);
        if (r >= 0)
                r = append(m, table[i].type[0], value);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_all_changed(sd_bus_message *m, const BusFacts *facts)
{
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(table); i++)
                if (facts->changed & UINT64_C(1) << i)
                        r = append_changed(m, i, json_object_get(facts->values, table[i].property));
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_facts_signal(BusFacts *facts, sd_bus *bus)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = update(facts);

        if (r < 0 || facts->changed == 0)
                return r;
        r = sd_bus_message_new_signal(bus, &m, BUS_PATH, "org.freedesktop.DBus.Properties",
                                      "PropertiesChanged");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", BUS_INTERFACE);
        if (r >= 0)
                r = append_all_changed(m, facts);
        if (r >= 0)
                r = sd_bus_message_append(m, "as", 0);
        if (r >= 0)
                r = sd_bus_send(bus, m, NULL);
        if (r < 0)
                return r;
        facts->changed = 0;
        return 0;
}

int bus_facts_describe(BusFacts *facts, json_t **ret)
{
        _cleanup_json_ json_t *document = json_pack("{ss}", "format", STATUS_FORMAT);
        int r = update(facts);

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(table); i++)
                if (table[i].member &&
                    json_object_set(document, table[i].member,
                                    json_object_get(facts->values, table[i].property)) < 0)
                        return -ENOMEM;
        if (r >= 0 && json_object_set(document, "reasons", facts->reasons) < 0)
                return -ENOMEM;
        if (r >= 0)
                *ret = TAKE_PTR(document);
        return r;
}
