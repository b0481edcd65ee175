/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who writes what of this host in Placement, where nova-compute reports it, too: [agent] nova. One
 * pure decision, which everybody asks before a request is made; the session asks once more for each
 * request that it is given, so that a way which was forgotten ends in an error and not in a write.
 */

#include "base/placement-options.h"

/* What the agent does that ends in a write. */
typedef enum NovaAction {
        NOVA_ACTION_PUBLISH, /* providers, inventories, traits, aggregates */
        NOVA_ACTION_RESERVE, /* reserved of a class of which Nova keeps it, and nothing else */
        NOVA_ACTION_RESHAPE,
        NOVA_ACTION_CLAIM,  /* allocations that nobody placed */
        NOVA_ACTION_REMOVE, /* what a claim left */
        NOVA_ACTION_MOVE,
        NOVA_ACTION_HEAL,
        NOVA_ACTION_CORDON_HOST,
        NOVA_ACTION_CORDON_DEVICE, /* one of which Nova does not keep what is reserved */
        NOVA_ACTION_CORDON_PCI,    /* one of which it does: a PCI device that is given whole */
        NOVA_ACTION_RENAME,        /* the host's provider */
        _NOVA_ACTION_MAX,
} NovaAction;

const char *nova_mode_to_text(NovaMode mode); /* as it is configured */

/* NULL: it may be done. Else why not and what to do, in words that can stand behind a colon. */
const char *nova_mode_refuses(NovaMode mode, NovaAction action);

/* The same of a request: GET always passes. Coarser than what it is done for: in NOVA_BESIDE every
 * write of inventories passes, because reserved is a part of them. */
const char *nova_mode_refuses_request(NovaMode mode, const char *method, const char *path);
