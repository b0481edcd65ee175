/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims and guests made the same with Placement's word: the consumers that claims/reconcile.h
 * wants to know about are read in parallel, or all of this host, then what is left is done. Nothing
 * is asked in a cycle in which nothing hangs on it. Main thread; nothing blocks but the claim
 * database's own disk. */

#include "agent/guests/database.h"
#include "report/reporter.h"

typedef struct ClaimWitness ClaimWitness;

/* Called once, never from inside claim_witness_begin(); it may free the witness. */
typedef void (*ClaimWitnessDone)(void *userdata);

/* Does at once what needs no asking. 1 when something is being asked, and done follows; 0: it was
 * all. Everything is borrowed; the reporter has a tree, and no attempt under way. */
int claim_witness_begin(ClaimWitness **ret, ClaimService *service, Reporter *reporter,
                        ClaimWitnessDone done, void *userdata);

/* Cancels what is under way. While all consumers are read, the reporter must be freed as well
 * before the event loop goes on. */
ClaimWitness *claim_witness_free(ClaimWitness *witness);
DEFINE_CLEANUP(ClaimWitness *, claim_witness_free);
