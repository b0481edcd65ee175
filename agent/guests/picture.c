/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/picture.h"

#include <errno.h>

#include "agent/guests/facts.h"
#include "base/array.h"

static void forget_poll(GuestPicture *picture)
{
        claim_facts_done(&picture->facts);
        snapshot_unref(picture->snapshot);
        snapshot_unref(picture->guests);
}

void guest_picture_done(GuestPicture *picture)
{
        forget_poll(picture);
        free(picture->touched);
        *picture = (GuestPicture){ 0 };
}

static void forget_touched(GuestPicture *picture)
{
        size_t n = 0;

        for (size_t i = 0; i < picture->n_touched; i++)
                if (picture->touched[i].when_usec >= picture->facts.taken_usec)
                        picture->touched[n++] = picture->touched[i];
        picture->n_touched = n;
}

int guest_picture_set(GuestPicture *picture, const HostConfig *driver, const Snapshot *snapshot,
                      const Snapshot *guests)
{
        HostFacts facts = { 0 };

        if (claim_facts_make(driver, snapshot, guests, &facts) < 0)
                return -ENOMEM;
        snapshot_ref(snapshot);
        snapshot_ref(guests);
        forget_poll(picture);
        picture->snapshot = (Snapshot *)snapshot;
        picture->guests = (Snapshot *)guests;
        picture->facts = facts;
        forget_touched(picture);
        return 0;
}

const HostFacts *guest_picture_facts(const GuestPicture *picture)
{
        return picture->snapshot ? &picture->facts : NULL;
}

bool guest_picture_is_recorded(const GuestPicture *picture)
{
        return picture->snapshot->guests_unknown;
}

void guest_picture_note_stopped(GuestPicture *picture, const Uuid *guest)
{
        for (size_t i = 0; i < picture->facts.n_domains; i++)
                if (uuid_equal(&picture->facts.domains[i].uuid, guest))
                        picture->facts.domains[i].running = false;
}

void guest_picture_touch(GuestPicture *picture, int64_t claim, uint64_t usec)
{
        /* Without memory a poll may be believed that is a moment too old: as it is without this. */
        if (array_grow(&picture->touched, sizeof(ReconcileTouched), picture->n_touched,
                       &picture->n_touched_allocated) < 0)
                return;
        picture->touched[picture->n_touched++] =
                (ReconcileTouched){ .claim_id = claim, .when_usec = usec };
}

void guest_picture_follow_clock(GuestPicture *picture, const ClockJump *jump)
{
        for (size_t i = 0; i < picture->n_touched; i++)
                picture->touched[i].when_usec =
                        clock_jump_move(jump, picture->touched[i].when_usec);
}
