/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Detects a second writer of this host's tree in Placement. A value counts as undone if three
 * conditions hold: Placement had it as the agent wants it, Placement has another value now, and the
 * agent still wants its value. One such change can be a mistake of a person. Repeated changes are a
 * second reporter. Generations do not show it: both writers read before they write, so neither
 * meets a conflict.
 *
 * After a value was undone CONTEST_MAX times, the agent keeps the other writer's value for
 * CONTEST_PAUSE_USEC. The pause doubles after each further attempt that was undone. A value that
 * was not undone for CONTEST_FORGET_USEC, or twice its last pause, is forgotten. Ratios and foreign
 * traits belong to other writers. The agent wants them as it reads them, so they never count. Pure:
 * no clock, no log. */

#include "base/provider-tree.h"

/* The limits of the file comment. */
#define CONTEST_MAX            3
#define CONTEST_PAUSE_USEC     (900 * USEC_PER_SEC)
#define CONTEST_PAUSE_MAX_USEC (24 * 3600 * USEC_PER_SEC)
#define CONTEST_FORGET_USEC    (3600 * USEC_PER_SEC)

/* The kind of a value, and the changes that count. */
typedef enum ContestKind {
        CONTEST_PROVIDER,  /* a provider: removed */
        CONTEST_INVENTORY, /* an inventory: changed, removed or added */
        CONTEST_TRAIT,     /* a trait: removed or added */
} ContestKind;

/* A value that was undone. */
typedef struct ContestPart {
        ContestKind kind;
        Uuid uuid;                /* uuid of the provider */
        char *name;               /* name of the provider */
        char *part;               /* class or trait; "" for the provider */
        char *how;                /* the change, for example "reserved 17, not 512" */
        unsigned n;               /* how often it was undone */
        uint64_t last_usec;       /* time of the last change */
        uint64_t left_until_usec; /* end of the pause; 0: the agent writes the value */
        bool logged;              /* for the caller: it was logged */
} ContestPart;

/* The state of the detection. */
typedef struct Contest {
        ProviderTree *left; /* Placement's tree after the last attempt; NULL: unknown */
        ContestPart *parts;
        size_t n_parts, n_allocated;
        uint64_t n_undone; /* all changes that were undone */
} Contest;

/* Frees the parts and the tree. */
void contest_done(Contest *contest);

/* Compares remote, which was just read, with the tree that contest_leave() has kept. That tree is
 * released. wanted is the tree that the agent wants. Times are of a monotonic clock, in
 * microseconds. Returns -ENOMEM. */
int contest_look(Contest *contest, const ProviderTree *wanted, const ProviderTree *remote,
                 const Uuid *root, uint64_t now_usec);

/* Changes tree, a copy of the wanted tree: each value in its pause becomes that of remote. Returns
 * -ENOMEM. */
int contest_give_in(const Contest *contest, ProviderTree *tree, const ProviderTree *remote,
                    uint64_t now_usec);

/* Keeps the tree of Placement at the end of an attempt, by a reference. NULL: the tree is
 * unknown. */
void contest_leave(Contest *contest, const ProviderTree *tree);

/* Returns true if another writer keeps undoing the part. */
static inline bool contest_is_repeated(const ContestPart *part)
{
        return part->n >= CONTEST_MAX;
}

/* Returns the number of parts that are repeated. */
size_t contest_count(const Contest *contest);

/* Describes the parts that are repeated, separated by "; ", for example "trait HW_CPU_X86_SSE3 of
 * demo: removed (overwritten 3 times)". The caller frees. Returns "" if there are none, NULL if out
 * of memory. */
char *contest_describe(const Contest *contest);
