/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides whether this host is in Placement under its own name and uuid, and which repairs are
 * possible. Pure: main.c of the helper gathers the facts. */

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
        const char *name;        /* name of this host; "": the hypervisor did not report it */
        bool asked;              /* Placement answered, so the members below are valid */
        IdentityProvider own;    /* provider with this host's uuid */
        IdentityProvider holder; /* provider with this host's name; can be the same */
        size_t n_below;          /* number of providers below own */
} IdentityFacts;

void identity_facts_done(IdentityFacts *facts);

typedef enum IdentityState {
        IDENTITY_GOOD,        /* the root provider has this host's name */
        IDENTITY_UNKNOWN,     /* Placement was not read, or the name is not known */
        IDENTITY_NEW,         /* Placement has neither uuid nor name */
        IDENTITY_RENAMED,     /* the root provider has another name, and this host's name is free */
        IDENTITY_TAKEN,       /* the uuid is unknown, and another root has the name */
        IDENTITY_TAKEN_BELOW, /* the uuid is unknown, and a provider below another has the name */
        IDENTITY_TWICE,       /* the root has another name, and another provider has this host's */
        IDENTITY_NO_ROOT,     /* the provider with this host's uuid is below another one */
        _IDENTITY_STATE_MAX,
} IdentityState;

const char *identity_state_to_text(IdentityState state); /* "good", "taken-below", … */

IdentityState identity_judge(const IdentityFacts *facts);

/* Describes the state in one sentence. The advice for it is a static text; "": none is needed. */
void identity_explain(const IdentityFacts *facts, char *text, size_t size);
const char *identity_advise(const IdentityFacts *facts, IdentityState state);

/* Returns 0 if this host can adopt the uuid of the provider with its name. Otherwise returns
 * -EEXIST, -ENOENT, -EPERM or another negative errno, with words. */
int identity_may_adopt(const IdentityFacts *facts, bool force, Error *reterr);

/* Returns 0 if the root provider can get this host's name. Errors are as above. */
int identity_may_rename(const IdentityFacts *facts, Error *reterr);

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

/* Plans a new name for the root of tree (parents first, as read). It changes the root, and every
 * provider whose name begins with the root's name and "_". The root comes last: if a plan is
 * interrupted, the next plan contains the rest. Returns -EINVAL for a name that gets too long, or
 * -ENOMEM. */
int identity_plan_rename(const PlacementProviders *tree, const Uuid *root, const char *name,
                         IdentityPlan *ret, Error *reterr);
