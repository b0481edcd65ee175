/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Methods that take their time (Sync, SyncFull, GetReshape, Reshape, UndoReshape, Audit, Heal,
 * Retire, Reload): who called one waits for its answer, and how far it is stands in the properties
 * Operation…, which are looked at some times a second meanwhile. Main thread only. */

#include "agent/bus/bus.h"
#include "agent/bus/polkit.h"
#include "base/progress.h"

typedef struct BusOperations BusOperations;

/* Called when what bus_operations_get() says may have changed. */
typedef void (*BusOperationsChanged)(void *userdata);

/* polkit and config are borrowed; config is looked at when something is asked for: its tracker may
 * be another one then. -ENOMEM, and what sd-event says. */
int bus_operations_new(BusOperations **ret, sd_event *event, const BusConfig *config,
                       Polkit *polkit, BusOperationsChanged changed, void *userdata);
BusOperations *bus_operations_free(BusOperations *operations);
DEFINE_CLEANUP(BusOperations *, bus_operations_free);

/* The method that somebody waits for, the first one of several, and how far it is; "" for none. */
const char *bus_operations_get(const BusOperations *operations, Progress *ret);

/* Handlers of the methods of these kinds, which the name of the method distinguishes: Sync and
 * SyncFull; GetReshape, Reshape and UndoReshape; Audit and Heal; GetRetire and Retire. by is
 * copied. */
int bus_operations_sync(sd_bus_message *call, BusOperations *operations);
int bus_operations_reshape(sd_bus_message *call, BusOperations *operations, const EventAuthor *by);
int bus_operations_audit(sd_bus_message *call, BusOperations *operations, const EventAuthor *by);
int bus_operations_retire(sd_bus_message *call, BusOperations *operations, const EventAuthor *by);
int bus_operations_reload(sd_bus_message *call, BusOperations *operations, sd_bus_error *error);

/* Cancel(), which asks for what the operation itself asks for. */
int bus_operations_cancel(sd_bus_message *call, BusOperations *operations, sd_bus_error *error);
