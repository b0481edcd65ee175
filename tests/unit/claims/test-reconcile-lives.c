/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/fixtures/reconcile.h"

/* A guest that is no domain: its claim says by what it is known, and lives as long as that. */
static void test_lives(void **state)
{
        static const struct {
                const char *name;
                const char *claim;
                bool recorded, lives;
                uint64_t missing_sec; /* for so long */
                const char *actions;
        } rows[] = {
                { "runs", "x claimed life=1", false, true, 0, "confirm 1" },
                { "runs where no guests are listed", "x claimed life=1", true, true, 0,
                  "confirm 1" },
                { "runs, and is confirmed", "x confirmed life=1", false, true, 500, "" },
                { "the same there", "x confirmed life=1", true, true, 500, "" },
                { "ended just now", "x confirmed life=1", true, false, 0, "" },
                { "ended", "x confirmed life=1", true, false, 300, "release 1" },
                { "ended, beside domains", "x confirmed life=1", false, false, 300, "release 1" },
                { "was never seen", "x claimed life=1", true, false, 300, "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(look_done) Look look;
                const HostDomain life = { .uuid = make_guest('x'),
                                          .name = "process 1",
                                          .running = true,
                                          .unread = true };

                look_begin(&look);
                look.input.lives = &life;
                look.input.n_lives = rows[i].lives;
                look.input.recorded = rows[i].recorded;
                look_add_claims(&look, rows[i].claim);
                look.memory.items = calloc(1, sizeof(ReconcileMissing));
                assert_non_null(look.memory.items);
                look.memory.items[0] = (ReconcileMissing){
                        .claim_id = 1, .since_usec = (1000 - rows[i].missing_sec) * USEC_PER_SEC
                };
                look.memory.n_items = look.memory.n_allocated = 1;
                look_run(&look);
                look_expect(&look, rows[i].name, rows[i].actions, NULL);
        }
}

TEST_MAIN(test_lives)
