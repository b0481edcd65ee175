/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether all is well on this host, with the reasons when it is not: the one answer of "computectl
 * status" and "doctor", of their exit codes, of the metrics and of systemd's status line. Pure. */

#include "agent/cycle/tracker.h"

typedef enum VerdictState {
        VERDICT_OK,
        VERDICT_PENDING,  /* something is on its way, and nobody need do anything */
        VERDICT_WARNING,  /* somebody should know it */
        VERDICT_DEGRADED, /* something is wrong */
        _VERDICT_STATE_MAX,
} VerdictState;

const char *verdict_state_to_text(VerdictState state); /* the STATE_… of formats/interface.h */

typedef struct VerdictReason {
        const char *check;   /* what it is about, as "doctor" names it: "placement" */
        VerdictState state;  /* never OK */
        const char *summary; /* ends a sentence: "the host cannot be polled" */
        const char *command; /* to be looked at next */
        const char *advice;  /* what to do */
        char text[ERROR_TEXT_MAX];
} VerdictReason;

#define VERDICT_REASONS_MAX 32
#define VERDICT_SUMMARY_MAX 256
#define VERDICT_LINE_MAX    1024

typedef struct Verdict {
        VerdictState state;
        const char *synced; /* how Placement and the host stand to each other, in words */
        VerdictReason reasons[VERDICT_REASONS_MAX]; /* the worst first */
        size_t n_reasons, n_providers, n_claims;
        uint64_t n_owed;
} Verdict;

void verdict_make(const CycleFacts *facts, Verdict *ret);

/* One sentence without its end. Returns text, which gets at most size bytes. */
const char *verdict_summary(const Verdict *verdict, char *text, size_t size);

/* The same with figures and the words of the worst reason. */
const char *verdict_line(const Verdict *verdict, char *text, size_t size);
