/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A second writer of this host's tree in Placement, by what it does: something was as the agent
 * wants it, is not any more, and the agent still wants the same. That is somebody who does not
 * know of us once, and a second reporter when it goes on. Generations say nothing of it: both read
 * before they write, so that nobody meets a conflict, and each undoes what the other did.
 *
 * What was undone CONTEST_MAX times is left as the other has it, for CONTEST_PAUSE_USEC, and for
 * twice as long after each try that was undone, too. What was not undone for CONTEST_FORGET_USEC
 * (or twice as long as it was left alone) is forgotten. What others may write (ratios, foreign
 * traits) is never wanted otherwise than it is read, so that it is not looked at. Pure: no clock,
 * no log. */

#include "base/provider-tree.h"

#define CONTEST_MAX            3
#define CONTEST_PAUSE_USEC     (900 * USEC_PER_SEC)
#define CONTEST_PAUSE_MAX_USEC (24 * 3600 * USEC_PER_SEC)
#define CONTEST_FORGET_USEC    (3600 * USEC_PER_SEC)

typedef enum ContestKind {
        CONTEST_PROVIDER,  /* removed */
        CONTEST_INVENTORY, /* of the class: changed or removed */
        CONTEST_TRAIT,     /* taken away, or put back */
} ContestKind;

typedef struct ContestPart {
        ContestKind kind;
        Uuid uuid;  /* of the provider */
        char *name; /* the same */
        char *part; /* class or trait; "" for the provider */
        char *how;  /* what became of it: "reserved 17, not 512", "taken away" */
        unsigned n; /* how often it was undone */
        uint64_t last_usec;
        uint64_t left_until_usec; /* 0: it is written */
        bool logged;              /* the caller's: it was logged */
} ContestPart;

typedef struct Contest {
        ProviderTree *left; /* the tree as it was when we were done with it last; NULL: not known */
        ContestPart *parts;
        size_t n_parts, n_allocated;
        uint64_t n_undone; /* all in all */
} Contest;

void contest_done(Contest *contest);

/* remote was just read. Compares it with what contest_leave() kept, which is used up by that.
 * wanted: the tree as it is to be. Times are of a clock that is not set. -ENOMEM. */
int contest_look(Contest *contest, const ProviderTree *wanted, const ProviderTree *remote,
                 const Uuid *root, uint64_t now_usec);

/* Makes of tree (wanted, a copy) what remote has, where it is left alone now. -ENOMEM. */
int contest_give_in(const Contest *contest, ProviderTree *tree, const ProviderTree *remote,
                    uint64_t now_usec);

/* Keeps the tree of Placement at the end of an attempt, by a reference. NULL: it is not known. */
void contest_leave(Contest *contest, const ProviderTree *tree);

/* Returns true if another writer undoes the part again and again. */
static inline bool contest_is_repeated(const ContestPart *part)
{
        return part->n >= CONTEST_MAX;
}

/* Returns the number of parts that are repeated. */
size_t contest_count(const Contest *contest);

/* "trait HW_CPU_X86_SSE3 of demo: taken away (undone 3 times)", one after the other: what
 * contest_is_repeated(). The caller frees; "" when there is nothing, NULL when out of memory. */
char *contest_describe(const Contest *contest);
