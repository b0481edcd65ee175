/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The claim database as the daemon uses it: opened when it can be, tried again when it cannot.
 *
 * A folder that is read-only or a disk that is full must not keep the agent from reporting what the
 * host has. Claims are refused with words meanwhile. Main thread only; blocks on the disk. */

#include "claims/claims.h"

typedef struct ClaimService ClaimService;

/* config is copied. Tries to open at once; failing is no error here: see claim_service_error().
 * -ENOMEM. */
int claim_service_new(ClaimService **ret, const ClaimsConfig *config);
ClaimService *claim_service_free(ClaimService *service);
DEFINE_CLEANUP(ClaimService *, claim_service_free);

/* Opens the database when it is not open, hands it the tree of the last claim_service_set_tree(),
 * and ends claims that expired. To be called once a cycle. Logs what changes. */
void claim_service_tend(ClaimService *service);

/* What [DEFAULT] claim_expiry_time says from now on; claims that live keep their time. */
void claim_service_set_expiry(ClaimService *service, uint64_t expiry_usec);

/* The host that claims are fitted to; copied. */
void claim_service_set_tree(ClaimService *service, const ProviderTree *tree);

/* The name of the host's root provider, once it is known; copied. */
void claim_service_set_node(ClaimService *service, const char *node);

/* The host as the database remembers it from before this start, or NULL: what is not known of it
 * (the ratios that an operator set in Placement) is taken from there until Placement answers.
 * Borrowed. */
const ProviderTree *claim_service_get_remembered_tree(ClaimService *service);

/* The open database, or NULL. */
Claims *claim_service_get(ClaimService *service);

/* Why there is none, or why the last change of the host could not be stored; code 0 when all is
 * well. */
const Error *claim_service_error(const ClaimService *service);

/* Claims that live; 0 when the database is not open. */
size_t claim_service_count(ClaimService *service);
