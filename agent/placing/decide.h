/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides how a claim, a pending write, a removal or a move continues, given the allocations that
 * Placement has. Pure: agent/placing/claiming.c, moving.c and settle.c act on the decisions. */

#include "agent/guests/claim-share.h"
#include "agent/placing/queue.h"

/* Returns why the agent must not write allocations that no scheduler placed, as the end of a
 * sentence; NULL if it can. */
const char *claim_decide_refuses(ClaimMode mode, NovaMode nova);

/* Returns the next write state of a claim whose write is pending. CLAIM_WRITE_SENT: write it now.
 * CLAIM_WRITE_WRITTEN: the agent's write has arrived. CLAIM_WRITE_NONE: write nothing, because
 * another writer placed the consumer here, or because the guest has moved to another host.
 *
 * here: the consumer has allocations on this host. same: these are exactly those of the claim.
 * gone: the consumer has allocations elsewhere, and its guest, which ran here, does not run here
 * any more. */
ClaimWriteState claim_decide_pending_write(ClaimWriteState write_state, bool here, bool same,
                                           bool gone);

/* The next step for the allocations that an ended claim left. */
typedef enum ClaimRemovalDecision {
        CLAIM_REMOVAL_END,  /* end the removal: nothing is left, or another claim owns it */
        CLAIM_REMOVAL_SEND, /* remove them from Placement */
        CLAIM_REMOVAL_KEEP, /* end the removal: another writer placed these allocations */
        CLAIM_REMOVAL_WAIT, /* try later: a write of the agent can still arrive, or the guest is
                               still here */
} ClaimRemovalDecision;

/* The evidence about a removal. */
typedef struct ClaimRemovalState {
        bool here;         /* the consumer has allocations on this host */
        bool ours;         /* the agent wrote these allocations: claim_share_is_ours() */
        bool inherited;    /* these allocations belong to another claim of the consumer */
        bool late;         /* the removal was pending while nothing could be settled */
        bool unsure;       /* the result of the claim's write is unknown */
        bool has_guest;    /* the consumer's guest is here, and will get a claim for them */
        uint64_t age_usec; /* time since the claim ended */
} ClaimRemovalState;

/* A write can still arrive within this time after the agent stopped waiting for it. */
#define CLAIM_WRITE_LATE_USEC (CLAIM_WRITE_LATE_SEC * USEC_PER_SEC)

/* Within this time after the end of a claim, the allocations of its consumer count as left by the
 * claim, unless the removal is late. */
#define CLAIM_REMOVAL_SOON_USEC (5 * USEC_PER_SEC)

/* Decides about the allocations that an ended claim left. */
ClaimRemovalDecision claim_decide_removal(const ClaimRemovalState *state);

/* The next step of a move. */
typedef enum ClaimMoveDecision {
        CLAIM_MOVE_SEND,    /* move the allocations in Placement */
        CLAIM_MOVE_DONE,    /* another writer moved them, or neither consumer has any */
        CLAIM_MOVE_ARRIVED, /* the agent's move has arrived */
        CLAIM_MOVE_FENCE,   /* the move was not done; ensure that it cannot arrive late */
        CLAIM_MOVE_GIVE_UP, /* end a stored move: nothing can be moved, or the agent must not move
                               it */
        CLAIM_MOVE_TAKEN,   /* reject the move: both consumers have allocations on this host */
        CLAIM_MOVE_NOT_PLACED, /* reject the move: the agent must not write it (yet) */
} ClaimMoveDecision;

/* The evidence about a move. */
typedef struct ClaimMoveState {
        bool left,
                there; /* the consumer "from" (left) or "to" (there) has allocations on this host */
        bool sent;     /* the agent sent the move, and its result is unknown */
        bool repairs;  /* the move is settled later; no caller waits for it */
        bool refused;  /* claim_decide_refuses() gives a reason */
        bool unwritten; /* a pending write of the claim will replace what the source has */
} ClaimMoveState;

/* Decides about a move of allocations between two consumers. */
ClaimMoveDecision claim_decide_move(const ClaimMoveState *state);
