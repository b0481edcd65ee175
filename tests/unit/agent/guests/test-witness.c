/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whom Placement is asked about before claims and guests are made the same, and what follows. */

#include "agent/guests/witness.h"

#include "report/gather.h"
#include "tests/fixtures/trace.h"

static struct {
        size_t n_wanted;
        bool cannot_ask;
        GatherDone gathered;
        void *userdata;
} world;

void claim_service_reconcile(ClaimService *service, ReconcileWord word, ClaimWanted *wanted)
{
        note(word == RECONCILE_CAN_ASK ? 'c' : 'w');
        assert_int_equal(wanted != NULL, word == RECONCILE_CAN_ASK);
        if (!wanted)
                return;
        wanted->uuids = calloc(world.n_wanted + 1, sizeof(Uuid));
        wanted->n_uuids = world.n_wanted;
}

void claim_service_answer(ClaimService *service, const ClaimWanted *asked, Allocations *holding)
{
        note('a');
        assert_int_equal(asked->n_uuids, world.n_wanted);
        allocations_free(holding);
}

int gather_consumers_new(Gather **ret, Session *session, const Uuid *consumers, size_t n_consumers,
                         GatherDone done, void *userdata, Error *reterr)
{
        note('g');
        assert_int_equal(n_consumers, world.n_wanted);
        if (world.cannot_ask)
                return -ENOMEM;
        world.gathered = done;
        world.userdata = userdata;
        *ret = (Gather *)&world;
        return 0;
}

Gather *gather_free(Gather *gather)
{
        if (gather)
                note('f');
        return NULL;
}

static void on_done(void *userdata)
{
        ClaimWitness **witness = userdata;

        note('d');
        *witness = claim_witness_free(*witness);
}

static void test_table(void **state)
{
        static const struct {
                const char *about;
                size_t n_wanted;
                bool cannot_ask, cancelled;
                int result; /* of asking */
                const char *trace;
        } cases[] = {
                { "nothing hangs on it", 0, false, false, 0, "c" },
                { "asked, and answered", 2, false, false, 0, "cg|awdf" },
                { "asked, and Placement is away", 2, false, false, REPORT_E_UNREACHABLE, "cg|wdf" },
                { "it cannot be asked", 2, true, false, 0, "cgw" },
                { "cancelled", 1, false, true, 0, "cg|f" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimWitness *witness = NULL;
                Allocations *holding = NULL;

                memset(&world, 0, sizeof(world));
                trace[0] = '\0';
                world.n_wanted = cases[i].n_wanted;
                world.cannot_ask = cases[i].cannot_ask;
                if (claim_witness_begin(&witness, NULL, NULL, on_done, &witness) > 0)
                        note('|');
                assert_int_equal(witness != NULL, strchr(cases[i].trace, '|') != NULL);
                if (cases[i].cancelled) {
                        witness = claim_witness_free(witness);
                } else if (witness) {
                        if (cases[i].result == 0)
                                assert_int_equal(allocations_new(&holding), 0);
                        world.gathered(cases[i].result, holding, NULL, &ERROR_NULL, world.userdata);
                }
                assert_null(witness);
                if (strcmp(trace, cases[i].trace) != 0)
                        fail_msg("%s: %s", cases[i].about, trace);
        }
}

TEST_MAIN(test_table)
