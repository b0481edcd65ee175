/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A stand-in for report/consumers.c, linked before the library: Placement's consumers in memory, by
 * its rules (facts E5): a write replaces all that the consumer holds, needs its generation, and is
 * refused when there is no room. One request is answered with each turn of the loop. */

#include <systemd/sd-event.h>

#include "base/provider-tree.h"
#include "report/consumers.h"

/* What becomes of a request. */
typedef enum FakeTrouble {
        FAKE_TROUBLE_NONE,
        FAKE_TROUBLE_LOST,    /* no answer, and not done */
        FAKE_TROUBLE_CUT,     /* no answer, and done */
        FAKE_TROUBLE_LATE,    /* no answer; a write is done by fake_placement_arrive() */
        FAKE_TROUBLE_ERROR,   /* 500 */
        FAKE_TROUBLE_HANG,    /* no answer ever, and not done: the agent is to crash */
        FAKE_TROUBLE_HUNG,    /* the same, and done */
        FAKE_TROUBLE_RACE,    /* a write: 409 of a generation, and not done */
        FAKE_TROUBLE_TWICE,   /* a write: the same, and done */
        FAKE_TROUBLE_NO_ROOM, /* a write: 409 of capacity */
        _FAKE_TROUBLE_MAX,
} FakeTrouble;

/* tree: what there is to be allocated; borrowed. */
void fake_placement_begin(sd_event *event, const ProviderTree *tree);
void fake_placement_end(void);

/* Trouble for the request that comes after skip others; with on, for all that follow, too. */
void fake_placement_trouble(FakeTrouble trouble, unsigned skip, bool on);

/* How many requests met it since then. */
unsigned fake_placement_get_hits(void);

/* Is there a request that is never answered? Until the next trouble is set. */
bool fake_placement_hangs(void);

/* Writes that were given up are done now, if their generations still allow it; or, unless all,
 * those that clear no consumer: one that was made anew could have the generation that they name. */
void fake_placement_arrive(bool all);

/* Somebody else writes: "host VCPU=2,other VCPU=1"; "" for nothing. */
void fake_placement_put(const Uuid *consumer, const char *held);

/* What the consumer holds: "host VCPU=2,other VCPU=1", in the order of the tree. */
void fake_placement_format(const Uuid *consumer, char text[static 256]);

/* How many consumers there are. */
size_t fake_placement_count(void);

/* How many requests came. */
unsigned fake_placement_get_n_requests(void);
