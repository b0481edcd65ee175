/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What agent/bus/claims.c, agent/bus/guests.c (the methods of libvirt's hook),
 * agent/bus/documents.c (what is read) and agent/bus/request.c (what they are asked) share. */

#include <systemd/sd-bus.h>

#include "agent/bus/caller.h"
#include "agent/guests/database.h"

/* The bus error of a result of claims.h, with its words; opens the database anew when that is what
 * the result calls for. */
int bus_claims_error(ClaimService *service, sd_bus_error *error, int r, const Error *words);

/* The open database, or a bus error. */
int bus_claims_open(ClaimService *service, Claims **ret, sd_bus_error *error);

/* What became of a claim, for the journal and for those who watch. */
typedef struct BusOutcome {
        ClaimEvent event;
        const char *what;   /* "released" */
        const char *reason; /* NULL: none */
        int64_t id;
        int result; /* of claims.h, with its words */
        Error words;
} BusOutcome;

/* Answers a call that wants no more than that. */
int bus_claims_answer(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
                      const BusOutcome *outcome, sd_bus_error *error);

/* Reads groups and options. A malformed message is -EINVAL with words; what sd-bus itself says goes
 * through. */
int bus_read_resources(sd_bus_message *m, ClaimRequest *request, Error *reterr);

void claim_request_done(ClaimRequest *request);
