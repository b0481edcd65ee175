/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares claims and guests: what polls found, what Placement said of their consumers, and when
 * the comparison is due. claims/reconcile.h decides, agent/guests/reconcile.h acts. Main thread;
 * blocks on the disk of the claim database alone. */

#include "agent/guests/reconcile.h"
#include "report/reporter.h"

/* A poll's result: what claims know of devices and guests. Keeps a reference. */
void claim_service_set_snapshot(ClaimService *service, const Snapshot *snapshot);

/* The guests of a newer poll, before a cycle takes all of it: devices and cells stay as the tree of
 * providers was made of them. Keeps a reference. */
void claim_service_set_guests(ClaimService *service, const Snapshot *snapshot);

/* Returns true if the last poll found a guest of the consumer on this host that has no claim, so
 * that it gets one. */
bool claim_service_has_guest(ClaimService *service, const Uuid *consumer);

/* Notes that the guest stopped, whatever the last poll says. */
void claim_service_note_stopped(ClaimService *service, const Uuid *guest);

/* Guests that other hosts have now, by what Placement says: see claims/reconcile.h. Takes the
 * array. */
void claim_service_set_away(ClaimService *service, Uuid *guests, size_t n_guests);

/* Makes claims and guests the same, once per snapshot, when the host of it is stored
 * (claims/reconcile.h), and ends claims that expired. The guests of a recorded host are not here,
 * so only expired claims end. word is not RECONCILE_CAN_ASK: Placement is not asked. */
void claim_service_reconcile(ClaimService *service, ReconcileWord word);

/* The same with answers of Placement. First reads what consumers hold of the providers with the
 * amounts of guests, if another writer changed these and a claim follows them: one request for the
 * root, and one for each cell that is a provider. Then reads in parallel the consumers that
 * claims/reconcile.h asks about, or all of this host, and acts. A cycle in which nothing changed
 * sends no request. */
typedef struct ClaimWitness ClaimWitness;

/* Called once, never from inside claim_witness_begin(); it can free the witness. */
typedef void (*ClaimWitnessDone)(void *userdata);

/* Acts at once on what needs no answer. Returns 1 if a request is under way, and done follows, 0 if
 * all is done. root: of the host. Everything is borrowed; the reporter has a tree, and no attempt
 * under way. */
int claim_witness_begin(ClaimWitness **ret, ClaimService *service, Reporter *reporter,
                        const Uuid *root, ClaimWitnessDone done, void *userdata);

/* Cancels what is under way. While all consumers are read, the reporter must be freed as well
 * before the event loop goes on. */
ClaimWitness *claim_witness_free(ClaimWitness *witness);
DEFINE_CLEANUP(ClaimWitness *, claim_witness_free);

/* Notes that the tree was published. If Placement had no provider of this host in this cycle, it
 * has no consumer of it either: the new database need not wait for a complete read. */
void claim_service_note_published(ClaimService *service);

/* With the next poll, Placement is asked about all claims without a guest, to free capacity. */
void claim_service_ask_all(ClaimService *service);

/* Compares claims and guests once more at the end of this cycle. */
void claim_service_look_again(ClaimService *service);

/* A change of CLOCK_REALTIME beside CLOCK_BOOTTIME, which cannot be set and which goes on while the
 * host sleeps. Small corrections between two looks stay below this. Pure. */
#define CLOCK_JUMP_MIN_USEC (10 * USEC_PER_SEC)

typedef struct ClockJump {
        int64_t by_usec;    /* 0: none; > 0: forward */
        uint64_t from_usec; /* what the clock would show now without it */
        uint64_t to_usec;   /* what it shows */
        uint64_t gap_usec;  /* since the look before */
} ClockJump;

ClockJump clock_watch_look(ClockWatch *watch, uint64_t real_usec, uint64_t boot_usec);

/* Returns true for a moment that the clock showed before the jump; false where both can be. */
bool clock_jump_is_before(const ClockJump *jump, uint64_t usec);

/* Returns the same distance from now, by the clock that there is now. Never 0. */
uint64_t clock_jump_move(const ClockJump *jump, uint64_t usec);
