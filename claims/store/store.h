/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where claims are kept: a local SQLite file in WAL mode with synchronous=FULL. All statements are
 * tried at open, and each is prepared when it is first run. Several processes may have the file
 * open.
 *
 * Each call is atomic and, when it returns 0, durable; a failed one leaves what is stored as it
 * was. What happens to a claim is written down with it (claims/claim/event.h). A write that rests
 * on a HostView compares the generation of every provider it touches with the one of the view and
 * bumps it in the same transaction ("compare and update", specification 1). No policy: what fits,
 * what may be claimed twice and when a claim expires is decided by the callers.
 *
 * Calls block for the disk. One thread. Negative results are errnos with words; -EBUSY: locked by
 * another writer for longer than the store's patience. */

#include "claims/claim/claim-request.h"
#include "claims/claim/claim.h"
#include "claims/claim/host-view.h"
#include "claims/fit/fit.h"
#include "claims/fit/taken.h"

/* A claim to write. Everything is borrowed. */
typedef struct StoreClaim {
        const ClaimRequest *request;
        const char *request_text; /* claim_request_format() */
        const char *host, *node, *boot_id;
        uint64_t created_usec, expires_usec;
        bool confirmed; /* of a guest that runs already */
        ClaimWriteState write_state;
        ClaimReported reported;
        const ClaimDevice *devices;
        size_t n_devices;
        const Layout *layout;
        const char *reason; /* why it is made, for the events; NULL: it was asked for */
} StoreClaim;

/* A claim of schema version 1 that no provider is known for yet. */
typedef struct StoreUnplaced {
        int64_t id;
        Uuid consumer;
        char *node;
        uint64_t vcpus, memory_mb, disk_gb;
        char *pci;                  /* in whatever form the addresses are in there */
        const ClaimDevice *devices; /* that it is to hold; borrowed */
        size_t n_devices;
} StoreUnplaced;

static inline void store_unplaced_done(StoreUnplaced *claim)
{
        free(claim->node);
        free(claim->pci);
        *claim = (StoreUnplaced){ 0 };
}

/* An amount that a living claim holds, and where it goes. */
typedef struct StoreShift {
        int64_t claim;
        Uuid from, to;
        const char *from_class, *to_class; /* borrowed */
        uint64_t amount;
} StoreShift;

typedef struct Store Store;

/* Opens or makes the file. Yields a ClaimsOpened or a negative errno; see claim_file_open(). A file
 * whose rows cannot be read is damaged too. */
int store_open(Store **ret, const char *path, uint64_t busy_usec, Error *reterr);
Store *store_free(Store *store);
DEFINE_CLEANUP(Store *, store_free);

/* Takes the writer's turn, so that the calls up to the next write, or to drop_turn, see one
 * state that no one else changes. */
int store_take_turn(Store *store, Error *reterr);
void store_drop_turn(Store *store);

/* Reads the host, in one consistent state. *view may be NULL, or hold what an earlier call
 * read: then only what changed is read anew. */
int store_load_view(Store *store, HostView **view, Error *reterr);

/* Makes wanted the host, where it differs from seen, which was read before. A provider that
 * changed gets the next generation. CLAIM_E_RACE. */
int store_write_host(Store *store, const HostView *seen, const HostView *wanted, Error *reterr);

/* The same, and moves what claims hold from provider to provider. Whatever is not there to
 * be moved is passed over. CLAIM_E_RACE. */
int store_shift(Store *store, const HostView *seen, const HostView *wanted,
                const StoreShift *shifts, size_t n_shifts, Error *reterr);

/* Writes a claim and its allocations, and yields it as it was stored. CLAIM_E_RACE,
 * CLAIM_E_CONFLICT. */
int store_insert(Store *store, const StoreClaim *claim, const HostView *view, const Fit *fit,
                 Claim **ret, Error *reterr);

/* Gives an unplaced claim its allocations (none is allowed) and devices. CLAIM_E_RACE,
 * CLAIM_E_NOT_FOUND, CLAIM_E_CONFLICT. */
int store_place(Store *store, const StoreUnplaced *claim, const HostView *view, const Fit *fit,
                Error *reterr);

/* A living claim holds this from now on, for the group without a suffix, in place of what
 * it held; its devices and layout stay. CLAIM_E_RACE, CLAIM_E_NOT_FOUND. */
int store_complete(Store *store, int64_t id, const Uuid *consumer, const HostView *view,
                   const Fit *fit, Error *reterr);

/* The first unplaced claim with an id above after. CLAIM_E_NOT_FOUND. */
int store_next_unplaced(Store *store, int64_t after, StoreUnplaced *ret, Error *reterr);

/* A living claim becomes confirmed and no longer expires. A confirmed resize target whose
 * consumer has no other claim becomes its first claim. CLAIM_E_NOT_FOUND. */
int store_confirm(Store *store, int64_t id, Error *reterr);

/* Moves the expiry of a claim that is not confirmed. CLAIM_E_NOT_FOUND. */
int store_extend(Store *store, int64_t id, uint64_t expires_usec, Error *reterr);

/* By what the guest of a living claim is known from now on. CLAIM_E_NOT_FOUND. */
int store_set_life(Store *store, int64_t id, const char *life, Error *reterr);

/* Ends a living claim; only_claimed: unless it is confirmed. CLAIM_E_NOT_FOUND. */
int store_release(Store *store, int64_t id, bool only_claimed, const EventAuthor *by,
                  const char *reason, uint64_t ended_usec, Error *reterr);

/* Ends a claim that is pending, and leaves no removal. CLAIM_E_NOT_FOUND. */
int store_withdraw(Store *store, int64_t id, const char *reason, uint64_t ended_usec,
                   Error *reterr);

/* Ends, in one transaction, every claim that expired at now_usec. */
int store_expire(Store *store, uint64_t now_usec, const char *reason, uint64_t *ret_n,
                 Error *reterr);

/* CLAIM_E_NOT_FOUND. */
int store_find(Store *store, const Uuid *consumer, bool resize_target, Claim **ret, Error *reterr);
int store_get(Store *store, int64_t id, Claim **ret, Error *reterr);

/* Oldest first; ended ones behind the living, last ended first. of: as ClaimsWhich says.
 * ret must be zeroed. CLAIMS_ALL not within a turn. */
int store_list(Store *store, ClaimsWhich which, const char *of, ClaimList *ret, Error *reterr);

/* Living claims that have devices, with their numbers, consumers and devices alone. ret
 * must be zeroed. */
int store_list_with_devices(Store *store, ClaimList *ret, Error *reterr);

/* The next CLAIMS_LOT living claims behind that number. ret must be zeroed. */
int store_list_some(Store *store, int64_t after, ClaimList *ret, Error *reterr);

/* Adds every device that a living claim has. */
int store_taken(Store *store, Taken *ret, Error *reterr);

/* The claim was checked in this boot, and has these devices beside those it had, and, if it
 * has none, this layout (NULL: none). CLAIM_E_NOT_FOUND, CLAIM_E_CONFLICT. */
int store_renew(Store *store, int64_t id, const char *boot_id, const ClaimDevice *devices,
                size_t n_devices, const Layout *layout, Error *reterr);

/* The write state of a living claim, if it is from; reported NULL: that stays. CLAIM_E_NOT_FOUND.
 */
int store_set_write_state(Store *store, int64_t id, ClaimWriteState from, ClaimWriteState to,
                          const ClaimReported *reported, Error *reterr);

/* How Placement has the consumers of claims and removals is not known any more. */
int store_forget_reported(Store *store, Error *reterr);

/* The first one with an id above after that is owed or sent. CLAIM_E_NOT_FOUND. */
int store_next_write(Store *store, int64_t after, Claim **ret, Error *reterr);

/* How many claims are owed or sent, how many removals and moves there are. */
int store_count_owed(Store *store, ClaimsOwed *ret, Error *reterr);

/* The first removal with an id above after; those of a consumer come with after 0 and the
 * consumer (else NULL). CLAIM_E_NOT_FOUND. */
int store_next_removal(Store *store, int64_t after, const Uuid *consumer, ClaimRemoval *ret,
                       Error *reterr);
int store_end_removal(Store *store, int64_t id, Error *reterr);

/* Writes down that the first claim of a consumer is to be another's. CLAIM_E_NOT_FOUND:
 * there is none that is promised; CLAIM_E_CONFLICT: one of them is on the way already, or to
 * has a claim. */
int store_begin_move(Store *store, const Uuid *from, const Uuid *to, const char *to_type,
                     int64_t *ret_id, Error *reterr);
int store_next_move(Store *store, int64_t after, ClaimMove *ret, Error *reterr);

/* It was done: the claim is the other's from now on, reported so; ours: what nobody wrote is
 * written by this agent now. Has the claim ended, the other leaves a removal. reported NULL: it was
 * not done. */
int store_end_move(Store *store, const ClaimMove *move, const ClaimReported *reported, bool ours,
                   Error *reterr);

/* Writes, durably, what is there already: can anything be written? */
int store_probe(Store *store, Error *reterr);

/* How many claims live, at a cost that does not grow with them. */
int store_count(Store *store, uint64_t *ret, Error *reterr);

/* Something else happened. */
int store_note(Store *store, const EventNote *note, Error *reterr);

/* The number of the newest event, 0: there is none; and the next EVENTS_LOT of them below a
 * number, newest first. ret must be zeroed. */
int store_last_event(Store *store, int64_t *ret, Error *reterr);
int store_list_events(Store *store, int64_t before, EventList *ret, Error *reterr);
