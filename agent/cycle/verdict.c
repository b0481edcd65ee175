/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes the verdict from the facts of a cycle. Each kind of reason is a row of a table with
 * severity, words, command and advice. The enum and the table have the order of severity. The
 * functions of verdict_make() must add reasons in that order, because callers take the first reason
 * for the worst one. The verdict has the worst state of all reasons. A kind is added at most once.
 * If several cases have one kind, its text lists or counts them, or has the first case and the
 * number of the others. All functions are pure. If memory is short, a reason whose text is a list
 * can be left out.
 *
 * Some reasons hide others. KIND_STALE hides KIND_UNREPORTED, because its text often has the same
 * fact. A device that is not reported hides parts of the host that could not be read. A host that
 * was not polled hides settling devices, and both hide a change that is not published yet. The
 * retirement of the host hides its cordon. Pending writes are a reason only in the states of
 * count_pending_writes(). */

#include "agent/cycle/verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "drivers/driver-words.h"
#include "formats/interface.h"

/* Size of " (and N more)", in bytes. */
#define MORE_MAX 40

/* The kinds of reasons, the worst first. */
typedef enum Kind {
        KIND_CLAIMS_DOWN,
        KIND_HYPERVISOR,
        KIND_OVER_CAPACITY,
        KIND_DEVICE_LOST,
        KIND_OFFLINE,
        KIND_STALE,
        KIND_UNREPORTED,
        KIND_SECOND_REPORTER,
        KIND_PENDING_WRITES_REFUSED,
        KIND_DIFFERS,
        KIND_UNALLOCATED,
        KIND_CONFIG,
        KIND_DISAGREE,
        KIND_FINDINGS,
        KIND_FLOATING,
        KIND_RETIRED,
        KIND_HOST_CORDONED,
        KIND_DEVICE_UNHEALTHY,
        KIND_WITHHELD,
        KIND_RETAINED,
        KIND_DEVICE_CORDONED,
        KIND_DEVICE_REPORTED,
        KIND_HEALTH_FAILED,
        KIND_NOT_POLLED,
        KIND_SETTLING,
        KIND_PENDING,
        KIND_PENDING_WRITES,
        KIND_UNCLEAN,
        _KIND_MAX,
} Kind;

/* The words of each kind. command and advice of KIND_HYPERVISOR depend on the driver. */
static const struct {
        VerdictState state;
        const char *check, *summary, *command, *advice;
} kinds[] = {
        [KIND_CLAIMS_DOWN] = { VERDICT_DEGRADED, "service", "new claims are refused",
                               "journalctl -u compute-agent",
                               "Check that the file system of the claim database has free space, and that the user compute-agent can write there" },
        /* The rest is the driver's: drivers/driver-words.h. */
        [KIND_HYPERVISOR] = { .state = VERDICT_DEGRADED,
                              .check = "hypervisor",
                              .summary = "the host cannot be polled" },
        [KIND_OVER_CAPACITY] = { VERDICT_DEGRADED, "claims",
                                 "claims exceed the capacity of the host", "computectl tree",
                                 "\"computectl claims\" lists the claims. Move a guest away, or raise the ratio in Placement" },
        [KIND_DEVICE_LOST] = { VERDICT_DEGRADED, "devices", "a claimed device is missing",
                               "computectl discover",
                               "Check that its driver is loaded and that lspci lists the card. \"computectl drain\" with the name of the device lists its guests" },
        [KIND_OFFLINE] = { VERDICT_DEGRADED, "placement", "Placement cannot be used",
                           "computectl doctor",
                           "Check the address, user, password and certificates in [placement], the role of the user (service), and the network. Then run \"computectl sync\"" },
        [KIND_STALE] = { VERDICT_DEGRADED, "placement", "Placement is not equal to this host",
                         "computectl plan",
                         "\"computectl plan\" shows the remaining requests, and \"journalctl -x -u compute-agent\" the answers of Placement" },
        [KIND_UNREPORTED] = { VERDICT_DEGRADED, "host", "not all of this host is reported",
                              "computectl discover",
                              "Everything else is reported. \"computectl doctor --hardware-only\" compares the configuration with the hardware" },
        [KIND_SECOND_REPORTER] = { VERDICT_DEGRADED, "second reporter",
                                   "another writer changes this host's tree in Placement",
                                   "computectl doctor",
                                   "If nova-compute also reports this host, name the owner of the tree in [agent] nova, and give both the same options. Add traits of other writers to [agent] foreign_traits. Two agents with the same compute_id cause this too" },
        [KIND_PENDING_WRITES_REFUSED] = { VERDICT_DEGRADED, "placement",
                                          "not all claims are reported to Placement yet",
                                          "computectl audit",
                                          "The agent retries in each cycle. \"computectl audit\" compares claims and Placement" },
        [KIND_DIFFERS] = { VERDICT_WARNING, "placement", "with differences from this agent",
                           "computectl plan",
                           "\"computectl plan\" lists the differences. Options that differ from nova-compute's are the usual reason" },
        [KIND_UNALLOCATED] = { VERDICT_WARNING, "claims", "some guests have no allocations",
                               "computectl audit",
                               "No scheduler placed these guests, so schedulers count their resources as free. \"computectl audit\" lists them. With [hook] enabled, guests that virsh starts are reported" },
        [KIND_CONFIG] = { VERDICT_WARNING, "configuration", "the configuration has warnings",
                          "computectl doctor --config-only",
                          "Correct the option, then run \"systemctl reload compute-agent\". \"computectl doctor --config-only\" lists all warnings" },
        [KIND_DISAGREE] = { VERDICT_WARNING, "guests", "claims and guests disagree",
                            "computectl claims --problems",
                            "\"computectl claims --problems\" lists them" },
        [KIND_FINDINGS] = { VERDICT_WARNING, "audit",
                            "the last audit found problems that are not healed yet",
                            "computectl audit",
                            "\"computectl audit\" compares again, and \"computectl heal --dry-run\" shows the repairs" },
        [KIND_FLOATING] = { VERDICT_WARNING, "guests",
                            "an unpinned guest can run on dedicated CPUs",
                            "computectl doctor --hardware-only",
                            "Restart the guest, so that it runs on the shared CPUs, or move it to another host. \"computectl doctor --hardware-only\" lists all such guests" },
        [KIND_RETIRED] = { VERDICT_WARNING, "placement",
                           "this is expected, because the host is retired", "computectl history",
                           "To report it to Placement again, run \"computectl retire --undo\"" },
        [KIND_HOST_CORDONED] = { VERDICT_WARNING, "service", "the host is cordoned",
                                 "computectl drain",
                                 "To offer it again, run \"computectl uncordon\"" },
        [KIND_DEVICE_UNHEALTHY] = { VERDICT_WARNING, "devices", "a health rule withholds a device",
                                    "journalctl -x -u compute-agent",
                                    "Repair or replace the device, then run \"computectl uncordon\" with its name. If the rule is wrong for this host, override its file in /etc/compute-agent/health.d" },
        [KIND_WITHHELD] = { VERDICT_WARNING, "devices", "a device is withheld",
                            "computectl discover",
                            "Check that its driver is loaded, and that lspci and \"computectl discover\" list the card. A device that is back stays withheld for [agent] device_hold_sec" },
        [KIND_RETAINED] = { VERDICT_WARNING, "placement",
                            "guests use an inventory that the host no longer has",
                            "computectl audit",
                            "Move or remove the guests that use it, or restore it on the host (hardware, enabled_mdev_types, device_spec, provider.yaml)" },
        [KIND_DEVICE_CORDONED] = { VERDICT_WARNING, "devices", "a device is cordoned",
                                   "computectl tree",
                                   "To offer it again, run \"computectl uncordon\" with the name of the device" },
        [KIND_DEVICE_REPORTED] = { VERDICT_WARNING, "devices", "a health rule reports a device",
                                   "journalctl -x -u compute-agent",
                                   "The rule does not withhold the device. To withhold it, run \"computectl cordon\" with its name" },
        [KIND_HEALTH_FAILED] = { VERDICT_WARNING, "health",
                                 "the health of devices is not watched completely",
                                 "journalctl -u compute-agent",
                                 "Check that the unit has SupplementaryGroups=systemd-journal, and that \"journalctl -k\" shows lines of the kernel" },
        [KIND_NOT_POLLED] = { VERDICT_PENDING, "hypervisor", "the host was not polled yet",
                              "journalctl -u compute-agent", "Wait, or run \"computectl sync\"" },
        [KIND_SETTLING] = { VERDICT_PENDING, "devices", "not published yet: a device is missing",
                            "computectl discover",
                            "Wait, or check that the driver of the device is loaded and that lspci lists the card. After [agent] device_settle_sec the host is published with that device withheld" },
        [KIND_PENDING] = { VERDICT_PENDING, "placement", "a change is not published yet",
                           "computectl plan", "Wait, or run \"computectl sync\"" },
        [KIND_PENDING_WRITES] = { VERDICT_PENDING, "placement",
                                  "not all claims are reported to Placement yet",
                                  "computectl audit",
                                  "The agent retries in each cycle. \"computectl audit\" compares claims and Placement" },
        [KIND_UNCLEAN] = { VERDICT_OK, "devices", "a device is not clean",
                           "journalctl -u compute-agent-clean",
                           "Wait, or end the reason that is given. A device whose cleaning failed is cordoned too: repair it, and lift the cordon. The agent then cleans it again" },
};

_Static_assert(ARRAY_SIZE(kinds) == _KIND_MAX && _KIND_MAX <= VERDICT_REASONS_MAX,
               "VERDICT_REASONS_MAX is too small");

const char *verdict_state_to_text(VerdictState state)
{
        static const char *const names[] = {
                [VERDICT_OK] = STATE_OK,
                [VERDICT_PENDING] = STATE_PENDING,
                [VERDICT_WARNING] = STATE_WARNING,
                [VERDICT_DEGRADED] = STATE_DEGRADED,
        };

        return names[state];
}

/* Adds a reason with this text. Each kind can be added once. */
static void add(Verdict *verdict, Kind kind, const char *format, ...) _printf_(3, 4);
static void add(Verdict *verdict, Kind kind, const char *format, ...)
{
        VerdictReason *reason = &verdict->reasons[verdict->n_reasons++];
        va_list ap;

        reason->check = kinds[kind].check;
        reason->state = kinds[kind].state;
        reason->summary = kinds[kind].summary;
        reason->command = kinds[kind].command;
        reason->advice = kinds[kind].advice;
        va_start(ap, format);
        vsnprintf(reason->text, sizeof(reason->text), format, ap);
        va_end(ap);
        text_sanitize(reason->text, '?'); /* a limit can cut a character of a name */
        verdict->state = MAX(verdict->state, reason->state);
}

/* Writes the number of further items: " (and 2 more)" if n is 3, and "" if n is at most 1. text has
 * MORE_MAX bytes. */
static const char *format_more(char *text, size_t n)
{
        text[0] = '\0';
        if (n > 1)
                snprintf(text, MORE_MAX, " (and %zu more)", n - 1);
        return text;
}

/* Claims and devices */

/* Returns true if claims exceed the capacity. A withheld or cordoned device is reserved completely,
 * so its claims do not count as too many. */
static bool is_over(const InventoryRecord *record, const HostProvider *row)
{
        return record->inventory.reserved < record->inventory.total &&
               resources_get(&row->used, record->resource_class) >
                       inventory_capacity(&record->inventory);
}

/* Adds a reason if claims exceed the capacity of an inventory. Providers that are withheld do not
 * count. */
static void inspect_amounts(const CycleFacts *facts, Verdict *verdict)
{
        const HostView *view = facts->view;
        const InventoryRecord *first = NULL;
        size_t n = 0, at = 0;
        char more[MORE_MAX];

        for (size_t i = 0; view && i < view->n_providers; i++) {
                const Provider *provider = view->tree->providers[i];

                for (size_t j = 0; !view->providers[i].withheld && j < provider->n_inventories;
                     j++) {
                        if (!is_over(&provider->inventories[j], &view->providers[i]))
                                continue;
                        if (n++ > 0)
                                continue;
                        first = &provider->inventories[j];
                        at = i;
                }
        }
        if (!first)
                return;
        add(verdict, KIND_OVER_CAPACITY, "Claims use %" PRIu64 " of %" PRIu64 " %s of %.200s%s",
            resources_get(&view->providers[at].used, first->resource_class),
            inventory_capacity(&first->inventory), first->resource_class,
            view->tree->providers[at]->name, format_more(more, n));
}

/* Returns true if claims use a part of the device, or if consumers in Placement do. The consumers
 * are known only if the allocations from its provider were read (agent/tree/retained.h). */
static bool is_held(const CycleFacts *facts, const LedgerDevice *device)
{
        return host_view_usage(facts->view, &device->provider, device->resource_class) > 0 ||
               (facts->retained && retained_use(facts->retained, &device->provider,
                                                device->resource_class, NULL) == RETAINED_USE_HELD);
}

/* Adds a reason if missing devices are in use, with the use of the first one. */
static void inspect_lost_devices(const CycleFacts *facts, Verdict *verdict)
{
        char more[MORE_MAX], holders[RETAINED_HOLDERS_MAX] = "";
        const LedgerDevice *first = NULL;
        uint64_t used;
        size_t n = 0;

        for (size_t i = 0; facts->devices && i < facts->devices->n_devices; i++) {
                const LedgerDevice *device = &facts->devices->devices[i];

                if (device->missing && is_held(facts, device) && n++ == 0)
                        first = device;
        }
        if (!first)
                return;
        if (facts->retained)
                retained_describe_holders(facts->retained, facts->snapshot, &first->provider,
                                          first->resource_class, holders);
        used = host_view_usage(facts->view, &first->provider, first->resource_class);
        if (used == 0)
                add(verdict, KIND_DEVICE_LOST, "%.200s is missing. Placement has %s%s", first->name,
                    holders, format_more(more, n));
        else
                add(verdict, KIND_DEVICE_LOST,
                    "%.200s is missing, but claims have %" PRIu64 " %s of it%s%s%s", first->name,
                    used, first->resource_class, holders[0] ? ". Placement has " : "", holders,
                    format_more(more, n));
}

/* Adds a reason if devices are withheld. */
static void inspect_withheld(const CycleFacts *facts, Verdict *verdict)
{
        _cleanup_free_ char *text =
                facts->devices ? device_ledger_describe_withheld(facts->devices) : NULL;

        if (text && text[0])
                add(verdict, KIND_WITHHELD, "Not offered: %s", text);
}

/* Adds a reason if devices are being cleaned after their guests, wait for that, or were not
 * cleaned. This reason does not change the state of the verdict: Placement is equal to the host,
 * and a device whose cleaning failed is cordoned. */
static void inspect_unclean(const CycleFacts *facts, Verdict *verdict)
{
        _cleanup_free_ char *text =
                facts->devices ? device_ledger_describe_unclean(facts->devices) : NULL;

        if (text && text[0])
                add(verdict, KIND_UNCLEAN, "%s", text);
}

/* Adds a reason if consumers have allocations of inventories that the host no longer has. */
static void inspect_retained(const CycleFacts *facts, Verdict *verdict)
{
        _cleanup_free_ char *text =
                facts->retained ? retained_describe(facts->retained, facts->snapshot) : NULL;

        if (text && text[0])
                add(verdict, KIND_RETAINED,
                    "In use, but no longer on the host, so all of it is reserved: %s", text);
}

/* Placement */

/* Returns words for the state of Placement compared with the host. */
static const char *find_synced(const TrackerStatus *status)
{
        static const char *const words[] = {
                [SYNC_STANDALONE] = "standalone, nothing is published",
                [SYNC_PENDING] = "a change is not published yet",
                [SYNC_SYNCED] = "Placement is equal to this host",
                [SYNC_STALE] = "Placement is not equal to this host",
                [SYNC_OFFLINE] = "Placement cannot be used",
                [SYNC_LEFT_TO_NOVA] = "nova-compute reports this host to Placement",
                [SYNC_RETIRED] = "Placement has no provider of this host",
        };

        if (status->sync_state == SYNC_SYNCED && status->hypervisor_error.code)
                return "Placement is equal to the last known state of this host";
        return words[status->sync_state];
}

/* Adds a reason if another writer keeps overwriting values. */
static void inspect_others(const CycleFacts *facts, Verdict *verdict)
{
        _cleanup_free_ char *text = facts->overwrites && overwrites_count(facts->overwrites) > 0
                                            ? overwrites_describe(facts->overwrites)
                                            : NULL;

        if (text)
                add(verdict, KIND_SECOND_REPORTER,
                    "Another writer keeps overwriting these values, so the agent rewrites them at growing intervals: %s",
                    text);
}

/* Returns the number of pending writes, removals and moves that a reason can be about. Returns 0
 * unless the state is synced, left to nova or stale. In the other states nothing can be written, or
 * the state itself is the reason. */
static uint64_t count_pending_writes(const CycleFacts *facts)
{
        SyncState state = facts->status->sync_state;

        return state == SYNC_SYNCED || state == SYNC_LEFT_TO_NOVA || state == SYNC_STALE
                       ? pending_writes_sum(&facts->pending_writes)
                       : 0;
}

/* Adds the reasons that concern Placement, and the parts of the host that are not reported. */
static void inspect_placement(const CycleFacts *facts, Verdict *verdict)
{
        const TrackerStatus *status = facts->status;
        const char *trouble = facts->pending_writes_error ? facts->pending_writes_error : "";
        const Error *unreported =
                status->device_error.code ? &status->device_error : &status->part_error;

        if (status->sync_state == SYNC_OFFLINE)
                add(verdict, KIND_OFFLINE, "Placement cannot be used: %s", status->sync_error.text);
        if (status->sync_state == SYNC_STALE)
                add(verdict, KIND_STALE, "Placement is not equal to this host: %s",
                    status->sync_error.text);
        else if (unreported->code)
                add(verdict, KIND_UNREPORTED, "%s", unreported->text);
        inspect_others(facts, verdict);
        if (count_pending_writes(facts) > 0 && trouble[0])
                add(verdict, KIND_PENDING_WRITES_REFUSED,
                    "%" PRIu64 " claim%s not reported to Placement yet: %s",
                    count_pending_writes(facts), text_plural(count_pending_writes(facts)), trouble);
        if (status->sync_state == SYNC_LEFT_TO_NOVA && status->n_differences > 0)
                add(verdict, KIND_DIFFERS,
                    "%" PRIu64 " request%s would make the tree of nova-compute equal to this host",
                    status->n_differences, text_plural(status->n_differences));
        if (status->sync_state != SYNC_STANDALONE && facts->pending_writes.n_unallocated > 0)
                add(verdict, KIND_UNALLOCATED,
                    "Placement has no allocation of %" PRIu64 " of %zu claim%s",
                    facts->pending_writes.n_unallocated, facts->n_claims,
                    text_plural(facts->n_claims));
}

/* Work for the operator */

/* Adds a reason if the configuration has warnings, with the first one and the number of others. */
static void inspect_config(const CycleFacts *facts, Verdict *verdict)
{
        const StringSet *warnings = facts->config_warnings;
        char more[MORE_MAX];

        if (warnings && warnings->n_items > 0)
                add(verdict, KIND_CONFIG, "%s%s", warnings->items[0],
                    format_more(more, warnings->n_items));
}

/* Adds the other warnings, the reasons with VERDICT_PENDING, and the information about cleaned
 * devices. */
static void inspect_rest(const CycleFacts *facts, Verdict *verdict)
{
        const TrackerStatus *status = facts->status;

        inspect_config(facts, verdict);
        if (facts->n_disagreements > 0)
                add(verdict, KIND_DISAGREE, "Claims and guests disagree in %zu point%s",
                    facts->n_disagreements, text_plural(facts->n_disagreements));
        if (facts->audit && facts->audit->n_open > 0)
                add(verdict, KIND_FINDINGS, "%zu problem%s of the last audit not healed yet",
                    facts->audit->n_open, text_plural(facts->audit->n_open));
        if (status->floating.code)
                add(verdict, KIND_FLOATING, "%s", status->floating.text);
        if (facts->cordons.host)
                add(verdict, status->sync_state == SYNC_RETIRED ? KIND_RETIRED : KIND_HOST_CORDONED,
                    "%s: %s", status->sync_state == SYNC_RETIRED ? "Retired" : "Cordoned",
                    facts->cordons.host);
        if (facts->cordons.by_rules)
                add(verdict, KIND_DEVICE_UNHEALTHY, "Withheld: %s", facts->cordons.by_rules);
        inspect_withheld(facts, verdict);
        inspect_retained(facts, verdict);
        if (facts->cordons.by_persons)
                add(verdict, KIND_DEVICE_CORDONED, "Cordoned: %s", facts->cordons.by_persons);
        if (facts->health.reported)
                add(verdict, KIND_DEVICE_REPORTED, "Reported: %s", facts->health.reported);
        if (facts->health.error)
                add(verdict, KIND_HEALTH_FAILED, "%s", facts->health.error);
        if (status->last_poll_usec == 0 && !status->hypervisor_error.code)
                add(verdict, KIND_NOT_POLLED, "The host was not polled yet");
        else if (status->settling.code)
                add(verdict, KIND_SETTLING, "%s", status->settling.text);
        else if (status->sync_state == SYNC_PENDING)
                add(verdict, KIND_PENDING, "A change is not published yet");
        if (count_pending_writes(facts) > 0 &&
            !(facts->pending_writes_error && facts->pending_writes_error[0]))
                add(verdict, KIND_PENDING_WRITES,
                    "%" PRIu64 " claim%s not reported to Placement yet",
                    count_pending_writes(facts), text_plural(count_pending_writes(facts)));
        inspect_unclean(facts, verdict);
}

/* Adds the reason for a failed poll, with command and advice of the driver. */
static void add_hypervisor(const CycleFacts *facts, Verdict *verdict)
{
        const DriverWords *words = driver_words(facts->driver);
        VerdictReason *reason = &verdict->reasons[verdict->n_reasons];

        add(verdict, KIND_HYPERVISOR, "%s", facts->status->hypervisor_error.text);
        reason->command = words->command;
        reason->advice = words->advice;
}

/* Writes the summary from the state and the reasons. */
static void write_summary(const TrackerStatus *status, Verdict *verdict)
{
        const char *synced = find_synced(status);
        const VerdictReason *worst = verdict->reasons;
        char more[MORE_MAX], *text = verdict->summary;
        size_t n = 0;

        for (size_t i = 0; i < verdict->n_reasons; i++)
                n += verdict->reasons[i].state != VERDICT_OK;
        (void)format_more(more, n);
        if (verdict->state == VERDICT_OK)
                snprintf(text, VERDICT_SUMMARY_MAX, "%s", synced);
        else if (verdict->state == VERDICT_WARNING)
                snprintf(text, VERDICT_SUMMARY_MAX, "%s, but %s%s", synced, worst->summary, more);
        else
                snprintf(text, VERDICT_SUMMARY_MAX, "%s%s", worst->summary, more);
}

/* Writes the line from the summary, the facts and the worst reason. */
static void write_line(const CycleFacts *facts, Verdict *verdict)
{
        size_t n_providers = facts->tree ? facts->tree->n_providers : 0;
        uint64_t n_pending_writes = pending_writes_sum(&facts->pending_writes);
        char pending_writes[48] = "";

        if (n_pending_writes > 0)
                snprintf(pending_writes, sizeof(pending_writes), ", %" PRIu64 " not reported yet",
                         n_pending_writes);
        snprintf(verdict->line, VERDICT_LINE_MAX, "%s; %zu provider%s, %zu claim%s%s%s%s",
                 verdict->summary, n_providers, text_plural(n_providers), facts->n_claims,
                 text_plural(facts->n_claims), pending_writes, verdict->n_reasons > 0 ? ". " : "",
                 verdict->n_reasons > 0 ? verdict->reasons[0].text : "");
}

/* Adds all reasons in the order of the kinds, and then writes the texts. */
void verdict_make(const CycleFacts *facts, Verdict *ret)
{
        ret->state = VERDICT_OK;
        ret->n_reasons = 0;
        if (facts->claim_error->code)
                add(ret, KIND_CLAIMS_DOWN, "New claims are refused: %s", facts->claim_error->text);
        if (facts->status->hypervisor_error.code)
                add_hypervisor(facts, ret);
        inspect_amounts(facts, ret);
        inspect_lost_devices(facts, ret);
        inspect_placement(facts, ret);
        inspect_rest(facts, ret);
        write_summary(facts->status, ret);
        write_line(facts, ret);
}
