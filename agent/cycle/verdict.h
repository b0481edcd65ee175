/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes the verdict on this host: a state and its reasons. With the state OK a reason is only
 * information. "computectl status", "doctor", their exit codes, the metrics and systemd's status
 * line all use it. Pure. */

#include "agent/cycle/tracker.h"

/* The states, in the order of their severity. */
typedef enum VerdictState {
        VERDICT_OK,
        VERDICT_PENDING,  /* a change is not complete; no action is necessary */
        VERDICT_WARNING,  /* the operator should know it */
        VERDICT_DEGRADED, /* something does not work */
        _VERDICT_STATE_MAX,
} VerdictState;

const char *verdict_state_to_text(VerdictState state); /* the STATE_… of formats/interface.h */

/* A reason. The strings are static, except for text. */
typedef struct VerdictReason {
        const char *check;         /* subject, as "doctor" names it, for example "placement" */
        VerdictState state;        /* OK: information only */
        const char *summary;       /* end of a sentence, for example "the host cannot be polled" */
        const char *command;       /* command that shows more */
        const char *advice;        /* advice for the operator */
        char text[ERROR_TEXT_MAX]; /* the fact, with names and amounts */
} VerdictReason;

/* Sizes: number of reasons; bytes of a summary and of a line. A longer text is cut. */
#define VERDICT_REASONS_MAX 32
#define VERDICT_SUMMARY_MAX 256
#define VERDICT_LINE_MAX    1024

/* The state, which is that of the worst reason or OK, and the reasons. A reason can hide others,
 * which verdict.c lists. */
typedef struct Verdict {
        VerdictState state;
        VerdictReason reasons[VERDICT_REASONS_MAX]; /* the worst first */
        size_t n_reasons;
        /* A sentence without its full stop: the state of Placement if the verdict is OK. Otherwise
         * the summary of the worst reason and the number of other reasons that are no information,
         * and for a warning the state of Placement before them. */
        char summary[VERDICT_SUMMARY_MAX];
        /* The summary, the numbers of providers and claims, that of pending writes unless it is 0,
         * and the text of the worst reason. */
        char line[VERDICT_LINE_MAX];
} Verdict;

/* Makes the verdict. *ret borrows nothing from *facts. */
void verdict_make(const CycleFacts *facts, Verdict *ret);
