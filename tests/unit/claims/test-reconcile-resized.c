/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Guests that have other amounts than the claims that were made of them. */

#include "claims/reconcile.h"
#include "tests/fixtures/host-facts.h"
#include "tests/unit/test.h"

#define CAN_ASK RECONCILE_CAN_ASK
#define AWAY    RECONCILE_AWAY
#define ALONE   RECONCILE_ALONE

typedef struct Row {
        const char *name;
        uint64_t claimed; /* VCPUs; the guest has 2 */
        const char *type;
        ClaimStanding standing;
        bool unread;
        ReconcileWord word;
        uint64_t placed; /* VCPUs; 0: not asked */
        const char *actions;
        bool problem;
} Row;

static Claim *make_claim(const Row *row)
{
        const Uuid host = make_guest('h');
        Claim *claim;

        assert_int_equal(claim_new(&claim), 0);
        claim->id = 1;
        claim->consumer = make_guest('g');
        claim->state = CLAIM_STATE_CONFIRMED;
        claim->standing = row->standing;
        claim->was_read = !row->unread;
        free(claim->consumer_type);
        claim->consumer_type = strdup(row->type);
        free(claim->boot_id);
        claim->boot_id = strdup("boot");
        assert_int_equal(claim_add(claim, &host, "host", "", "VCPU", row->claimed), 0);
        return claim;
}

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

static char *join_actions(const Reconcile *reconcile, char text[static 64])
{
        static const char *const names[_RECONCILE_TYPE_MAX] = {
                [RECONCILE_ASK] = "ask ",
                [RECONCILE_ADOPT] = "adopt ",
                [RECONCILE_COMPLETE] = "complete ",
                [RECONCILE_RELEASE] = "release ",
        };

        text[0] = '\0';
        for (size_t i = 0; i < reconcile->n_actions; i++)
                strncat(text, names[reconcile->actions[i].type], 20);
        return text;
}

static void check(const Row *row)
{
        _cleanup_(claim_list_done) ClaimList claims = { 0 };
        _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
        _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
        _cleanup_(consumer_freep) Consumer *holding = make_holding(row->placed);
        const ReconcileAnswer answer = { .consumer = make_guest('g'),
                                         .here = true,
                                         .holding = holding };
        FactsFixture facts;
        const ReconcileInput input = { .claims = &claims,
                                       .facts = &facts.facts,
                                       .node = "host",
                                       .boot_id = "boot",
                                       .expiry_usec = USEC_PER_SEC,
                                       .word = row->word,
                                       .answers = &answer,
                                       .n_answers = row->placed > 0 ? 1 : 0 };
        char text[64];

        make_facts(&facts);
        facts_guest(&facts, 'g', "");
        assert_int_equal(claim_list_add(&claims, make_claim(row)), 0);
        assert_int_equal(reconcile_make(&input, &memory, &reconcile), 0);
        if (strcmp(join_actions(&reconcile, text), row->actions) != 0 ||
            (reconcile.problems.n_items > 0) != row->problem)
                fail_msg("%s: %s, %zu problem(s)", row->name, text, reconcile.problems.n_items);
}

/* What a guest has is claimed anew as soon as Placement says the same. */
static void test_resized(void **state)
{
        static const Row rows[] = {
                { "as it was", 2, CLAIM_TYPE_GUEST, .word = CAN_ASK, .actions = "" },
                { "ask first", 1, CLAIM_TYPE_GUEST, .word = CAN_ASK, .actions = "ask ",
                  .problem = true },
                { "resized", 1, CLAIM_TYPE_GUEST, .word = AWAY, .placed = 2,
                  .actions = "release adopt " },
                { "edited", 1, CLAIM_TYPE_GUEST, .word = AWAY, .placed = 1, .actions = "",
                  .problem = true },
                { "alone", 1, CLAIM_TYPE_GUEST, .word = ALONE, .actions = "", .problem = true },
                { "promised", 1, "INSTANCE", .word = CAN_ASK, .actions = "", .problem = true },
                { "written", 1, CLAIM_TYPE_GUEST, CLAIM_STANDING_WRITTEN, .word = CAN_ASK,
                  .actions = "", .problem = true },
                { "nothing read yet", 1, CLAIM_TYPE_GUEST, .unread = true, .word = AWAY,
                  .placed = 2, .actions = "complete ", .problem = true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check(&rows[i]);
}

TEST_MAIN(test_resized)
