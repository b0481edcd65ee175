/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides whether the agent can write to Placement while nova-compute reports the same host,
 * [agent] nova. The decision is pure, and each module asks it before it makes a request. The
 * session asks again for each request, so that a missing check ends in an error and not in a
 * write. */

#include "base/placement-options.h"

/* Actions of the agent that end in a write. */
typedef enum NovaAction {
        NOVA_ACTION_PUBLISH, /* providers, inventories, traits, aggregates */
        NOVA_ACTION_RESERVE, /* reserved of a class for which Nova keeps it, and nothing else */
        NOVA_ACTION_RESHAPE,
        NOVA_ACTION_CLAIM,  /* allocations for a claim that no scheduler placed */
        NOVA_ACTION_REMOVE, /* allocations of a claim that ended */
        NOVA_ACTION_MOVE,
        NOVA_ACTION_HEAL,
        NOVA_ACTION_CORDON_HOST,
        NOVA_ACTION_CORDON_DEVICE, /* a device for which Nova overwrites reserved */
        NOVA_ACTION_CORDON_PCI,    /* a PCI device that is passed through as a whole, for which Nova
                                    * keeps reserved */
        NOVA_ACTION_RENAME,        /* the name of the host's provider */
        _NOVA_ACTION_MAX,
} NovaAction;

const char *nova_mode_to_text(NovaMode mode); /* the value of the option */

/* Returns NULL if the action is allowed. Otherwise returns the reason and an advice, as a static
 * text that can follow a colon. NOVA_OBSERVE refuses every action. NOVA_BESIDE refuses to publish,
 * reshape, rename, and cordon the host or a device whose reserved Nova overwrites. NOVA_NONE and
 * NOVA_TOP refuse nothing. */
const char *nova_mode_refuses(NovaMode mode, NovaAction action);

/* Decides about a request; GET always passes. This is coarser than the decision about an action: in
 * NOVA_BESIDE every write of inventories passes, because reserved is a part of them. */
const char *nova_mode_refuses_request(NovaMode mode, const char *method, const char *path);
