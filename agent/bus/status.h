/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The properties of org.computeagent.Agent1, and the document "status", which has the same.
 *
 * All values are made at once, at most once for each run of the loop, however many are asked for.
 * Main thread; nothing blocks. */

#include <jansson.h>
#include <systemd/sd-bus.h>

#include "agent/bus/bus.h"
#include "agent/bus/operations.h"
#include "agent/placing/queue.h"

/* What they are made from: the userdata of bus_get_property(). */
typedef struct BusFacts {
        BusConfig config;
        BusOperations *operations;
        sd_event *event;
        ClaimsOwed owed;
        const char *owed_trouble;
        bool is_old; /* to be set when something changed, or may have, since they were made */
        uint64_t iteration; /* of the loop, in which they were made */
        json_t *values;   /* by name of the property, and "reasons" of State; NULL: not made yet */
        uint64_t changed; /* bit i: property i is not as it was, and no signal said so yet */
} BusFacts;

/* P(type on the bus, property, member of the document or NULL, flags, value: an expression in
 * make_values() of agent/bus/status.c) */
#define CONSTANT SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGES  SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
/* clang-format off */
#define BUS_PROPERTIES(P) \
        P(u, "InterfaceVersion", NULL, CONSTANT, BUS_INTERFACE_VERSION) \
        P(s, "Version", "version", CONSTANT, PACKAGE_VERSION) \
        P(s, "NodeName", "node", CHANGES, f.snapshot ? f.snapshot->nodename : "") \
        P(s, "RootProvider", "root", CONSTANT, config->root.text) \
        P(s, "Driver", "driver", CHANGES, f.driver) \
        P(s, "SyncState", "sync_state", CHANGES, sync_state_to_text(f.status->sync_state)) \
        P(t, "SyncStateSinceUSec", "sync_since_usec", CHANGES, f.status->sync_since_usec) \
        P(s, "SyncError", "sync_error", CHANGES, f.status->sync_error.text) \
        P(t, "LastSyncUSec", "last_sync_usec", CHANGES, f.status->last_sync_usec) \
        P(t, "LastPollUSec", "last_poll_usec", CHANGES, f.status->last_poll_usec) \
        P(s, "HypervisorError", "hypervisor_error", CHANGES, f.status->hypervisor_error.text) \
        P(u, "NProviders", "n_providers", CHANGES, f.tree ? f.tree->n_providers : 0) \
        P(u, "NClaims", "n_claims", CHANGES, f.n_claims) \
        P(t, "NRequests", "n_requests", CHANGES, f.statistics->n_requests) \
        P(t, "NWrites", "n_writes", CHANGES, f.statistics->n_writes) \
        P(t, "NConflicts", "n_conflicts", CHANGES, f.statistics->n_conflicts) \
        P(s, "ClaimError", "claim_error", CHANGES, f.claim_error->text) \
        P(s, "ReshapeAccess", "reshape_access", CHANGES, reshape_access_to_text(f.status->reshape_access)) \
        P(u, "NOwedWrites", "n_owed_writes", CHANGES, f.owed.n_writes) \
        P(u, "NOwedRemovals", "n_owed_removals", CHANGES, f.owed.n_removals) \
        P(u, "NOwedMoves", "n_owed_moves", CHANGES, f.owed.n_moves) \
        P(s, "OwedError", "owed_error", CHANGES, claims_owed_sum(&f.owed) > 0 ? f.owed_trouble : "") \
        P(s, "HostCordoned", "host_cordoned", CHANGES, f.host_cordoned) \
        P(s, "DevicesCordoned", "devices_cordoned", CHANGES, f.devices_cordoned) \
        P(s, "DevicesWithheld", "devices_withheld", CHANGES, withheld) \
        P(s, "LocalDisk", "local_disk", CHANGES, f.status->local_disk) \
        P(s, "HostUnread", "host_unread", CHANGES, unread) \
        P(s, "State", "state", CHANGES, verdict_state_to_text(verdict.state)) \
        P(s, "Summary", "summary", CHANGES, verdict_summary(&verdict, text, sizeof(text))) \
        P(s, "StatusText", "status", CHANGES, verdict_line(&verdict, text, sizeof(text))) \
        P(s, "Hook", "hook", CHANGES, config->hook) \
        P(s, "Nova", "nova", CHANGES, nova_mode_to_text(f.nova)) \
        P(b, "TreePublished", "tree_published", CHANGES, f.status->tree_published) \
        P(u, "NDifferences", "n_differences", CHANGES, f.status->n_differences) \
        P(s, "SecondReporter", "second_reporter", CHANGES, contest) \
        P(s, "Operation", NULL, CHANGES, operation) \
        P(s, "OperationPhase", NULL, CHANGES, progress.phase) \
        P(t, "OperationDone", NULL, CHANGES, progress.n_done) \
        P(t, "OperationTotal", NULL, CHANGES, progress.n_total)
/* clang-format on */

/* Their getter. */
int bus_get_property(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error);

/* Sends PropertiesChanged with all that had another value since the last time, also if somebody saw
 * that one only by asking, and it is gone again. -ENOMEM, and what sd-bus says. */
int bus_facts_signal(BusFacts *facts, sd_bus *bus);

/* The document "status" (STATUS_FORMAT): members as above, and "reasons": [{"check", "state",
 * "summary", "text", "command", "advice"}] (agent/cycle/verdict.h). -ENOMEM; error is left alone.
 */
int bus_facts_describe(BusFacts *facts, json_t **ret, sd_bus_error *error);

void bus_facts_done(BusFacts *facts);
