/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Audits: reads who holds what of this host in Placement, lets agent/audit/audit.h compare it with
 * claims and guests, and does about it what is asked for.
 *
 * At a start, and after the claim database was made again, claims of guests that were evacuated
 * away end (facts A14), and what disagrees is listed. Later only when asked, and by itself every so
 * many cycles where the configuration says so: reading all consumers costs a request for each.
 * Healing writes with the consumer's generation, reads again what moved meanwhile, and touches
 * nothing of other hosts and of sharing providers. Main thread; nothing blocks but the claim
 * database's own disk. */

#include <jansson.h>

#include "agent/guests/comparison.h"
#include "report/reporter.h"

typedef struct Auditor Auditor;

typedef struct AuditorConfig {
        ClaimService *claims; /* borrowed */
        Uuid root;
        bool at_start;        /* the first cycle with a Placement audits */
        uint64_t grace_usec;  /* 0: AUDITOR_GRACE_USEC */
        uint64_t heal_cycles; /* heal automatically each n cycles; 0: never */
        const char *refused;  /* why nothing may be written to Placement; NULL: it may */
} AuditorConfig;

#define AUDITOR_GRACE_USEC (300 * USEC_PER_SEC)

/* The audit is over; called once, never from inside auditor_begin(). */
typedef void (*AuditorDone)(void *userdata);

int auditor_new(Auditor **ret, const AuditorConfig *config);

/* Cancels what is under way. */
Auditor *auditor_free(Auditor *auditor);
DEFINE_CLEANUP(Auditor *, auditor_free);

/* Kinds of audits that a caller can request. */
typedef enum AuditorWish {
        AUDITOR_WISH_LOOK,
        AUDITOR_WISH_HEAL,
        AUDITOR_WISH_HEAL_CONSUMER, /* heal one consumer alone, whose server is deleted */
} AuditorWish;

/* Asks the next cycle for an audit, which also heals what was asked for. consumer (copied; NULL
 * unless AUDITOR_WISH_HEAL_CONSUMER): of several calls before that cycle the last one counts. by
 * (copied): the caller; NULL: this program. */
void auditor_ask(Auditor *auditor, AuditorWish wish, const Uuid *consumer, const EventAuthor *by);

/* Is an audit to be begun in this cycle? To be called once a cycle. */
bool auditor_is_due(Auditor *auditor);

/* The reporter must have read the tree; waits as of agent/audit/audit.h. Both are borrowed until
 * done is called. Negative with words: see auditor_give_up(). */
int auditor_begin(Auditor *auditor, Reporter *reporter, const char *waits, AuditorDone done,
                  void *userdata, Error *reterr);

/* How far the audit that runs has come. */
void auditor_get_progress(const Auditor *auditor, Progress *ret);

/* There is no audit in this cycle, for this reason. */
void auditor_give_up(Auditor *auditor, const Error *error);

/* Results of the last audits. */
typedef struct AuditorState {
        Error error; /* why the last audit that was asked for could not look; code 0: it could */
        uint64_t ended_usec;        /* CLOCK_REALTIME of the last one; 0: none yet */
        size_t n_open;              /* what it found and nothing healed */
        ReconcileProblems findings; /* the same, with guests that were evacuated, for people */
        json_t *document;           /* it, of the form AUDIT_FORMAT; NULL: none yet */
} AuditorState;

const AuditorState *auditor_get_state(const Auditor *auditor);
