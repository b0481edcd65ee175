/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where calls to the agent come in: each is read, weighed and put where it waits for its
 * turn (agent/bus/turns.h), before anything is done for it. So what somebody sends in a moment
 * costs everybody else the reading of it, and no more. Calls that are too large, or too many, are
 * refused with LimitsExceeded; too many after BUS_REFUSAL_USEC, so that who asks anew at once is
 * slow about it.
 *
 * Whose a call is, the bus is asked once for each connection, without waiting. What root and the
 * agent's own user ask is served as soon as it is read. All else is served when nothing is left to
 * be read (while calls are refused: since BUS_QUIET_USEC), and the answers before it are written,
 * but not later than BUS_READING_USEC after the call before it. An answer that is long is made in
 * steps, between which others are served.
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

/* Lets all calls to a connection (borrowed) come in here; until bus_gate_detach(), which forgets
 * those that wait. */
int bus_gate_attach(BusGate *gate, sd_bus *bus);
void bus_gate_detach(BusGate *gate);

/* Whose the call is that is being served. NULL: it is not known any more. Borrowed until the loop
 * runs again. */
const BusSender *bus_gate_get_sender(const BusGate *gate, sd_bus_message *call);

/* Takes the job, from inside serve, which is to return 1 then. Only calls that
 * are long may begin one. */
void bus_gate_begin(BusGate *gate, BusJob *job);
