/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares claims and guests: what polls found, what Placement said of their consumers, and when
 * the comparison is due. claims/reconcile.h decides, agent/guests/reconcile.h acts. Main thread;
 * blocks on the disk of the claim database alone. */

#include "agent/guests/reconcile.h"

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

/* Returns true if the next claim_service_reconcile() needs what consumers hold of the providers
 * that claims follow: a claim follows another writer, and the stamp of these providers is another
 * one than at the last claim_service_set_held(). */
bool claim_service_wants_held(ClaimService *service, uint64_t stamp);

/* Sets that for the next call of claim_service_reconcile() alone. Takes held. */
void claim_service_set_held(ClaimService *service, uint64_t stamp, Allocations *held);

/* Makes claims and guests the same, once per snapshot, when the host of it is stored
 * (claims/reconcile.h), and ends claims that expired; of a host that is a recording only that: its
 * guests are not here. Called after the others.
 *
 * RECONCILE_CAN_ASK: where Placement must be asked first, wanted (empty before, done by the
 * caller) says about which consumers; then claim_service_answer() and the same with RECONCILE_AWAY
 * follow. */
void claim_service_reconcile(ClaimService *service, ReconcileWord word, ClaimWanted *wanted);

/* What Placement has of those that were wanted; takes holding. For the next call of
 * claim_service_reconcile() alone. Where the host is not known, nothing is learnt. */
void claim_service_answer(ClaimService *service, const ClaimWanted *asked, Allocations *holding);

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
