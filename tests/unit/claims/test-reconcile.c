/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/clock.h"
#include "claims/reconcile.h"

#include "tests/fixtures/host-facts.h"
#include "tests/unit/test.h"

#define EXPIRY (300 * USEC_PER_SEC)

/* A claim as the table below has it. */
typedef struct Row {
        char consumer;
        ClaimState state;
        int64_t expires_sec; /* 1000: now; 0: never */
        bool target;
        const char *boot;
        const char *mdevs; /* on provider host_a */
        uint64_t vgpus, vcpus;
        char guest; /* whose it was before it was handed over; 0: nobody's */
        ClaimStanding standing;
        const char *type;
        bool was_read;
} Row;

static void add_claim(ClaimList *list, const Row *row)
{
        const Uuid host = make_guest('h'), gpu = make_guest('u');
        Claim *claim;

        assert_int_equal(claim_new(&claim), 0);
        claim->id = (int64_t)list->n_claims + 1;
        claim->consumer = make_guest(row->consumer);
        if (row->guest)
                claim->guest = make_guest(row->guest);
        claim->state = row->state;
        claim->resize_target = row->target;
        claim->standing = row->standing;
        claim->was_read = row->was_read;
        if (row->type) {
                free(claim->consumer_type);
                claim->consumer_type = strdup(row->type);
        }
        claim->expires_usec = (uint64_t)row->expires_sec * USEC_PER_SEC;
        free(claim->boot_id);
        claim->boot_id = strdup(row->boot ? row->boot : "boot");
        if (row->vcpus > 0)
                assert_int_equal(claim_add(claim, &host, "host", "", "VCPU", row->vcpus), 0);
        if (row->vgpus > 0)
                assert_int_equal(claim_add(claim, &gpu, "host_a", "", "VGPU", row->vgpus), 0);
        for (const char *mdev = row->mdevs ? row->mdevs : ""; *mdev; mdev++) {
                const ClaimDevice device = { .provider = gpu,
                                             .suffix = (char *)"",
                                             .name = (char *)"a",
                                             .address = (char *)"",
                                             .mdev_type = (char *)"t",
                                             .mdev = make_mdev(*mdev) };

                assert_int_equal(claim_add_device(claim, &device), 0);
        }
        assert_int_equal(claim_list_add(list, claim), 0);
}

/* "release 1, adopt g" */
static void format_actions(const Reconcile *reconcile, char text[static 256])
{
        static const char *const names[_RECONCILE_TYPE_MAX] = {
                [RECONCILE_ASK] = "ask",           [RECONCILE_ADOPT] = "adopt",
                [RECONCILE_COMPLETE] = "complete", [RECONCILE_EXTEND] = "extend",
                [RECONCILE_CONFIRM] = "confirm",   [RECONCILE_RELEASE] = "release",
                [RECONCILE_CHECK] = "check",
        };
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < reconcile->n_actions; i++) {
                const ReconcileAction *action = &reconcile->actions[i];

                n += (size_t)snprintf(text + n, 256 - n, "%s%s ", i > 0 ? ", " : "",
                                      names[action->type]);
                if (action->claim_id > 0)
                        n += (size_t)snprintf(text + n, 256 - n, "%d", (int)action->claim_id);
                else
                        n += (size_t)snprintf(text + n, 256 - n, "%s", action->domain->name);
        }
}

static void run(const ClaimList *claims, const HostFacts *facts, ReconcileMemory *memory,
                uint64_t expiry, Reconcile *ret)
{
        const ReconcileInput input = { .claims = claims,
                                       .facts = facts,
                                       .node = "host",
                                       .boot_id = "boot",
                                       .expiry_usec = expiry };

        assert_int_equal(reconcile_make(&input, memory, ret), 0);
}

#define CONFIRMED CLAIM_STATE_CONFIRMED
#define CLAIMED   CLAIM_STATE_CLAIMED

static void test_table(void **state)
{
        static const struct {
                const char *name;
                Row claims[2];
                const char *guest; /* letter, then its mdevs; "" for none */
                const char *actions;
                const char *problem; /* part of the only one, or NULL */
        } rows[] = {
                { "nothing", { { 0 } }, "", "", NULL },
                { "a guest without a claim", { { 0 } }, "g", "adopt g", NULL },
                { "all is well", { { 'g', CONFIRMED, .vcpus = 2 } }, "g", "", NULL },
                { "not confirmed yet",
                  { { 'g', CLAIMED, .expires_sec = 1001, .vcpus = 2 } },
                  "g",
                  "",
                  NULL },
                { "never confirmed",
                  { { 'g', CLAIMED, .expires_sec = 1000, .vcpus = 2 } },
                  "g",
                  "confirm 1",
                  NULL },
                { "expires by itself",
                  { { 'x', CLAIMED, .expires_sec = 1000 } },
                  "g",
                  "adopt g",
                  NULL },
                { "another boot", { { 'g', CONFIRMED, .boot = "old" } }, "g", "check 1", NULL },
                { "no device named", { { 'g', CONFIRMED, .vgpus = 1 } }, "g", "check 1", NULL },
                { "more VCPUs",
                  { { 'g', CONFIRMED, .vcpus = 1 } },
                  "g",
                  "",
                  "has 2 VCPUs, its claim has 1" },
                { "the same mdevs",
                  { { 'g', CONFIRMED, .vgpus = 2, .mdevs = "13" } },
                  "g13",
                  "",
                  NULL },
                { "mdev not in the XML",
                  { { 'g', CONFIRMED, .vgpus = 1, .mdevs = "1" } },
                  "g",
                  "",
                  "does not have mdev" },
                { "mdev not in the claim",
                  { { 'g', CONFIRMED, .vcpus = 2 } },
                  "g4",
                  "",
                  "its claim does not name" },
                { "mdev gone",
                  { { 'g', CONFIRMED, .vgpus = 1, .mdevs = "9" } },
                  "g9",
                  "",
                  "is gone from a" },
                { "while it is resized",
                  { { 'g', CONFIRMED, .vcpus = 1 },
                    { 'g', CLAIMED, .expires_sec = 2000, .target = true, .vcpus = 4 } },
                  "g",
                  "",
                  NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(claim_list_done) ClaimList claims = { 0 };
                _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
                _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
                FactsFixture facts;
                char actions[256];

                make_facts(&facts);
                if (rows[i].guest[0])
                        facts_guest(&facts, rows[i].guest[0], rows[i].guest + 1);
                for (size_t j = 0; j < 2 && rows[i].claims[j].consumer; j++)
                        add_claim(&claims, &rows[i].claims[j]);
                run(&claims, &facts.facts, &memory, EXPIRY, &reconcile);
                format_actions(&reconcile, actions);
                if (strcmp(actions, rows[i].actions) != 0)
                        fail_msg("%s: %s", rows[i].name, actions);
                if (reconcile.problems.n_items != (rows[i].problem ? 1 : 0) ||
                    (rows[i].problem && !strstr(reconcile.problems.items[0].text, rows[i].problem)))
                        fail_msg("%s: %zu problems, first: %s", rows[i].name,
                                 reconcile.problems.n_items,
                                 reconcile.problems.n_items ? reconcile.problems.items[0].text
                                                            : "");
        }
}

/* Of a guest that cannot be read nothing is said: its claim stays as it is, and none is made. */
static void test_unread_guest(void **state)
{
        static const struct {
                Row claim;
                const char *problem;
        } rows[] = {
                { { 'g', CONFIRMED, .vcpus = 7, .vgpus = 1, .mdevs = "9" }, NULL },
                { { 'g', CLAIMED, .expires_sec = 1000, .vcpus = 7 }, NULL },
                { { 0 }, "guest g has no claim, and cannot be read" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(claim_list_done) ClaimList claims = { 0 };
                _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
                _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
                FactsFixture facts;

                make_facts(&facts);
                facts_guest(&facts, 'g', "");
                facts.facts.domains[0].unread = true;
                if (rows[i].claim.consumer)
                        add_claim(&claims, &rows[i].claim);
                run(&claims, &facts.facts, &memory, EXPIRY, &reconcile);
                assert_int_equal(reconcile.n_actions, 0);
                assert_int_equal(reconcile.problems.n_items, rows[i].problem ? 1 : 0);
                if (rows[i].problem)
                        assert_non_null(strstr(reconcile.problems.items[0].text, rows[i].problem));
        }
}

/* An orphan is released when its guest was missed for all of the expiry time, and not before. */
static void test_orphan(void **state)
{
        static const struct {
                unsigned at_sec;
                bool guest;
                const char *actions;
        } polls[] = {
                { 1000, false, "" }, { 1299, false, "" }, { 1299, true, "" },
                { 1300, false, "" }, { 1599, false, "" }, { 1600, false, "release 1" },
        };
        _cleanup_(claim_list_done) ClaimList claims = { 0 };
        _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };

        add_claim(&claims, &(Row){ 'g', CONFIRMED, .vcpus = 2 });
        for (size_t i = 0; i < ARRAY_SIZE(polls); i++) {
                _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
                FactsFixture facts;
                char actions[256];

                make_facts(&facts);
                facts.facts.taken_usec = polls[i].at_sec * USEC_PER_SEC;
                if (polls[i].guest)
                        facts_guest(&facts, 'g', "");
                run(&claims, &facts.facts, &memory, EXPIRY, &reconcile);
                format_actions(&reconcile, actions);
                if (strcmp(actions, polls[i].actions) != 0)
                        fail_msg("%zu: %s", i, actions);
        }
}

#define WRITTEN CLAIM_STANDING_WRITTEN
#define OWED    CLAIM_STANDING_OWED
#define ALONE   RECONCILE_ALONE
#define AWAY    RECONCILE_AWAY
#define CAN_ASK RECONCILE_CAN_ASK
/* A guest's claim that Placement was read for, and had; its guest does not run. */
#define OFF                                                                \
        {                                                                  \
                'g', CONFIRMED, .type = CLAIM_TYPE_GUEST, .was_read = true \
        }
#define ONLY_STOPPED false, false, true, true

typedef struct WordRow {
        const char *name;
        Row claim;
        ReconcileWord word;
        char answer; /* 'h': its consumer holds something here, 'n': nothing; 0: not asked
                      */
        bool urgent, touched, started_only, stopped;
        const char *guest;
        const char *actions;
} WordRow;

static void check_rows(const WordRow rows[], size_t n)
{
        for (size_t i = 0; i < n; i++) {
                _cleanup_(claim_list_done) ClaimList claims = { 0 };
                _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
                _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
                const Row *row = &rows[i].claim;
                const ReconcileTouched touched = { .claim_id = 1,
                                                   .when_usec = 1000 * USEC_PER_SEC };
                const ReconcileAnswer answer = { .consumer = make_guest(
                                                         row->consumer ? row->consumer : 'g'),
                                                 .here = rows[i].answer == 'h' };
                FactsFixture facts;
                ReconcileInput input = { .claims = &claims,
                                         .facts = &facts.facts,
                                         .node = "host",
                                         .boot_id = "boot",
                                         .expiry_usec = EXPIRY,
                                         .started_only = rows[i].started_only,
                                         .word = rows[i].word,
                                         .answers = &answer,
                                         .n_answers = rows[i].answer ? 1 : 0,
                                         .urgent = rows[i].urgent,
                                         .touched = &touched,
                                         .n_touched = rows[i].touched };
                char actions[256];

                make_facts(&facts);
                facts.facts.taken_usec = 1000 * USEC_PER_SEC;
                if (rows[i].guest)
                        facts_guest(&facts, rows[i].guest[0], "")->running = !rows[i].stopped;
                if (row->consumer)
                        add_claim(&claims, row);
                assert_int_equal(reconcile_make(&input, &memory, &reconcile), 0);
                format_actions(&reconcile, actions);
                if (strcmp(actions, rows[i].actions) != 0)
                        fail_msg("%s: %s", rows[i].name, actions);
                assert_int_equal(reconcile.problems.n_items, 0);
        }
}

/* Whether a claim that is not confirmed ends, by what Placement says. */
static void test_unconfirmed_by_placement(void **state)
{
        static const WordRow rows[] = {
                { "expires without Placement elsewhere",
                  { 'g', CLAIMED, .expires_sec = 1000 },
                  ALONE,
                  .actions = "" },
                { "expired: Placement is asked",
                  { 'g', CLAIMED, .expires_sec = 1000 },
                  CAN_ASK,
                  .actions = "ask 1" },
                { "and has it",
                  { 'g', CLAIMED, .expires_sec = 1000 },
                  AWAY,
                  'h',
                  .actions = "extend 1" },
                { "and has nothing",
                  { 'g', CLAIMED, .expires_sec = 1000 },
                  AWAY,
                  'n',
                  .actions = "release 1" },
                { "and cannot be asked",
                  { 'g', CLAIMED, .expires_sec = 1000 },
                  AWAY,
                  .actions = "" },
                { "not expired", { 'g', CLAIMED, .expires_sec = 1001 }, CAN_ASK, .actions = "" },
                { "not expired, and room is wanted",
                  { 'g', CLAIMED, .expires_sec = 1001 },
                  CAN_ASK,
                  .urgent = true,
                  .actions = "ask 1" },
                { "that was just answered with",
                  { 'g', CLAIMED, .expires_sec = 1001 },
                  CAN_ASK,
                  .urgent = true,
                  .touched = true,
                  .actions = "" },
                { "the same, late",
                  { 'g', CLAIMED, .expires_sec = 1001 },
                  AWAY,
                  'n',
                  .touched = true,
                  .actions = "" },
                { "and Placement has nothing",
                  { 'g', CLAIMED, .expires_sec = 1001 },
                  AWAY,
                  'n',
                  .actions = "release 1" },
                { "or has it", { 'g', CLAIMED, .expires_sec = 1001 }, AWAY, 'h', .actions = "" },
                { "being made",
                  { 'g', CLAIM_STATE_PENDING, .expires_sec = 1000,
                    .standing = CLAIM_STANDING_PENDING },
                  CAN_ASK,
                  .urgent = true,
                  .actions = "" },
                { "what the agent wrote itself says nothing",
                  { 'g', CLAIMED, .expires_sec = 1000, .standing = WRITTEN },
                  CAN_ASK,
                  .actions = "release 1" },
                { "not even while Placement is away",
                  { 'g', CLAIMED, .expires_sec = 1000, .standing = WRITTEN },
                  AWAY,
                  .actions = "release 1" },
                { "but when it is gone, it is",
                  { 'g', CLAIMED, .expires_sec = 1001, .standing = WRITTEN },
                  AWAY,
                  'n',
                  .actions = "release 1" },
                { "not told yet, and room is wanted",
                  { 'g', CLAIMED, .expires_sec = 1001, .standing = OWED },
                  CAN_ASK,
                  .urgent = true,
                  .actions = "" },
                { "not told yet, and expired",
                  { 'g', CLAIMED, .expires_sec = 1000, .standing = OWED },
                  CAN_ASK,
                  .actions = "ask 1" },
        };

        check_rows(rows, ARRAY_SIZE(rows));
}

/* The same of claims whose guests were here. */
static void test_confirmed_by_placement(void **state)
{
        static const WordRow rows[] = {
                { "confirmed, and its guest is gone",
                  { .consumer = 'g', .state = CONFIRMED },
                  CAN_ASK,
                  .actions = "ask 1" },
                { "Placement has nothing, either",
                  { .consumer = 'g', .state = CONFIRMED },
                  AWAY,
                  'n',
                  .actions = "release 1" },
                { "that was confirmed since the poll began",
                  { .consumer = 'g', .state = CONFIRMED },
                  AWAY,
                  'n',
                  .touched = true,
                  .actions = "" },
                { "Placement still has it",
                  { .consumer = 'g', .state = CONFIRMED },
                  AWAY,
                  'h',
                  .actions = "" },
                { "Placement cannot be asked",
                  { .consumer = 'g', .state = CONFIRMED },
                  AWAY,
                  .actions = "" },
                { "a migration's, whose guest is not here",
                  { 'm', CONFIRMED, .guest = 'g' },
                  CAN_ASK,
                  .urgent = true,
                  .actions = "" },
                { "the same, unconfirmed: it may be its guest's again",
                  { 'm', CLAIMED, .expires_sec = 1001, .guest = 'g' },
                  AWAY,
                  'n',
                  .urgent = true,
                  .actions = "" },
                { "off, placed by others", OFF, CAN_ASK, 0, ONLY_STOPPED, "g", "ask 1" },
                { "which still have it", OFF, CAN_ASK, 'h', ONLY_STOPPED, "g", "" },
                { "and no more", OFF, CAN_ASK, 'n', ONLY_STOPPED, "g", "release 1" },
                { "a stopped guest that holds nothing while it is",
                  { 'g', CLAIMED, .expires_sec = 1000, .type = CLAIM_TYPE_GUEST },
                  CAN_ASK,
                  .started_only = true,
                  .actions = "release 1" },
        };

        check_rows(rows, ARRAY_SIZE(rows));
}

/* Guests are asked about before they are adopted, or else afterwards. */
static void test_adopted_by_placement(void **state)
{
        static const WordRow rows[] = {
                { "a guest without a claim", { 0 }, CAN_ASK, .guest = "g", .actions = "ask g" },
                { "that holds something", { 0 }, AWAY, 'h', .guest = "g", .actions = "adopt g" },
                { "that holds nothing", { 0 }, AWAY, 'n', .guest = "g", .actions = "adopt g" },
                { "that cannot be asked about", { 0 }, AWAY, .guest = "g", .actions = "adopt g" },
                { "a claim that was made without asking",
                  { 'g', CONFIRMED, .vcpus = 2, .type = CLAIM_TYPE_GUEST },
                  CAN_ASK,
                  .guest = "g",
                  .actions = "ask 1" },
                { "and can be completed",
                  { 'g', CONFIRMED, .vcpus = 2, .type = CLAIM_TYPE_GUEST },
                  AWAY,
                  'h',
                  .guest = "g",
                  .actions = "complete 1" },
                { "without Placement there is nothing to complete",
                  { 'g', CONFIRMED, .vcpus = 2, .type = CLAIM_TYPE_GUEST },
                  ALONE,
                  .guest = "g",
                  .actions = "" },
        };

        check_rows(rows, ARRAY_SIZE(rows));
}

/* A confirmed claim that Placement still has the allocations of stays, is listed after the expiry
 * time, and is asked about again after twice the time, at most each expiry time. */
static void test_asked_seldomer(void **state)
{
        static const unsigned expected[] = { 1000, 1060, 1120, 1240, 1480, 1780, 2080 };
        _cleanup_(claim_list_done) ClaimList claims = { 0 };
        _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
        const ReconcileAnswer answer = { .consumer = make_guest('g'), .here = true };
        FactsFixture facts;
        size_t n = 0;

        make_facts(&facts);
        add_claim(&claims, &(Row){ .consumer = 'g', .state = CONFIRMED });
        for (unsigned at = 1000; at < 2200; at += 60) {
                _cleanup_(reconcile_done) Reconcile asked = { 0 }, answered = { 0 };
                ReconcileInput input = { .claims = &claims,
                                         .facts = &facts.facts,
                                         .node = "host",
                                         .boot_id = "boot",
                                         .expiry_usec = EXPIRY,
                                         .word = CAN_ASK };

                facts.facts.taken_usec = at * USEC_PER_SEC;
                assert_int_equal(reconcile_make(&input, &memory, &asked), 0);
                assert_int_equal(asked.problems.n_items, at >= 1300);
                if (asked.n_actions == 0)
                        continue;
                assert_int_equal(asked.actions[0].type, RECONCILE_ASK);
                assert_int_equal(expected[n++], at);
                input.word = AWAY;
                input.answers = &answer;
                input.n_answers = 1;
                assert_int_equal(reconcile_make(&input, &memory, &answered), 0);
                assert_int_equal(answered.n_actions, 0);
        }
        assert_int_equal(n, ARRAY_SIZE(expected));
}

/* Of a host that is a recording the guests are not here. */
static void test_recorded(void **state)
{
        _cleanup_(claim_list_done) ClaimList claims = { 0 };
        _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
        _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
        FactsFixture facts;
        const ReconcileInput input = { .claims = &claims,
                                       .facts = &facts.facts,
                                       .node = "host",
                                       .boot_id = "boot",
                                       .expiry_usec = EXPIRY,
                                       .word = CAN_ASK,
                                       .recorded = true };
        char actions[256];

        make_facts(&facts);
        facts_guest(&facts, 'x', "");
        add_claim(&claims, &(Row){ .consumer = 'g', .state = CONFIRMED });
        add_claim(&claims, &(Row){ 'h', CLAIMED, .expires_sec = 1000 });
        assert_int_equal(reconcile_make(&input, &memory, &reconcile), 0);
        format_actions(&reconcile, actions);
        assert_string_equal(actions, "ask 2");
}

/* What another host has is not taken for a new guest, unless it runs here all the same. */
static void test_away(void **state)
{
        _cleanup_(reconcile_done) Reconcile off = { 0 }, on = { 0 };
        _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
        const Uuid away = make_guest('g');
        const ClaimList none = { 0 };
        FactsFixture facts;
        HostDomain *domain;
        ReconcileInput input = { .claims = &none,
                                 .node = "host",
                                 .boot_id = "boot",
                                 .expiry_usec = EXPIRY,
                                 .away = &away,
                                 .n_away = 1 };

        make_facts(&facts);
        domain = facts_guest(&facts, 'g', "");
        input.facts = &facts.facts;
        domain->running = false;
        assert_int_equal(reconcile_make(&input, &memory, &off), 0);
        assert_int_equal(off.n_actions, 0);
        domain->running = true;
        assert_int_equal(reconcile_make(&input, &memory, &on), 0);
        assert_int_equal(on.n_actions, 1);
}

/* F8 1879878, 1849165: a guest whose claim was handed to a migration is not taken for a new one,
 * and the claim is held for as long as the move takes, wherever the guest is. */
static void test_moved(void **state)
{
        static const struct {
                const char *name;
                Row claims[2];
                const char *guest;
                const char *actions; /* after a long time, too */
        } rows[] = {
                { "not moved yet", { { 'm', CONFIRMED, .guest = 'g', .vcpus = 2 } }, "g", "" },
                { "it has another size",
                  { { 'm', CONFIRMED, .guest = 'g', .vcpus = 2 }, { 'g', CONFIRMED, .vcpus = 4 } },
                  "g",
                  "" },
                { "it is elsewhere", { { 'm', CONFIRMED, .guest = 'g', .vcpus = 2 } }, "", "" },
                { "never confirmed",
                  { { 'm', CLAIMED, .guest = 'g', .expires_sec = 1000, .vcpus = 2 } },
                  "g",
                  "confirm 1" },
                { "of another boot",
                  { { 'm', CONFIRMED, .guest = 'g', .boot = "old", .vcpus = 2 } },
                  "g",
                  "check 1" },
                { "another guest",
                  { { 'm', CONFIRMED, .guest = 'x', .vcpus = 2 } },
                  "g",
                  "adopt g" },
                { "a claim that was not handed over",
                  { { .consumer = 'm', .state = CONFIRMED } },
                  "",
                  "release 1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(claim_list_done) ClaimList claims = { 0 };
                _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
                FactsFixture facts;
                char text[256];

                make_facts(&facts);
                facts.facts.taken_usec = 1000 * USEC_PER_SEC;
                for (size_t j = 0; j < 2 && rows[i].claims[j].consumer; j++)
                        add_claim(&claims, &rows[i].claims[j]);
                if (rows[i].guest[0])
                        facts_guest(&facts, rows[i].guest[0], "")->vcpus = 2;
                for (size_t n = 0; n < 2; n++) {
                        _cleanup_(reconcile_done) Reconcile reconcile = { 0 };

                        run(&claims, &facts.facts, &memory, EXPIRY, &reconcile);
                        format_actions(&reconcile, text);
                        assert_int_equal(reconcile.problems.n_items, 0);
                        facts.facts.taken_usec += EXPIRY;
                }
                if (strcmp(text, rows[i].actions) != 0)
                        fail_msg("%s: %s", rows[i].name, text);
        }
}

/* With claim_expiry_time = 0 nothing is an orphan. */
static void test_no_orphans(void **state)
{
        _cleanup_(claim_list_done) ClaimList claims = { 0 };
        _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };

        add_claim(&claims, &(Row){ 'g', CONFIRMED, .vcpus = 2 });
        for (uint64_t i = 1; i < 4; i++) {
                _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
                FactsFixture facts;

                make_facts(&facts);
                facts.facts.taken_usec = i * 1000000 * USEC_PER_SEC;
                run(&claims, &facts.facts, &memory, 0, &reconcile);
                assert_int_equal(reconcile.n_actions, 0);
        }
}

/* A layout of one cell with one CPU: "1:5:2048" is host cell, host CPU (-1: none), page size. */
static void make_layout(Layout *ret, unsigned host_cell, int cpu, uint64_t page_kib)
{
        LayoutCell *cell;

        assert_int_equal(layout_reserve(ret, 1, 1), 0);
        cell = layout_add_cell(ret);
        cell->host_cell = host_cell;
        cell->page_kib = page_kib;
        cell->memory_mb = 4;
        if (cpu >= 0)
                assert_int_equal(cpu_set_add(&layout_add_cpu(ret)->cpus, (unsigned)cpu), 0);
}

/* Guests claim when they start: shut off, they hold only what somebody asked for. */
static void test_started_only(void **state)
{
        static const struct {
                const char *type;
                bool running;
                const char *first, *later; /* actions; "" for none */
        } cases[] = {
                { NULL, true, "adopt g", "" },      { NULL, false, "", "" },
                { CLAIM_TYPE_GUEST, true, "", "" }, { CLAIM_TYPE_GUEST, false, "", "release 1" },
                { "INSTANCE", false, "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
                _cleanup_(claim_list_done) ClaimList list = { 0 };
                FactsFixture facts;

                make_facts(&facts);
                facts_guest(&facts, 'g', "")->running = cases[i].running;
                if (cases[i].type) {
                        const Row row = { .consumer = 'g', .state = CONFIRMED, .vcpus = 2 };

                        add_claim(&list, &row);
                        free(list.claims[0]->consumer_type);
                        list.claims[0]->consumer_type = strdup(cases[i].type);
                }
                for (int later = 0; later < 2; later++) {
                        _cleanup_(reconcile_done) Reconcile result = { 0 };
                        const ReconcileInput input = { .claims = &list,
                                                       .facts = &facts.facts,
                                                       .node = "host",
                                                       .boot_id = "boot",
                                                       .expiry_usec = EXPIRY,
                                                       .started_only = true };
                        char text[256];

                        if (later && !cases[i].type)
                                break;
                        facts.facts.taken_usec += later ? EXPIRY : 0;
                        assert_int_equal(reconcile_make(&input, &memory, &result), 0);
                        format_actions(&result, text);
                        assert_string_equal(text, later ? cases[i].later : cases[i].first);
                }
        }
}

static void test_layouts(void **state)
{
        static const struct {
                int claim_cell, claim_cpu, guest_cell, guest_cpu; /* cell -1: no layout */
                uint64_t guest_page_kib;
                const char *claim_pci;
                const char *actions, *problem;
        } cases[] = {
                { 1, 5, 1, 5, 0, NULL, "", NULL },
                { 1, 5, 1, 6, 0, NULL, "",
                  "CPU 0 of guest g runs on host CPUs 6, its claim has 5" },
                { 1, 5, 1, -1, 0, NULL, "", "CPU 0 of guest g runs on host CPUs any, its claim" },
                { 1, -1, 0, -1, 0, NULL, "",
                  "cell 0 of guest g is in cell 0 of the host, its claim" },
                { 1, -1, -1, -1, 0, NULL, "",
                  "does not say where its cell 0 is, its claim has it in" },
                { 1, -1, 1, -1, 2048, NULL, "", "has pages of 2048 KiB (0: small), its claim 0" },
                /* learned, not complained about */
                { -1, -1, 1, 5, 0, NULL, "check 1", NULL },
                { -1, -1, -1, -1, 0, "0000:05:00.1", "",
                  "guest g does not have PCI device 0000:05:00.1, which its claim names" },
                { -1, -1, -1, -1, 1, NULL, "",
                  "guest g has PCI device 0000:05:00.2, which its claim does not name" },
        };
        static const char addresses[1][HOST_ADDRESS_SIZE] = { "0000:05:00.2" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(claim_list_done) ClaimList claims = { 0 };
                _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
                _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
                HostPci pci = { .name = "p", .address = addresses[0], .provider = "" };
                const ClaimDevice device = { .suffix = (char *)"",
                                             .name = (char *)"p1",
                                             .address = (char *)cases[i].claim_pci,
                                             .mdev_type = (char *)"" };
                FactsFixture facts;
                HostDomain *guest;
                char actions[256];

                make_facts(&facts);
                facts.facts.pci = &pci;
                facts.facts.n_pci = 1;
                guest = facts_guest(&facts, 'g', "");
                add_claim(&claims, &(Row){ 'g', CONFIRMED, .vcpus = 2 });
                if (cases[i].claim_cell >= 0)
                        make_layout(&claims.claims[0]->layout, (unsigned)cases[i].claim_cell,
                                    cases[i].claim_cpu, 0);
                if (cases[i].guest_cell >= 0)
                        make_layout(&guest->layout, (unsigned)cases[i].guest_cell,
                                    cases[i].guest_cpu, cases[i].guest_page_kib);
                else if (cases[i].guest_page_kib)
                        guest->pci = addresses, guest->n_pci = 1;
                if (cases[i].claim_pci)
                        assert_int_equal(claim_add_device(claims.claims[0], &device), 0);
                run(&claims, &facts.facts, &memory, EXPIRY, &reconcile);
                layout_done(&guest->layout);
                format_actions(&reconcile, actions);
                assert_string_equal(actions, cases[i].actions);
                assert_int_equal(reconcile.problems.n_items, cases[i].problem ? 1 : 0);
                if (cases[i].problem && !strstr(reconcile.problems.items[0].text, cases[i].problem))
                        fail_msg("case %zu: %s", i, reconcile.problems.items[0].text);
        }
}

/* More is held than there is: told, unless somebody took all of it out of use. */
static void test_more_than_there_is(void **state)
{
        static const struct {
                uint64_t total, reserved, used;
                const char *problem; /* NULL: none */
        } cases[] = {
                { 4, 0, 4, NULL },
                { 4, 0, 5, "host: claims and guests hold 5 VGPU of 4" },
                { 4, 3, 2, "host: claims and guests hold 2 VGPU of 1" },
                { 4, 4, 2, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
                _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
                _cleanup_(host_view_freep) HostView *view = NULL;
                const ClaimList claims = { 0 };
                Inventory inventory = INVENTORY_DEFAULT(cases[i].total);
                const Uuid root = make_guest('h');
                ProviderTree *tree = NULL;
                Provider *provider;
                FactsFixture facts;

                inventory.reserved = cases[i].reserved;
                assert_int_equal(provider_tree_new(&tree), 0);
                assert_int_equal(provider_tree_add(tree, &root, "host", NULL, &provider, NULL), 0);
                assert_int_equal(provider_set_inventory(provider, "VGPU", &inventory), 0);
                assert_int_equal(host_view_new(&view, tree), 0);
                assert_int_equal(resources_set(&view->providers[0].used, "VGPU", cases[i].used), 0);
                make_facts(&facts);
                assert_int_equal(reconcile_make(&(ReconcileInput){ .claims = &claims,
                                                                   .facts = &facts.facts,
                                                                   .view = view,
                                                                   .node = "host",
                                                                   .boot_id = "boot" },
                                                &memory, &reconcile),
                                 0);
                assert_int_equal(reconcile.problems.n_items, cases[i].problem ? 1 : 0);
                if (cases[i].problem)
                        assert_string_equal(reconcile.problems.items[0].text, cases[i].problem);
        }
}

/* Many guests, each with its claim, a VF and an mdev of its own. */
static uint64_t measure(size_t n)
{
        _cleanup_free_ HostDomain *domains = calloc(n, sizeof(HostDomain));
        _cleanup_free_ HostMdev *mdevs = calloc(n, sizeof(HostMdev));
        _cleanup_free_ HostPci *pci = calloc(n, sizeof(HostPci));
        _cleanup_free_ char(*texts)[HOST_ADDRESS_SIZE] = calloc(n, sizeof(*texts));
        _cleanup_(reconcile_memory_done) ReconcileMemory memory = { 0 };
        _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        HostFacts facts = { .domains = domains,
                            .n_domains = n,
                            .mdevs = mdevs,
                            .n_mdevs = n,
                            .pci = pci,
                            .n_pci = n };
        const Uuid base = make_guest('h');
        uint64_t begun, ended;

        for (size_t i = 0; i < n; i++) {
                const Row row = { .consumer = 'h', .state = CONFIRMED, .vcpus = 2 };
                ClaimDevice device = { .provider = base,
                                       .suffix = (char *)"",
                                       .address = texts[i],
                                       .mdev_type = (char *)"" };

                snprintf(texts[i], sizeof(texts[i]), "0000:%02x:%02x.%x", (unsigned)(i / 256) & 255,
                         (unsigned)(i / 8) & 31, (unsigned)i & 7);
                device.name = texts[i];
                domains[i] = (HostDomain){ .uuid = uuid_make_child(&base, texts[i]),
                                           .name = texts[i],
                                           .running = true,
                                           .vcpus = 2,
                                           .pci = &texts[i],
                                           .n_pci = 1,
                                           .mdevs = &mdevs[i].uuid,
                                           .n_mdevs = 1 };
                mdevs[i] = (HostMdev){ .uuid = uuid_make_child(&domains[i].uuid, "mdev") };
                pci[i] = (HostPci){ .address = texts[i] };
                add_claim(&list, &row);
                list.claims[i]->consumer = domains[i].uuid;
                assert_int_equal(claim_add_device(list.claims[i], &device), 0);
                device.mdev = mdevs[i].uuid;
                assert_int_equal(claim_add_device(list.claims[i], &device), 0);
        }
        begun = clock_usec(CLOCK_THREAD_CPUTIME_ID);
        run(&list, &facts, &memory, EXPIRY, &reconcile);
        ended = clock_usec(CLOCK_THREAD_CPUTIME_ID);
        assert_int_equal(reconcile.n_actions + reconcile.problems.n_items, 0);
        return ended - begun;
}

/* Ten times as many claims and guests cost ten times as much, not a hundred times. */
static void test_cost_is_linear(void **state)
{
        uint64_t few = UINT64_MAX, many = UINT64_MAX;

        for (int i = 0; i < 3; i++) {
                few = MIN(few, measure(1000));
                many = MIN(many, measure(10000));
        }
        print_message("1000 claims: %.2f ms, 10000: %.2f ms\n", (double)few / 1e3,
                      (double)many / 1e3);
        assert_true(many < few * 30);
}

TEST_MAIN(test_table, test_unread_guest, test_started_only, test_away, test_layouts, test_orphan,
          test_unconfirmed_by_placement, test_confirmed_by_placement, test_adopted_by_placement,
          test_asked_seldomer, test_recorded, test_no_orphans, test_moved, test_more_than_there_is,
          test_cost_is_linear)
