/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether this host is in Placement who it thinks it is, and what can be done when it is not. Pure:
 * the facts are gathered by identity-work.h. */

#include "base/error.h"
#include "report/placement/answer.h"
#include "report/publish/name-holder.h"

/* A provider as Placement has it. */
typedef struct IdentityProvider {
        bool found;
        char *name;
        int64_t generation;
        NameHolder who;
} IdentityProvider;

typedef struct IdentityFacts {
        char *file; /* where the uuid came from; NULL: there is none */
        Uuid uuid;
        const char *name;        /* of this host; "": the hypervisor did not say it */
        bool asked;              /* Placement answered the rest */
        IdentityProvider own;    /* the provider with our uuid */
        IdentityProvider holder; /* the provider with our name; may be the same */
        size_t n_below;          /* providers below our own */
} IdentityFacts;

void identity_facts_done(IdentityFacts *facts);

typedef enum IdentityState {
        IDENTITY_GOOD,        /* our root has our name */
        IDENTITY_UNKNOWN,     /* Placement was not asked, or the name is not known */
        IDENTITY_NEW,         /* Placement knows neither uuid nor name */
        IDENTITY_RENAMED,     /* our root has another name, and ours is free */
        IDENTITY_TAKEN,       /* our uuid is unknown, and our name is that of another root */
        IDENTITY_TAKEN_BELOW, /* our name is that of a provider below another */
        IDENTITY_TWICE,       /* our root has another name, and ours is that of another provider */
        IDENTITY_NO_ROOT,     /* the provider with our uuid stands below another */
        _IDENTITY_STATE_MAX,
} IdentityState;

const char *identity_state_to_text(IdentityState state); /* "good", "taken-below", … */

IdentityState identity_judge(const IdentityFacts *facts);

/* One sentence, and what to do about it ("" when all is well). */
void identity_explain(const IdentityFacts *facts, char *text, size_t size);
const char *identity_advise(const IdentityFacts *facts, IdentityState state);

/* 0 when this host may take the holder's uuid. -EEXIST, -ENOENT, -EPERM … with words. */
int identity_may_adopt(const IdentityFacts *facts, bool force, Error *reterr);

/* The same, for giving its name to our root. */
int identity_may_rename(const IdentityFacts *facts, Error *reterr);

typedef struct IdentityChange {
        Uuid uuid;
        char *from, *to;
} IdentityChange;

typedef struct IdentityPlan {
        IdentityChange *items;
        size_t n_items;
} IdentityPlan;

void identity_plan_done(IdentityPlan *plan);

/* What a new name of the root changes in its tree (parents first, as read): the root itself, and
 * every provider whose name begins with the root's and "_". The root comes last: a plan that was
 * cut short is made again, and goes on. -EINVAL for a name that gets too long, -ENOMEM. */
int identity_plan_rename(const PlacementProviders *tree, const Uuid *root, const char *name,
                         IdentityPlan *ret, Error *reterr);
