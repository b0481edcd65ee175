/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The order of a cycle of the resource tracker. A cycle is a walk through phases. Each phase starts
 * at most one operation that takes time, and ends with the result of this operation. The pure
 * function cycle_next() decides which phase follows, and phases.c implements the phases. All arrows
 * are tested in tests/unit/agent/cycle/test-order.c.
 *
 *   IDLE > POLL > READ > HOLDERS > OVERWRITES > CHECK > RESHAPE > CONSUMERS > PUBLISH
 *        > AUDIT > RECONCILE > END > IDLE
 *
 *   POLL > RECONCILE                               Without Placement.
 *   CHECK > REMOVE > RECONCILE                     A retirement.
 *   RESHAPE > READ                                 A reshape.
 *   CONSUMERS > PREPARE > RESERVE > AUDIT          The tree of nova-compute.
 *   CONSUMERS > PREPARE > RECONCILE                A dry run.
 *   (any) > READ                                   A conflict, see below.
 *   (any) > AUDIT                                  Another failure, with a client.
 *   (any) > RECONCILE                              Another failure, see below.
 *
 * Success. A phase that has nothing to do is skipped. READ follows a reshape, also a refused one:
 * the old shape is then published. A retirement that is only shown, or is not possible, is followed
 * by a publication in the same cycle, without a reshape. After a removal the host has nothing in
 * Placement, so neither publication nor audit follow. After a removal that failed for any reason,
 * Placement is read again, and the cycle publishes the tree.
 *
 * Without Placement. These cycles send no request: before the first successful poll, without a
 * [placement] section, on a retired host, and while the first publication waits for devices
 * (settling). A quiet cycle and one that skips its check (pace.h) send none either. A failed poll
 * does not end a cycle: the last snapshot is used. A standalone host reshapes its tree at the end
 * of POLL.
 *
 * The tree of nova-compute: [agent] nova = observe, beside. The cycle writes reserved amounts if
 * the mode permits it, and counts the requests that would make the tree equal. With nova = top the
 * agent owns the tree.
 *
 * Conflict: another writer changed the tree between READ and the write. The driver edits a fresh
 * copy, so no stale value is written. An inventory that was allocated since HOLDERS is retried
 * once, because the next HOLDERS retains it. After CYCLE_RETRIES_MAX retries of both kinds the
 * cycle fails. "(any)" is each phase before AUDIT.
 *
 * Failure: a refusal of Placement or a local failure skips to the audit. The cycle skips to
 * RECONCILE if Placement cannot be used, after the last conflict, and if there is no report client
 * yet. An audit that was requested then fails with the reason.
 *
 * END serves the calls that have arrived. IDLE then sets the timer and calls the waiters of the
 * cycle. A request during a cycle begins another one at once. A waiter for a publication
 * (TRACKER_PUBLISH in tracker.h) keeps waiting while it is put off. */

#include <stdbool.h>

#include "report/placement/outcome.h"

/* The phases. Their order is the order of a cycle without special cases: cycle_next() relies on
 * it. */
typedef enum CyclePhase {
        CYCLE_IDLE,       /* sets the timer, calls the waiters of the cycle that ended, and waits
                             for the timer, a change of the host or a request */
        CYCLE_POLL,       /* polls the host; its end makes the tree and passes it to the claims */
        CYCLE_READ,       /* reads the tree of Placement; its end makes the tree again from that */
        CYCLE_HOLDERS,    /* reads the consumers of inventories that the host no longer has, and of
                             devices that can be cleaned; its end retains the former */
        CYCLE_OVERWRITES, /* looks for values that another writer keeps overwriting */
        CYCLE_CHECK,      /* checks whether the host can be removed, if requested */
        CYCLE_REMOVE,     /* removes the host from Placement */
        CYCLE_RESHAPE,    /* reshapes the tree, if a reshape is due */
        CYCLE_CONSUMERS,  /* reads the consumers that claims wait for, and reconciles the claims */
        CYCLE_PUBLISH,    /* publishes the tree */
        CYCLE_PREPARE,    /* reads what a plan needs */
        CYCLE_RESERVE,    /* writes reserved amounts beside nova-compute, and counts differences */
        CYCLE_AUDIT,      /* audits, if an audit is due */
        CYCLE_RECONCILE,  /* reconciles claims and guests */
        CYCLE_END,        /* serves the calls that have arrived */
        _CYCLE_PHASE_MAX,
} CyclePhase;

#define CYCLE_SKIPPED _REPORT_OUTCOME_MAX /* the result of a phase that had nothing to do */

#define CYCLE_RETRIES_MAX 8

/* The scope of a cycle: with Placement, or the reason for a cycle without it. */
typedef enum CycleScope {
        CYCLE_PLACEMENT,
        CYCLE_HOST_UNKNOWN, /* no poll has succeeded */
        CYCLE_STANDALONE,   /* no [placement] section */
        CYCLE_RETIRED,      /* the host is removed from Placement */
        CYCLE_SETTLING,     /* the first publication waits for devices */
        CYCLE_QUIET,        /* too early for the next request */
        CYCLE_UNCHANGED,    /* no change for long, and too early for the next check */
} CycleScope;

/* The facts that decide the order of one cycle. */
typedef struct OrderFacts {
        CycleScope scope;    /* known at the end of CYCLE_POLL; CYCLE_REMOVE sets CYCLE_RETIRED
                                after a success */
        bool has_client;     /* the report client exists */
        bool owns_tree;      /* [agent] nova permits a publication */
        bool dry_run;        /* nothing is written */
        bool removes;        /* CYCLE_CHECK found that the host must be removed now */
        bool retries_in_use; /* one more attempt can retain an inventory in use */
        unsigned n_retries;  /* retries in this cycle so far */
} OrderFacts;

/* Returns the phase that follows phase. result is that of the phase: 0, CYCLE_SKIPPED, a
 * ReportOutcome or a negative errno. That of CYCLE_AUDIT and of the phases after it has no
 * influence. CYCLE_READ after a failure is a retry, and the caller increments n_retries. */
CyclePhase cycle_next(CyclePhase phase, int result, const OrderFacts *facts);
