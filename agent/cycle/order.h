/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The order of a cycle of the resource tracker. A cycle is a walk through phases. Each phase begins
 * with at most one request and ends with its answer. cycle_next() decides which phase follows; it
 * is pure. phases.c does what the phases do. tests/unit/agent/cycle/test-order.c has all arrows.
 *
 *   IDLE > POLL > READ > HOLDERS > CONTEST > CHECK > RESHAPE > WITNESS > PUBLISH > AUDIT
 *        > RECONCILE > END > IDLE
 *
 *   POLL > RECONCILE                               without Placement
 *   CHECK > REMOVE > RECONCILE                     a retirement
 *   RESHAPE > READ                                 a reshape
 *   WITNESS > PREPARE > RESERVE > AUDIT            the tree of nova-compute
 *   WITNESS > PREPARE > RECONCILE                  a dry run
 *   any > READ                                     a conflict
 *   any > AUDIT                                    a refusal of Placement, a local failure
 *   any > RECONCILE                                Placement cannot be used
 *
 * Success. A phase that has nothing to do is skipped. READ follows a reshape, also a refused one:
 * the old shape is then published. A retirement that is shown, or not possible, is followed by a
 * publication in the same cycle, without a reshape. After a removal the host has nothing in
 * Placement, so neither publication nor audit follow; a removal that was refused is read again.
 *
 * Without Placement: before the first poll that succeeds, without a [placement] section, on a
 * retired host, while the first publication waits for devices (settling), and in a quiet cycle,
 * which spares Placement (pace.h). A poll that fails does not end a cycle: the last snapshot is
 * used. A standalone host reshapes its tree at the end of POLL.
 *
 * The tree of nova-compute: [agent] nova = observe, beside. The cycle writes reserved amounts where
 * the mode permits it, and counts the requests that would make the tree equal. With nova = top the
 * agent owns the tree.
 *
 * Conflict: another writer changed the tree between READ and the write. The driver edits a fresh
 * copy, so no stale value is written. An inventory that was allocated since HOLDERS is retried
 * once, because the next HOLDERS retains it. After CYCLE_RETRIES_MAX retries the cycle fails.
 *
 * Failure: if Placement cannot be used, the audit that was requested fails with the reason.
 *
 * END: the waiters of the cycle are called and the timer is set. A request during a cycle begins
 * another one at once. Waiters for a publication (waiters.h) wait on while it is put off. */

#include <stdbool.h>

typedef enum CyclePhase {
        CYCLE_IDLE,    /* ends with the timer, a change of the host or a request */
        CYCLE_POLL,    /* the host; its end makes the tree and shows it to the claims */
        CYCLE_READ,    /* the tree of Placement; its end makes the tree again, from what was read */
        CYCLE_HOLDERS, /* reads who holds inventories that the host no longer has; its end retains
                          them */
        CYCLE_CONTEST, /* looks for values that another writer keeps overwriting */
        CYCLE_CHECK,   /* whether the host can be removed, if a retirement was requested */
        CYCLE_REMOVE,  /* the host from Placement */
        CYCLE_RESHAPE, /* if one is due */
        CYCLE_WITNESS, /* reads the consumers that claims wait for, and reconciles the claims */
        CYCLE_PUBLISH, /* the tree */
        CYCLE_PREPARE, /* reads what a plan needs */
        CYCLE_RESERVE, /* writes reserved amounts beside nova-compute, and counts differences */
        CYCLE_AUDIT,   /* if one is due */
        CYCLE_RECONCILE, /* claims and guests */
        CYCLE_END,       /* ends the cycle: calls its waiters */
        _CYCLE_PHASE_MAX,
} CyclePhase;

typedef enum CycleOutcome {
        CYCLE_DONE,
        CYCLE_SKIPPED,  /* the phase had nothing to do */
        CYCLE_CONFLICT, /* another writer changed the tree meanwhile */
        CYCLE_IN_USE,   /* Placement keeps an inventory or provider that is allocated */
        CYCLE_REFUSED,  /* every other refusal, and local failures */
        CYCLE_AWAY,     /* Placement cannot be used */
        _CYCLE_OUTCOME_MAX,
} CycleOutcome;

#define CYCLE_RETRIES_MAX 8

/* Whether a cycle asks Placement, or why it does not. */
typedef enum CycleScope {
        CYCLE_PLACEMENT,
        CYCLE_HOST_UNKNOWN, /* no poll has succeeded */
        CYCLE_STANDALONE,   /* there is no [placement] section */
        CYCLE_RETIRED,      /* the host is removed from Placement */
        CYCLE_SETTLING,     /* the first publication waits for devices */
        CYCLE_QUIET,        /* Placement is spared */
} CycleScope;

typedef struct OrderFacts {
        CycleScope scope;    /* known at the end of CYCLE_POLL */
        bool has_client;     /* the report client exists */
        bool owns_tree;      /* [agent] nova permits to publish */
        bool dry_run;        /* nothing is written */
        bool removes;        /* CYCLE_CHECK found that the host is to be removed now */
        bool retries_in_use; /* an inventory in use can be retained by one more attempt */
        unsigned n_retries;  /* retries of this cycle */
} OrderFacts;

/* Returns the outcome of a result: 0, a ReportOutcome (report/placement/outcome.h), or a negative
 * errno. */
CycleOutcome cycle_outcome(int result);

/* Returns the phase that follows phase. CYCLE_AUDIT and the phases after it cannot fail. CYCLE_READ
 * after CYCLE_CONFLICT or CYCLE_IN_USE is a retry, which the caller counts. */
CyclePhase cycle_next(CyclePhase phase, CycleOutcome outcome, const OrderFacts *facts);
