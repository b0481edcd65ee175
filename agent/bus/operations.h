/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Methods that answer after a cycle, or at once with an error: Sync, SyncFull, GetReshape, Reshape,
 * UndoReshape, Audit, Heal, HealConsumer, GetRetire, Retire, Reload (after 30 s at the latest). The
 * properties Operation… show the progress of the cycle, which is compared several times a second
 * while a call waits. Main thread only. */

#include <systemd/sd-bus.h>

#include "agent/bus/bus.h"
#include "base/progress.h"

typedef struct BusOperations BusOperations;

/* Creates the list of waiting calls. config is borrowed; its tracker can be replaced later. changed
 * is called when the values of bus_operations_get() might have changed. Returns -ENOMEM or an error
 * of sd-event. */
int bus_operations_new(BusOperations **ret, sd_event *event, const BusConfig *config,
                       void (*changed)(void *userdata), void *userdata);
BusOperations *bus_operations_free(BusOperations *operations);
DEFINE_CLEANUP(BusOperations *, bus_operations_free);

/* Returns the method of the oldest waiting call, and the tracker's progress. "" means that no call
 * waits. */
const char *bus_operations_get(const BusOperations *operations, Progress *ret);

/* Handles a call of one of these methods. Logs first who requests a change, except a reload. A
 * reshape fails with BUS_ERROR_BUSY while a call for another kind of reshape waits. Retire() and
 * GetRetire() fail so while either of them waits, and HealConsumer() while another one waits. A
 * reshape or a retirement that the mode of Nova or the state of the host does not permit fails with
 * BUS_ERROR_REFUSED. A heal begins in every mode. If the mode forbids its writes, each of them
 * fails in the document. The author "by" is borrowed during the call only. Returns 1 if the answer
 * will follow, or a negative errno with or without error. */
int bus_operations_begin(BusOperations *operations, sd_bus_message *call, const EventAuthor *by,
                         sd_bus_error *error);

/* Handles Cancel(): answers all waiting calls of the named method with BUS_ERROR_CANCELLED. The
 * requested cycle still runs, without a reshape that was requested. Cancel() fails with
 * BUS_ERROR_BUSY for a method that cannot be cancelled (Heal, HealConsumer, Retire, Reload) or a
 * reshape that was sent, and with BUS_ERROR_NOT_FOUND if no call of the named method waits. */
int bus_operations_cancel(BusOperations *operations, sd_bus_message *call, sd_bus_error *error);
