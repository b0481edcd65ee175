/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Outcomes of requests and claims, for the fit, the store and claims.h. These are the expected
 * outcomes, each with words in reterr. Results below 0 are an errno, with words as well; -EBUSY if
 * the file stays locked, or if other writers won too many races. */
typedef enum ClaimOutcome {
        CLAIM_DONE = 0,
        CLAIM_E_NO_CAPACITY = 1, /* a term of the request does not fit; reterr names it */
        CLAIM_E_UNKNOWN_CLASS,   /* no provider of this host has the class; reterr names it */
        CLAIM_E_CONFLICT, /* the consumer has a different claim, another claim has the resources, or
                             the claim's state does not allow it */
        CLAIM_E_NOT_FOUND, /* no claim of that id in the state that the call needs */
        CLAIM_E_OTHER,    /* the consumer's allocations do not match the request; reterr says how */
        CLAIM_E_TOO_HARD, /* neither found nor excluded within the limits of time and work; reterr
                             names the limit */
        CLAIM_E_RACE, /* a result of the store alone: a provider changed since the read; read and
                         decide again */
        _CLAIM_OUTCOME_MAX,
} ClaimOutcome;
