/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where claims are kept: a local SQLite file in WAL mode with synchronous=FULL. All statements are
 * tried at open, and each is prepared when it is first run. Several processes may have the file
 * open. These are the calls of claims.h that need no decision; what fits, what may be claimed twice
 * and when a claim expires is decided above (store/object.h has what that writes).
 *
 * Each call is atomic and, when it returns 0, durable; a failed one leaves what is stored as it
 * was. What happens to a claim is written down with it (claims/claim/event.h). Blocking and results
 * as in claims.h. */

#include "claims/claim/claim.h"
#include "claims/claim/outcome.h"

typedef struct Claims Claims;

/* The rules for new claims, which the owner of a Claims can replace at any time. The texts are
 * borrowed until then. */
typedef struct ClaimsRules {
        uint64_t expiry_usec; /* [DEFAULT] claim_expiry_time; 0: claims never expire */

        /* claims_prepare() makes claims that are reported (CLAIM_WRITE_OWED). Without it,
         * claims_adopt() does where an earlier claim of the guest left a removal: the agent wrote
         * the allocations that are in Placement. */
        bool owes_guests;

        /* Rejects new claims with this reason; NULL: does not. The consumer of a claim still gets
         * that claim, and guests that run are counted. */
        const char *closed;
        const char *hint; /* is added to the words of CLAIM_E_NO_CAPACITY; NULL: nothing */

        /* Rejects devices and dedicated CPUs that are claimed without Placement, with this reason;
         * NULL: does not. For a database that is unread: a consumer without a guest can have them.
         * Claims of what Placement allocated and guests that libvirt starts are not rejected. */
        const char *unknown;
} ClaimsRules;

/* An amount that a living claim holds, and where it goes. */
typedef struct StoreShift {
        int64_t claim;
        Uuid from, to;
        const char *from_class, *to_class; /* borrowed */
        uint64_t amount;
} StoreShift;

/* The guest runs: the claim no longer expires. Once more is no error. A resize target whose
 * consumer has no other claim becomes its first claim, here or when that one is released. */
int claims_confirm(Claims *claims, int64_t id, Error *reterr);

/* Moves the expiry (0: never) of a claim that is not confirmed. CLAIM_E_NOT_FOUND, CLAIM_E_CONFLICT
 * when it is confirmed. */
int claims_extend(Claims *claims, int64_t id, uint64_t expires_usec, Error *reterr);

/* Ends a claim; the reason (copied, cut at CLAIM_TEXT_MAX bytes) is kept in its history.
 * CLAIM_E_NOT_FOUND.
 */
int claims_release(Claims *claims, int64_t id, const char *reason, Error *reterr);

/* The same for a claim that is not confirmed; CLAIM_E_CONFLICT when it is. */
int claims_abort(Claims *claims, int64_t id, const char *reason, Error *reterr);

/* Ends every claim that is not confirmed and expired at now_usec (CLOCK_REALTIME), in one
 * transaction, with the reason CLAIM_EXPIRED. Writes nothing when there is none. */
int claims_expire(Claims *claims, uint64_t now_usec, uint64_t *ret_n, Error *reterr);

/* Oldest first; ended ones behind the living, last ended first. of: the device or the guest that
 * which speaks of, else NULL. ret must be zeroed. */
int claims_list(Claims *claims, ClaimsWhich which, const char *of, ClaimList *ret, Error *reterr);

/* Adds the addresses of devices that living claims name, each with the identity that was recorded.
 * ret must be zeroed, and may be filled in part on failure. */
int claims_list_identities(Claims *claims, ClaimedDevices *ret, Error *reterr);

/* The next of the claims that live, behind that number (0: the first ones), at most CLAIMS_LOT of
 * them: to list very many without holding up others. None is left when there is none in it. ret
 * must be zeroed. */
int claims_list_some(Claims *claims, int64_t after, ClaimList *ret, Error *reterr);

/* Whether a claim could be written now: writes, durably, what is there already. -EBUSY. */
int claims_probe(Claims *claims, Error *reterr);

/* Is the database new, and was Placement not read for it yet? A database that replaces a lost one
 * lacks the claims of consumers that have no guest. True from the moment the file was made until
 * claims_note_read(), also after a restart. */
bool claims_is_unread(const Claims *claims);

/* Every consumer that Placement has on this host was read, and has its claim. -EBUSY. */
int claims_note_read(Claims *claims, Error *reterr);

/* How many claims live; cheap, whatever their number. */
int claims_count(Claims *claims, uint64_t *ret, Error *reterr);

/* One claim, living or ended. CLAIM_E_NOT_FOUND. */
int claims_get(Claims *claims, int64_t id, Claim **ret, Error *reterr);

/* The living claim of a consumer. CLAIM_E_NOT_FOUND. */
int claims_find(Claims *claims, const Uuid *consumer, bool resize_target, Claim **ret,
                Error *reterr);

/* Who wants what is released and prepared from here on (borrowed; NULL, as at first: this program
 * itself). Whoever sets it takes it back. Of a claim the request says it, of
 * a move the move. */
void claims_set_author(Claims *claims, const EventAuthor *author);

/* Writes down what happened beside claims; reason is cut at CLAIM_TEXT_MAX bytes. -EBUSY. */
int claims_note(Claims *claims, const EventNote *note, Error *reterr);

/* The number of the newest event (0: there is none), and the next EVENTS_LOT of them below a
 * number, newest first. ret must be zeroed. */
int claims_last_event(Claims *claims, int64_t *ret, Error *reterr);
int claims_list_events(Claims *claims, int64_t before, EventList *ret, Error *reterr);

/* What of the claims was reported to Placement, and what is still to be: an outbox on disk. This
 * folder knows no HTTP; whoever writes there asks here what to report, and says what became of it.
 */

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
