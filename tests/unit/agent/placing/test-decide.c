/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The decisions by what Placement has, as tables. */

#include "agent/placing/decide.h"

#include "tests/unit/test.h"

static void test_pending_write(void **state)
{
        static const struct {
                ClaimWriteState write_state;
                bool here, same, gone;
                ClaimWriteState course;
        } cases[] = {
                { CLAIM_WRITE_UNSENT, false, false, false, CLAIM_WRITE_SENT },
                { CLAIM_WRITE_SENT, false, false, false, CLAIM_WRITE_SENT },
                { CLAIM_WRITE_SENT, true, true, false, CLAIM_WRITE_WRITTEN },
                { CLAIM_WRITE_SENT, true, false, false, CLAIM_WRITE_NONE },
                /* Its guest was evacuated. */
                { CLAIM_WRITE_UNSENT, false, false, true, CLAIM_WRITE_NONE },
                /* Nothing was sent, so a scheduler placed it, even if it equals the claim. */
                { CLAIM_WRITE_UNSENT, true, true, false, CLAIM_WRITE_NONE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (claim_decide_pending_write(cases[i].write_state, cases[i].here, cases[i].same,
                                               cases[i].gone) != cases[i].course)
                        fail_msg("case %zu", i);
}

static void test_removal(void **state)
{
        static const struct {
                const char *name;
                ClaimRemovalState state;
                ClaimRemovalDecision course;
        } cases[] = {
                { "removed as it ends", { .here = true, .ours = true }, CLAIM_REMOVAL_SEND },
                { "written since it was told, and read as it ends",
                  { .here = true },
                  CLAIM_REMOVAL_SEND },
                { "the same, but read late", { .here = true, .late = true }, CLAIM_REMOVAL_KEEP },
                { "the same, after a long answer",
                  { .here = true, .age_usec = CLAIM_REMOVAL_SOON_USEC },
                  CLAIM_REMOVAL_KEEP },
                { "its guest is here, and gets a claim again",
                  { .here = true, .ours = true, .has_guest = true },
                  CLAIM_REMOVAL_WAIT },
                { "the same, and another client placed it again",
                  { .here = true, .late = true, .has_guest = true },
                  CLAIM_REMOVAL_KEEP },
                { "its guest is here, and another claim has it",
                  { .here = true, .ours = true, .has_guest = true, .inherited = true },
                  CLAIM_REMOVAL_END },
                { "late, and no client wrote it",
                  { .here = true, .ours = true, .late = true, .age_usec = UINT64_MAX },
                  CLAIM_REMOVAL_SEND },
                { "another claim has it",
                  { .here = true, .ours = true, .inherited = true },
                  CLAIM_REMOVAL_END },
                { "another claim has it, which may end before a write arrives",
                  { .here = true, .ours = true, .inherited = true, .unsure = true },
                  CLAIM_REMOVAL_WAIT },
                { "nothing is there", { .late = true }, CLAIM_REMOVAL_END },
                { "nothing is there yet", { .unsure = true }, CLAIM_REMOVAL_WAIT },
                { "nothing is there, nor will be",
                  { .unsure = true, .age_usec = CLAIM_WRITE_LATE_USEC },
                  CLAIM_REMOVAL_END },
                { "it arrived late",
                  { .here = true, .ours = true, .late = true, .unsure = true },
                  CLAIM_REMOVAL_SEND },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (claim_decide_removal(&cases[i].state) != cases[i].course)
                        fail_msg("%s", cases[i].name);
}

static void test_move(void **state)
{
        static const struct {
                const char *name;
                ClaimMoveState state;
                ClaimMoveDecision course;
        } cases[] = {
                { "to be moved", { .left = true }, CLAIM_MOVE_SEND },
                { "moved by another client", { .there = true }, CLAIM_MOVE_DONE },
                { "Placement knows of neither", { .sent = false }, CLAIM_MOVE_DONE },
                { "both", { .left = true, .there = true }, CLAIM_MOVE_TAKEN },
                { "both, and no caller waits",
                  { .left = true, .there = true, .sent = true, .repairs = true },
                  CLAIM_MOVE_TAKEN },
                { "verify", { .left = true, .refused = true }, CLAIM_MOVE_NOT_PLACED },
                { "allocations of an ended claim",
                  { .left = true, .unwritten = true },
                  CLAIM_MOVE_NOT_PLACED },
                { "a pending write of what another client moved",
                  { .there = true, .unwritten = true },
                  CLAIM_MOVE_DONE },
                { "a crash before a pending write",
                  { .left = true, .repairs = true, .unwritten = true },
                  CLAIM_MOVE_FENCE },
                { "verify, moved by another client",
                  { .there = true, .refused = true },
                  CLAIM_MOVE_DONE },
                { "a conflict, and it was done",
                  { .there = true, .sent = true },
                  CLAIM_MOVE_ARRIVED },
                { "a conflict, and it was not", { .left = true, .sent = true }, CLAIM_MOVE_SEND },
                { "a crash, and it was done",
                  { .there = true, .sent = true, .repairs = true },
                  CLAIM_MOVE_ARRIVED },
                { "a crash, and it was not yet",
                  { .left = true, .sent = true, .repairs = true },
                  CLAIM_MOVE_FENCE },
                { "a crash, and nothing is there",
                  { .sent = true, .repairs = true },
                  CLAIM_MOVE_GIVE_UP },
                { "a crash of who sends nothing",
                  { .left = true, .sent = true, .repairs = true, .refused = true },
                  CLAIM_MOVE_GIVE_UP },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (claim_decide_move(&cases[i].state) != cases[i].course)
                        fail_msg("%s", cases[i].name);
}

TEST_MAIN(test_pending_write, test_removal, test_move)
