/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The claim database as the daemon uses it: opened when it can be, tried again when it cannot.
 *
 * A folder that is read-only or a disk that is full must not keep the agent from reporting what the
 * host has. Claims are refused with words meanwhile. Main thread only; blocks on the disk. */

#include <errno.h>

#include "agent/guests/reconcile.h"

typedef struct ClaimService ClaimService;

/* What a reload may change. */
typedef struct ClaimSettings {
        const HostConfig *driver; /* borrowed: which devices are configured */
        uint64_t expiry_usec;     /* [DEFAULT] claim_expiry_time; claims that live keep theirs */
        bool with_placement;      /* there is one: what it allocates is read for a new database */
        bool started_only;        /* guests claim when they start (claims/reconcile.h) */
        bool owes_guests;         /* what they claim then is reported to Placement
                                     (ClaimsRules) */
} ClaimSettings;

/* path (copied): of the database; NULL: none at all, and no complaint of it (--dry-run). host
 * (copied) is its name. Tries to open at once; failing is no error here: see claim_service_error().
 * -ENOMEM. */
int claim_service_new(ClaimService **ret, const char *path, const char *host,
                      const ClaimSettings *settings);
ClaimService *claim_service_free(ClaimService *service);
DEFINE_CLEANUP(ClaimService *, claim_service_free);

/* Opens the database when it is not open, hands it the tree of the last claim_service_set_tree().
 * To be called once a cycle. Logs what changes. */
void claim_service_tend(ClaimService *service);

/* From now on. */
void claim_service_set(ClaimService *service, const ClaimSettings *settings);

bool claim_service_is_started_only(const ClaimService *service);

/* Is there a guest of the consumer on this host that has no claim, as far as the last poll
 * says? Then it gets one. Blocks on the disk. */
bool claim_service_has_guest(ClaimService *service, const Uuid *consumer);

/* It stopped just now, whatever the last poll says. */
void claim_service_note_stopped(ClaimService *service, const Uuid *guest);

/* The host that claims are fitted to; copied. */
void claim_service_set_tree(ClaimService *service, const ProviderTree *tree);

/* Nothing new is promised, and what is added to refusals: see ClaimsRules. Copied. */
void claim_service_set_closed(ClaimService *service, const char *reason, const char *hint);

/* The name of the host's root provider, once it is known; copied. */
void claim_service_set_node(ClaimService *service, const char *node);

/* The host as the database remembers it from before this start, or NULL: what is not known of it
 * (the ratios that an operator set in Placement) is taken from there until Placement answers.
 * Borrowed. */
const ProviderTree *claim_service_get_remembered_tree(ClaimService *service);

/* The open database, or NULL. */
Claims *claim_service_get(ClaimService *service);

/* Why there is none, or why the last change of it could not be stored; code 0 when all is well. */
const Error *claim_service_error(const ClaimService *service);

/* claim_service_get(), with words where there is none. */
static inline Claims *claim_service_require(ClaimService *service, Error *reterr)
{
        Claims *claims = claim_service_get(service);

        if (!claims)
                error_setf(reterr, EIO, "Claims cannot be used: %s",
                           claim_service_error(service)->text);
        return claims;
}

/* A poll's result: what claims know of devices and guests. Keeps a reference. */
void claim_service_set_snapshot(ClaimService *service, const Snapshot *snapshot);

/* The guests of a newer poll, before a cycle takes all of it: devices and cells stay as the tree of
 * providers was made of them. Keeps a reference. */
void claim_service_set_guests(ClaimService *service, const Snapshot *snapshot);

/* Returns true if the next claim_service_reconcile() needs what consumers hold of the providers
 * that claims follow: a claim follows another writer, and the stamp of these providers is another
 * one than at the last claim_service_set_held(). Blocks on the disk. */
bool claim_service_wants_held(ClaimService *service, uint64_t stamp);

/* Sets that for the next call of claim_service_reconcile() alone. Takes held. */
void claim_service_set_held(ClaimService *service, uint64_t stamp, Allocations *held);

/* Makes claims and guests the same, once per snapshot, when the host of it is stored
 * (claims/reconcile.h), and ends claims that expired; of a host that is a recording only that: its
 * guests are not here. To be called behind the others.
 *
 * RECONCILE_CAN_ASK: where Placement is to be asked first, wanted (empty before, done by the
 * caller) says about whom; then claim_service_answer() and the same with RECONCILE_AWAY follow. */
void claim_service_reconcile(ClaimService *service, ReconcileWord word, ClaimWanted *wanted);

/* What Placement has of those that were wanted; takes holding. For the next call of
 * claim_service_reconcile() alone. */
void claim_service_answer(ClaimService *service, const ClaimWanted *asked, Allocations *holding);

/* The tree was published. If Placement had no provider of this host in this cycle, it has no
 * consumer of it either: the new database need not wait for a complete read. */
void claim_service_note_published(ClaimService *service);

/* With the next poll, Placement is to be asked about all claims without a guest: room is wanted. */
void claim_service_ask_all(ClaimService *service);

/* A claim was answered with, as if it had just been made: what a poll that began before says of its
 * guest means nothing. claim_service_notify() does it, too. */
void claim_service_touch(ClaimService *service, int64_t claim);

/* A consumer is in one hand at a time: of a claim that was read and not promised yet, or of a
 * healer that takes away what nobody here was promised. False when another has it, or without
 * memory; who got it lets it go. */
bool claim_service_take_in_hand(ClaimService *service, const Uuid *consumer);
void claim_service_let_go(ClaimService *service, const Uuid *consumer);

/* What disagrees, as the last reconciliation found it. Borrowed. */
const ReconcileProblems *claim_service_problems(const ClaimService *service);

/* The same of claims, guests and Placement, as the last audit found it; set takes what findings
 * has. Borrowed. */
const ReconcileProblems *claim_service_findings(const ClaimService *service);
void claim_service_set_findings(ClaimService *service, ReconcileProblems *findings);

/* Guests that other hosts have now, by what Placement says: see claims/reconcile.h. Takes the
 * array. */
void claim_service_set_away(ClaimService *service, Uuid *guests, size_t n_guests);

/* Compares claims and guests once more at the end of this cycle. */
void claim_service_look_again(ClaimService *service);

/* CLOCK_REALTIME of when this program began with an empty database; 0: it did not. */
uint64_t claim_service_get_built_usec(const ClaimService *service);

/* What the last poll found beside the providers, or NULL. Borrowed until the next one. */
const HostFacts *claim_service_facts(const ClaimService *service);

/* To be called with each result of claims.h, when what it yielded is no longer used: a file that
 * was moved away or is damaged (-ESTALE, -EUCLEAN) is closed and opened anew. */
void claim_service_check(ClaimService *service, int result);

/* The same, with the words of a result below 0. A disk that did not take a write is an error of the
 * service until a write succeeds; one is tried with every cycle. */
void claim_service_note(ClaimService *service, int result, const Error *words);

/* Writes down what happened beside claims (claims_note()). What cannot be is left out: the journal
 * has it. */
void claim_service_record(ClaimService *service, const EventNote *note);

/* One watcher, NULL for none, of every change but those of other processes. It may count and
 * read claims, but neither claim_service_check() nor claim_service_tend() is for it: its caller
 * is in the middle of using the database. */
void claim_service_watch(ClaimService *service, ClaimWatch watch, void *userdata);
void claim_service_notify(ClaimService *service, ClaimEvent event, const Claim *claim);

/* Claims that live; cheap; 0 when the database is not open. Closes nothing, so that a watcher may
 * call it. */
size_t claim_service_count(ClaimService *service);
