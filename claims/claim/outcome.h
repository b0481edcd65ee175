/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What becomes of a request or of a claim, as the fit, the store and claims.h say it: the expected
 * outcomes, each with words in reterr. Below 0: an errno, with words as well; -EBUSY when the file
 * stays locked or other writers were faster too often. */
typedef enum ClaimOutcome {
        CLAIM_DONE = 0,
        CLAIM_E_NO_CAPACITY = 1, /* some term of the request does not fit; reterr names it */
        CLAIM_E_UNKNOWN_CLASS,   /* no provider of this host has the class; reterr names it */
        CLAIM_E_CONFLICT,        /* the consumer holds a different claim, another claim has what is
                                    to be held, or the claim's state does not allow it */
        CLAIM_E_NOT_FOUND,       /* no claim of that id in the state that the call asks for */
        CLAIM_E_OTHER, /* what was placed for the consumer is not what it asks for; reterr says what
                        */
        CLAIM_E_TOO_HARD, /* neither found nor excluded within the time for it or the bound on the
                             work; reterr names which */
        CLAIM_E_RACE,     /* of the store alone: a provider changed since it was read, read and
                             decide again */
        _CLAIM_OUTCOME_MAX,
} ClaimOutcome;
