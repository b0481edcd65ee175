/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Talking to compute-agentd over D-Bus: each function makes one call and turns its answer into a
 * document. Everything blocks until the answer or a time-out. The agent is never started by a call.
 *
 * Errors are words for people: what the agent itself says, or what to do. */

#include <systemd/sd-bus.h>

#include "base/json.h"
#include "ctl/ask/message.h"

typedef enum CtlBusOutcome {
        CTL_BUS_DONE = 0,
        CTL_BUS_E_NOT_RUNNING = 1, /* no bus, or nobody on it has the name; reterr has the words */
} CtlBusOutcome;

/* A connection to the system bus, of this host or (not NULL) of "[user@]host[:port]": then over
 * ssh, which may ask for a password, and with systemd-stdio-bridge at the other end. The caller
 * closes with sd_bus_flush_close_unref(). */
int ctl_bus_open(sd_bus **ret, const char *host, Error *reterr);

/* Methods that answer with one text when they have ended: Sync, Audit. The caller frees. */
int ctl_bus_get_text(sd_bus *bus, const char *method, uint64_t timeout_usec, char **ret,
                     Error *reterr);

/* HealConsumer; the text as of Heal. The caller frees. */
int ctl_bus_heal_consumer(sd_bus *bus, const char *consumer, uint64_t timeout_usec, char **ret,
                          Error *reterr);

/* A document of Describe(), of that format; NULL: an array. */
int ctl_bus_describe(sd_bus *bus, const char *document, const char *format, json_t **ret,
                     Error *reterr);

/* Cordon, or (reason NULL) Uncordon; the text as of Sync. */
int ctl_bus_cordon(sd_bus *bus, const char *method, const char *device, const char *reason,
                   uint64_t timeout_usec, char **ret, Error *reterr);

/* The control group of a unit that the service manager of that bus runs; the caller frees. */
int ctl_bus_control_group(sd_bus *bus, const char *unit, char **ret, Error *reterr);

/* The claim that was made, CLAIM_FORMAT. */
int ctl_bus_claim(sd_bus *bus, const CtlClaim *claim, json_t **ret, Error *reterr);

/* Answers when the new settings are in force. */
int ctl_bus_reload(sd_bus *bus, uint64_t timeout_usec, Error *reterr);

/* Why it fits or not, EXPLAIN_FORMAT; no consumer. */
int ctl_bus_explain(sd_bus *bus, const CtlClaim *claim, json_t **ret, Error *reterr);

/* PrepareGuest, GuestStarted, GuestReleased: with one or (argument2 not NULL) two texts.
 * ret_refused: set to the beginning of a sentence (static) when the agent looked at it and said no,
 * which is no failure to answer. */
int ctl_bus_guest(sd_bus *bus, const char *method, const char *argument, const char *argument2,
                  uint64_t timeout_usec, const char **ret_refused, Error *reterr);

int ctl_bus_confirm(sd_bus *bus, int64_t id, Error *reterr);
int ctl_bus_release(sd_bus *bus, int64_t id, const char *reason, bool allocations, Error *reterr);
int ctl_bus_move_claim(sd_bus *bus, const char *from, const char *to, const char *consumer_type,
                       int64_t *ret_id, Error *reterr);
