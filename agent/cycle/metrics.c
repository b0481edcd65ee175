/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/formats/tree-json.h"

#define PREFIX "compute_agent_"

static void print_head(FILE *output, const char *name, const char *type, const char *help)
{
        fprintf(output, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void print_number(FILE *output, const char *name, const char *type, const char *help,
                         uint64_t value)
{
        print_head(output, name, type, help);
        fprintf(output, PREFIX "%s %" PRIu64 "\n", name, value);
}

static void print_time(FILE *output, const char *name, const char *help, uint64_t usec)
{
        print_head(output, name, "gauge", help);
        fprintf(output, PREFIX "%s %" PRIu64 ".%06" PRIu64 "\n", name, usec / USEC_PER_SEC,
                usec % USEC_PER_SEC);
}

/* name="value", with what the format wants escaped; what is foreign cannot end the line. */
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

static void print_state(const Metrics *metrics, FILE *output)
{
        const TrackerStatus *status = metrics->status;

        print_head(output, "build_info", "gauge", "Constant 1, with the version of the agent.");
        fputs(PREFIX "build_info{version=\"" PACKAGE_VERSION "\"} 1\n", output);
        print_head(output, "state", "gauge",
                   "1 for what \"computectl status\" says of the host, 0 for the others.");
        for (VerdictState state = 0; state < _VERDICT_STATE_MAX; state++)
                fprintf(output, PREFIX "state{state=\"%s\"} %d\n", verdict_state_to_text(state),
                        state == metrics->verdict->state);
        print_head(output, "sync_state", "gauge", "1 for the state that is, 0 for the others.");
        for (SyncState state = 0; state < _SYNC_STATE_MAX; state++)
                fprintf(output, PREFIX "sync_state{state=\"%s\"} %d\n", sync_state_to_text(state),
                        state == status->sync_state);
        print_time(output, "sync_state_since_timestamp_seconds",
                   "Since when the state is what it is.", status->sync_since_usec);
        print_time(output, "last_sync_timestamp_seconds",
                   "When Placement was found, or made, equal to the host last; 0 for never.",
                   status->last_sync_usec);
        print_time(output, "last_poll_timestamp_seconds",
                   "When the last good poll of the hypervisor ended; 0 for never.",
                   status->last_poll_usec);
        print_number(output, "hypervisor_up", "gauge", "Whether the last poll succeeded.",
                     !status->hypervisor_error.code && status->last_poll_usec > 0);
        print_number(output, "claims_up", "gauge", "Whether claims can be taken.",
                     metrics->claims_up);
        print_number(output, "host_cordoned", "gauge", "Whether somebody took the host out of use.",
                     metrics->host_cordoned);
        print_number(output, "devices_cordoned", "gauge", "Devices that somebody took out of use.",
                     metrics->n_devices_cordoned);
        print_head(output, "nova_mode", "gauge", "1 for what [agent] nova says, 0 for the others.");
        for (NovaMode mode = 0; mode < _NOVA_MODE_MAX; mode++)
                fprintf(output, PREFIX "nova_mode{mode=\"%s\"} %d\n", nova_mode_to_text(mode),
                        mode == metrics->nova);
        print_number(output, "placement_differences", "gauge",
                     "Requests that would make the tree of nova-compute equal to this host.",
                     status->n_differences);
        print_number(output, "reshape_needed", "gauge",
                     "Whether the tree must change shape under running guests.",
                     status->reshape_needed);
        print_number(output, "reshape_failed", "gauge",
                     "Whether the last reshape failed, and the old shape is kept.",
                     status->reshape_error.code != 0);
}

/* Status 0: there was no answer. */
static void print_responses(const ReporterStatistics *statistics, FILE *output)
{
        const RequestCounts *counts = statistics->counts;

        print_head(output, "placement_responses_total", "counter",
                   "Requests to Placement by what became of them; status 0 for no answer.");
        for (size_t i = 0; counts && i < counts->n_items; i++)
                fprintf(output,
                        PREFIX
                        "placement_responses_total{method=\"%s\",route=\"%s\",status=\"%d\"} %" PRIu64
                        "\n",
                        counts->items[i].method, counts->items[i].route, counts->items[i].status,
                        counts->items[i].n);
}

static void print_counts(const Metrics *metrics, FILE *output)
{
        const ReporterStatistics *statistics = metrics->statistics;

        print_number(output, "cycles_total", "counter", "Cycles from poll to publication.",
                     metrics->status->n_cycles);
        print_number(output, "placement_requests_total", "counter", "HTTP requests to Placement.",
                     statistics->n_requests);
        print_number(output, "placement_writes_total", "counter",
                     "Those requests that could change something.", statistics->n_writes);
        print_number(output, "placement_conflicts_total", "counter",
                     "Requests that lost to another writer, and were done again.",
                     statistics->n_conflicts);
        print_number(output, "placement_retries_total", "counter",
                     "Requests that were sent again after an error of the server.",
                     statistics->n_retries);
        print_responses(statistics, output);
        print_number(output, "providers", "gauge", "Resource providers of this host.",
                     metrics->tree ? metrics->tree->n_providers : 0);
        print_number(output, "claims", "gauge", "Claims that live.", metrics->n_claims);
        print_number(output, "domains", "gauge", "Domains that the hypervisor has.",
                     metrics->snapshot ? metrics->snapshot->n_domains : 0);
}

static void print_contest(const Metrics *metrics, FILE *output)
{
        const Contest *contest = metrics->contest;

        print_number(output, "placement_undone_total", "counter",
                     "Parts of the tree that somebody else changed though the host had not.",
                     contest ? contest->n_undone : 0);
        print_head(output, "placement_undone", "gauge",
                   "How often a part of the tree was undone, where that goes on.");
        for (size_t i = 0; contest && i < contest->n_parts; i++) {
                const ContestPart *part = &contest->parts[i];

                if (!contest_is_told(part))
                        continue;
                fputs(PREFIX "placement_undone{", output);
                print_label(output, "provider", part->name);
                fputc(',', output);
                print_label(output, "part", part->part);
                fprintf(output, "} %u\n", part->n);
        }
}

/* What is to be told to Placement, and what an audit found that nobody was told to heal. */
static void print_owed_numbers(const Metrics *metrics, FILE *output)
{
        const ClaimsOwed *owed = &metrics->owed;

        print_head(output, "placement_owed", "gauge",
                   "What is still to be reported to Placement of claims: writes, removals, moves.");
        fprintf(output, PREFIX "placement_owed{action=\"write\"} %zu\n", owed->n_writes);
        fprintf(output, PREFIX "placement_owed{action=\"remove\"} %zu\n", owed->n_removals);
        fprintf(output, PREFIX "placement_owed{action=\"move\"} %zu\n", owed->n_moves);
        print_number(output, "claims_unheld", "gauge",
                     "Claims of guests that are not in Placement and will not be reported.",
                     owed->n_unheld);
        print_time(output, "last_audit_timestamp_seconds",
                   "When Placement, claims and guests were compared last; 0 for never.",
                   metrics->audit ? metrics->audit->ended_usec : 0);
        print_number(output, "audit_findings", "gauge",
                     "What the last audit found and nothing healed.",
                     metrics->audit ? metrics->audit->n_open : 0);
}

typedef uint64_t (*Amount)(const Metrics *metrics, const Provider *provider,
                           const InventoryRecord *record);

static uint64_t get_capacity(const Metrics *metrics, const Provider *provider,
                             const InventoryRecord *record)
{
        return inventory_capacity(&record->inventory);
}

static uint64_t get_total(const Metrics *metrics, const Provider *provider,
                          const InventoryRecord *record)
{
        return record->inventory.total;
}

static uint64_t get_reserved(const Metrics *metrics, const Provider *provider,
                             const InventoryRecord *record)
{
        return record->inventory.reserved;
}

static uint64_t get_used(const Metrics *metrics, const Provider *provider,
                         const InventoryRecord *record)
{
        return tree_usage(metrics->view, &provider->uuid, record->resource_class);
}

static void print_inventories(const Metrics *metrics, FILE *output, const char *name,
                              const char *help, Amount amount)
{
        print_head(output, name, "gauge", help);
        for (size_t i = 0; metrics->tree && i < metrics->tree->n_providers; i++) {
                const Provider *provider = metrics->tree->providers[i];

                for (size_t j = 0; j < provider->n_inventories; j++) {
                        const InventoryRecord *record = &provider->inventories[j];

                        fprintf(output, PREFIX "%s{", name);
                        print_label(output, "provider", provider->name);
                        fputc(',', output);
                        print_label(output, "resource_class", record->resource_class);
                        fprintf(output, "} %" PRIu64 "\n", amount(metrics, provider, record));
                }
        }
}

static void print_device_health(const Metrics *metrics, FILE *output)
{
        print_head(output, "device_up", "gauge",
                   "Whether a device that this host is expected to have is there, and offered.");
        for (size_t i = 0; metrics->devices && i < metrics->devices->n_devices; i++) {
                const LedgerDevice *device = &metrics->devices->devices[i];

                fputs(PREFIX "device_up{", output);
                print_label(output, "provider", device->name);
                fputc(',', output);
                print_label(output, "resource_class", device->resource_class);
                fprintf(output, "} %d\n", !device->missing && !device->held);
        }
}

/* A guest may have two parts of one device: that is one line with a 2. */
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

static void print_device_consumers(const Metrics *metrics, FILE *output)
{
        print_head(output, "device_claimed_units", "gauge",
                   "What a consumer has of a device: 1 for all of it, or its mediated devices.");
        for (size_t i = 0; metrics->claims && i < metrics->claims->n_claims; i++)
                for (size_t j = 0; j < metrics->claims->claims[i]->n_devices; j++)
                        print_consumer(metrics->claims->claims[i], j, output);
}

static void print_devices(const Metrics *metrics, FILE *output)
{
        print_head(output, "mdev_available_instances", "gauge",
                   "Mediated devices of a type that a device can still make.");
        for (size_t i = 0; metrics->snapshot && i < metrics->snapshot->n_devices; i++) {
                const SnapshotDevice *device = &metrics->snapshot->devices[i];

                for (size_t j = 0; j < device->n_mdev_types; j++) {
                        fputs(PREFIX "mdev_available_instances{", output);
                        print_label(output, "device", device->name);
                        fputc(',', output);
                        print_label(output, "type", device->mdev_types[j].id);
                        fprintf(output, "} %" PRIu64 "\n",
                                device->mdev_types[j].available_instances);
                }
        }
}

void metrics_print(const Metrics *metrics, FILE *output)
{
        print_state(metrics, output);
        print_counts(metrics, output);
        print_owed_numbers(metrics, output);
        print_contest(metrics, output);
        print_inventories(metrics, output, "inventory_units", "What a provider has of a class.",
                          get_total);
        print_inventories(metrics, output, "inventory_reserved_units",
                          "What of it is not for guests.", get_reserved);
        print_inventories(metrics, output, "inventory_capacity_units",
                          "What can be promised of it.", get_capacity);
        print_inventories(metrics, output, "inventory_used_units", "What claims hold of it.",
                          get_used);
        print_devices(metrics, output);
        print_device_health(metrics, output);
        print_device_consumers(metrics, output);
}

static int write_file(const Metrics *metrics, const char *path)
{
        _cleanup_fclose_ FILE *output = fopen(path, "we");

        if (!output)
                return -errno;
        metrics_print(metrics, output);
        if (fchmod(fileno(output), 0644) < 0)
                return -errno;
        return fflush(output) != 0 || ferror(output) ? -EIO : 0;
}

int metrics_save(const Metrics *metrics, const char *path, Error *reterr)
{
        _cleanup_free_ char *partial = NULL;
        int r;

        if (asprintf(&partial, "%s.new", path) < 0) {
                partial = NULL;
                return error_oom(reterr);
        }
        r = write_file(metrics, partial);
        if (r >= 0 && rename(partial, path) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlink(partial);
                return error_setf(reterr, r, "%s: cannot be written: %s", path, strerror(-r));
        }
        return 0;
}
