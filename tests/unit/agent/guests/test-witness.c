/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which requests are sent before claims and guests are reconciled, and what follows. */

#include "agent/guests/witness.h"

#include "report/gather.h"
#include "tests/fixtures/audit.h"
#include "tests/fixtures/host-facts.h"
#include "tests/fixtures/trace.h"

#define TREE "host DISK_GB=10; cell0<host VCPU=8 MEMORY_MB=4096; host_a<host VGPU=3"

static struct {
        const char *wanted, *held; /* letters of consumers; held: of the whole host */
        bool all, absent, cannot_ask;
        bool moved; /* another writer changed an allocation of the host */
        bool cannot_look;
        size_t n_asked;    /* in the gathering of consumers */
        size_t n_answered; /* consumers in the answer */
        GatherDone looked;
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

bool claim_service_wants_held(ClaimService *service, uint64_t stamp)
{
        /* generations 5 of the root and of the cell; the GPU has no amount of a guest */
        assert_int_equal(stamp, 12);
        return world.moved;
}

void claim_service_set_held(ClaimService *service, uint64_t stamp, Allocations *held)
{
        note('h');
        assert_int_equal(stamp, 12);
        allocations_free(held);
}

Session *reporter_get_session(Reporter *reporter)
{
        return NULL;
}

const ProviderTree *reporter_tree(Reporter *reporter)
{
        return world.tree;
}

int64_t reporter_get_generation(const Reporter *reporter, const Uuid *provider)
{
        return 5;
}

int gather_new(Gather **ret, Session *session, const Uuid *providers, size_t n_providers,
               const StringSet *classes, GatherDone done, void *userdata, Error *reterr)
{
        note('p');
        assert_int_equal(n_providers, 2);
        assert_non_null(classes);
        assert_int_equal(classes->n_items, 0);
        if (world.cannot_look)
                return -ENOMEM;
        world.looked = done;
        world.userdata = userdata;
        *ret = (Gather *)&world;
        return 0;
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
        bool moved, cannot_look;
        int looked; /* result of reading the providers */
        const char *trace;
        size_t n_asked, n_answered;
} Row;

static void answer(const Row *row, ClaimWitness **witness)
{
        if (world.looked)
                world.looked(row->looked, row->looked == 0 ? make_consumers("") : NULL,
                             row->looked == 0 ? make_consumers("") : NULL, &ERROR_NULL,
                             world.userdata);
        if (*witness && world.all_gathered)
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
        const Uuid root = make_uuid("host");

        memset(&world, 0, sizeof(world));
        trace[0] = '\0';
        world.wanted = row->wanted;
        world.all = row->all;
        world.held = row->held ? row->held : "";
        world.cannot_ask = row->cannot_ask;
        world.moved = row->moved;
        world.cannot_look = row->cannot_look;
        if (row->held)
                world.tree = make_tree(TREE);
        else
                assert_int_equal(provider_tree_new(&world.tree), 0);
        if (claim_witness_begin(&witness, NULL, NULL, &root, on_done, &witness) > 0)
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
                { "another writer, and no claim is concerned", "", .held = "", .moved = true,
                  .trace = "p|hfcd" },
                { "another writer changed what a claim holds", "x", .held = "", .moved = true,
                  .trace = "p|hfcgawdf", .n_asked = 1, .n_answered = 1 },
                { "the same, and all are read", "x", true, "ab", .moved = true,
                  .trace = "p|hfcGgawdf", .n_asked = 1, .n_answered = 3 },
                { "the providers cannot be read", "x", .held = "", .moved = true,
                  .looked = REPORT_E_UNREACHABLE, .trace = "p|fcgawdf", .n_asked = 1,
                  .n_answered = 1 },
                { "no memory to read the providers", "", .held = "", .moved = true,
                  .cannot_look = true, .trace = "pc" },
                { "cancelled while the providers are read", "x", .held = "", .cancelled = true,
                  .moved = true, .trace = "p|f" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check(&rows[i]);
}

TEST_MAIN(test_table)
