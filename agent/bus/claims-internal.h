/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What agent/bus/claims.c (methods that change), agent/bus/guests.c (those of libvirt's hook),
 * agent/bus/claims-query.c (methods that read) and agent/bus/request.c (what they are asked) share.
 */

#include <systemd/sd-bus.h>

#include "agent/guests/database.h"

/* The bus error of a result of claims.h, with its words; opens the database anew when that is what
 * the result calls for. */
int bus_claims_error(ClaimService *service, sd_bus_error *error, int r, const Error *words);

/* Answers with whether the request fits what is known, and why not. */
int bus_explain_known(sd_bus_message *call, ClaimService *service, const ResourceRequest *request,
                      sd_bus_error *error);

/* The open database, or a bus error. */
int bus_claims_open(ClaimService *service, Claims **ret, sd_bus_error *error);

/* CLOCK_REALTIME, as in claims. */
uint64_t bus_claims_now_usec(void);

/* What became of the claim, for those who watch. */
void bus_claims_tell(ClaimService *service, Claims *claims, ClaimEvent event, int64_t id);

/* The start of a method: its arguments, as sd_bus_message_read() takes them, then the same. */
int bus_claims_begin(sd_bus_message *call, ClaimService *service, Claims **ret, sd_bus_error *error,
                     const char *types, ...);

/* Reads groups and options. A malformed message is -EINVAL with words; what sd-bus itself says goes
 * through. */
int bus_read_resources(sd_bus_message *m, ClaimRequest *request, Error *reterr);

void claim_request_done(ClaimRequest *request);

/* Appends BUS_HOLDINGS or BUS_LAYOUT, their parts, BUS_MAPPINGS, or a whole claim. */
int bus_append_allocations(sd_bus_message *m, const Claim *claim);
int bus_append_devices(sd_bus_message *m, const ClaimService *service, const Claim *claim);
int bus_append_cells(sd_bus_message *m, const Layout *layout);
int bus_append_cpus(sd_bus_message *m, const Layout *layout);
int bus_append_holdings(sd_bus_message *m, const ClaimService *service, const Claim *claim);
int bus_append_layout(sd_bus_message *m, const Layout *layout);
int bus_append_mappings(sd_bus_message *m, const Claim *claim);
int bus_append_claim(sd_bus_message *m, const ClaimService *service, const Claim *claim);
