/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Identifies the caller of a method and checks its rights. Root and the daemon's own user have all
 * rights. For other users polkit decides, and a caller whose user is not known has no rights.
 *
 * polkit is asked over D-Bus without blocking, because it can ask the caller for a password.
 * Without polkit, no other user has any rights. The number of open questions is bounded for each
 * user and in total, and so is the size of the calls that they hold (agent/bus/gate.h). A question
 * is withdrawn after POLKIT_PATIENCE_USEC, so an authentication agent that never answers does not
 * block other users for longer. A call without a verdict of an installed polkit gets Busy. Main
 * thread; reads files of this host. */

#include <sys/queue.h>

#include "agent/bus/gate.h"
#include "claims/claim/claim.h"

#define POLKIT_QUESTIONS_PER_USER 4
#define POLKIT_QUESTIONS_MAX      64 /* dbus-daemon limits a connection to 128 pending replies */
#define POLKIT_PATIENCE_USEC      (60 * USEC_PER_SEC)

/* The polkit actions of systemd/org.computeagent.policy. */
#define POLKIT_ACTION_ATTACH  "org.computeagent.attach"
#define POLKIT_ACTION_CLAIM   "org.computeagent.claim"
#define POLKIT_ACTION_MANAGE  "org.computeagent.manage"
#define POLKIT_ACTION_RESHAPE "org.computeagent.reshape"
#define POLKIT_ACTION_RETIRE  "org.computeagent.retire"

/* The open questions to polkit. */
typedef struct Polkit {
        const BusGate *gate;                   /* borrowed */
        LIST_HEAD(, PolkitQuestion) questions; /* unanswered */
        uint64_t last_id;
        uint64_t warned_usec; /* CLOCK_MONOTONIC of the last warning; 0: none */
} Polkit;

/* The caller in the words of the journal: the name in /etc/passwd or "uid 1000", with the pid if it
 * is known, and with command and unit if the service can read them. */
typedef struct BusCaller {
        char name[64]; /* the user, without pid, command and unit */
        EventAuthor author;
} BusCaller;

/* Describes the caller of the call that is being served: "unknown caller" with uid -1 if its user
 * is not known. Reads /etc/passwd and /proc. */
void bus_caller_find(const BusGate *gate, sd_bus_message *call, BusCaller *ret);

/* Calls handler if the caller has the rights of the action. For root and the daemon's own user it
 * does so at once, otherwise after the answer of polkit. A caller without the rights gets
 * AccessDenied, or InteractiveAuthorizationRequired if a password could help. If polkit is
 * installed and does not decide, the caller gets BUS_ERROR_BUSY. A user with too many open
 * questions gets LimitsExceeded, and while too many are open in total, so does each user for whom
 * polkit decides. A caller whose user is not known gets AccessDenied. Returns the result of
 * handler, 1 if polkit was asked, or a negative errno; the sd-bus handler of a method returns the
 * same.
 *
 * check (NULL: none) reads the arguments before polkit is asked, and rejects them with error. It
 * does not run for root and the daemon's own user. The message is rewound after check. userdata is
 * borrowed until handler has run, or until bus_caller_forget(). */
int bus_caller_guard(Polkit *polkit, sd_bus_message *call, const char *action,
                     sd_bus_message_handler_t check, sd_bus_message_handler_t handler,
                     void *userdata, sd_bus_error *error);

/* Drops all open questions without answering their calls. Call it before the bus is closed. */
void bus_caller_forget(Polkit *polkit);
