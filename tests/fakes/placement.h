/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A replacement for report/consumers.c, linked before the library: Placement's consumers in memory,
 * with its rules (facts E5). A write replaces all allocations of the consumer, needs its
 * generation, and is rejected without capacity. Each turn of the loop answers one request. */

#include <systemd/sd-event.h>

#include "base/provider-tree.h"
#include "report/consumers.h"

/* The fate of a request. */
typedef enum FakeTrouble {
        FAKE_TROUBLE_NONE,
        FAKE_TROUBLE_LOST,        /* no answer, and not done */
        FAKE_TROUBLE_CUT,         /* no answer, and done */
        FAKE_TROUBLE_LATE,        /* no answer; fake_placement_arrive() does the write */
        FAKE_TROUBLE_ERROR,       /* 500 */
        FAKE_TROUBLE_HANG,        /* never an answer, and not done: the agent will crash */
        FAKE_TROUBLE_HUNG,        /* never an answer, and done */
        FAKE_TROUBLE_RACE,        /* a write: 409 for its generation, and not done */
        FAKE_TROUBLE_TWICE,       /* a write: 409 for its generation, and done */
        FAKE_TROUBLE_NO_CAPACITY, /* a write: 409 for its capacity */
        _FAKE_TROUBLE_MAX,
} FakeTrouble;

/* Begins with the capacity of tree, which is borrowed. */
void fake_placement_begin(sd_event *event, const ProviderTree *tree);
void fake_placement_end(void);

/* Sets the trouble for the request after skip others; with on, for all later ones too. */
void fake_placement_trouble(FakeTrouble trouble, unsigned skip, bool on);

/* Returns the number of requests that had the trouble since it was set. */
unsigned fake_placement_get_hits(void);

/* Returns true if a request is never answered. Reset by the next trouble. */
bool fake_placement_hangs(void);

/* Does the late writes now, if their generations still permit it. Without all, only those that
 * clear no consumer: a consumer that was created again could have the generation of such a
 * write. */
void fake_placement_arrive(bool all);

/* Writes as another writer: "host VCPU=2,other VCPU=1"; "" for no allocation. */
void fake_placement_put(const Uuid *consumer, const char *held);

/* Writes the allocations of the consumer as "host VCPU=2,other VCPU=1", in the order of the
 * tree. */
void fake_placement_format(const Uuid *consumer, char text[static 256]);

/* Returns the number of consumers. */
size_t fake_placement_count(void);

/* Returns the number of requests. */
unsigned fake_placement_get_n_requests(void);
