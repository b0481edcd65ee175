/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The devices and guests that claims go by, of one poll or of two: a newer one may bring its guests
 * before a cycle takes all of it. And which claims are newer than that: of their guests it says
 * nothing. */

#include "agent/guests/clock-watch.h"
#include "claims/claim/host-facts.h"
#include "claims/reconcile.h"
#include "drivers/driver.h"

typedef struct GuestPicture {
        Snapshot *snapshot; /* that facts borrows from; NULL before the first */
        Snapshot *guests;   /* the same, for the domains alone: as new or newer */
        HostFacts facts;
        ReconcileTouched *touched; /* since the poll of snapshot, or a little longer */
        size_t n_touched, n_touched_allocated;
} GuestPicture;

void guest_picture_done(GuestPicture *picture);

/* Keeps a reference of both. Claims that were touched before snapshot's poll are forgotten.
 * -ENOMEM: it is as before. */
int guest_picture_set(GuestPicture *picture, const HostConfig *driver, const Snapshot *snapshot,
                      const Snapshot *guests);

/* NULL before the first poll. Borrowed until the next. */
const HostFacts *guest_picture_facts(const GuestPicture *picture);

/* Which guests there are is not known, as of a host that is a recording of another one. */
bool guest_picture_is_recorded(const GuestPicture *picture);

/* The guest stopped just now, whatever the poll says. */
void guest_picture_note_stopped(GuestPicture *picture, const Uuid *guest);

/* The claim was answered with at that time (CLOCK_REALTIME); without memory it is not noted. */
void guest_picture_touch(GuestPicture *picture, int64_t claim, uint64_t usec);

/* Somebody set the clock. */
void guest_picture_follow_clock(GuestPicture *picture, const ClockJump *jump);
