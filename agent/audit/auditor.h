/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs audits: reads the allocations from this host in Placement, lets agent/audit/audit.h compare
 * them with claims and guests, and applies the requested remedies.
 *
 * The first audit runs at the start, unless a warm start (agent/cycle/warm-start.h) finds Placement
 * unchanged, and one runs after the claim database was created again. These two end claims of
 * guests that were evacuated (facts A14), and list differences. Until one of them, or an audit that
 * heals everything, succeeds, such an audit stays due. A reload passes memory and results of the
 * auditor to a new one (auditor_inherit()). Other audits run on request. If heal_cycles is set, one
 * that heals also runs every heal_cycles cycles. If that cycle has an audit for another reason,
 * which does not heal, or if its audit cannot begin, the automatic heal waits for the next
 * heal_cycles cycles. Audits are rare, because the read of all consumers costs one request for
 * each. An audit that fails leaves the results of the last one. Healing writes with the consumer's
 * generation, and reads a consumer again after a conflict. It changes nothing of other hosts. It
 * writes amounts of sharing providers only for a claim without allocations in Placement, and
 * removes them only with the rest of a consumer that names no other host. Each audit that has
 * compared, also one that does not heal, completes claims whose consumers got their allocations
 * only later. Main thread; blocks on the disk of the claim database. */

#include <systemd/sd-event.h>

#include "agent/guests/comparison.h"
#include "report/reporter.h"

typedef struct Auditor Auditor;

typedef struct AuditorConfig {
        ClaimService *claims; /* borrowed */
        Uuid root;
        bool at_start;        /* an audit of the start is due */
        uint64_t grace_usec;  /* 0: AUDITOR_GRACE_USEC */
        uint64_t heal_cycles; /* heal automatically at every n-th call of auditor_is_due(); 0:
                                 never */
        const char *refused;  /* reason why nothing can be written to Placement; NULL: it can */
} AuditorConfig;

#define AUDITOR_GRACE_USEC (300 * USEC_PER_SEC) /* default of grace_usec */

/* Creates the auditor. config is copied; its pointers are borrowed. Returns -ENOMEM on failure. */
int auditor_new(Auditor **ret, sd_event *event, const AuditorConfig *config);

/* Cancels the audit that runs; its done callback is not called. Free the reporter right after,
 * because a read of all consumers (reporter_gather()) is cancelled only with it. auditor can be
 * NULL. Returns NULL. */
Auditor *auditor_free(Auditor *auditor);
DEFINE_CLEANUP(Auditor *, auditor_free);

/* Moves memory and results of another auditor of the same host to a new one, and whether the audit
 * of the start is due. Requests are not moved. The other one must not be used any more, except to
 * free it. */
void auditor_inherit(Auditor *auditor, Auditor *before);

/* Requests an audit from the next cycle. If that cycle cannot reach it, its owner ends the request
 * with auditor_give_up(). heals: with consumer NULL the audit heals everything, otherwise that
 * consumer alone (copied), whose server is deleted. Several requests before that cycle are one
 * audit, which heals everything if one of them does. Among several consumers the last one counts.
 * by (copied) is the caller; it is used only by requests to heal, and the last one counts. NULL:
 * this program. */
void auditor_ask(Auditor *auditor, bool heals, const Uuid *consumer, const EventAuthor *by);

/* Ends the need of the audit of the start, because the last audit of an earlier process found
 * nothing and still counts. ended_usec is the end of that audit (CLOCK_REALTIME). */
void auditor_spare(Auditor *auditor, uint64_t ended_usec);

/* Returns true if an audit must begin in this cycle. The caller calls it once per cycle, because it
 * counts cycles. waits is AuditInput.waits: an audit of the start that left an evacuated guest
 * unchanged for such a reason, or because the end of its claim failed, is due again when there is
 * none. */
bool auditor_is_due(Auditor *auditor, const char *waits);

/* Begins an audit. The reporter must have read the tree. waits is AuditInput.waits. The reporter
 * and waits are borrowed until done is called. Returns a negative errno with words on failure:
 * nothing is running then, and the requests stay until auditor_give_up(). A later failure of the
 * audit is AuditorState.error, and the results of the audit before stay. A failed remedy is an
 * error of its finding alone. If memory for the results is short, the audit still counts as ended,
 * with that error. The callback done reports the end of the audit, once, never from inside
 * auditor_begin(). */
int auditor_begin(Auditor *auditor, Reporter *reporter, const char *waits,
                  void (*done)(void *userdata), void *userdata, Error *reterr);

/* Returns the progress of the audit, which must run. */
void auditor_get_progress(const Auditor *auditor, Progress *ret);

/* Ends the requests of this cycle without an audit, and stores the error as that of the last audit.
 * Does nothing without a request of auditor_ask(). An audit of a start stays due. */
void auditor_give_up(Auditor *auditor, const Error *error);

/* The results of the last audit that succeeded, and the error of the last audit. */
typedef struct AuditorState {
        Error error;         /* reason why the last audit failed or was given up; code 0: it
                                succeeded, or none ended */
        uint64_t ended_usec; /* CLOCK_REALTIME at the end of the last audit that did not fail, or
                                only lacked memory for its results, or that of auditor_spare();
                                0: none yet */
        size_t n_open;       /* number of problems that are not healed */
        ReconcileProblems findings; /* these problems for people, with guests that were evacuated */
        char *document;             /* the audit in the form AUDIT_FORMAT; NULL: none yet */
} AuditorState;

const AuditorState *auditor_get_state(const Auditor *auditor);
