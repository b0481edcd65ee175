/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Does a request fit the host as it stands, and where? Pure: no store, no clock, no randomness.
 *
 * The rules are those of Placement's allocation candidates (facts E5, E8):
 *  - each class of the unsuffixed group comes whole from one provider of the host; different
 * classes may come from different ones. Together these have every required trait, and none of them
 * has a forbidden one.
 *  - every other group comes whole from one provider, which has all required and no forbidden
 *    traits. With isolate no two of these share a provider, also when one has no resources.
 *  - the groups of a subtree have among their providers one that is an ancestor of all the others,
 *    or the same; a group without resources is there for its provider's traits alone. With in_tree
 *    a group's providers are in the tree of that provider.
 *  - each part keeps to min_unit and step_size; what all parts take together of a class on a
 *    provider keeps to max_unit and, with what is used, to the capacity.
 *
 * The choice among providers that fit, in this order: the root; the one with most room left (the
 * free amount measured in requested amounts; with several classes, the scarcest); the name. It is
 * deterministic, and complete: when a fit exists it is found, or CLAIM_E_TOO_HARD is returned when
 * the effort is spent (fitting groups of different size is bin packing). */

#include "base/allocation.h"
#include "base/resource-request.h"
#include "claims/claim/host-view.h"
#include "claims/claim/layout.h"
#include "claims/claim/outcome.h"

/* How much a fit may cost. Everything that a search does is counted in it, whoever does it, and it
 * ends at the bound on the work or on the time, whichever comes first. What the work bounds is the
 * same on every machine; the time is there because a host may be larger, or slower, than any that
 * was measured. It is the thread's own: a machine that is busy with something else refuses nobody.
 */

/* About a look at a provider each. */
#define FIT_WORK_MAX UINT64_C(3000000)

typedef struct FitEffort {
        uint64_t patience_usec; /* as given, for the words; 0: no bound */
        uint64_t until_usec;    /* CLOCK_THREAD_CPUTIME_ID */
        uint64_t work;          /* done so far */
        uint64_t looked_at;     /* the work when the clock was last looked at */
        bool late;
} FitEffort;

/* Begins now, and ends when the thread has run for so much longer. */
FitEffort fit_effort_begin(uint64_t patience_usec);

/* Counts work that was done, or is about to be. False when the effort is spent: nothing more is to
 * be begun. */
bool fit_effort_spend(FitEffort *effort, uint64_t work);

static inline bool fit_effort_is_spent(const FitEffort *effort)
{
        return effort->late || effort->work > FIT_WORK_MAX;
}

#define FIT_EFFORT_TEXT_SIZE 64

/* The bound that it was spent at, for words: "30 ms", "3000000 steps". */
const char *fit_effort_format(const FitEffort *effort, char text[static FIT_EFFORT_TEXT_SIZE]);

/* What was decided before a try; all of it borrowed. */
typedef struct FitGiven {
        const bool *barred;      /* by provider: nothing may be taken from it; NULL: none */
        const size_t *providers; /* that the group without a suffix takes from already */
        size_t n_providers;
} FitGiven;

/* One group takes an amount of one class from one provider. */
typedef struct FitPiece {
        size_t group;               /* index into the request's groups */
        size_t provider;            /* index into the view's providers */
        const char *resource_class; /* borrowed from the request, or from the host's facts */
        uint64_t amount;
} FitPiece;

typedef struct Fit {
        FitPiece *pieces; /* by group, then class */
        size_t n_pieces, n_allocated;
        Layout layout; /* of a request that asks for one (claims/fit/numa.h) */
} Fit;

#define FIT_NULL ((Fit){ 0 })

void fit_done(Fit *fit);

/* Counts an amount of the group without a suffix, in one piece with what the provider gives of the
 * class already. The class is borrowed. -ENOMEM. */
int fit_add(Fit *fit, size_t provider, const char *resource_class, uint64_t amount);

/* Fits a request that claim_request_check() passed to the node of the view, with what is left of
 * the effort, and nothing is taken but what was placed (all that may be taken, by provider; NULL:
 * no limit). The layout that the request asks for is left to claims/fit/numa.h. ret must be
 * FIT_NULL; its pieces are written on CLAIM_DONE alone. -ENOMEM. */
int fit_groups(const HostView *view, const char *node, const ResourceRequest *request,
               const Consumer *placed, FitEffort *effort, Fit *ret, Error *reterr);

/* A request and a host prepared for several tries, each of which costs no more than the providers
 * that the groups may take from. Borrows what it is made of; all tries share the
 * effort. */
typedef struct FitTrial FitTrial;

int fit_trial_new(FitTrial **ret, const HostView *view, const char *node,
                  const ResourceRequest *request, const Consumer *placed,
                  FitEffort *effort); /* -ENOMEM */
FitTrial *fit_trial_free(FitTrial *trial);
DEFINE_CLEANUP(FitTrial *, fit_trial_free);

/* As fit_groups(). With reterr NULL words are not looked for either, and what does not fit is
 * CLAIM_E_NO_CAPACITY. given NULL: nothing. ret must be FIT_NULL. */
int fit_trial_run(FitTrial *trial, const FitGiven *given, Fit *ret, Error *reterr);

/* What one provider says to one part of a request: a group, or one class of the unsuffixed one. */
typedef struct FitVerdict {
        char *suffix; /* of the group */
        Uuid provider;
        char *provider_name;
        char *resource_class; /* that fails, or the first that is asked for */
        const char *term; /* "fits", "class", "host", "trait", "min_unit", "max_unit", "step_size",
                             "capacity" */
        uint64_t asked, free_amount; /* of the class */
        uint64_t missing;            /* by how much it does not fit; 0: not a matter of amounts */
        char *text;                  /* for people; "" when it fits */
} FitVerdict;

typedef struct FitVerdicts {
        FitVerdict *items; /* by group, then in the order of the tree */
        size_t n_items, n_allocated;
        size_t n_omitted; /* more than FIT_VERDICTS_MAX */
} FitVerdicts;

#define FIT_VERDICTS_MAX 2048

void fit_verdict_done(FitVerdict *verdict); /* frees what it owns */
void fit_verdicts_done(FitVerdicts *verdicts);

/* Whether the request fits (a ClaimOutcome, with the words of fit_groups()), and what each
 * provider says to it: all of it, unless it was too hard. ret must be zeroed. -ENOMEM. */
int fit_explain_request(const HostView *view, const char *node, const ResourceRequest *request,
                        FitEffort *effort, FitVerdicts *ret, Error *reterr);

/* Where a guest that runs already is counted, whether it fits or not: for each class the root when
 * it has the class, else the provider with most room; what has no room there goes to the next one,
 * and what has none at all stays with the first. A class that no provider has is left out. The
 * pieces' classes are borrowed from resources. ret must be FIT_NULL; it may stay without pieces.
 * -ENOMEM. */
int fit_force(const HostView *view, const char *node, const Resources *resources, Fit *ret);
