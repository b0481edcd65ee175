/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Methods that change claims or take the host out of use: they read the message, call claims.h and
 * parts of the daemon, log the result with the caller, and answer. Everything from the caller is
 * checked here. Signatures are in formats/interface.h. */

#include "agent/bus/bus.h"
#include "agent/bus/caller.h"

/* Returns what an sd-bus method handler returns. */
typedef int BusMethod(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                      sd_bus_error *error);

/* Checks the arguments of Claim before polkit is asked. Reads the message. */
int bus_check_claim(sd_bus_message *call, ClaimService *service, sd_bus_error *error);

/* These answer when Placement has answered. */
BusMethod bus_claim, bus_move_claim;

BusMethod bus_change_claim; /* Confirm, Extend, Abort, Release, ReleaseAllocations */

/* Of libvirt's hook. */
BusMethod bus_prepare_guest, bus_guest_started, bus_guest_released;

/* Take the host or a device out of use, and back (agent/bus/operations.c). They answer when the
 * cycle that reports it has ended. */
BusMethod bus_cordon, bus_uncordon, bus_undo_retire;

/* Decides by what is known if queue is NULL, without a refresh of the guests. */
int bus_explain(sd_bus_message *call, ClaimService *service, ClaimQueue *queue,
                sd_bus_error *error);

/* Shared with agent/bus/documents.c. */

/* Sets the bus error of a result of claims.h with its words, and opens the database again when the
 * result calls for that. */
int bus_claims_error(ClaimService *service, sd_bus_error *error, int r, const Error *words);

/* Returns the open database, or a bus error. */
int bus_claims_open(ClaimService *service, Claims **ret, sd_bus_error *error);

/* Reads groups and options. A malformed message is -EINVAL with words; what sd-bus itself says goes
 * through. */
int bus_read_resources(sd_bus_message *m, ClaimRequest *request, Error *reterr);

void claim_request_done(ClaimRequest *request);
