/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/properties.h"

#include <errno.h>
#include <string.h>

#include "agent/cycle/status-text.h"
#include "agent/formats/interface.h"

#define STATUS_TEXT_MAX 1024

static size_t count_providers(const BusFacts *facts)
{
        const ProviderTree *tree = tracker_get_tree(facts->config.tracker);

        return tree ? tree->n_providers : 0;
}

static const char *text_or_none(const char *text)
{
        return text ? text : "";
}

static const char *make_status_text(const BusFacts *facts, char line[static STATUS_TEXT_MAX])
{
        return status_text(
                &(const StatusFacts){
                        .status = tracker_get_status(facts->config.tracker),
                        .claim_error = claim_service_error(facts->config.claims),
                        .n_providers = count_providers(facts),
                        .n_claims = claim_service_count(facts->config.claims),
                        .debts = facts->debts,
                        .debt_trouble = claim_desk_get_trouble(facts->config.desk),
                },
                line, STATUS_TEXT_MAX);
}

int bus_get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
                 sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const BusFacts *facts = userdata;
        const TrackerStatus *status = tracker_get_status(facts->config.tracker);
        const Snapshot *snapshot = tracker_get_snapshot(facts->config.tracker);
        char line[STATUS_TEXT_MAX];
        const char *text = "";

        if (strcmp(property, "Version") == 0)
                text = PACKAGE_VERSION;
        else if (strcmp(property, "NodeName") == 0)
                text = snapshot ? snapshot->nodename : "";
        else if (strcmp(property, "RootProvider") == 0)
                text = facts->config.root.text;
        else if (strcmp(property, "Driver") == 0)
                text = facts->config.driver;
        else if (strcmp(property, "Hook") == 0)
                text = facts->config.hook;
        else if (strcmp(property, "Nova") == 0)
                text = nova_mode_to_text(tracker_get_nova(facts->config.tracker));
        else if (strcmp(property, "SyncState") == 0)
                text = sync_state_to_text(status->sync_state);
        else if (strcmp(property, "SyncError") == 0)
                text = status->sync_error.text;
        else if (strcmp(property, "HypervisorError") == 0)
                text = status->hypervisor_error.text;
        else if (strcmp(property, "ClaimError") == 0)
                text = claim_service_error(facts->config.claims)->text;
        else if (strcmp(property, "ReshapeAccess") == 0)
                text = reshape_access_to_text(status->reshape_access);
        else if (strcmp(property, "OwedError") == 0)
                text = claim_debts_sum(&facts->debts) > 0
                               ? claim_desk_get_trouble(facts->config.desk)
                               : "";
        else if (strcmp(property, "HostCordoned") == 0)
                text = text_or_none(cordon_host_words(facts->config.cordon));
        else if (strcmp(property, "DevicesCordoned") == 0)
                text = text_or_none(cordon_device_words(facts->config.cordon));
        else if (strcmp(property, "StatusText") == 0)
                text = make_status_text(facts, line);
        return sd_bus_message_append(reply, "s", text);
}

int bus_get_withheld(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const BusFacts *facts = userdata;
        _cleanup_free_ char *text = tracker_describe_withheld(facts->config.tracker);

        return text ? sd_bus_message_append(reply, "s", text) : -ENOMEM;
}

int bus_get_unread(sd_bus *bus, const char *path, const char *interface, const char *property,
                   sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const BusFacts *facts = userdata;
        const Snapshot *snapshot = tracker_get_snapshot(facts->config.tracker);
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return -ENOMEM;
        for (size_t i = 0; snapshot && i < snapshot->problems.n_items; i++)
                fprintf(file, "%s%s", i > 0 ? "; " : "", snapshot->problems.items[i]);
        if (fclose(file) != 0)
                return -ENOMEM;
        return sd_bus_message_append(reply, "s", text);
}

int bus_get_published(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const BusFacts *facts = userdata;
        const TrackerStatus *status = tracker_get_status(facts->config.tracker);

        return sd_bus_message_append(reply, "b", (int)status->tree_published);
}

int bus_get_contest(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const BusFacts *facts = userdata;
        _cleanup_free_ char *text = contest_describe(tracker_get_contest(facts->config.tracker));

        return text ? sd_bus_message_append(reply, "s", text) : -ENOMEM;
}

int bus_get_number(sd_bus *bus, const char *path, const char *interface, const char *property,
                   sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const BusFacts *facts = userdata;
        const TrackerStatus *status = tracker_get_status(facts->config.tracker);
        const ReporterStatistics *statistics = tracker_get_statistics(facts->config.tracker);
        uint64_t number = 0;

        if (strcmp(property, "LastSyncUSec") == 0)
                number = status->last_sync_usec;
        else if (strcmp(property, "SyncStateSinceUSec") == 0)
                number = status->sync_since_usec;
        else if (strcmp(property, "LastPollUSec") == 0)
                number = status->last_poll_usec;
        else if (strcmp(property, "NRequests") == 0)
                number = statistics->n_requests;
        else if (strcmp(property, "NWrites") == 0)
                number = statistics->n_writes;
        else if (strcmp(property, "NConflicts") == 0)
                number = statistics->n_conflicts;
        return sd_bus_message_append(reply, "t", number);
}

int bus_get_count(sd_bus *bus, const char *path, const char *interface, const char *property,
                  sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const BusFacts *facts = userdata;
        uint64_t count = 0;

        if (strcmp(property, "NProviders") == 0)
                count = count_providers(facts);
        else if (strcmp(property, "NClaims") == 0)
                count = claim_service_count(facts->config.claims);
        else if (strcmp(property, "NDifferences") == 0)
                count = tracker_get_status(facts->config.tracker)->n_differences;
        else if (strcmp(property, "NOwedWrites") == 0)
                count = facts->debts.n_claims;
        else if (strcmp(property, "NOwedRemovals") == 0)
                count = facts->debts.n_departures;
        else if (strcmp(property, "NOwedMoves") == 0)
                count = facts->debts.n_handovers;
        return sd_bus_message_append(reply, "u", (uint32_t)count);
}
