/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reconciles claims and guests with the answers of Placement. First reads what consumers hold of
 * the providers with the amounts of guests, if another writer changed these and a claim follows
 * them: one request for the root, and one for each cell that is a provider. Then reads in parallel
 * the consumers that claims/reconcile.h asks about, or all of this host, and acts. A cycle in which
 * nothing changed sends no request. Main thread; nothing blocks but the claim database's own disk.
 */

#include "agent/guests/comparison.h"
#include "report/reporter.h"

typedef struct ClaimWitness ClaimWitness;

/* Called once, never from inside claim_witness_begin(); it may free the witness. */
typedef void (*ClaimWitnessDone)(void *userdata);

/* Acts at once on what needs no answer. Returns 1 if a request is under way, and done follows, 0 if
 * all is done. root: of the host. Everything is borrowed; the reporter has a tree, and no attempt
 * under way. */
int claim_witness_begin(ClaimWitness **ret, ClaimService *service, Reporter *reporter,
                        const Uuid *root, ClaimWitnessDone done, void *userdata);

/* Cancels what is under way. While all consumers are read, the reporter must be freed as well
 * before the event loop goes on. */
ClaimWitness *claim_witness_free(ClaimWitness *witness);
DEFINE_CLEANUP(ClaimWitness *, claim_witness_free);
