/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The claim methods of the bus: messages in, claims.h calls, messages out. Everything from the
 * caller is checked here, and what becomes of a claim is logged with it. Each returns
 * what an sd-bus method handler returns; signatures are in agent/formats/interface.h. */

#include <systemd/sd-bus.h>

#include "agent/bus/caller.h"
#include "agent/placing/queue.h"

/* Are the arguments of Claim such that somebody may be asked for leave? Reads the message. */
int bus_check_claim(sd_bus_message *call, ClaimService *service, sd_bus_error *error);

/* These answer when Placement did. */
int bus_claim(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
              ClaimQueue *queue, sd_bus_error *error);
int bus_move_claim(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
                   ClaimQueue *queue, sd_bus_error *error);

/* Release and ReleaseAllocations. */
int bus_release(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
                ClaimQueue *queue, sd_bus_error *error);
int bus_confirm(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
                sd_bus_error *error);
int bus_abort(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
              sd_bus_error *error);
int bus_extend(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
               sd_bus_error *error);
int bus_prepare_guest(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
                      ClaimQueue *queue, sd_bus_error *error);
int bus_guest_started(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
                      sd_bus_error *error);
int bus_guest_released(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
                       ClaimQueue *queue, sd_bus_error *error);
/* queue NULL: by what is known, without a look at guests. */
int bus_explain(sd_bus_message *call, ClaimService *service, ClaimQueue *queue,
                sd_bus_error *error);
