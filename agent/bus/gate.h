/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The entry of all calls: each is read, weighed and queued for its turn (agent/bus/turns.h) before
 * any work is done for it. So a burst of one user costs all others the time to read it, and no
 * more. Calls that are too large or too many get LimitsExceeded, the latter after BUS_REFUSAL_USEC,
 * so that asking again at once gains nothing.
 *
 * The bus is asked once for the user of each connection, without waiting. Calls of root and of the
 * agent's own user are served as soon as they are read. All others are served when no input is left
 * (while calls are refused: none since BUS_QUIET_USEC) and earlier answers are written, but at most
 * BUS_READING_USEC after the call before. A long answer is made in steps, with other calls in
 * between.
 *
 * Main thread only. */

#include <sys/queue.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agent/bus/turns.h"
#include "base/macros.h"

#define BUS_READING_USEC (100 * USEC_PER_MSEC)
#define BUS_QUIET_USEC   (5 * USEC_PER_MSEC)
#define BUS_REFUSAL_USEC (500 * USEC_PER_MSEC)
#define BUS_REFUSALS_MAX 4096 /* that are held; beyond there is no answer */

/* Of a call's arguments: bytes of texts, and some for each value. */
#define BUS_CALL_SIZE_MAX        (256 * 1024)
#define BUS_CALL_SIZE_OF_A_GUEST (5 * 1024 * 1024) /* root's, with the XML of a domain */
#define BUS_CALL_SIZE_OF_A_VALUE 16

typedef struct BusGate BusGate;

/* An answer that is made in steps. */
typedef struct BusJob BusJob;
struct BusJob {
        /* Above 0: there is more to do; 0: it has answered; below: it failed, with or without
         * error. A step takes a few milliseconds. */
        int (*step)(BusJob *job, sd_bus_error *error);
        void (*free)(BusJob *job);
        sd_bus_message *call; /* a reference of its own */
        TAILQ_ENTRY(BusJob) link;
};

/* serve: serves a call as the handler of a method does, and answers also when there is no such
 * method. is_long: whether the answer is made in steps; it may read the call, which is rewound.
 * -ENOMEM, and what sd-event says. */
int bus_gate_new(BusGate **ret, sd_event *event, sd_bus_message_handler_t serve,
                 bool (*is_long)(sd_bus_message *call), void *userdata);
BusGate *bus_gate_free(BusGate *gate);
DEFINE_CLEANUP(BusGate *, bus_gate_free);

/* Receives all calls of a connection (borrowed) until bus_gate_detach(), which drops the calls that
 * wait. */
int bus_gate_attach(BusGate *gate, sd_bus *bus);
void bus_gate_detach(BusGate *gate);

/* Returns the sender of the call that is being served. NULL: it is not known any more. Borrowed
 * until the loop runs again. */
const BusSender *bus_gate_get_sender(const BusGate *gate, sd_bus_message *call);

/* Takes a job. To be called from inside serve, which returns 1 then, and only for calls that
 * is_long accepts. */
void bus_gate_begin(BusGate *gate, BusJob *job);
