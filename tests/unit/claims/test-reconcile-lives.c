/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/reconcile.h"

#include "tests/fixtures/host-facts.h"
#include "tests/unit/test.h"

#define EXPIRY (300 * USEC_PER_SEC)

static void add_claim(ClaimList *list, ClaimState state)
{
        Claim *claim;

        assert_int_equal(claim_new(&claim), 0);
        claim->id = 1;
        claim->consumer = make_guest('x');
        claim->state = state;
        free(claim->life);
        free(claim->boot_id);
        claim->life = strdup("process 1");
        claim->boot_id = strdup("boot");
        assert_int_equal(claim_list_add(list, claim), 0);
}

/* A guest that is no domain: its claim says by what it is known, and lives as long as that. */
static void test_lives(void **state)
{
        static const struct {
                const char *name;
                ClaimState state;
                bool recorded, lives;
                uint64_t missing_sec; /* for so long */
                ReconcileType action; /* of claim 1; _RECONCILE_TYPE_MAX: none */
        } rows[] = {
                { "runs", CLAIM_STATE_CLAIMED, false, true, 0, RECONCILE_CONFIRM },
                { "runs where no guests are listed", CLAIM_STATE_CLAIMED, true, true, 0,
                  RECONCILE_CONFIRM },
                { "runs, and is confirmed", CLAIM_STATE_CONFIRMED, false, true, 500,
                  _RECONCILE_TYPE_MAX },
                { "the same there", CLAIM_STATE_CONFIRMED, true, true, 500, _RECONCILE_TYPE_MAX },
                { "ended just now", CLAIM_STATE_CONFIRMED, true, false, 0, _RECONCILE_TYPE_MAX },
                { "ended", CLAIM_STATE_CONFIRMED, true, false, 300, RECONCILE_RELEASE },
                { "ended, beside domains", CLAIM_STATE_CONFIRMED, false, false, 300,
                  RECONCILE_RELEASE },
                { "was never seen", CLAIM_STATE_CLAIMED, true, false, 300, _RECONCILE_TYPE_MAX },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(claim_list_done) ClaimList claims = { 0 };
                _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
                _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
                const HostDomain life = { .uuid = make_guest('x'),
                                          .name = "process 1",
                                          .running = true,
                                          .unread = true };
                const HostFacts facts = { .taken_usec = 1000 * USEC_PER_SEC };
                const ReconcileInput input = { .claims = &claims,
                                               .facts = &facts,
                                               .node = "host",
                                               .boot_id = "boot",
                                               .lives = &life,
                                               .n_lives = rows[i].lives,
                                               .recorded = rows[i].recorded,
                                               .expiry_usec = EXPIRY };
                add_claim(&claims, rows[i].state);
                memory.items = calloc(1, sizeof(ReconcileMissing));
                assert_non_null(memory.items);
                memory.items[0] = (ReconcileMissing){
                        .claim_id = 1, .since_usec = (1000 - rows[i].missing_sec) * USEC_PER_SEC
                };
                memory.n_items = memory.n_allocated = 1;
                assert_int_equal(reconcile_make(&input, &memory, &reconcile), 0);
                if (reconcile.n_actions != (rows[i].action < _RECONCILE_TYPE_MAX) ||
                    (reconcile.n_actions > 0 && reconcile.actions[0].type != rows[i].action) ||
                    reconcile.problems.n_items > 0)
                        fail_msg("%s", rows[i].name);
        }
}

TEST_MAIN(test_lives)
