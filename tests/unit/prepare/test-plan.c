/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The decisions of compute-agent-prepare, as tables of hosts, claims and steps. */

#include "prepare/plan.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "tests/unit/test.h"

#define CARD "0000:c1:00.0"
/* The functions of the card in all cases. */
#define A "0000:c1:00.4"
#define B "0000:c1:00.5"

/* No function, or no claim. */
#define NONE                          \
        {                             \
                {                     \
                        .address = "" \
                }                     \
        }

/* Members of functions and claims in the tables. */
#define FREE(address_)                                                    \
        {                                                                 \
                .address = address_, .has_type = true, .driver = "nvidia" \
        }
#define TYPED(address_, type_)                                                           \
        {                                                                                \
                .address = address_, .has_type = true, .driver = "nvidia", .type = type_ \
        }
#define OPEN(address_, type_, open_)                                                      \
        {                                                                                 \
                .address = address_, .has_type = true, .driver = "nvidia", .type = type_, \
                .open = PREPARE_OPEN_##open_                                              \
        }
#define CONFIRMED(id_, address_, type_)                                             \
        {                                                                           \
                .id = id_, .address = address_, .type = type_, .is_confirmed = true \
        }
#define CLAIMED(id_, address_, type_)                         \
        {                                                     \
                .id = id_, .address = address_, .type = type_ \
        }
#define PENDING(id_, address_, type_)                                             \
        {                                                                         \
                .id = id_, .address = address_, .type = type_, .is_pending = true \
        }

typedef struct Case {
        const char *name;
        HostPrepare options;
        PrepareCard card; /* exists, and has all functions, unless the case sets members */
        PrepareFunction functions[3];
        PrepareClaim claims[3];
        bool incomplete;
        const char *expected;
} Case;

/* Returns the steps as "KIND ADDRESS VALUE #CLAIM", with the reasons in brackets. The caller frees
 * it. */
static char *describe(const PrepareHost *host, const PreparePlan *plan)
{
        static const char *const kinds[] = { "unit", "functions", "driver", "clear",
                                             "set",  "wait",      "refuse" };
        char *text = NULL;
        size_t n;
        FILE *stream = open_memstream(&text, &n);

        assert_non_null(stream);
        for (size_t i = 0; i < plan->n_steps; i++) {
                const PrepareStep *step = &plan->steps[i];
                const PrepareCard *card = &host->cards[step->card];

                fprintf(stream, "%s%s", i > 0 ? "; " : "", kinds[step->kind]);
                fprintf(stream, " %s",
                        step->function == PREPARE_OF_CARD
                                ? "card"
                                : card->functions[step->function].address + 8);
                if (step->value)
                        fprintf(stream, " %" PRIu64, step->value);
                if (step->claim)
                        fprintf(stream, " #%" PRIi64, step->claim);
                fprintf(stream, " (%s)", step->reason);
        }
        assert_int_equal(fclose(stream), 0);
        return text;
}

static size_t count_functions(const PrepareFunction *functions)
{
        size_t n = 0;

        while (n < 3 && functions[n].address[0])
                n++;
        return n;
}

static void check(const Case *c)
{
        PrepareFunction functions[3];
        PrepareCard card = c->card;
        PrepareHost host = { .cards = &card, .n_cards = 1 };
        PrepareClaim items[3];
        PrepareClaims claims = { .items = items, .complete = !c->incomplete };
        PreparePlan plan = { 0 };
        _cleanup_free_ char *text = NULL;

        memcpy(functions, c->functions, sizeof(functions));
        memcpy(items, c->claims, sizeof(items));
        card.options = &c->options;
        snprintf(card.address, sizeof(card.address), CARD);
        card.functions = functions;
        card.n_functions = count_functions(functions);
        card.exists = !card.stride;     /* a case with a stride is a card that does not exist */
        card.has_driver = !card.offset; /* one with an offset has no driver */
        if (card.n_virtual == 0)
                card.n_virtual = card.n_functions;
        if (card.max_virtual == 0)
                card.max_virtual = 32;
        while (claims.n_items < 3 && items[claims.n_items].id)
                claims.n_items++;
        assert_int_equal(prepare_plan(&host, &claims, &plan), 0);
        text = describe(&host, &plan);
        free(plan.steps);
        if (strcmp(text, c->expected) != 0)
                fail_msg("%s: \"%s\", expected \"%s\"", c->name, text, c->expected);
}

#define TYPES                      \
        {                          \
                .vgpu_types = true \
        }

static void test_types_follow_claims(void **state)
{
        static const Case cases[] = {
                { "nothing to do", TYPES, { 0 }, { FREE(A), FREE(B) }, NONE, false, "" },
                { "a confirmed claim",
                  TYPES,
                  { 0 },
                  { FREE(A), FREE(B) },
                  { CONFIRMED(7, B, 5) },
                  false,
                  "set 00.5 5 #7 (claim 7 needs it)" },
                { "a claim without its guest",
                  TYPES,
                  { 0 },
                  { FREE(A) },
                  { CLAIMED(7, A, 5) },
                  false,
                  "set 00.4 5 #7 (claim 7 needs it)" },
                { "a pending claim gets no type",
                  TYPES,
                  { 0 },
                  { FREE(A) },
                  { PENDING(7, A, 5) },
                  false,
                  "" },
                { "a pending claim keeps its type",
                  TYPES,
                  { 0 },
                  { TYPED(A, 5) },
                  { PENDING(7, A, 5) },
                  false,
                  "" },
                { "a pending claim loses another type",
                  TYPES,
                  { 0 },
                  { TYPED(A, 6) },
                  { PENDING(7, A, 5) },
                  false,
                  "clear 00.4 6 #7 (it is a vGPU of nvidia-6, but claim 7 needs nvidia-5)" },
                { "the type is right",
                  TYPES,
                  { 0 },
                  { TYPED(A, 5) },
                  { CONFIRMED(7, A, 5) },
                  false,
                  "" },
                { "the type is right and open",
                  TYPES,
                  { 0 },
                  { OPEN(A, 5, YES) },
                  { CONFIRMED(7, A, 5) },
                  false,
                  "" },
                { "a type without a claim",
                  TYPES,
                  { 0 },
                  { TYPED(A, 5) },
                  NONE,
                  false,
                  "clear 00.4 5 (it has no claim)" },
                { "a type of another claim",
                  TYPES,
                  { 0 },
                  { TYPED(A, 6) },
                  { CONFIRMED(7, A, 5) },
                  false,
                  "clear 00.4 6 #7 (it is a vGPU of nvidia-6, but claim 7 needs nvidia-5)" },
                { "a claim of the whole function",
                  TYPES,
                  { 0 },
                  { TYPED(A, 6), FREE(B) },
                  { CONFIRMED(7, A, 0), CONFIRMED(8, B, 0) },
                  false,
                  "" },
                { "a claim of another card",
                  TYPES,
                  { 0 },
                  { FREE(A) },
                  { CONFIRMED(7, "0000:c2:00.4", 5) },
                  false,
                  "" },
                { "a card without vgpu_types",
                  { 0 },
                  { 0 },
                  { TYPED(A, 6), FREE(B) },
                  { CONFIRMED(7, A, 5), CONFIRMED(8, B, 5) },
                  false,
                  "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i]);
}

static void test_open_functions_stay_unchanged(void **state)
{
        static const Case cases[] = {
                { "a type without a claim",
                  TYPES,
                  { 0 },
                  { OPEN(A, 5, YES) },
                  NONE,
                  false,
                  "wait 00.4 5 (it has no claim, and a process has it open)" },
                { "not known",
                  TYPES,
                  { 0 },
                  { OPEN(A, 5, UNKNOWN) },
                  NONE,
                  false,
                  "wait 00.4 5 (it has no claim, and it is not known whether a process has it "
                  "open)" },
                { "another type",
                  TYPES,
                  { 0 },
                  { OPEN(A, 6, YES) },
                  { CONFIRMED(7, A, 5) },
                  false,
                  "refuse 00.4 6 #7 (it is a vGPU of nvidia-6, but claim 7 needs nvidia-5, and a "
                  "process has it open)" },
                { "no type",
                  TYPES,
                  { 0 },
                  { OPEN(A, 0, YES) },
                  { CONFIRMED(7, A, 5) },
                  false,
                  "refuse 00.4 5 #7 (claim 7 needs nvidia-5, but a process has it open)" },
                { "no type, not known",
                  TYPES,
                  { 0 },
                  { OPEN(A, 0, UNKNOWN) },
                  { CONFIRMED(7, A, 5) },
                  false,
                  "refuse 00.4 5 #7 (claim 7 needs nvidia-5, but it is not known whether a process "
                  "has it open)" },
                { "another driver",
                  { .driver_override = (char *)"vfio-pci" },
                  { 0 },
                  { OPEN(A, 0, YES), OPEN(B, 0, UNKNOWN) },
                  NONE,
                  false,
                  "" },
                { "another driver, and a network device above it",
                  { .driver_override = (char *)"vfio-pci" },
                  { 0 },
                  { OPEN(A, 0, PARENT) },
                  NONE,
                  false,
                  "refuse 00.4 (its driver is nvidia, and it has mediated, vDPA or network "
                  "devices)" },
                { "another driver, and a claim needs a type",
                  { .vgpu_types = true, .driver_override = (char *)"vfio-pci" },
                  { 0 },
                  { OPEN(A, 0, YES) },
                  { CONFIRMED(7, A, 5) },
                  false,
                  "refuse 00.4 5 #7 (claim 7 needs nvidia-5, but its driver is nvidia, and a "
                  "process has it open)" },
                { "another number",
                  { .virtual_functions = 4 },
                  { 0 },
                  { OPEN(A, 0, YES) },
                  NONE,
                  false,
                  "refuse card 4 (4 functions are wanted instead of 1, but 0000:c1:00.4: a process "
                  "has it open)" },
                { "mediated devices",
                  { .virtual_functions = 4, .driver_override = (char *)"vfio-pci" },
                  { 0 },
                  { OPEN(A, 0, PARENT) },
                  NONE,
                  false,
                  "refuse card 4 (4 functions are wanted instead of 1, but 0000:c1:00.4: it has "
                  "mediated, vDPA or network devices); refuse 00.4 (its driver is nvidia, and it "
                  "has mediated, vDPA or network devices)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i]);
}

static void test_order_of_steps(void **state)
{
        static const Case cases[] = {
                { "clear before set",
                  TYPES,
                  { 0 },
                  { FREE(A), TYPED(B, 6) },
                  { CONFIRMED(7, A, 5) },
                  false,
                  "clear 00.5 6 (it has no claim); set 00.4 5 #7 (claim 7 needs it)" },
                { "confirmed claims first, then the oldest",
                  TYPES,
                  { 0 },
                  { FREE(A), FREE(B), FREE("0000:c1:00.6") },
                  { CLAIMED(3, A, 5), CONFIRMED(8, B, 5), CONFIRMED(4, "0000:c1:00.6", 5) },
                  false,
                  "set 00.6 5 #4 (claim 4 needs it); set 00.5 5 #8 (claim 8 needs it); "
                  "set 00.4 5 #3 (claim 3 needs it)" },
                { "the driver before the type",
                  { .vgpu_types = true, .driver_override = (char *)"other" },
                  { 0 },
                  { FREE(A), TYPED(B, 5) },
                  { CONFIRMED(7, A, 5) },
                  false,
                  "driver 00.4 #7 (its driver is nvidia); clear 00.5 5 (it has no claim)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i]);
}

#define NUMBER(n)                                          \
        {                                                  \
                .virtual_functions = n, .vgpu_types = true \
        }

static void test_number_of_functions(void **state)
{
        static const Case cases[] = {
                { "none yet",
                  NUMBER(4),
                  { 0 },
                  NONE,
                  NONE,
                  false,
                  "functions card 4 (the card has no functions)" },
                { "none yet, with unknown claims",
                  NUMBER(4),
                  { 0 },
                  NONE,
                  NONE,
                  true,
                  "functions card 4 (the card has no functions)" },
                { "another number",
                  NUMBER(4),
                  { 0 },
                  { FREE(A), FREE(B) },
                  NONE,
                  false,
                  "functions card (4 functions are wanted instead of 2, which are all free)" },
                { "the right number", NUMBER(2), { 0 }, { FREE(A), FREE(B) }, NONE, false, "" },
                { "unchanged", NUMBER(0), { 0 }, NONE, NONE, false, "" },
                { "too many",
                  NUMBER(33),
                  { 0 },
                  NONE,
                  NONE,
                  false,
                  "refuse card 33 (33 functions are wanted, but the card supports 32)" },
                { "a claim",
                  NUMBER(4),
                  { 0 },
                  { FREE(A) },
                  { CONFIRMED(7, A, 5) },
                  false,
                  "set 00.4 5 #7 (claim 7 needs it); refuse card 4 (4 functions are wanted instead "
                  "of 1, but claim 7 has 0000:c1:00.4)" },
                { "a vGPU",
                  NUMBER(4),
                  { 0 },
                  { TYPED(A, 5) },
                  NONE,
                  true,
                  "wait 00.4 5 (it has no claim, and the claims of this host are not completely "
                  "known); refuse card 4 (4 functions are wanted instead of 1, but 0000:c1:00.4 is "
                  "a vGPU of nvidia-5)" },
                { "unknown claims",
                  NUMBER(4),
                  { 0 },
                  { FREE(A) },
                  NONE,
                  true,
                  "refuse card 4 (4 functions are wanted instead of 1, but the claims of this host "
                  "are not known)" },
                { "no driver",
                  NUMBER(4),
                  { .offset = 1 },
                  NONE,
                  NONE,
                  false,
                  "refuse card (no driver is bound to the card)" },
                { "no such card",
                  NUMBER(4),
                  { .stride = 1 },
                  NONE,
                  NONE,
                  false,
                  "refuse card (the card does not exist)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i]);
}

static void test_units(void **state)
{
        static const Case cases[] = {
                { "the unit first",
                  { .virtual_functions = 4, .unit = (char *)"u@.service" },
                  { 0 },
                  NONE,
                  NONE,
                  false,
                  "unit card (the card has no functions)" },
                { "the unit is done",
                  { .virtual_functions = 4, .unit = (char *)"u@.service" },
                  { .unit_done = true },
                  NONE,
                  NONE,
                  false,
                  "functions card 4 (the card has no functions)" },
                { "the unit must make the functions, and made none",
                  { .unit = (char *)"u@.service" },
                  { .unit_done = true },
                  NONE,
                  NONE,
                  false,
                  "refuse card (its unit made no functions, and virtual_functions is 0)" },
                { "functions exist",
                  { .unit = (char *)"u@.service" },
                  { 0 },
                  { FREE(A) },
                  NONE,
                  false,
                  "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i]);
}

static void test_unknown_claims_clear_nothing(void **state)
{
        static const Case cases[] = {
                { "a type without a claim",
                  TYPES,
                  { 0 },
                  { TYPED(A, 5), FREE(B) },
                  { CONFIRMED(7, B, 5) },
                  true,
                  "set 00.5 5 #7 (claim 7 needs it); wait 00.4 5 (it has no claim, and the claims "
                  "of this host are not completely known)" },
                { "another type",
                  TYPES,
                  { 0 },
                  { TYPED(A, 6) },
                  { CONFIRMED(7, A, 5) },
                  true,
                  "refuse 00.4 6 #7 (it is a vGPU of nvidia-6, but claim 7 needs nvidia-5, and the "
                  "claims of this host are not completely known)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i]);
}

static void test_failures_of_this_run(void **state)
{
        static const Case cases[] = {
                { "of a function",
                  TYPES,
                  { 0 },
                  { { .address = A, .has_type = true, .failed = "EINVAL" }, FREE(B) },
                  { CONFIRMED(7, A, 5), CONFIRMED(8, B, 5) },
                  false,
                  "set 00.5 5 #8 (claim 8 needs it)" },
                { "of the card", NUMBER(4), { .failed = "EIO" }, NONE, NONE, false, "" },
                { "no file",
                  TYPES,
                  { 0 },
                  { { .address = A } },
                  { CONFIRMED(7, A, 5) },
                  false,
                  "refuse 00.4 5 #7 (claim 7 needs nvidia-5, but its driver has no "
                  "nvidia/current_vgpu_type)" },
                { "no function",
                  TYPES,
                  { 0 },
                  { FREE(A) },
                  { CONFIRMED(7, "0000:c1:02.3", 5), CLAIMED(8, B, 5),
                    PENDING(9, "0000:c1:01.0", 5) },
                  false,
                  "refuse card 5 #7 (claim 7 needs nvidia-5 on 0000:c1:02.3, which does not exist); "
                  "refuse card 5 #8 (claim 8 needs nvidia-5 on 0000:c1:00.5, which does not exist)" },
                { "a recorded claim",
                  TYPES,
                  { 0 },
                  { { .address = A, .has_type = true, .type = 5, .recorded = 3 } },
                  NONE,
                  false,
                  "clear 00.4 5 (claim 3 has ended)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i]);
}

/* A claim of a function that the card can have, but does not, is refused. */
static void test_addresses_of_a_card(void **state)
{
        static const struct {
                uint64_t offset, stride;
                const char *address;
                bool expected;
        } cases[] = {
                { 0, 0, A, true },
                { 0, 0, CARD, false },
                { 0, 0, "0000:c2:00.4", false },
                { 0, 0, "0001:c1:00.4", false },
                { 0, 0, "x", false },
                { 0, 0, "", false },
                { 4, 1, A, true },
                { 4, 1, "0000:c1:00.3", false },
                { 4, 1, "0000:c1:04.3", true },
                { 4, 1, "0000:c1:04.4", false },
                { 256, 2, "0000:c2:00.2", true },
                { 256, 2, "0000:c2:00.3", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const HostPrepare options = TYPES;
                PrepareCard card = { .options = &options,
                                     .address = CARD,
                                     .exists = true,
                                     .n_virtual = 1,
                                     .max_virtual = 32,
                                     .offset = cases[i].offset,
                                     .stride = cases[i].stride };
                PrepareHost host = { .cards = &card, .n_cards = 1 };
                PrepareClaim claim = { .id = 7, .type = 5 };
                PrepareClaims claims = { .items = &claim, .n_items = 1, .complete = true };
                PreparePlan plan = { 0 };

                snprintf(claim.address, sizeof(claim.address), "%s", cases[i].address);
                assert_int_equal(prepare_plan(&host, &claims, &plan), 0);
                if (plan.n_steps != (cases[i].expected ? 1 : 0))
                        fail_msg("case %zu", i);
                free(plan.steps);
        }
}

TEST_MAIN(test_types_follow_claims, test_open_functions_stay_unchanged, test_order_of_steps,
          test_number_of_functions, test_units, test_unknown_claims_clear_nothing,
          test_failures_of_this_run, test_addresses_of_a_card)
