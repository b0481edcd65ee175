/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The actions that claims/reconcile.h decides, except RECONCILE_READ. reconcile_act() writes to the
 * claim database, within the transaction of the caller (claims_begin_group()). The caller calls
 * reconcile_announce() after the commit, which logs and announces the change. Main thread; blocks
 * on the disk. Internal to agent/guests/reconcile.c. */

#include "agent/guests/database.h"

/* The environment of actions. Everything is borrowed. */
typedef struct ReconcileWork {
        ClaimService *service;
        const ReconcileInput *order;
        Claims *claims;
        EventList *released; /* the claims of reconcile_list_released() */
} ReconcileWork;

/* The result of one action. */
typedef struct ReconcileEffect {
        const ReconcileAction *action; /* borrowed */
        int result;                    /* 0, an outcome of claims.h or a negative errno */
        bool done;           /* the claim was written, and is announced; a completion can have
                                changed nothing, and an adoption can lack its completion */
        int64_t claim_id;    /* claim that was made, or that has the problem */
        Uuid completed;      /* consumer whose allocations completed the claim; "": none */
        Claim *before;       /* a claim before it was checked; owned; NULL: none */
        const char *problem; /* follows the name of the guest; NULL: no problem beside result */
        Error words;         /* words of result or problem */
} ReconcileEffect;

static inline void reconcile_effect_done(ReconcileEffect *effect)
{
        claim_free(effect->before);
}

/* Replaces work->released by the claims that were released since the begin of the poll, or with
 * started_only up to 30 s before it: the poll can still show their guests. The caller calls it
 * before the actions of one transaction. If the claims cannot be read, there are none. */
void reconcile_list_released(const ReconcileWork *work);

/* Runs the action of the effect, which has nothing else yet, and fills the effect. The action is
 * not a RECONCILE_READ. The caller frees the effect with reconcile_effect_done(). An adoption does
 * nothing, without a problem, if a claim of its guest has just ended. So does an extension of a
 * claim that was confirmed since the decision. */
void reconcile_act(const ReconcileWork *work, ReconcileEffect *effect);

/* Logs the change of an action, and notifies the watcher of the service. Does nothing unless
 * ReconcileEffect.done is set. Problems are the caller's to log. */
void reconcile_announce(const ReconcileWork *work, const ReconcileEffect *effect);
