/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares the identities that a claim recorded for its devices with the devices that are at their
 * addresses now. Part of claims/reconcile.c. Pure. */

#include "claims/reconcile.h"

/* Returns true if the identity of a device of the claim can be recorded now. */
bool claim_lacks_identity(const HostFacts *facts, const Claim *claim);

/* Adds a problem for each address that has another device than the claim was given. -ENOMEM. */
int compare_identities(const HostFacts *facts, const Claim *claim, ReconcileProblems *problems);
