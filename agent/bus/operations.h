/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Methods that answer after a cycle (Sync, SyncFull, GetReshape, Reshape, UndoReshape, Audit, Heal,
 * HealConsumer, Retire, Reload). Their progress is in the properties Operation…, which are compared
 * some times a second meanwhile. Main thread only. */

#include <systemd/sd-bus.h>

#include "agent/bus/bus.h"
#include "base/progress.h"

typedef struct BusOperations BusOperations;

/* config is borrowed: its tracker can be replaced later. changed is called when the values of
 * bus_operations_get() can have changed. -ENOMEM, and what sd-event says. */
int bus_operations_new(BusOperations **ret, sd_event *event, const BusConfig *config,
                       void (*changed)(void *userdata), void *userdata);
BusOperations *bus_operations_free(BusOperations *operations);
DEFINE_CLEANUP(BusOperations *, bus_operations_free);

/* Returns the method of the first call that waits, and its progress; "" for none. */
const char *bus_operations_get(const BusOperations *operations, Progress *ret);

/* Handles a call of one of these methods; by is copied. */
int bus_operations_begin(BusOperations *operations, sd_bus_message *call, const EventAuthor *by,
                         sd_bus_error *error);

/* Handles Cancel(). */
int bus_operations_cancel(BusOperations *operations, sd_bus_message *call, sd_bus_error *error);
