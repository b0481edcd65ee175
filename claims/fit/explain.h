/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Why a request does not fit, in words: the term that fails first, and the provider that comes
 * nearest. Used by fit.c only. */

#include "claims/fit/problem.h"

/* CLAIM_E_UNKNOWN_CLASS for a class that nothing on the host has, CLAIM_E_NO_CAPACITY for an item
 * that fits nowhere even alone, or for items that together ask for more than there is; the words go
 * to reterr. 0: nothing of that kind, so only a search can say. */
int fit_explain(const FitProblem *problem, Error *reterr);

/* Every provider that has a class which a group asks for, and the first term that fails there; each
 * part of the request on its own, as if it were alone. ret must be zeroed, and stays empty unless 0
 * is returned. CLAIM_E_TOO_HARD; -ENOMEM. */
int fit_verdicts_make(const FitProblem *problem, FitVerdicts *ret);
