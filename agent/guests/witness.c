/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/witness.h"

#include "base/log.h"
#include "report/gather.h"

struct ClaimWitness {
        ClaimService *service;
        ClaimWanted asked;
        Gather *gather;
        ClaimWitnessDone done;
        void *userdata;
};

ClaimWitness *claim_witness_free(ClaimWitness *witness)
{
        if (!witness)
                return NULL;
        gather_free(witness->gather);
        claim_wanted_done(&witness->asked);
        free(witness);
        return NULL;
}

static void on_gathered(int result, Allocations *consumers, Allocations *others, const Error *error,
                        void *userdata)
{
        ClaimWitness *witness = userdata;

        allocations_free(others);
        if (result == 0)
                claim_service_answer(witness->service, &witness->asked, consumers);
        else
                log_debug("Placement could not be asked about %zu consumer(s): %s",
                          witness->asked.n_uuids, error->text);
        claim_service_reconcile(witness->service, RECONCILE_AWAY, NULL);
        witness->done(witness->userdata);
}

int claim_witness_begin(ClaimWitness **ret, ClaimService *service, Session *session,
                        ClaimWitnessDone done, void *userdata)
{
        _cleanup_(claim_witness_freep) ClaimWitness *witness = calloc(1, sizeof(ClaimWitness));

        if (witness) {
                *witness = (ClaimWitness){ .service = service, .done = done, .userdata = userdata };
                claim_service_reconcile(service, RECONCILE_CAN_ASK, &witness->asked);
                if (witness->asked.n_uuids == 0)
                        return 0;
        }
        if (!witness ||
            gather_consumers_new(&witness->gather, session, witness->asked.uuids,
                                 witness->asked.n_uuids, on_gathered, witness, NULL) < 0) {
                claim_service_reconcile(service, RECONCILE_AWAY, NULL);
                return 0;
        }
        *ret = TAKE_PTR(witness);
        return 1;
}
