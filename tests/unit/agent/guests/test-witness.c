/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whom Placement is asked about before claims and guests are made the same, and what follows. */

#include "agent/guests/witness.h"

#include "report/gather.h"
#include "tests/fixtures/host-facts.h"
#include "tests/fixtures/trace.h"

static struct {
        const char *wanted, *held; /* letters of consumers; held: of the whole host */
        bool all, absent, cannot_ask;
        size_t n_asked;    /* in the gathering of consumers */
        size_t n_answered; /* consumers in the answer */
        GatherDone gathered;
        ReporterDone all_gathered;
        void *userdata;
        ProviderTree *tree;
} world;

static Allocations *make_consumers(const char *letters)
{
        Allocations *made;

        assert_int_equal(allocations_new(&made), 0);
        for (; *letters; letters++) {
                const Uuid uuid = make_guest(*letters);
                Consumer *consumer;

                assert_int_equal(allocations_ensure(made, &uuid, &consumer), 0);
        }
        return made;
}

void claim_service_reconcile(ClaimService *service, ReconcileWord word, ClaimWanted *wanted)
{
        note(word == RECONCILE_CAN_ASK ? 'c' : 'w');
        assert_int_equal(wanted != NULL, word == RECONCILE_CAN_ASK);
        if (!wanted)
                return;
        wanted->all = world.all;
        wanted->uuids = calloc(strlen(world.wanted) + 1, sizeof(Uuid));
        for (const char *letter = world.wanted; *letter; letter++)
                wanted->uuids[wanted->n_uuids++] = make_guest(*letter);
}

void claim_service_answer(ClaimService *service, const ClaimWanted *asked, Allocations *holding)
{
        note(asked->absent ? 'A' : 'a');
        assert_int_equal(asked->n_uuids, strlen(world.wanted));
        world.n_answered = holding->n_consumers;
        allocations_free(holding);
}

int gather_consumers_new(Gather **ret, Session *session, const Uuid *consumers, size_t n_consumers,
                         GatherDone done, void *userdata, Error *reterr)
{
        note('g');
        world.n_asked = n_consumers;
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

const ProviderTree *reporter_tree(Reporter *reporter)
{
        return world.tree;
}

Session *reporter_get_session(Reporter *reporter)
{
        return NULL;
}

int reporter_gather(Reporter *reporter, const StringSet *classes, const ProviderTree *ahead,
                    ReporterDone done, void *userdata)
{
        note('G');
        if (world.cannot_ask)
                return -EBUSY;
        world.all_gathered = done;
        world.userdata = userdata;
        return 0;
}

void reporter_take_gathered(Reporter *reporter, Allocations **ret_consumers,
                            Allocations **ret_others)
{
        *ret_consumers = make_consumers(world.held);
        *ret_others = NULL;
}

static void on_done(void *userdata)
{
        ClaimWitness **witness = userdata;

        note('d');
        *witness = claim_witness_free(*witness);
}

typedef struct Row {
        const char *about;
        const char *wanted;
        bool all;
        const char *held; /* NULL: Placement does not have the tree */
        bool cannot_ask, cancelled;
        int result; /* of asking */
        const char *trace;
        size_t n_asked, n_answered;
} Row;

static void answer(const Row *row, ClaimWitness **witness)
{
        if (world.all_gathered)
                world.all_gathered(NULL, row->result, &ERROR_NULL, world.userdata);
        if (*witness && world.gathered)
                world.gathered(row->result,
                               row->result == 0 ? make_consumers(row->wanted + strlen(row->wanted) -
                                                                 world.n_asked)
                                                : NULL,
                               NULL, &ERROR_NULL, world.userdata);
}

static void check(const Row *row)
{
        ClaimWitness *witness = NULL;
        Provider *provider;

        memset(&world, 0, sizeof(world));
        trace[0] = '\0';
        world.wanted = row->wanted;
        world.all = row->all;
        world.held = row->held ? row->held : "";
        world.cannot_ask = row->cannot_ask;
        assert_int_equal(provider_tree_new(&world.tree), 0);
        if (row->held) {
                const Uuid root = make_guest('r');

                assert_int_equal(
                        provider_tree_add(world.tree, &root, "host", NULL, &provider, NULL), 0);
        }
        if (claim_witness_begin(&witness, NULL, NULL, on_done, &witness) > 0)
                note('|');
        assert_int_equal(witness != NULL, strchr(row->trace, '|') != NULL);
        if (row->cancelled)
                witness = claim_witness_free(witness);
        else if (witness)
                answer(row, &witness);
        if (witness || strcmp(trace, row->trace) != 0)
                fail_msg("%s: %s", row->about, trace);
        assert_int_equal(world.n_asked, row->n_asked);
        assert_int_equal(world.n_answered, row->n_answered);
        provider_tree_free(world.tree);
}

static void test_table(void **state)
{
        static const Row rows[] = {
                { "nothing hangs on it", "", .held = "", .trace = "c" },
                { "asked, and answered", "xy", .held = "", .trace = "cg|awdf", .n_asked = 2,
                  .n_answered = 2 },
                { "asked, and Placement is away", "xy", .held = "", .result = REPORT_E_UNREACHABLE,
                  .trace = "cg|wdf", .n_asked = 2 },
                { "it cannot be asked", "xy", .held = "", .cannot_ask = true, .trace = "cgw",
                  .n_asked = 2 },
                { "cancelled", "x", .held = "", .cancelled = true, .trace = "cg|f", .n_asked = 1 },
                { "all", "", true, "ab", .trace = "cG|awd", .n_answered = 2 },
                { "all, and one that is not among them", "ax", true, "ab", .trace = "cG|gawdf",
                  .n_asked = 1, .n_answered = 3 },
                { "all that are asked about are among them", "ab", true, "ab", .trace = "cG|awd",
                  .n_answered = 2 },
                { "all, and Placement is away", "x", true, "ab", .result = REPORT_E_UNREACHABLE,
                  .trace = "cG|wd" },
                { "all cannot be asked", "", true, "ab", .cannot_ask = true, .trace = "cGw" },
                { "Placement does not have the tree", "", true, NULL, .trace = "cAw" },
                { "the same, and one is asked about", "x", true, NULL, .trace = "cg|Awdf",
                  .n_asked = 1, .n_answered = 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check(&rows[i]);
}

TEST_MAIN(test_table)
