/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The document "status" and the properties of the service. The document is made again at each read,
 * from the facts of the tracker and the verdict. Only the numbers of pending writes, or the error
 * of counting them, are kept until a change is noted, because counting reads the database. The
 * properties are compared with their last values at each read of one of them, and before each
 * signal. So a client that has read a changed value gets a signal, also if the value changes back.
 *
 * Tests: tests/integration/agent/test_bus_documents.py */

#include "agent/bus/status.h"

#include <errno.h>
#include <string.h>

#include "agent/cycle/partitions.h"
#include "agent/cycle/verdict.h"
#include "base/json.h"
#include "formats/format-names.h"
#include "formats/interface.h"

#define LIKE_CLASSES_MAX 64 /* further resource classes are not counted */

/* The document */

/* Lists the parts of the host that the last poll could not read, separated by "; ". The caller
 * frees. NULL: out of memory. */
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

static json_t *make_text(const char *text)
{
        return json_string(text ? text : "");
}

static json_t *make_number(uint64_t number)
{
        return json_from_u64(number);
}

static json_t *make_bool(bool value)
{
        return json_boolean(value);
}

/* Returns the reasons of the verdict as an array, the worst first. */
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

/* Returns the RESHAPE_ACCESS_… name. */
static const char *access_to_text(ReshaperAccess access)
{
        return access == RESHAPER_ALLOWED     ? RESHAPE_ACCESS_ALLOWED
               : access == RESHAPER_FORBIDDEN ? RESHAPE_ACCESS_REFUSED
                                              : RESHAPE_ACCESS_UNKNOWN;
}

/* The members: M(type, name, value as an expression in add_members()) */
/* clang-format off */
#define MEMBERS(M) \
        M(text, "version", PACKAGE_VERSION) \
        M(text, "node", f->snapshot ? f->snapshot->nodename : "") \
        M(text, "root", config->root.text) \
        M(text, "driver", f->driver) \
        M(text, "sync_state", sync_state_to_text(f->status->sync_state)) \
        M(number, "sync_since_usec", f->status->sync_since_usec) \
        M(text, "sync_error", f->status->sync_error.text) \
        M(number, "last_sync_usec", f->status->last_sync_usec) \
        M(number, "last_poll_usec", f->status->last_poll_usec) \
        M(text, "hypervisor_error", f->status->hypervisor_error.text) \
        M(number, "n_providers", f->tree ? f->tree->n_providers : 0) \
        M(number, "n_like_providers", count_like_providers(f->tree)) \
        M(number, "n_claims", f->n_claims) \
        M(number, "n_requests", f->statistics->n_requests) \
        M(number, "n_writes", f->statistics->n_writes) \
        M(number, "n_conflicts", f->statistics->n_conflicts) \
        M(text, "claim_error", f->claim_error->text) \
        M(text, "reshape_access", access_to_text(f->status->reshape_access)) \
        M(number, "n_pending_writes", f->pending_writes.n_writes) \
        M(number, "n_pending_removals", f->pending_writes.n_removals) \
        M(number, "n_pending_moves", f->pending_writes.n_moves) \
        M(text, "pending_writes_error", pending_writes_sum(&f->pending_writes) > 0 ? f->pending_writes_error : "") \
        M(text, "host_cordoned", f->cordons.host) \
        M(text, "devices_cordoned", f->cordons.devices) \
        M(text, "devices_unhealthy", f->cordons.by_rules) \
        M(text, "devices_reported", f->health.reported) \
        M(text, "health_error", f->health.error) \
        M(text, "devices_withheld", withheld) \
        M(text, "local_disk", f->status->local_disk) \
        M(text, "host_unread", unread) \
        M(text, "state", verdict_state_to_text(verdict->state)) \
        M(text, "summary", verdict->summary) \
        M(text, "status", verdict->line) \
        M(text, "hook", config->hook) \
        M(text, "nova", nova_mode_to_text(f->nova)) \
        M(bool, "tree_published", f->status->tree_published) \
        M(number, "n_differences", f->status->n_differences) \
        M(text, "second_reporter", overwrites)
/* clang-format on */

/* Returns the largest number of providers that have inventory of the same class, among the first
 * LIKE_CLASSES_MAX classes. Placement takes longer to generate allocation candidates with each such
 * provider. */
static uint64_t count_like_providers(const ProviderTree *tree)
{
        struct {
                const char *resource_class;
                uint64_t n;
        } counts[LIKE_CLASSES_MAX];
        uint64_t most = 0;
        size_t n = 0, j;

        for (size_t i = 0; tree && i < tree->n_providers; i++) {
                const Provider *provider = tree->providers[i];

                for (size_t k = 0; k < provider->n_inventories; k++) {
                        const char *name = provider->inventories[k].resource_class;

                        for (j = 0; j < n && strcmp(counts[j].resource_class, name) != 0; j++)
                                ;
                        if (j == LIKE_CLASSES_MAX)
                                continue;
                        if (j == n) {
                                counts[n].resource_class = name;
                                counts[n++].n = 0;
                        }
                        most = MAX(most, ++counts[j].n);
                }
        }
        return most;
}

/* Returns one sentence for each device that is being cleaned, or whose cleaning failed, and for
 * each partition of devices that is not ready for a guest. */
static json_t *list_unclean(const DeviceLedger *devices, const ClaimService *claims)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && devices && i < devices->n_devices; i++) {
                const LedgerDevice *device = &devices->devices[i];

                if (device->unclean[0] &&
                    json_array_append_new(
                            array, json_sprintf("%s is %s", device->name, device->unclean)) < 0)
                        return NULL;
        }
        return array && partitions_describe(claims, array) == 0 ? TAKE_PTR(array) : NULL;
}

static int add_members(json_t *document, const BusConfig *config, const CycleFacts *f,
                       const Verdict *verdict)
{
        _cleanup_free_ char *overwrites = overwrites_describe(f->overwrites);
        _cleanup_free_ char *unread = describe_unread(f->snapshot);
        _cleanup_free_ char *withheld =
                f->devices ? device_ledger_describe_withheld(f->devices) : strdup("");

        if (!withheld || !unread || !overwrites)
                return -ENOMEM;
#define M(type, member, value)                                               \
        if (json_object_set_new(document, member, make_##type(value)) < 0) { \
                return -ENOMEM;                                              \
        }
        MEMBERS(M)
#undef M
        if (json_object_set_new(document, "devices_unclean",
                                list_unclean(f->devices, config->claims)) < 0)
                return -ENOMEM;
        return json_object_set_new(document, "reasons", make_reasons(verdict)) < 0 ? -ENOMEM : 0;
}

/* Counts the pending writes only if they might have changed, because this reads the database. */
int bus_status_describe(BusFacts *facts, json_t **ret, sd_bus_error *error)
{
        _cleanup_json_ json_t *document = json_pack("{ss}", "format", STATUS_FORMAT);
        const BusConfig *config = &facts->config;
        Verdict verdict;
        CycleFacts f;
        int r;

        if (facts->is_old)
                facts->pending_writes_error =
                        claim_queue_count_pending_writes(config->queue, &facts->pending_writes);
        facts->is_old = false;
        cycle_facts_look(config->tracker, &facts->pending_writes, facts->pending_writes_error, &f);
        verdict_make(&f, &verdict);
        r = add_members(document, config, &f, &verdict);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(document);
        return 0;
}

/* The properties */

/* Name, first letter of the type, and flags of each property, in the order of the enum. */
static const struct {
        const char *name;
        char type;
        uint64_t flags;
} properties[] = {
#define P(type, property, flags) { #property, #type[0], flags },
        BUS_PROPERTIES(P)
#undef P
};

/* Sets a property to a static string. */
static void set_text(BusFacts *facts, size_t property, const char *text)
{
        const char *before = facts->values[property].text;

        facts->values[property].changed |= !before || strcmp(before, text) != 0;
        facts->values[property].text = text;
}

static void set_number(BusFacts *facts, size_t property, uint64_t number)
{
        facts->values[property].changed |= facts->values[property].number != number;
        facts->values[property].number = number;
}

/* Updates all properties from their sources, and marks those that differ as changed. */
static void update(BusFacts *facts)
{
        const TrackerView view = tracker_view(facts->config.tracker);
        Progress progress;

        set_number(facts, BUS_PROPERTY_InterfaceVersion, BUS_INTERFACE_VERSION);
        set_text(facts, BUS_PROPERTY_Version, PACKAGE_VERSION);
        set_text(facts, BUS_PROPERTY_Nova, nova_mode_to_text(view.nova));
        set_number(facts, BUS_PROPERTY_TreePublished, view.status->tree_published);
        set_text(facts, BUS_PROPERTY_Operation, bus_operations_get(facts->operations, &progress));
        set_text(facts, BUS_PROPERTY_OperationPhase, progress.phase);
        set_number(facts, BUS_PROPERTY_OperationDone, progress.n_done);
        set_number(facts, BUS_PROPERTY_OperationTotal, progress.n_total);
}

int bus_status_get_property(sd_bus *bus, const char *path, const char *interface,
                            const char *property, sd_bus_message *reply, void *userdata,
                            sd_bus_error *error)
{
        BusFacts *facts = userdata;
        size_t i = 0;
        int value;

        update(facts);
        while (i < ARRAY_SIZE(properties) && strcmp(properties[i].name, property) != 0)
                i++;
        if (i == ARRAY_SIZE(properties))
                return -ENOENT;
        if (properties[i].type == 's')
                return sd_bus_message_append(reply, "s", facts->values[i].text);
        if (properties[i].type == 't')
                return sd_bus_message_append(reply, "t", facts->values[i].number);
        value = (int)facts->values[i].number; /* "b" and "u" also have the size of an int */
        return sd_bus_message_append_basic(reply, properties[i].type, &value);
}

int bus_status_signal(BusFacts *facts, sd_bus *bus)
{
        char *names[ARRAY_SIZE(properties) + 1];
        size_t n = 0;
        int r = 0;

        update(facts);
        for (size_t i = 0; i < ARRAY_SIZE(properties); i++)
                if (facts->values[i].changed && properties[i].flags == CHANGES)
                        names[n++] = (char *)properties[i].name;
        names[n] = NULL;
        if (n > 0)
                r = sd_bus_emit_properties_changed_strv(bus, BUS_PATH, BUS_INTERFACE, names);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(properties); i++)
                facts->values[i].changed = false;
        return r;
}
