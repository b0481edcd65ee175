/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Methods that change or explain claims, or take the host or a device out of use. They read the
 * message, call claims.h and parts of the daemon, log a change with its caller, and answer. These
 * methods check all input of the caller. Signatures are in formats/interface.h. */

#include "agent/bus/bus.h"
#include "agent/bus/caller.h"

/* The type of the methods. They return what an sd-bus method handler returns. */
typedef int BusMethod(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                      sd_bus_error *error);

/* Checks the arguments of Claim(), or of ClaimPlaced() if placed is true, before polkit is asked.
 * Reads the message, which the caller must rewind. Returns a negative errno with error set if they
 * are malformed, or name a process or unit that does not run. */
int bus_check_claim(sd_bus_message *call, ClaimService *service, bool placed, sd_bus_error *error);

/* Claim(), ClaimPlaced() and MoveClaim(). They answer when the task of the claim queue has ended
 * (agent/placing/queue.h), which can wait for Placement, or at once with an error. */
BusMethod bus_claim, bus_claim_placed, bus_move_claim;

BusMethod bus_change_claim; /* Confirm, Extend, Abort, Release, ReleaseAllocations; they answer
                               without waiting for Placement */

/* The methods of libvirt's hook. They answer without waiting for Placement or a partition. */
BusMethod bus_prepare_guest, bus_check_guest, bus_guest_started, bus_guest_released;

/* Cordon(), Uncordon() and UndoRetire() (agent/bus/operations.c). The change is on the disk and
 * counts for new claims at once. They answer after the cycle that reports the change to Placement.
 * The answer is "" if it was published or this host must publish nothing, else the error of that
 * cycle. If [agent] nova does not let the agent write it, Cordon() is refused, and the others
 * answer at once with the reason. */
BusMethod bus_cordon, bus_uncordon, bus_undo_retire;

/* Handles Explain(). waits: first waits as a claim of the request would (claim_queue_refresh()).
 * Otherwise answers at once from the known state. */
int bus_explain(sd_bus_message *call, const BusConfig *config, bool waits, sd_bus_error *error);

/* Functions that other files of agent/bus use. */

/* Sets the bus error for a result of claims.h or of the claim queue, with its words. Passes the
 * result to claim_service_note(), which can reopen the database. Returns a negative errno. */
int bus_claims_error(ClaimService *service, sd_bus_error *error, int r, const Error *words);

/* Returns the open database in *ret. Otherwise returns a negative errno with error set. */
int bus_claims_open(ClaimService *service, Claims **ret, sd_bus_error *error);

/* Sets the bus error of a call that needs the first poll. Returns a negative errno. */
int bus_not_ready(const BusConfig *config, sd_bus_error *error);

/* Reads the groups and options of a request. The NUMA options can turn VCPU of the unnamed group
 * into PCPU, or PCPU into VCPU. A wrong value or a request over a limit is -EINVAL with words. A
 * process or unit that does not run or cannot be read is -ESRCH with words. -ENOMEM has words, too.
 * Errors of sd-bus are returned unchanged, without words. Texts in *request are borrowed from the
 * message. The caller frees the rest with claim_request_done(), also after an error. */
int bus_read_resources(sd_bus_message *m, ClaimRequest *request, Error *reterr);

/* Frees what bus_read_resources() has allocated. */
void claim_request_done(ClaimRequest *request);
