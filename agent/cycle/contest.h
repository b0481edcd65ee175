/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Detects a second writer of this host's tree in Placement. A value counts as undone if Placement
 * had it as the agent wants it, does not have it any more, and the agent still wants it. One such
 * change can be a mistake of a person; repeated ones are a second reporter. Generations do not show
 * it: both writers read before they write, so neither meets a conflict.
 *
 * A value that was undone CONTEST_MAX times is left as the other writer has it for
 * CONTEST_PAUSE_USEC, and twice as long after each further try that was undone. A value that was
 * not undone for CONTEST_FORGET_USEC (or twice the time that it was left alone) is forgotten.
 * Ratios and foreign traits, which others may write, are wanted as they are read, so they never
 * count. Pure: no clock, no log. */

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
