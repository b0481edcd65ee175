/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* All consumers of the host's tree are read first, where they are wanted; then those that are asked
 * about and were not among them. */

#include "agent/guests/witness.h"

#include "base/log.h"
#include "report/gather.h"

struct ClaimWitness {
        ClaimService *service;
        Reporter *reporter;
        ClaimWanted asked;
        Allocations *read; /* so far; NULL: nothing */
        Gather *gather;
        ClaimWitnessDone done;
        void *userdata;
};

ClaimWitness *claim_witness_free(ClaimWitness *witness)
{
        if (!witness)
                return NULL;
        gather_free(witness->gather);
        allocations_free(witness->read);
        claim_wanted_done(&witness->asked);
        free(witness);
        return NULL;
}

/* Without an answer, claims are compared as if Placement was away. */
static void compare(ClaimWitness *witness, int result, const Error *error)
{
        if (result == 0)
                claim_service_answer(witness->service, &witness->asked, TAKE_PTR(witness->read));
        else
                log_debug("Placement could not be asked about consumers: %s", error->text);
        claim_service_reconcile(witness->service, RECONCILE_AWAY, NULL);
}

static void finish(ClaimWitness *witness, int result, const Error *error)
{
        compare(witness, result, error);
        witness->done(witness->userdata);
}

/* Adds what was read last; takes it. */
static int take(ClaimWitness *witness, Allocations *consumers)
{
        int r = 0;

        if (!witness->read) {
                witness->read = consumers;
                return 0;
        }
        for (size_t i = 0; r == 0 && i < consumers->n_consumers; i++) {
                r = allocations_add(witness->read, consumers->consumers[i]);
                if (r == 0)
                        consumers->consumers[i] = NULL;
        }
        for (size_t i = 0; i < consumers->n_consumers; i++)
                consumer_free(consumers->consumers[i]);
        consumers->n_consumers = 0;
        allocations_free(consumers);
        return r;
}

static void on_gathered(int result, Allocations *consumers, Allocations *others, const Error *error,
                        void *userdata)
{
        ClaimWitness *witness = userdata;

        allocations_free(others);
        if (result == 0)
                result = take(witness, consumers);
        finish(witness, result, error);
}

/* 1: they are being read; 0: nothing is left to be read. */
static int read_asked(ClaimWitness *witness)
{
        _cleanup_free_ Uuid *uuids = calloc(witness->asked.n_uuids + 1, sizeof(Uuid));
        size_t n = 0;
        int r;

        if (!uuids)
                return -ENOMEM;
        for (size_t i = 0; i < witness->asked.n_uuids; i++)
                if (!witness->read || !allocations_find(witness->read, &witness->asked.uuids[i]))
                        uuids[n++] = witness->asked.uuids[i];
        if (n == 0)
                return 0;
        r = gather_consumers_new(&witness->gather, reporter_get_session(witness->reporter), uuids,
                                 n, on_gathered, witness, NULL);
        return r < 0 ? r : 1;
}

static void on_all_gathered(Reporter *reporter, int result, const Error *error, void *userdata)
{
        ClaimWitness *witness = userdata;
        Allocations *others = NULL;

        reporter_take_gathered(reporter, &witness->read, &others);
        allocations_free(others);
        if (result == 0) {
                int r = read_asked(witness);

                if (r > 0)
                        return;
                result = r;
        }
        finish(witness, result, error);
}

/* As read_asked(). A tree that Placement does not have has no consumers; it can have the host under
 * another uuid. */
static int read_all(ClaimWitness *witness)
{
        int r;

        witness->asked.absent = reporter_tree(witness->reporter)->n_providers == 0;
        r = witness->asked.absent
                    ? allocations_new(&witness->read)
                    : reporter_gather(witness->reporter, NULL, NULL, on_all_gathered, witness);
        if (r < 0)
                return r;
        return witness->asked.absent ? read_asked(witness) : 1;
}

int claim_witness_begin(ClaimWitness **ret, ClaimService *service, Reporter *reporter,
                        ClaimWitnessDone done, void *userdata)
{
        _cleanup_(claim_witness_freep) ClaimWitness *witness = calloc(1, sizeof(ClaimWitness));
        int r;

        if (!witness) {
                claim_service_reconcile(service, RECONCILE_AWAY, NULL);
                return 0;
        }
        *witness = (ClaimWitness){
                .service = service, .reporter = reporter, .done = done, .userdata = userdata
        };
        claim_service_reconcile(service, RECONCILE_CAN_ASK, &witness->asked);
        if (claim_wanted_is_empty(&witness->asked))
                return 0;
        r = witness->asked.all ? read_all(witness) : read_asked(witness);
        if (r == 1) {
                *ret = TAKE_PTR(witness);
                return 1;
        }
        compare(witness, r, &ERROR_NULL);
        return 0;
}
