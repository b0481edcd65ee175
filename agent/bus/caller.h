/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who called, and whether this caller is allowed to: root and the daemon's own user everything, all
 * others what polkit allows.
 *
 * polkit is asked over D-Bus and without waiting: it can ask the caller for a password meanwhile.
 * Without polkit no other user is allowed anything. Few questions are open at a time, each keeps
 * its message (agent/bus/gate.h bounds its size), and after a minute it is withdrawn: an agent of
 * polkit that never answers keeps no other user from being asked. Main thread; reads files of this
 * host. */

#include <sys/queue.h>

#include "agent/bus/gate.h"
#include "claims/claim/claim.h"

#define POLKIT_QUESTIONS_PER_USER 4
#define POLKIT_QUESTIONS_MAX      64 /* dbus-daemon lets a connection wait for 128 answers */
#define POLKIT_PATIENCE_USEC      (60 * USEC_PER_SEC)

/* Actions of systemd/org.computeagent.policy. */
#define POLKIT_ACTION_CLAIM   "org.computeagent.claim"
#define POLKIT_ACTION_MANAGE  "org.computeagent.manage"
#define POLKIT_ACTION_RESHAPE "org.computeagent.reshape"
#define POLKIT_ACTION_RETIRE  "org.computeagent.retire"

typedef struct Polkit {
        const BusGate *gate;                   /* borrowed */
        LIST_HEAD(, PolkitQuestion) questions; /* that wait for an answer */
        uint64_t last_id;
} Polkit;

/* The caller for the journal: "root", "uid 1000", with the pid, and with command and unit where the
 * service sees them. */
typedef struct BusCaller {
        char name[64]; /* the user alone */
        EventAuthor author;
} BusCaller;

/* Describes the caller of the call that is being served. */
void bus_caller_find(const BusGate *gate, sd_bus_message *call, BusCaller *ret);

/* Logs what the caller did to a claim: "promised to …", "released"; reason can be "" or NULL. With
 * amounts and devices, and fields for claim, consumer and caller. */
void bus_caller_note(const BusCaller *caller, const Claim *claim, const char *reason,
                     const char *format, ...) _printf_(4, 5);

/* Calls handler with the call, at once or when polkit has allowed it, or answers with AccessDenied.
 * To be returned by the handler of a method. check (NULL: nothing to check) reads the arguments
 * before polkit is asked, and refuses them with error; the message is rewound after it. userdata is
 * borrowed until the bus is closed. */
int bus_caller_guard(Polkit *polkit, sd_bus_message *call, const char *action,
                     sd_bus_message_handler_t check, sd_bus_message_handler_t handler,
                     void *userdata, sd_bus_error *error);

/* Drops the open questions, before the bus is closed. */
void bus_caller_forget(Polkit *polkit);
