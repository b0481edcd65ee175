/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides what follows for a claim, an owed write, a removal or a move by what Placement has. Pure:
 * agent/placing/claiming.c, moving.c and settle.c act. */

#include "agent/guests/claim-share.h"
#include "agent/placing/queue.h"

/* Returns why the agent must not write allocations that no scheduler placed, in words that end a
 * sentence; NULL: it can. */
const char *claim_decide_refuses(ClaimMode mode, NovaMode nova);

/* Returns the write state that an owed claim takes. CLAIM_WRITE_SENT: it is to be written now;
 * CLAIM_WRITE_WRITTEN: our write is there; CLAIM_WRITE_NONE: another writer placed the consumer.
 * here: the consumer has allocations on this host; same: exactly those of the claim; gone: it has
 * allocations elsewhere, and its guest, which was here, does not run here any more. */
ClaimWriteState claim_decide_owed(ClaimWriteState write_state, bool here, bool same, bool gone);

typedef enum ClaimRemovalDecision {
        CLAIM_REMOVAL_END,
        CLAIM_REMOVAL_SEND,
        CLAIM_REMOVAL_KEEP, /* end it, and leave what somebody else put there */
        CLAIM_REMOVAL_WAIT, /* a write of ours may still arrive, or its guest still lives */
} ClaimRemovalDecision;

typedef struct ClaimRemovalState {
        bool here;         /* the consumer holds something of this host */
        bool ours;         /* claim_share_is_ours() */
        bool inherited;    /* another claim of the consumer has it */
        bool late;         /* it could not be looked at when the claim ended */
        bool unsure;       /* what became of the claim's write was not known */
        bool lives;        /* its guest is here, and gets a claim that has this share */
        uint64_t age_usec; /* since the claim ended */
} ClaimRemovalState;

/* The time within which a write can still arrive after the agent stopped waiting for it. */
#define CLAIM_WRITE_LATE_USEC (CLAIM_WRITE_LATE_SEC * USEC_PER_SEC)

/* Within this time after the end of a claim, its consumer's allocations count as left by the claim.
 * */
#define CLAIM_REMOVAL_SOON_USEC (5 * USEC_PER_SEC)

ClaimRemovalDecision claim_decide_removal(const ClaimRemovalState *state);

typedef enum ClaimMoveDecision {
        CLAIM_MOVE_SEND,
        CLAIM_MOVE_DONE,       /* by somebody else, or Placement knows of neither */
        CLAIM_MOVE_ARRIVED,    /* ours did */
        CLAIM_MOVE_FENCE,      /* it was not done, and has to be kept from being done late */
        CLAIM_MOVE_GIVE_UP,    /* nothing is there that could be moved */
        CLAIM_MOVE_TAKEN,      /* both hold something of this host */
        CLAIM_MOVE_NOT_PLACED, /* it is not ours to do */
} ClaimMoveDecision;

typedef struct ClaimMoveState {
        bool left, there; /* of this host: from holds something, to does */
        bool sent;        /* by us, and what became of it is not known */
        bool repairs;     /* nobody waits for it */
        bool refused;     /* claim_decide_refuses() */
} ClaimMoveState;

ClaimMoveDecision claim_decide_move(const ClaimMoveState *state);
