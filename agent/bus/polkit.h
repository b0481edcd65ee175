/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who may call what: root and the daemon's own user everything; all others what polkit allows them.
 *
 * polkit is asked over D-Bus and without waiting: the caller may be asked for a password meanwhile.
 * Where there is no polkit, nobody else is allowed anything. Few questions are open at a time, each
 * keeps its message (agent/bus/gate.h says how large that is at most), and after a minute it is
 * withdrawn: an agent that never answers keeps nobody else from being asked for. Main thread only.
 */

#include "agent/bus/gate.h"

#define POLKIT_QUESTIONS_PER_USER 4
#define POLKIT_QUESTIONS_MAX      64 /* dbus-daemon lets a connection wait for 128 answers */
#define POLKIT_PATIENCE_USEC      (60 * USEC_PER_SEC)

/* Actions of systemd/org.computeagent.policy. */
#define POLKIT_ACTION_CLAIM   "org.computeagent.claim"
#define POLKIT_ACTION_MANAGE  "org.computeagent.manage"
#define POLKIT_ACTION_RESHAPE "org.computeagent.reshape"
#define POLKIT_ACTION_RETIRE  "org.computeagent.retire"

typedef struct Polkit {
        const BusGate *gate;              /* borrowed */
        struct PolkitQuestion *questions; /* that wait for an answer */
        uint64_t last_id;
} Polkit;

/* To be called before the bus is closed: nobody waits for an answer any more. */
void polkit_forget(Polkit *polkit);

/* To be returned by the handler of a method: calls handler with the call, at once or when polkit
 * has allowed it, or answers with AccessDenied. check (NULL: nothing to check) reads the arguments
 * before somebody is asked, and refuses them with error; the message is rewound after it. userdata
 * is borrowed until the bus is closed. */
int polkit_guard(Polkit *polkit, sd_bus_message *call, const char *action,
                 sd_bus_message_handler_t check, sd_bus_message_handler_t handler, void *userdata,
                 sd_bus_error *error);
