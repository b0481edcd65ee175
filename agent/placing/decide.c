/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/placing/decide.h"

const char *claim_decide_refuses(ClaimMode mode, NovaMode nova)
{
        const char *why = nova_mode_refuses(nova, NOVA_ACTION_CLAIM);

        return !why && mode == CLAIM_MODE_VERIFY ? "[agent] claim_mode is verify" : why;
}

ClaimWriteState claim_decide_pending_write(ClaimWriteState write_state, bool here, bool same,
                                           bool gone)
{
        if (!here)
                return gone ? CLAIM_WRITE_NONE : CLAIM_WRITE_SENT;
        return write_state == CLAIM_WRITE_SENT && same ? CLAIM_WRITE_WRITTEN : CLAIM_WRITE_NONE;
}

/* A removal soon after the end of the claim needs no proof that the agent wrote the allocations: no
 * other writer had the time to place the consumer again. */
ClaimRemovalDecision claim_decide_removal(const ClaimRemovalState *state)
{
        bool fresh = !state->late && state->age_usec < CLAIM_REMOVAL_SOON_USEC;

        if (state->inherited || !state->here)
                return state->unsure && state->age_usec < CLAIM_WRITE_LATE_USEC ? CLAIM_REMOVAL_WAIT
                                                                                : CLAIM_REMOVAL_END;
        if (!fresh && !state->ours)
                return CLAIM_REMOVAL_KEEP;
        return state->has_guest ? CLAIM_REMOVAL_WAIT : CLAIM_REMOVAL_SEND;
}

/* The order matters: evidence in Placement is examined before permissions, so that a move which is
 * already done never fails. */
ClaimMoveDecision claim_decide_move(const ClaimMoveState *state)
{
        if (state->left && state->there)
                return CLAIM_MOVE_TAKEN;
        if (state->there)
                return state->sent ? CLAIM_MOVE_ARRIVED : CLAIM_MOVE_DONE;
        if (!state->left)
                return state->repairs ? CLAIM_MOVE_GIVE_UP : CLAIM_MOVE_DONE;
        if (state->refused)
                return state->repairs ? CLAIM_MOVE_GIVE_UP : CLAIM_MOVE_NOT_PLACED;
        if (state->repairs)
                return CLAIM_MOVE_FENCE;
        return state->unwritten ? CLAIM_MOVE_NOT_PLACED : CLAIM_MOVE_SEND;
}
