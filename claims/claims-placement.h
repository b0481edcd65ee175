/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What Placement was told of the claims, and what it is still to be told: an outbox on disk. This
 * folder knows no HTTP; whoever tells Placement asks here what to tell, and says what became of it.
 * Blocking and results as in claims.h. */

#include "claims/claims.h"

/* From one standing to another, if it is the first one; told (NULL: as it was): how Placement has
 * the consumer. CLAIM_E_NOT_FOUND. */
int claims_set_standing(Claims *claims, int64_t id, ClaimStanding from, ClaimStanding to,
                        const ClaimTold *told, Error *reterr);

/* Ends a pending claim of which nothing was written, as if it had never been: nothing of it is to
 * be removed. The reason is kept in its history. CLAIM_E_NOT_FOUND. */
int claims_withdraw(Claims *claims, int64_t id, const char *reason, Error *reterr);

/* How Placement has the consumers is not known any more: a reshape wrote them. */
int claims_forget_told(Claims *claims, Error *reterr);

/* The living claims that are pending, oldest first. ret must be zeroed. */
int claims_list_pending(Claims *claims, ClaimList *ret, Error *reterr);

/* The first claim with an id above after that Placement is still to be told of, at a cost that does
 * not grow with their number. CLAIM_E_NOT_FOUND: no more. */
int claims_next_debt(Claims *claims, int64_t after, Claim **ret, Error *reterr);

/* How much there is to tell, without listing it. */
int claims_count_debts(Claims *claims, ClaimDebts *ret, Error *reterr);

/* A claim that ended while it was pending or written: what Placement has of it is to be removed. */
typedef struct ClaimDeparture {
        int64_t id;
        int64_t claim; /* that ended */
        Uuid consumer;
        ClaimTold told;
        bool unsure; /* it is not known whether what was written for the claim arrived */
} ClaimDeparture;

/* The first one with an id above after (of a consumer, or NULL: of any). CLAIM_E_NOT_FOUND: no
 * more.
 */
int claims_next_departure(Claims *claims, int64_t after, const Uuid *consumer, ClaimDeparture *ret,
                          Error *reterr);
int claims_end_departure(Claims *claims, int64_t id, Error *reterr);

/* A claim that is to be another consumer's: a migration's, or the instance's again. */
typedef struct ClaimHandover {
        int64_t id;
        Uuid from, to;
        char *to_type; /* "MIGRATION"; owned */
} ClaimHandover;

void claim_handover_done(ClaimHandover *handover);

/* Writes the intention down. CLAIM_E_NOT_FOUND: from has no claim that is promised;
 * CLAIM_E_CONFLICT: to has one, or one of both changes hands already. */
int claims_begin_handover(Claims *claims, const Uuid *from, const Uuid *to, const char *to_type,
                          ClaimHandover *ret, Error *reterr);

/* The first one with an id above after. CLAIM_E_NOT_FOUND: no more. */
int claims_next_handover(Claims *claims, int64_t after, ClaimHandover *ret, Error *reterr);

/* The claim, with all it has, is to's from now on, and Placement was told so; ours: by this agent,
 * which has to remove it one day, or now, when the claim ended meanwhile. told NULL: it was not
 * done, and everything is as before. */
int claims_end_handover(Claims *claims, const ClaimHandover *handover, const ClaimTold *told,
                        bool ours, Error *reterr);
