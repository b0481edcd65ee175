/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the facts of a cycle as metrics. metrics.list has name, type and help text of each metric;
 * a script makes the table from it. The functions that print_all() calls print whole metrics,
 * because the format requires all samples of a metric together. Each metric is printed in each
 * file, also without samples; an unknown single number is 0. If the file cannot be written
 * completely, the old one stays. Names of providers, devices and types come from outside and are
 * escaped. The amounts of inventories are those of the host's tree, and the used amounts those of
 * the claims. */

#include "agent/cycle/metrics.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "claims/claim/host-view.h"
#include "drivers/host/hardware-digest.h"

#define PREFIX "compute_agent_"

static const struct {
        const char *name, *type, *help;
} kinds[] = {
#include "agent/cycle/metrics-list.h" /* generated from metrics.list */
};

/* Prints help and type of a metric, which must precede its samples. */
static void print_head(FILE *output, const char *name)
{
        size_t i = 0;

        while (i < ARRAY_SIZE(kinds) && strcmp(kinds[i].name, name) != 0)
                i++;
        assert(i < ARRAY_SIZE(kinds)); /* name must be in metrics.list */
        fprintf(output, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, kinds[i].help,
                name, kinds[i].type);
}

static void print_number(FILE *output, const char *name, uint64_t value)
{
        print_head(output, name);
        fprintf(output, PREFIX "%s %" PRIu64 "\n", name, value);
}

/* Prints a time in seconds, with microseconds. */
static void print_time(FILE *output, const char *name, uint64_t usec)
{
        print_head(output, name);
        fprintf(output, PREFIX "%s %" PRIu64 ".%06" PRIu64 "\n", name, usec / USEC_PER_SEC,
                usec % USEC_PER_SEC);
}

/* Prints name="value". Escapes the characters that could end the value or the line. */
static void print_label(FILE *output, const char *name, const char *value)
{
        fprintf(output, "%s=\"", name);
        for (const char *c = value; *c; c++) {
                if (*c == '\n')
                        fputs("\\n", output);
                else if (*c == '"' || *c == '\\')
                        fprintf(output, "\\%c", *c);
                else
                        fputc(*c, output);
        }
        fputc('"', output);
}

/* Prints one sample with two labels. */
static void print_part(FILE *output, const char *name, const char *first, const char *first_value,
                       const char *second, const char *second_value, uint64_t number)
{
        fprintf(output, PREFIX "%s{", name);
        print_label(output, first, first_value);
        fputc(',', output);
        print_label(output, second, second_value);
        fprintf(output, "} %" PRIu64 "\n", number);
}

/* Prints the first 64 bits of a digest as the label of a sample. NULL, or of size 0: no sample. */
static void print_digest(FILE *output, const char *name, const char *label, const Digest *digest)
{
        char text[DIGEST_TEXT_MAX];

        print_head(output, name);
        if (digest && digest->size > 0)
                fprintf(output, PREFIX "%s{%s=\"%.16s\"} 1\n", name, label,
                        digest_to_text(digest, text));
}

static const char *const start_reasons[_START_REASON_MAX] = {
        [START_UNKNOWN] = "unknown",           [START_FIRST] = "first",   [START_CLEAN] = "clean",
        [START_UPGRADE] = "upgrade",           [START_REBOOT] = "reboot", [START_CRASH] = "crash",
        [START_CRASH_REBOOT] = "crash-reboot",
};

/* Prints the digests by which hosts of a group are compared, and why the agent was started. */
static void print_infos(const CycleFacts *facts, FILE *output)
{
        Digest hardware = { 0 };

        print_digest(output, "config_info", "digest", facts->config_digest);
        if (facts->snapshot)
                (void)hardware_make_digest(facts->snapshot, &hardware);
        print_digest(output, "host_info", "hardware_digest", &hardware);
        print_head(output, "start_info");
        fprintf(output, PREFIX "start_info{reason=\"%s\"} 1\n", start_reasons[facts->start_reason]);
}

static size_t count_unclean(const DeviceLedger *devices)
{
        size_t n = 0;

        for (size_t i = 0; devices && i < devices->n_devices; i++)
                n += devices->devices[i].unclean[0] != '\0';
        return n;
}

/* Prints the version, the states, and the times and numbers of the status. A state is one sample
 * for each of its values, of which one is 1. */
static void print_state(const CycleFacts *facts, VerdictState verdict, FILE *output)
{
        const TrackerStatus *status = facts->status;

        print_head(output, "build_info");
        fputs(PREFIX "build_info{version=\"" PACKAGE_VERSION "\"} 1\n", output);
        print_head(output, "state");
        for (VerdictState state = 0; state < _VERDICT_STATE_MAX; state++)
                fprintf(output, PREFIX "state{state=\"%s\"} %d\n", verdict_state_to_text(state),
                        state == verdict);
        print_head(output, "sync_state");
        for (SyncState state = 0; state < _SYNC_STATE_MAX; state++)
                fprintf(output, PREFIX "sync_state{state=\"%s\"} %d\n", sync_state_to_text(state),
                        state == status->sync_state);
        print_time(output, "sync_state_since_timestamp_seconds", status->sync_since_usec);
        print_time(output, "last_sync_timestamp_seconds", status->last_sync_usec);
        print_time(output, "last_poll_timestamp_seconds", status->last_poll_usec);
        print_number(output, "hypervisor_up",
                     !status->hypervisor_error.code && status->last_poll_usec > 0);
        print_number(output, "claims_up", !facts->claim_error->code);
        print_number(output, "host_cordoned", facts->cordons.host != NULL);
        print_number(output, "devices_cordoned", facts->cordons.n_devices);
        print_number(output, "devices_unhealthy", facts->cordons.n_by_rules);
        print_number(output, "devices_reported", facts->health.n_reported);
        print_number(output, "health_rules_failed", facts->health.error != NULL);
        print_number(output, "devices_unclean", count_unclean(facts->devices));
        print_head(output, "nova_mode");
        for (NovaMode mode = 0; mode < _NOVA_MODE_MAX; mode++)
                fprintf(output, PREFIX "nova_mode{mode=\"%s\"} %d\n", nova_mode_to_text(mode),
                        mode == facts->nova);
        print_number(output, "placement_differences", status->n_differences);
        print_number(output, "reshape_needed", status->reshape_needed);
        print_number(output, "reshape_failed", status->reshape_error.code != 0);
}

/* Prints the number of responses by method, route and status. Status 0 means that no answer
 * arrived. */
static void print_responses(const ReporterStatistics *statistics, FILE *output)
{
        const RequestCounts *counts = statistics->counts;

        print_head(output, "placement_responses_total");
        for (size_t i = 0; counts && i < counts->n_items; i++)
                fprintf(output,
                        PREFIX
                        "placement_responses_total{method=\"%s\",route=\"%s\",status=\"%d\"} %" PRIu64
                        "\n",
                        counts->items[i].method, counts->items[i].route, counts->items[i].status,
                        counts->items[i].n);
}

static void print_counts(const CycleFacts *facts, FILE *output)
{
        const ReporterStatistics *statistics = facts->statistics;

        print_number(output, "cycles_total", facts->status->n_cycles);
        print_number(output, "placement_requests_total", statistics->n_requests);
        print_number(output, "placement_writes_total", statistics->n_writes);
        print_number(output, "placement_conflicts_total", statistics->n_conflicts);
        print_number(output, "placement_retries_total", statistics->n_retries);
        print_responses(statistics, output);
        print_number(output, "providers", facts->tree ? facts->tree->n_providers : 0);
        print_number(output, "claims", facts->n_claims);
        print_number(output, "domains", facts->snapshot ? facts->snapshot->n_domains : 0);
}

/* Prints how often other writers have overwritten values, and each value that is overwritten
 * repeatedly. */
static void print_overwrites(const CycleFacts *facts, FILE *output)
{
        const Overwrites *overwrites = facts->overwrites;

        print_number(output, "placement_undone_total", overwrites ? overwrites->n_undone : 0);
        print_head(output, "placement_undone");
        for (size_t i = 0; overwrites && i < overwrites->n_parts; i++) {
                const Overwrite *part = &overwrites->parts[i];

                if (overwrite_is_repeated(part))
                        print_part(output, "placement_undone", "provider", part->name, "part",
                                   part->part, part->n);
        }
}

/* Prints one sample for each kind of pending writes. */
static void print_writes(const PendingWrites *pending_writes, const char *name, FILE *output)
{
        print_head(output, name);
        fprintf(output, PREFIX "%s{action=\"write\"} %" PRIu64 "\n", name,
                pending_writes->n_writes);
        fprintf(output, PREFIX "%s{action=\"remove\"} %" PRIu64 "\n", name,
                pending_writes->n_removals);
        fprintf(output, PREFIX "%s{action=\"move\"} %" PRIu64 "\n", name, pending_writes->n_moves);
}

/* Prints the pending writes, the claims without an allocation, and the time and open findings of
 * the last audit. The old names of the first two are printed for one release. */
static void print_pending_writes(const CycleFacts *facts, FILE *output)
{
        const PendingWrites *pending_writes = &facts->pending_writes;

        print_writes(pending_writes, "placement_pending_writes", output);
        print_writes(pending_writes, "placement_owed", output);
        print_number(output, "claims_unallocated", pending_writes->n_unallocated);
        print_number(output, "claims_unheld", pending_writes->n_unallocated);
        print_time(output, "last_audit_timestamp_seconds",
                   MAX(facts->audit ? facts->audit->ended_usec : 0, facts->spared_usec));
        print_number(output, "audit_findings", facts->audit ? facts->audit->n_open : 0);
}

typedef enum Amount { TOTAL, RESERVED, CAPACITY, USED } Amount;

/* Returns one amount of an inventory. The used amount is that of the claims. */
static uint64_t get_amount(const CycleFacts *facts, Amount amount, const Provider *provider,
                           const InventoryRecord *record)
{
        switch (amount) {
        case TOTAL:
                return record->inventory.total;
        case RESERVED:
                return record->inventory.reserved;
        case CAPACITY:
                return inventory_capacity(&record->inventory);
        default:
                return host_view_usage(facts->view, &provider->uuid, record->resource_class);
        }
}

/* Prints one amount of all inventories. */
static void print_inventories(const CycleFacts *facts, const char *name, Amount amount,
                              FILE *output)
{
        print_head(output, name);
        for (size_t i = 0; facts->tree && i < facts->tree->n_providers; i++) {
                const Provider *provider = facts->tree->providers[i];

                for (size_t j = 0; j < provider->n_inventories; j++) {
                        const InventoryRecord *record = &provider->inventories[j];

                        print_part(output, name, "provider", provider->name, "resource_class",
                                   record->resource_class,
                                   get_amount(facts, amount, provider, record));
                }
        }
}

/* Prints 1 for each expected device that is present, 0 for one that is missing or is held back
 * after its return. */
static void print_device_health(const CycleFacts *facts, FILE *output)
{
        print_head(output, "device_up");
        for (size_t i = 0; facts->devices && i < facts->devices->n_devices; i++) {
                const LedgerDevice *device = &facts->devices->devices[i];

                print_part(output, "device_up", "provider", device->name, "resource_class",
                           device->resource_class, !device->missing && !device->held);
        }
}

/* Prints the line of the device of item i, with the number of items of the claim that have this
 * device. Prints nothing if an earlier item has the same device. */
static void print_consumer(const Claim *claim, size_t i, FILE *output)
{
        const char *name = claim->devices[i].name;
        size_t n = 0;

        for (size_t j = 0; j < claim->n_devices; j++) {
                if (strcmp(claim->devices[j].name, name) != 0)
                        continue;
                if (j < i)
                        return;
                n++;
        }
        fputs(PREFIX "device_claimed_units{", output);
        print_label(output, "device", name);
        fprintf(output, ",consumer=\"%s\",claim=\"%" PRId64 "\"} %zu\n", claim->consumer.text,
                claim->id, n);
}

/* Prints the claims of each device. */
static void print_device_consumers(const ClaimList *claims, FILE *output)
{
        print_head(output, "device_claimed_units");
        for (size_t i = 0; claims && i < claims->n_claims; i++)
                for (size_t j = 0; j < claims->claims[i]->n_devices; j++)
                        print_consumer(claims->claims[i], j, output);
}

static void print_devices(const CycleFacts *facts, FILE *output)
{
        print_head(output, "mdev_available_instances");
        for (size_t i = 0; facts->snapshot && i < facts->snapshot->n_devices; i++) {
                const SnapshotDevice *device = &facts->snapshot->devices[i];

                for (size_t j = 0; j < device->n_mdev_types; j++)
                        print_part(output, "mdev_available_instances", "device", device->name,
                                   "type", device->mdev_types[j].id,
                                   device->mdev_types[j].available_instances);
        }
}

static void print_all(const CycleFacts *facts, const Verdict *verdict, const ClaimList *claims,
                      FILE *output)
{
        print_state(facts, verdict->state, output);
        print_infos(facts, output);
        print_counts(facts, output);
        print_pending_writes(facts, output);
        print_overwrites(facts, output);
        print_inventories(facts, "inventory_units", TOTAL, output);
        print_inventories(facts, "inventory_reserved_units", RESERVED, output);
        print_inventories(facts, "inventory_capacity_units", CAPACITY, output);
        print_inventories(facts, "inventory_used_units", USED, output);
        print_devices(facts, output);
        print_device_health(facts, output);
        print_device_consumers(claims, output);
}

/* Writes all metrics to path, which metrics_save() renames, in place of its content and with mode
 * 0644. Returns a negative errno. */
static int write_file(const CycleFacts *facts, const Verdict *verdict, const ClaimList *claims,
                      const char *path)
{
        _cleanup_fclose_ FILE *output = fopen(path, "we");

        if (!output)
                return -errno;
        print_all(facts, verdict, claims, output);
        if (fchmod(fileno(output), 0644) < 0)
                return -errno;
        return fflush(output) != 0 || ferror(output) ? -EIO : 0;
}

int metrics_save(const CycleFacts *facts, const Verdict *verdict, const ClaimList *claims,
                 const char *path, Error *reterr)
{
        _cleanup_free_ char *partial = text_format("%s.new", path);
        int r;

        if (!partial)
                return error_oom(reterr);
        r = write_file(facts, verdict, claims, partial);
        if (r >= 0 && rename(partial, path) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlink(partial);
                return error_setf(reterr, r, "Cannot write %s: %s", path, strerror(-r));
        }
        return 0;
}
