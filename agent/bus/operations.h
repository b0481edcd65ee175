/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What takes its time (Sync, SyncFull, GetReshape, Reshape, UndoReshape, Audit, Heal, Reload) as
 * objects on the bus, with state and progress, while the methods that began it wait for their
 * answer.
 *
 * How far it is, is asked of the tracker some times a second, while something runs and a bus is
 * there, and told when it is news. What ended stays for a while, so that who was late can read how.
 * Main thread only. */

#include "agent/bus/bus.h"
#include "agent/bus/dispatch.h"
#include "agent/bus/polkit.h"

typedef struct BusOperations BusOperations;

/* polkit and config are borrowed; config is looked at when something is asked for: its tracker may
 * be another one then. -ENOMEM, and what sd-event says. */
int bus_operations_new(BusOperations **ret, sd_event *event, const BusConfig *config,
                       Polkit *polkit);
BusOperations *bus_operations_free(BusOperations *operations);
DEFINE_CLEANUP(BusOperations *, bus_operations_free);

/* As bus_objects_attach(). What runs goes on when the bus is gone. */
int bus_operations_attach(BusOperations *operations, BusDispatch *dispatch, sd_bus *bus);
void bus_operations_detach(BusOperations *operations);

/* Handlers of the methods of those names. */
int bus_operations_sync(sd_bus_message *call, BusOperations *operations, bool full);
int bus_operations_reshape(sd_bus_message *call, BusOperations *operations, ReshapeKind kind);
int bus_operations_audit(sd_bus_message *call, BusOperations *operations, bool heal);
int bus_operations_reload(sd_bus_message *call, BusOperations *operations, sd_bus_error *error);
