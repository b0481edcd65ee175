/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides whether this host is in Placement under its own name and uuid, which repairs are
 * possible, and how providers must be renamed. Pure: agent/helper/main.c gathers the facts and
 * makes the changes. */

#include "base/error.h"
#include "report/placement/answer.h"
#include "report/publish/name-holder.h"

/* A provider of Placement. */
typedef struct IdentityProvider {
        bool found;
        char *name;
        int64_t generation;
        NameHolder who;
} IdentityProvider;

/* The facts about this host. */
typedef struct IdentityFacts {
        char *file; /* file with the uuid; NULL: there is none */
        Uuid uuid;
        const char *name;        /* name of this host, borrowed; "": not known */
        bool asked;              /* Placement answered, so the members below are valid */
        IdentityProvider own;    /* provider with this host's uuid */
        IdentityProvider holder; /* provider with this host's name; can be the same */
        size_t n_below;          /* number of other providers of the tree that own is in */
        bool in_use;             /* a consumer has allocations of that tree; read only if
                                    identity_rename_needs_use() */
} IdentityFacts;

void identity_facts_done(IdentityFacts *facts);

/* The state of this host in Placement. */
typedef struct IdentityVerdict {
        const char *state;               /* "good", "unknown", "taken-below", …; static */
        const char *advice;              /* for the operator; static; "": none */
        char text[ERROR_TEXT_MAX + 200]; /* the state in one sentence */
} IdentityVerdict;

void identity_judge(const IdentityFacts *facts, IdentityVerdict *ret);

/* Returns 0 if this host can adopt the uuid of the provider with its name. Otherwise returns one of
 * these with words. -ENODATA: the name is unknown. -ENOENT: there is no such provider. -EPERM: it
 * is no root. -EALREADY: this host has that uuid. -EEXIST: this host has another uuid, and force is
 * false. */
int identity_may_adopt(const IdentityFacts *facts, bool force, Error *reterr);

/* The change of one provider's name. */
typedef struct IdentityChange {
        Uuid uuid;
        char *from, *to;
} IdentityChange;

/* Changes in the order in which they must be made. */
typedef struct IdentityPlan {
        IdentityChange *items;
        size_t n_items;
} IdentityPlan;

void identity_plan_done(IdentityPlan *plan);

/* Checks whether a renaming depends on the member in_use of the facts. */
bool identity_rename_needs_use(const IdentityFacts *facts, bool force);

/* Plans this host's name for the root of tree (parents first, as read), the provider with this
 * host's uuid. The plan renames the root, and every provider of the tree whose name begins with the
 * root's name and "_". The others keep their names, and so do those whose name begins with a
 * longer new name and "_". The caller frees ret. Children come before parents, and the root comes
 * last: if the renaming is interrupted, the next plan contains the rest. Only the state "renamed"
 * permits it: returns with words -EALREADY for "good", -ENODATA for "unknown", or -EPERM for
 * another state. -EEXIST: the tree is in use, and force is false; a clone has the uuid of another
 * host. Also returns -ENOENT if tree lacks the root, -EINVAL for a name that gets too long (counted
 * in bytes), or -ENOMEM. */
int identity_plan_rename(const IdentityFacts *facts, const PlacementProviders *tree, bool force,
                         IdentityPlan *ret, Error *reterr);
