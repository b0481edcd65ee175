/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Guests that have other amounts than the claims that were made of them. */

#include "tests/fixtures/reconcile.h"

#define CAN_ASK RECONCILE_CAN_ASK
#define AWAY    RECONCILE_AWAY
#define ALONE   RECONCILE_ALONE

typedef struct Row {
        const char *name;
        const char *claim; /* the guest has 2 VCPUs */
        ReconcileWord word;
        uint64_t placed; /* VCPUs; 0: not asked */
        const char *actions, *problem;
} Row;

/* What Placement has of the guest. */
static Consumer *make_holding(uint64_t vcpus)
{
        const Uuid guest = make_guest('g'), host = make_guest('h');
        Consumer *holding;

        assert_int_equal(consumer_new(&holding, &guest), 0);
        assert_int_equal(consumer_add(holding, &host, "VCPU", vcpus), 0);
        assert_int_equal(consumer_add(holding, &host, "MEMORY_MB", 512), 0);
        return holding;
}

static void check(const Row *row)
{
        _cleanup_(look_done) Look look;
        _cleanup_(consumer_freep) Consumer *holding = make_holding(row->placed);
        const ReconcileAnswer answer = { .consumer = make_guest('g'),
                                         .here = true,
                                         .holding = holding };

        look_begin(&look);
        look.input.word = row->word;
        look.input.answers = &answer;
        look.input.n_answers = row->placed > 0 ? 1 : 0;
        facts_guest(&look.facts, 'g', "");
        look_add_claims(&look, row->claim);
        look_run(&look);
        look_expect(&look, row->name, row->actions, row->problem);
}

/* What a guest has is claimed anew as soon as Placement says the same. */
static void test_resized(void **state)
{
        static const char has_less[] = "guest g has 2 VCPUs, its claim has 1";
        static const Row rows[] = {
                { "as it was", "g confirmed read type=LIBVIRT vcpus=2", CAN_ASK, 0, "", NULL },
                { "ask first", "g confirmed read type=LIBVIRT vcpus=1", CAN_ASK, 0, "ask 1",
                  has_less },
                { "resized", "g confirmed read type=LIBVIRT vcpus=1", AWAY, 2, "release 1, adopt g",
                  NULL },
                { "edited", "g confirmed read type=LIBVIRT vcpus=1", AWAY, 1, "", has_less },
                { "alone", "g confirmed read type=LIBVIRT vcpus=1", ALONE, 0, "", has_less },
                { "promised", "g confirmed read type=INSTANCE vcpus=1", CAN_ASK, 0, "", has_less },
                { "written", "g confirmed read type=LIBVIRT write_state=written vcpus=1", CAN_ASK,
                  0, "", has_less },
                { "nothing read yet", "g confirmed type=LIBVIRT vcpus=1", AWAY, 2, "complete 1",
                  has_less },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check(&rows[i]);
}

TEST_MAIN(test_resized)
