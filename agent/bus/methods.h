/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The methods of the bus that change claims, and what is in use: messages in, calls of claims.h and
 * of the daemon's parts, messages out. Everything from the caller is checked here, and what becomes
 * of a claim is logged with it. Signatures are in agent/formats/interface.h. */

#include "agent/bus/bus.h"
#include "agent/bus/caller.h"

/* Returns what an sd-bus method handler returns. */
typedef int BusMethod(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                      sd_bus_error *error);

/* Are the arguments of Claim such that somebody may be asked for leave? Reads the message. */
int bus_check_claim(sd_bus_message *call, ClaimService *service, sd_bus_error *error);

/* Answer when Placement did. */
BusMethod bus_claim, bus_move_claim;

BusMethod bus_release; /* and ReleaseAllocations */
BusMethod bus_confirm, bus_abort, bus_extend;

/* Of libvirt's hook. */
BusMethod bus_prepare_guest, bus_guest_started, bus_guest_released;

/* The host or a device out of use, and back. They answer when the cycle that reports it has ended.
 */
BusMethod bus_cordon, bus_uncordon, bus_undo_retire;

/* queue NULL: by what is known, without a look at guests. */
int bus_explain(sd_bus_message *call, ClaimService *service, ClaimQueue *queue,
                sd_bus_error *error);
