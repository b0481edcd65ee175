/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The entry of all calls. Before any work is done for a call, its size is measured, and it is
 * queued for its turn (agent/bus/call-queue.h). So a burst of one user costs other users only the
 * time to read the burst. Calls that are too large or too many get LimitsExceeded. That refusal is
 * sent after BUS_REFUSAL_USEC, so an immediate retry gains nothing. A call that expects no reply
 * gets none, and so do refused calls beyond BUS_REFUSALS_MAX, and those of a user that does not
 * read its answers for 10 s. Introspect and Peer are answered by sd-bus at once, within a limit for
 * all unprivileged users together.
 *
 * The bus is asked for the user of each connection at its first call, without blocking. It is asked
 * again only if it gave no answer, or if the connection was forgotten. If it gives no answer, the
 * waiting calls of the connection are dropped without a reply. Calls of root and of the agent's own
 * user are served as soon as they are read and their user is known. Calls of other users are served
 * when no input is left and earlier answers are written. While calls are refused, "no input" means
 * none since BUS_QUIET_USEC. While more input arrives, one call is served every BUS_READING_USEC,
 * unless earlier answers still wait to be written. A long answer is made in steps, with other calls
 * in between.
 *
 * An unprivileged user that does not read its answers gets no more of them. Its waiting calls are
 * dropped without an answer after 10 s. With more than BUS_UNREAD_OF_ALL unread bytes, all
 * unprivileged users count as not reading. With a bus that does not report unread bytes
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
#define BUS_REFUSALS_MAX 4096 /* queued refusals; further calls get no answer */

/* Limits of the size of a call: the bytes of its texts, plus BUS_CALL_SIZE_OF_A_VALUE for each
 * value. BUS_CALL_SIZE_OF_A_GUEST is the limit for the methods of libvirt's hook, which sends the
 * XML of a domain. It applies if the sender is privileged or its user is not known yet. */
#define BUS_CALL_SIZE_MAX        (256 * 1024)
#define BUS_CALL_SIZE_OF_A_GUEST (5 * 1024 * 1024)
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
        sd_bus_message *call; /* a reference that the gate releases before it calls free() */
        TAILQ_ENTRY(BusJob) link;
};

/* Creates a gate without a connection. serve handles a call like the handler of a method, and the
 * gate answers with its error. It must also answer if there is no such method. The function is_long
 * returns whether the answer is made in steps. It can read the call, and must rewind it. Returns
 * -ENOMEM or an error of sd-event. */
int bus_gate_new(BusGate **ret, sd_event *event, sd_bus_message_handler_t serve,
                 bool (*is_long)(sd_bus_message *call), void *userdata);
BusGate *bus_gate_free(BusGate *gate);
DEFINE_CLEANUP(BusGate *, bus_gate_free);

/* Receives all calls of a connection (borrowed) until bus_gate_detach(). Then all waiting calls,
 * refusals and jobs are dropped without an answer. Returns the errors of sd-bus. */
int bus_gate_attach(BusGate *gate, sd_bus *bus);
void bus_gate_detach(BusGate *gate);

/* Returns the sender of the call, or NULL if its user is not known. Borrowed until the loop runs
 * again. */
const BusSender *bus_gate_get_sender(const BusGate *gate, sd_bus_message *call);

/* Takes ownership of a job. Call it only from serve, for a call that is_long accepts; serve then
 * returns 1. */
void bus_gate_begin(BusGate *gate, BusJob *job);
