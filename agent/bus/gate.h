/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The entry of all method calls. A call of an unprivileged or unknown user is measured, and queued
 * for its turn (agent/bus/call-queue.h), before other work is done for it. So a burst of one user
 * costs other users little more than the time to read the burst. Calls that are too large or too
 * many get LimitsExceeded. That refusal is sent BUS_REFUSAL_USEC later or more, so an immediate
 * retry gains nothing. A refused call gets no answer if it expects none, if BUS_REFUSALS_MAX
 * refusals wait, or if its user does not read its answers 10 s later. Introspect and Peer are
 * answered by sd-bus at once, within a limit for all unprivileged users together.
 *
 * The bus is asked for the user of each connection at its first call, without blocking. A later
 * call asks again only if the question failed, or if the connection was forgotten. If the question
 * fails, the waiting calls of the connection are dropped without a reply. Calls of root and of the
 * agent's own user are served as soon as they are read and their user is known. Calls of other
 * users are served when no input is left and earlier answers are written. While refusals wait, "no
 * input" means none since BUS_QUIET_USEC. While more input arrives, a call that was read lets one
 * call be served, at most every BUS_READING_USEC, unless earlier answers still wait to be written.
 * A long answer is made in steps, with other calls in between.
 *
 * While an unprivileged user does not read its answers, none of its calls is served. Its waiting
 * calls are dropped without an answer after 10 s. With more than BUS_UNREAD_OF_ALL unread bytes,
 * all unprivileged users count as not reading. With a bus that does not report unread bytes
 * (dbus-broker, or a policy that hides them), all users count as reading.
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
#define BUS_REFUSALS_MAX 4096 /* queued refusals; a further refused call gets no answer */

/* Limits of the size of a call: the bytes of its texts, plus BUS_CALL_SIZE_OF_A_VALUE for each
 * value and container. BUS_CALL_SIZE_OF_A_GUEST is the limit for PrepareGuest(), which has the XML
 * of a domain, GuestStarted() and GuestReleased(). It applies if the sender is privileged or its
 * user is not known yet. */
#define BUS_CALL_SIZE_MAX        (256 * 1024)
#define BUS_CALL_SIZE_OF_A_GUEST (5 * 1024 * 1024)
#define BUS_CALL_SIZE_OF_A_VALUE 16

typedef struct BusGate BusGate;

/* An answer that is made in steps. The gate owns the job from bus_gate_begin() to free(). */
typedef struct BusJob BusJob;
struct BusJob {
        /* Does a part of the work, which should take a few milliseconds. Returns above 0 if there
         * is more to do, 0 after it has answered, or a negative errno with or without error; then
         * the gate answers. */
        int (*step)(BusJob *job, sd_bus_error *error);
        void (*free)(BusJob *job);
        sd_bus_message *call; /* a reference that the gate releases before it calls free() */
        TAILQ_ENTRY(BusJob) link;
};

/* Creates a gate without a connection. serve handles a call like the handler of a method, and the
 * gate answers with its error. The function serve must also answer if there is no such method. The
 * function is_long returns whether the answer is made in steps. It can read the call, and must
 * rewind it. Returns -ENOMEM or an error of sd-event. */
int bus_gate_new(BusGate **ret, sd_event *event, sd_bus_message_handler_t serve,
                 bool (*is_long)(sd_bus_message *call), void *userdata);
BusGate *bus_gate_free(BusGate *gate);
DEFINE_CLEANUP(BusGate *, bus_gate_free);

/* Receives the method calls of a connection (borrowed) until bus_gate_detach(), which drops all
 * waiting calls, refusals and jobs without an answer. Returns the errors of sd-bus. */
int bus_gate_attach(BusGate *gate, sd_bus *bus);
void bus_gate_detach(BusGate *gate);

/* Returns the sender of the call, or NULL if its user is not known. Borrowed until the loop runs
 * again. */
const BusSender *bus_gate_get_sender(const BusGate *gate, sd_bus_message *call);

/* Takes ownership of a job. Call it only from serve, for a call that is_long accepts; serve then
 * returns 1. */
void bus_gate_begin(BusGate *gate, BusJob *job);
