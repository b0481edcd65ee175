/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The entry of all calls: each call is read, weighed and queued for its turn
 * (agent/bus/call-queue.h) before any work is done for it. So a burst of one user costs other users
 * only the time to read it. Calls that are too large or too many get LimitsExceeded. That refusal
 * is sent after BUS_REFUSAL_USEC, so an immediate retry gains nothing.
 *
 * The bus is asked once for the user of each connection, without blocking. Calls of root and of the
 * agent's own user are served as soon as they are read. Calls of other users are served when no
 * input is left and earlier answers are written. While calls are refused, "no input" means none
 * since BUS_QUIET_USEC. A call is served at the latest BUS_READING_USEC after the previous one. A
 * long answer is made in steps, with other calls in between.
 *
 * Main thread only. */

#include <sys/queue.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agent/bus/call-queue.h"
#include "base/macros.h"

#define BUS_READING_USEC (100 * USEC_PER_MSEC)
#define BUS_QUIET_USEC   (5 * USEC_PER_MSEC)
#define BUS_REFUSAL_USEC (500 * USEC_PER_MSEC)
#define BUS_REFUSALS_MAX 4096 /* queued refusals; further calls get no answer */

/* Limits of the size of a call: the bytes of its texts, plus BUS_CALL_SIZE_OF_A_VALUE for each
 * value. */
#define BUS_CALL_SIZE_MAX        (256 * 1024)
#define BUS_CALL_SIZE_OF_A_GUEST (5 * 1024 * 1024) /* calls with a domain's XML */
#define BUS_CALL_SIZE_OF_A_VALUE 16

typedef struct BusGate BusGate;

/* An answer that is made in steps. The gate owns the job from bus_gate_begin() to free(). */
typedef struct BusJob BusJob;
struct BusJob {
        /* Does a part of the work, which takes a few milliseconds. Returns above 0 if there is more
         * to do, 0 after it has answered, or a negative errno with or without error; then the gate
         * answers. */
        int (*step)(BusJob *job, sd_bus_error *error);
        void (*free)(BusJob *job);
        sd_bus_message *call; /* the job's own reference */
        TAILQ_ENTRY(BusJob) link;
};

/* Creates a gate without a connection. serve handles a call like the handler of a method. It must
 * also answer if there is no such method. is_long returns whether the answer is made in steps; it
 * can read the call, which is rewound. Returns -ENOMEM or an error of sd-event. */
int bus_gate_new(BusGate **ret, sd_event *event, sd_bus_message_handler_t serve,
                 bool (*is_long)(sd_bus_message *call), void *userdata);
BusGate *bus_gate_free(BusGate *gate);
DEFINE_CLEANUP(BusGate *, bus_gate_free);

/* Receives all calls of a connection (borrowed) until bus_gate_detach(). That drops all waiting
 * calls, refusals and jobs. */
int bus_gate_attach(BusGate *gate, sd_bus *bus);
void bus_gate_detach(BusGate *gate);

/* Returns the sender of the call, or NULL if its user is not known. Borrowed until the loop runs
 * again. */
const BusSender *bus_gate_get_sender(const BusGate *gate, sd_bus_message *call);

/* Takes ownership of a job. Call it only from serve, for a call that is_long accepts; serve then
 * returns 1. */
void bus_gate_begin(BusGate *gate, BusJob *job);
