/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The store of claims: a local SQLite file with synchronous=FULL, in WAL mode if the file system
 * permits it. All statements are tried at open, and each is prepared when it is first run. Several
 * processes can have the file open. These are the calls of claims.h that need no decision. The
 * files above decide whether a request fits, whether an amount can be claimed, and when a claim
 * expires (store/object.h has their writes).
 *
 * Each call that writes is atomic, and durable if it returns 0; in a group, after its end. If such
 * a call fails, the stored data stay as they were. claims_open() is an exception. The event of a
 * new, ended, moved or reshaped claim is written together with the change (claims/claim/event.h).
 * Other changes, such as a confirmation, have no event. Blocking and results are as in claims.h.
 * But calls that yield the next row of a table, and those of unclean devices, return
 * CLAIM_E_NOT_FOUND without words. */

#include "claims/claim/claim.h"
#include "claims/claim/outcome.h"
#include "claims/claim/unclean.h"

typedef struct Claims Claims;

typedef struct ClaimsConfig {
        const char *path;   /* the database file; its folder must exist */
        const char *host;   /* "host" of the specification's table of claims */
        const char *node;   /* "node" of that table: the name of the root provider */
        bool has_devices;   /* The caller will use claims_set_facts(), and a claim of a device's
                               provider names the device. Until the first facts, no device can be
                               chosen. */
        uint64_t busy_usec; /* longest wait for another process; 0: CLAIMS_BUSY_USEC */
} ClaimsConfig;

#define CLAIMS_BUSY_USEC (2 * USEC_PER_SEC)

/* The rules for new claims, which the owner of a Claims can replace at any time. The texts are
 * borrowed until then. */
typedef struct ClaimsRules {
        uint64_t expiry_usec; /* [DEFAULT] claim_expiry_time; 0: claims never expire */

        /* Claims of claims_prepare() are written to Placement (CLAIM_WRITE_UNSENT). One that
         * replaces an earlier claim is not, if another writer made or can have made the
         * allocations. With or without it, claims_adopt() makes such claims only if an earlier
         * claim of the guest left a removal: then the agent wrote the allocations in Placement. */
        bool writes_guests;

        /* The agent must not reserve a device until it is clean. Nova gives it to the next guest
         * then, and no unit cleans it. So claims_prepare() gives a held device to any guest. */
        bool gives_unclean;

        /* Reason to reject new claims of claims_claim(); NULL: none are rejected. A consumer with a
         * claim still gets that claim. Guests that exist or start are counted, and so are consumers
         * of claims_claim_placed(). */
        const char *closed;
        const char *hint; /* hint that is added to the words of CLAIM_E_NO_CAPACITY, but not beside
                           * closed; NULL: none */

        /* Reason to reject devices and dedicated CPUs that are claimed without Placement; NULL:
         * none are rejected. It is for an unread database, because consumers without a guest can
         * have them. Claims of existing allocations, and guests that libvirt starts, are not
         * rejected. */
        const char *unknown;
} ClaimsRules;

/* An amount of a living claim that moves between providers or classes. */
typedef struct StoreShift {
        int64_t claim;
        Uuid from, to;
        const char *from_class, *to_class; /* borrowed */
        uint64_t amount;
} StoreShift;

/* Opens or creates the database. A damaged file is set aside, and an empty one is made. Positive
 * results are of ClaimsOpened, and the store is usable. -EPROTONOSUPPORT: a newer program or
 * another version of SQLite wrote the file, or its shape is unknown. -EMEDIUMTYPE: it is a database
 * of another program. Both leave the file unchanged. -EINVAL: it is no regular file. Other negative
 * results, such as -EBUSY, -ENOENT (no such folder), -EROFS, -EACCES, -ENOSPC and -EIO, come from
 * the system, with words. The strings of config are copied. */
int claims_open(Claims **ret, const ClaimsConfig *config, Error *reterr);

/* Opens a copy of the database in memory, for a program that only reads. An older schema is
 * upgraded in the copy. The file is never created, upgraded or set aside, and its log is never
 * moved into it. SQLite can create FILE-wal and FILE-shm, which belong to this process's user then,
 * so call it as the owner of the folder.
 *
 * Returns -ENOENT if the file does not exist or was never used. Returns -EUCLEAN for a damaged
 * file, and other errors as claims_open() does. The copy has all claims of one moment, and writes
 * to it are lost. */
int claims_open_copy(Claims **ret, const char *path, uint64_t busy_usec, Error *reterr);

Claims *claims_free(Claims *claims);
DEFINE_CLEANUP(Claims *, claims_free);

/* Confirms a claim, because its guest runs: it no longer expires. Idempotent. Returns
 * CLAIM_E_NOT_FOUND, also for a pending claim. A confirmed resize target becomes the first claim of
 * its consumer if that has no other one, here or when the other one ends or moves to another
 * consumer. */
int claims_confirm(Claims *claims, int64_t id, Error *reterr);

/* Changes the expiry time (CLOCK_REALTIME, 0: never) of a claim that is not confirmed. Returns
 * CLAIM_E_NOT_FOUND, or CLAIM_E_CONFLICT for a confirmed claim. */
int claims_extend(Claims *claims, int64_t id, uint64_t expires_usec, Error *reterr);

/* Ends a living claim in any state. The reason (copied, cut at CLAIM_TEXT_MAX bytes) is kept in its
 * history. If Placement can have its allocations because of the agent, a removal is left. Returns
 * CLAIM_E_NOT_FOUND if there is no such claim. */
int claims_release(Claims *claims, int64_t id, const char *reason, Error *reterr);

/* Ends a claim that is not confirmed, like claims_release(). Returns CLAIM_E_CONFLICT for a
 * confirmed one, which stays. */
int claims_abort(Claims *claims, int64_t id, const char *reason, Error *reterr);

/* Ends every unconfirmed claim whose expiry time is at or before now_usec (CLOCK_REALTIME), in one
 * transaction, with the reason CLAIM_EXPIRED. Yields their number. Writes nothing if there is
 * none. */
int claims_expire(Claims *claims, uint64_t now_usec, uint64_t *ret_n, Error *reterr);

/* Lists claims, the oldest first. Ended ones come after the living, the last ended first. of: the
 * device for CLAIMS_OF_DEVICE, or the guest for CLAIMS_OF_GUEST; else NULL. ret must be zeroed. */
int claims_list(Claims *claims, ClaimsWhich which, const char *of, ClaimList *ret, Error *reterr);

/* Adds the addresses of devices that living claims name with a recorded identity, each with that
 * identity. ret must be zeroed, and can be filled in part on failure. */
int claims_list_identities(Claims *claims, ClaimedDevices *ret, Error *reterr);

/* Adds the next living claims with an id above after (0: the first ones) to the list, at most
 * CLAIMS_LOT of them. So a caller can list many claims in short calls. Fewer than CLAIMS_LOT are
 * the last ones. A failure empties the whole list. */
int claims_list_some(Claims *claims, int64_t after, ClaimList *ret, Error *reterr);

/* Begin and end a group: the changes in between are one transaction, with one write to the disk. A
 * change that fails is undone alone, and its function returns as usual. If SQLite rolls back the
 * whole transaction, for example on a full disk, the later changes and the end fail. The changes
 * are durable after the end, so log and announce them then. With a result other than 0, the end
 * undoes all of them, and returns result. If the end fails, or the program ends before it, none of
 * them is stored. The group has the write lock, so keep it short. A group cannot be in another
 * one. */
int claims_begin_group(Claims *claims, Error *reterr);
int claims_end_group(Claims *claims, int result, Error *reterr);

/* Checks whether a claim could be written now, by a durable write that changes nothing. Returns
 * -EBUSY if the file is locked. */
int claims_probe(Claims *claims, Error *reterr);

/* Returns true if the database is new, and Placement was not read for it yet. A database that
 * replaces a lost one lacks the claims of consumers without a guest. True from the creation of the
 * file until claims_note_read(), also after a restart. A file without a host and claims counts as
 * new at each open. */
bool claims_is_unread(const Claims *claims);

/* Records that every consumer with allocations on this host was read, and has its claim. Returns
 * -EBUSY if the file is locked. */
int claims_note_read(Claims *claims, Error *reterr);

/* Yields the number of living claims, at a cost that does not grow with this number. */
int claims_count(Claims *claims, uint64_t *ret, Error *reterr);

/* Yields one claim, living or ended. Returns CLAIM_E_NOT_FOUND if there is none. */
int claims_get(Claims *claims, int64_t id, Claim **ret, Error *reterr);

/* Yields the first living claim of a consumer, or with resize_target the second one. Returns
 * CLAIM_E_NOT_FOUND if there is none. */
int claims_find(Claims *claims, const Uuid *consumer, bool resize_target, Claim **ret,
                Error *reterr);

/* Sets the author of the next releases and aborts, and of the next claims that are made of a guest
 * or of allocations (borrowed; NULL, as at first: this program). The caller resets it afterwards.
 * Expiries have this program as their author. A requested claim has its author in the request, and
 * a move in the move. */
void claims_set_author(Claims *claims, const EventAuthor *author);

/* Writes an event that belongs to no change of a claim. The reason is cut at CLAIM_TEXT_MAX bytes.
 * Returns -EBUSY if the file is locked. */
int claims_note(Claims *claims, const EventNote *note, Error *reterr);

/* Yield the id of the newest event (0: there is none), and the next EVENTS_LOT events below an id,
 * newest first. The list leaves out events of pending claims. ret must be zeroed. */
int claims_last_event(Claims *claims, int64_t *ret, Error *reterr);
int claims_list_events(Claims *claims, int64_t before, EventList *ret, Error *reterr);

/* Yields the EVENT_RELEASED events after a time (CLOCK_REALTIME), newest first, as far as they were
 * not trimmed. Expired claims have none. An event names the guest of a claim that a migration took
 * over, which an ended claim does not. Reads all events. ret must be zeroed. */
int claims_list_releases(Claims *claims, uint64_t after_usec, EventList *ret, Error *reterr);

/* Unclean devices: those that a guest had, or can have had, and that were not proved to be clean
 * since (claims/claim/unclean.h). The write of a claim marks its devices with must_be_cleaned. */

/* Lists the unclean devices by address. ret must be zeroed, and can be filled in part on
 * failure. */
int claims_list_unclean(Claims *claims, UncleanDevices *ret, Error *reterr);

/* Marks a device that no claim marked, or gives its row a new id. Uses address, name, identity,
 * claim, since_usec, state and reason. The consumer is that of the claim if the claim lives, else
 * device->consumer. */
int claims_mark_unclean(Claims *claims, const UncleanDevice *device, Error *reterr);

/* Changes the state, reason and time of the row if its state is "from" and no living claim has the
 * device. Returns CLAIM_E_NOT_FOUND if not. since_usec is CLOCK_REALTIME. */
int claims_set_unclean(Claims *claims, int64_t id, UncleanState from, UncleanState to,
                       const char *reason, uint64_t since_usec, Error *reterr);

/* Deletes a row in this state, if no living claim has the device. Returns CLAIM_E_NOT_FOUND if
 * not. */
int claims_end_unclean(Claims *claims, int64_t id, UncleanState state, Error *reterr);

/* Pending writes: which claims were written to Placement, and which are not yet. They are an outbox
 * on disk. This folder knows no HTTP. The writer (agent/placing) reads the pending writes here, and
 * records their results. */

/* Changes the write state of a claim from "from" to "to". reported: the consumer's state in
 * Placement; NULL, or one without elsewhere: the stored state stays. Returns CLAIM_E_NOT_FOUND if
 * there is no claim with this id and the write state "from". */
int claims_set_write_state(Claims *claims, int64_t id, ClaimWriteState from, ClaimWriteState to,
                           const ClaimReported *reported, Error *reterr);

/* Ends a pending claim of which nothing was written to Placement. It leaves no event and no
 * removal. The reason is kept in its history, as by claims_release(). A device that was clean
 * before the claim is not unclean any more. Returns CLAIM_E_NOT_FOUND if no pending claim has the
 * id. */
int claims_withdraw(Claims *claims, int64_t id, const char *reason, Error *reterr);

/* Forgets the consumers' states in Placement that claims and removals have, because a reshape wrote
 * them. Claims then count as not read. Generations stay stored. */
int claims_forget_reported(Claims *claims, Error *reterr);

/* Yields the first claim with an id above after and a pending write (CLAIM_WRITE_UNSENT or
 * CLAIM_WRITE_SENT), at a cost that does not grow with the number of pending writes. Returns
 * CLAIM_E_NOT_FOUND if there is none. */
int claims_next_write(Claims *claims, int64_t after, Claim **ret, Error *reterr);

/* Counts the pending writes, without a list. */
int claims_count_pending_writes(Claims *claims, PendingWrites *ret, Error *reterr);

/* Yields the first removal with an id above after (of a consumer, or NULL: of any). Returns
 * CLAIM_E_NOT_FOUND if there is none. */
int claims_next_removal(Claims *claims, int64_t after, const Uuid *consumer, ClaimRemoval *ret,
                        Error *reterr);
/* Deletes a removal. Does nothing if it does not exist. */
int claims_end_removal(Claims *claims, int64_t id, Error *reterr);

/* Records that the first claim of a consumer will move to another consumer. The caller frees ret
 * with claim_move_done(). Returns CLAIM_E_NOT_FOUND if from has no claim, or a pending one.
 * Returns CLAIM_E_CONFLICT if to has a first claim, or if another move has the same from or the
 * same to. */
int claims_begin_move(Claims *claims, const Uuid *from, const Uuid *to, const char *to_type,
                      ClaimMove *ret, Error *reterr);

/* Yields the first move with an id above after. Returns CLAIM_E_NOT_FOUND if there is none. */
int claims_next_move(Claims *claims, int64_t after, ClaimMove *ret, Error *reterr);

/* Ends a move. Its claim, with everything in it, then belongs to move->to, whose state in Placement
 * is reported. ours: the agent wrote the allocations of move->to, and must remove them later. If
 * the claim has ended, a removal of them is left at once.
 * reported NULL: the move was not done, and nothing else changes. Returns -EEXIST if move->to has
 * got a first claim since claims_begin_move(). The move stays then. */
int claims_end_move(Claims *claims, const ClaimMove *move, const ClaimReported *reported, bool ours,
                    Error *reterr);
