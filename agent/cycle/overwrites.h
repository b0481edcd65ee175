/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Detects a second writer of this host's tree in Placement. A value outside its pause counts as
 * overwritten if three conditions hold: at the end of the last attempt Placement had it as the
 * agent wants it, Placement has another value now, and the agent still wants its value. One such
 * change can be a mistake of a person. Repeated changes are a second reporter. Generations do not
 * reveal a second reporter: both writers read before they write, so conflicts are rare.
 *
 * After a value was overwritten OVERWRITES_MAX times, the agent keeps the other writer's value for
 * OVERWRITES_PAUSE_USEC. Then it writes its own value again. Each time that this value is
 * overwritten, the pause doubles, up to OVERWRITES_PAUSE_MAX_USEC. A value that was not overwritten
 * for OVERWRITES_FORGET_USEC and for twice its last pause is forgotten. A restart or a reload
 * forgets all. A cordon of a person or of a health rule, and its end, end all pauses, because a
 * pause of a part also holds back its new value.
 *
 * Foreign traits belong to other writers, and so do the ratios of VCPU, MEMORY_MB and DISK_GB that
 * no option sets. The agent wants these as it reads them, so they never count. Other ratios, such
 * as those of options, PCPU and devices, count like the rest of their inventory. Pure: no clock, no
 * log. */

#include "base/provider-tree.h"

#define OVERWRITES_MAX            3
#define OVERWRITES_PAUSE_USEC     (900 * USEC_PER_SEC)
#define OVERWRITES_PAUSE_MAX_USEC (24 * 3600 * USEC_PER_SEC)
#define OVERWRITES_FORGET_USEC    (3600 * USEC_PER_SEC)

/* A value that was overwritten: a provider (removed), an inventory (changed, removed or added), or
 * a trait (removed or added). */
typedef struct Overwrite {
        bool is_trait;
        Uuid uuid;                /* uuid of the provider */
        char *name;               /* name of the provider */
        char *part;               /* class of the inventory, or trait; "": the provider */
        char *how;                /* the change, for example "reserved 17, not 512" */
        unsigned n;               /* how often it was overwritten outside its pauses */
        uint64_t last_usec;       /* time of the last overwrite that counted */
        uint64_t left_until_usec; /* end of the last pause, after which the agent writes the value;
                                     0: none, or it was ended */
        bool logged;              /* set by the caller when it has logged this value as repeated */
} Overwrite;

/* The state of the detection. */
typedef struct Overwrites {
        ProviderTree *left; /* Placement's tree after the last attempt; NULL: unknown */
        Overwrite *parts;
        size_t n_parts, n_allocated;
        uint64_t n_undone; /* number of overwrites outside pauses, also of values that were
                              forgotten */
} Overwrites;

void overwrites_done(Overwrites *overwrites);

/* Forgets old values. Then compares remote, which was just read, with the tree that
 * overwrites_keep_tree() has kept, and counts the overwrites. Releases the kept tree. Without one
 * it counts nothing. wanted is the tree that the agent wants. root is the host's root provider.
 * Times are of a clock that cannot be set, in microseconds. Returns -ENOMEM on failure, after which
 * the kept tree is released too. */
int overwrites_update(Overwrites *overwrites, const ProviderTree *wanted,
                      const ProviderTree *remote, const Uuid *root, uint64_t now_usec);

/* Changes tree, which the caller will publish: each value in its pause becomes that of remote,
 * which can be none. A provider in its pause that remote lacks is removed with its descendants.
 * Inventories and traits whose provider tree or remote lacks are skipped. Returns 1 if a value was
 * different, 0 if not, and -ENOMEM on failure. */
int overwrites_yield(const Overwrites *overwrites, ProviderTree *tree, const ProviderTree *remote,
                     uint64_t now_usec);

/* Ends all pauses, so that the next attempt writes the agent's values. The counts stay. */
void overwrites_end_pauses(Overwrites *overwrites);

/* Keeps a reference to the tree that Placement has at the end of an attempt, for the next
 * overwrites_update(). NULL: the tree is unknown, so the next update counts nothing. */
void overwrites_keep_tree(Overwrites *overwrites, const ProviderTree *tree);

/* Returns true if the part was overwritten at least OVERWRITES_MAX times. */
static inline bool overwrite_is_repeated(const Overwrite *part)
{
        return part->n >= OVERWRITES_MAX;
}

/* Returns the number of parts that are repeated. */
size_t overwrites_count(const Overwrites *overwrites);

/* Describes the parts that are repeated, separated by "; ", for example "trait HW_CPU_X86_SSE3 of
 * demo: removed (overwritten 3 times)". The caller frees. Returns "" if there are none, NULL if out
 * of memory. */
char *overwrites_describe(const Overwrites *overwrites);
