/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Talking to compute-agentd over D-Bus. Each function makes one call and blocks until its answer or
 * its time limit. The agent is never started by a call.
 *
 * Errors are words for people: those of the agent, or what to do. CTL_NOT_RUNNING means that there
 * is no bus, or no agent on it. */

#include <systemd/sd-bus.h>

#include "base/json.h"
#include "base/resource-request.h"

#define CTL_NOT_RUNNING (-ESRCH)

/* A request of "claim" or "explain". Everything is borrowed. */
typedef struct CtlClaim {
        const char *consumer;       /* NULL: the request is only explained */
        const char *project, *user; /* may be NULL */
        const char *consumer_type;  /* may be NULL */
        bool resize_target;
        uint32_t process;          /* of the guest; 0: not given */
        const char *control_group; /* of the unit that is the guest; may be NULL */
        const ResourceRequest *request;
        const NumaOptions *numa;         /* the layout, as the options have it */
        const RequestMappings *mappings; /* of its groups; may be NULL */
} CtlClaim;

/* Starts pkttyagent, which asks for passwords on this terminal, and waits until polkit knows it.
 * Returns its process. 0: it is not installed, or there is no person to ask; polkit answers as it
 * does without. */
pid_t ctl_authorization_start(void);

/* Ends it. 0 is allowed. */
void ctl_authorization_stop(pid_t pid);

/* Opens a connection to the system bus, of this host or (not NULL) of "[user@]host[:port]": then
 * over ssh, which may ask for a password, and with systemd-stdio-bridge at the other end. The
 * caller closes with sd_bus_flush_close_unref(). */
int ctl_bus_open(sd_bus **ret, const char *host, Error *reterr);

/* Calls a method with arguments as sd_bus_message_append() takes them. *ret is the text of the
 * answer, which the caller frees; NULL: the answer is not read. A call without arguments shows its
 * progress on a terminal. timeout_usec 0: the default of the bus. */
int ctl_bus_call(sd_bus *bus, const char *method, uint64_t timeout_usec, char **ret, Error *reterr,
                 const char *types, ...);

/* Reads a document of Describe(), of that format; NULL: an array. */
int ctl_bus_describe(sd_bus *bus, const char *document, const char *format, json_t **ret,
                     Error *reterr);

/* Finds the control group of a unit that the service manager of that bus runs; the caller frees. */
int ctl_bus_control_group(sd_bus *bus, const char *unit, char **ret, Error *reterr);

/* Claims, and returns the claim (CLAIM_FORMAT); without a consumer, returns why the request fits or
 * not (EXPLAIN_FORMAT). */
int ctl_bus_request(sd_bus *bus, const CtlClaim *claim, json_t **ret, Error *reterr);

/* consumer_type NULL: the agent decides. */
int ctl_bus_move_claim(sd_bus *bus, const char *from, const char *to, const char *consumer_type,
                       int64_t *ret_id, Error *reterr);

/* PrepareGuest, GuestStarted, GuestReleased: with one or (argument2 not NULL) two texts.
 * ret_refused: set to the beginning of a sentence (static) when the agent refuses the guest, which
 * is no failure to answer. */
int ctl_bus_guest(sd_bus *bus, const char *method, const char *argument, const char *argument2,
                  uint64_t timeout_usec, const char **ret_refused, Error *reterr);
