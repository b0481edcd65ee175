/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Calls of compute-agentd over D-Bus, and questions to systemd about units. Each function that
 * takes a bus blocks until the reply or the time limit. A call never starts the agent.
 *
 * Errors are words for people: those of the agent, or a text of this program. CTL_NOT_RUNNING means
 * that there is no bus, or no agent on it (but see ctl_bus_control_group()). -E2BIG means that the
 * agent could not decide a request within its limit of work. */

#include <systemd/sd-bus.h>

#include "base/json.h"
#include "base/progress.h"
#include "base/resource-request.h"
#include "ctl/print/page.h"

#define CTL_NOT_RUNNING (-ESRCH)

/* A request of "claim" or "explain". All members are borrowed. */
typedef struct CtlClaim {
        const char *consumer; /* uuid; NULL: the request is only explained (Explain), and nothing is
                                 claimed */
        const char *project, *user; /* NULL: not given */
        const char *consumer_type;  /* NULL: not given */
        /* The claim is for the target of a resize on the same host. */
        bool resize_target;
        uint32_t process;          /* pid of the guest; 0: not given */
        const char *control_group; /* absolute path of the guest's unit; NULL: not given */
        const ResourceRequest *request;
        const NumaOptions *numa;         /* the NUMA layout, as in the options */
        const RequestMappings *mappings; /* placed providers of the groups; NULL: not given */
} CtlClaim;

/* Starts pkttyagent, which asks for passwords on this terminal, and waits up to 5 s until polkit
 * knows it or it ends. Returns its process. Returns 0 if it is not installed, no process can be
 * made, or no person can be asked; polkit then answers without a password. */
pid_t ctl_authorization_start(void);

/* Ends pkttyagent and waits for its end. 0 is ignored. */
void ctl_authorization_stop(pid_t pid);

/* Opens a connection to the system bus of this host, or of host "[user@]host[:port]" if that is not
 * NULL. A connection to another host uses ssh, which can ask for a password, and
 * systemd-stdio-bridge on that host. Without host, returns CTL_NOT_RUNNING if this host has no bus.
 * The caller closes with sd_bus_flush_close_unref(). */
int ctl_bus_open(sd_bus **ret, const char *host, Error *reterr);

/* Calls a method with arguments as sd_bus_message_append() takes them. *ret is the text of the
 * reply, which the caller frees; ret NULL: the reply is ignored. A call without arguments and with
 * a time limit shows its progress on a terminal. timeout_usec 0: the default of the bus, without
 * progress. */
int ctl_bus_call(sd_bus *bus, const char *method, uint64_t timeout_usec, char **ret, Error *reterr,
                 const char *types, ...);

/* Formats the line of that progress: "reshape: gathering 12/40 [=======> ]", cut at the width of
 * the style (0: 80 columns) and at size. The bar appears only if the requests are counted and the
 * line has space for it. Pure. */
void ctl_bus_format_progress(const char *kind, const Progress *progress, const CtlStyle *style,
                             char *line, size_t size);

/* Reads a document of Describe(). Returns the errors of ctl_bus_call(), or -EBADMSG if it has
 * another format; format NULL: the document is an array. The caller owns the reference. */
int ctl_bus_describe(sd_bus *bus, const char *document, const char *format, json_t **ret,
                     Error *reterr);

/* Finds the control group of a unit that the service manager on that bus runs. A name without a dot
 * is that of a service. Returns -ESRCH if the unit is loaded but does not run, and another errno of
 * systemd for an unknown unit. The caller frees the text. */
int ctl_bus_control_group(sd_bus *bus, const char *unit, char **ret, Error *reterr);

/* Creates a claim, or finds that of an equal request, and returns it (CLAIM_FORMAT). Without a
 * consumer, returns whether the request fits, with the reasons (EXPLAIN_FORMAT). The caller owns
 * the reference. */
int ctl_bus_request(sd_bus *bus, const CtlClaim *claim, json_t **ret, Error *reterr);

/* Moves a claim to another consumer. consumer_type NULL: the agent decides. */
int ctl_bus_move_claim(sd_bus *bus, const char *from, const char *to, const char *consumer_type,
                       int64_t *ret_id, Error *reterr);

/* Calls PrepareGuest, CheckGuest, GuestStarted or GuestReleased with one text, or with two if
 * argument2 is not NULL. Returns 1 if PrepareGuest succeeded and the guest is not ready. If the
 * agent rejects the guest, *ret_refused is set to the start of a sentence (static). Any other
 * result leaves it unchanged. */
int ctl_bus_guest(sd_bus *bus, const char *method, const char *argument, const char *argument2,
                  uint64_t timeout_usec, const char **ret_refused, Error *reterr);
