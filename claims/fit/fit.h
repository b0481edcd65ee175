/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Fits a request to the providers of a host. Pure: no store, no randomness, and no clock but for
 * the effort.
 *
 * The rules are those of Placement's allocation candidates (facts E5, E8):
 *
 *   Unsuffixed group  Each class comes whole from one provider of the host, and different classes
 *                     can come from different ones. Together these have every required trait, and
 *                     none of them has a forbidden one.
 *   Other groups      Each group comes whole from one provider, which has all required and no
 *                     forbidden traits. With isolate, no two of these share a provider, not even
 *                     groups without resources.
 *   Subtrees          One provider of a subtree's groups is the ancestor of all others, or the
 *                     same. A group without resources only selects a provider by its traits. With
 *                     in_tree, a group's providers are in the tree of that provider.
 *   Amounts           Each part obeys min_unit and step_size. The sum of all parts of a class on
 *                     one provider obeys max_unit and, together with the usage, the capacity.
 *   Sets of devices   A partition with the sum of all parts of the class on the provider fits.
 *
 * Each part, the hardest first, tries the providers in this order: the root, then the provider with
 * most free capacity, then the lowest name. The first fit of all parts is the choice. Free capacity
 * is measured in requested amounts, and with several classes the scarcest one counts. The choice is
 * deterministic, unless the time ends the effort. It is complete: if memory suffices, an existing
 * fit is found, or CLAIM_E_TOO_HARD is returned when the effort is spent. (Fitting groups of
 * different size is bin packing.) */

#include "base/allocation.h"
#include "base/resource-request.h"
#include "claims/claim/host-view.h"
#include "claims/claim/layout.h"
#include "claims/claim/outcome.h"

/* Bound on the cost of a fit. The steps of a search are counted in it, and the search ends at the
 * bound on the work or on the time. The bound on the work gives the same result on every machine.
 * The bound on the time is for hosts that are larger or slower than any that was measured. The time
 * is the thread's own CPU time, so that other load on the machine causes no refusal. */

/* Unit: about one check of one provider. */
#define FIT_WORK_MAX UINT64_C(3000000)

typedef struct FitEffort {
        uint64_t patience_usec; /* as given, for messages; 0: no bound */
        uint64_t until_usec;    /* CLOCK_THREAD_CPUTIME_ID */
        uint64_t work;          /* work that is done */
        uint64_t looked_at;     /* work at the last read of the clock */
        bool late;
} FitEffort;

/* Begins an effort, which ends after more work than FIT_WORK_MAX, or when the thread has used
 * patience_usec more of CPU time. 0: no bound on the time. */
FitEffort fit_effort_begin(uint64_t patience_usec);

/* Counts work, before or after it is done. Returns false if the effort is spent: the caller must
 * not begin anything new. */
bool fit_effort_spend(FitEffort *effort, uint64_t work);

static inline bool fit_effort_is_spent(const FitEffort *effort)
{
        return effort->late || effort->work > FIT_WORK_MAX;
}

#define FIT_EFFORT_TEXT_SIZE 64

/* Formats the bound that ended the effort, for messages: "30 ms", "3000000 steps". */
const char *fit_effort_format(const FitEffort *effort, char text[static FIT_EFFORT_TEXT_SIZE]);

/* Decisions before a try; everything is borrowed. */
typedef struct FitGiven {
        const bool *barred;      /* by provider: the try must not use it; NULL: none */
        const size_t *providers; /* providers that the group without a suffix uses already */
        size_t n_providers;
} FitGiven;

/* An amount of one class that one group takes from one provider. */
typedef struct FitPiece {
        size_t group;               /* index into the request's groups */
        size_t provider;            /* index into the view's providers */
        const char *resource_class; /* borrowed from the request or resources, or from the host's
                                     * facts */
        uint64_t amount;
} FitPiece;

typedef struct Fit {
        FitPiece *pieces; /* by group, then class */
        size_t n_pieces, n_allocated;
        Layout layout; /* layout of a request that has one (claims/fit/numa.h) */
} Fit;

#define FIT_NULL ((Fit){ 0 })

void fit_done(Fit *fit);

/* Adds an amount of the first group, which is the one without a suffix, to the piece of this
 * provider and class, or as a new piece. The class is borrowed. The sum is not checked for
 * overflow. Returns -ENOMEM on failure. */
int fit_add(Fit *fit, size_t provider, const char *resource_class, uint64_t amount);

/* Fits a request that passed claim_request_check() to the node of the view, with the rest of the
 * effort. placed: upper bounds by provider and class, the allocations that exist already; NULL: no
 * bound. Ignores the request's layout, which claims/fit/numa.h fits. ret must be FIT_NULL; its
 * pieces are written on CLAIM_DONE alone. Returns CLAIM_DONE, or with words CLAIM_E_UNKNOWN_CLASS,
 * CLAIM_E_NO_CAPACITY, CLAIM_E_TOO_HARD or -ENOMEM. */
int fit_groups(const HostView *view, const char *node, const ResourceRequest *request,
               const Consumer *placed, FitEffort *effort, Fit *ret, Error *reterr);

/* A request and a host that are prepared for several tries. The cost of a try without words does
 * not grow with providers that no group can use. Borrows all arguments, and all tries share the
 * effort. */
typedef struct FitTrial FitTrial;

int fit_trial_new(FitTrial **ret, const HostView *view, const char *node,
                  const ResourceRequest *request, const Consumer *placed,
                  FitEffort *effort); /* returns -ENOMEM on failure */
FitTrial *fit_trial_free(FitTrial *trial);
DEFINE_CLEANUP(FitTrial *, fit_trial_free);

/* Fits like fit_groups(). With reterr NULL it makes no words, and returns CLAIM_E_NO_CAPACITY for
 * every request that does not fit, or CLAIM_E_TOO_HARD or -ENOMEM. given NULL: no decisions. ret
 * must be FIT_NULL. */
int fit_trial_run(FitTrial *trial, const FitGiven *given, Fit *ret, Error *reterr);

/* The answer of one provider to one part of a request: a group, or one class of the unsuffixed
 * group. */
typedef struct FitVerdict {
        char *suffix; /* suffix of the group */
        Uuid provider;
        char *provider_name;
        char *resource_class; /* the class that fails, or else the first one */
        const char *term; /* "fits", "class", "host", "trait", "min_unit", "max_unit", "step_size",
                           * "capacity", "partition", or a term of NumaVerdict */
        uint64_t asked, free_amount; /* amounts of the class */
        uint64_t missing; /* amount by which asked misses the term; 0: amounts are not the cause, or
                             enough is free but no partition of it fits */
        char *text;       /* words for the operator; "" if it fits */
} FitVerdict;

typedef struct FitVerdicts {
        FitVerdict *items; /* by group, then by part with the hardest first, then in the order of
                            * the tree */
        size_t n_items, n_allocated;
        size_t n_omitted; /* number of verdicts beyond FIT_VERDICTS_MAX */
} FitVerdicts;

#define FIT_VERDICTS_MAX 2048

void fit_verdicts_done(FitVerdicts *verdicts);

/* Checks whether the request fits. Yields for each part the verdict of each provider that has one
 * of its classes, at most FIT_VERDICTS_MAX in all. Returns an outcome with the words of
 * fit_groups(). The verdicts use the effort as well, so a request that fits can be too hard here.
 * There are no verdicts if the effort was spent before all of them were made. ret must be zeroed.
 * Returns -ENOMEM on failure. */
int fit_explain_request(const HostView *view, const char *node, const ResourceRequest *request,
                        FitEffort *effort, FitVerdicts *ret, Error *reterr);
