/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What of the claims was reported to Placement, and what is still to be: an outbox on disk. This
 * folder knows no HTTP; whoever writes there asks here what to report, and says what became of it.
 * Blocking and results as in claims.h. */

#include "claims/claims.h"

/* From one write state to another, if it has the first; reported (NULL: as before): how Placement
 * has the consumer. CLAIM_E_NOT_FOUND. */
int claims_set_write_state(Claims *claims, int64_t id, ClaimWriteState from, ClaimWriteState to,
                           const ClaimReported *reported, Error *reterr);

/* Ends a pending claim of which nothing was written, as if it had never been: nothing of it is to
 * be removed. The reason is kept in its history. CLAIM_E_NOT_FOUND. */
int claims_withdraw(Claims *claims, int64_t id, const char *reason, Error *reterr);

/* How Placement has the consumers is not known any more: a reshape wrote them. */
int claims_forget_reported(Claims *claims, Error *reterr);

/* The first claim with an id above after that is still to be reported, at a cost that does
 * not grow with their number. CLAIM_E_NOT_FOUND: no more. */
int claims_next_write(Claims *claims, int64_t after, Claim **ret, Error *reterr);

/* How much there is to report, without listing it. */
int claims_count_owed(Claims *claims, ClaimsOwed *ret, Error *reterr);

/* The first one with an id above after (of a consumer, or NULL: of any). CLAIM_E_NOT_FOUND: no
 * more.
 */
int claims_next_removal(Claims *claims, int64_t after, const Uuid *consumer, ClaimRemoval *ret,
                        Error *reterr);
int claims_end_removal(Claims *claims, int64_t id, Error *reterr);

/* Writes the intention down. CLAIM_E_NOT_FOUND: from has no claim that is promised;
 * CLAIM_E_CONFLICT: to has one, or one of both changes hands already. */
int claims_begin_move(Claims *claims, const Uuid *from, const Uuid *to, const char *to_type,
                      ClaimMove *ret, Error *reterr);

/* The first one with an id above after. CLAIM_E_NOT_FOUND: no more. */
int claims_next_move(Claims *claims, int64_t after, ClaimMove *ret, Error *reterr);

/* The claim, with all it has, is to's from now on, and was reported so; ours: by this agent,
 * which has to remove it one day, or now, when the claim ended meanwhile. reported NULL: it was not
 * done, and everything is as before. */
int claims_end_move(Claims *claims, const ClaimMove *move, const ClaimReported *reported, bool ours,
                    Error *reterr);
