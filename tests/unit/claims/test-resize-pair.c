/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The two claims of a guest that is resized on its own host, and the claims of a new database. */

#include "tests/fixtures/reconcile.h"

#define CAN_ASK RECONCILE_CAN_READ
#define AWAY    RECONCILE_NO_READS
#define ALONE   RECONCILE_NO_PLACEMENT

/* Claim 1 has the old flavor, claim 2 the new one; the guest has 2 VCPUs and no device. */
#define OLD_NEW  "g confirmed vcpus=1;g confirmed target vcpus=2"
#define NEW_OLD  "g confirmed vcpus=2;g confirmed target vcpus=1"
#define LATER    (2 * EXPIRY)
#define TWO_OF_G "guest g has claims 1 and 2"

typedef struct Row {
        const char *name, *claims;
        ReconcileAccess access;
        bool complete;
        uint64_t placed;    /* VCPUs of the guest's consumer; 0: none */
        uint64_t migration; /* VCPUs of another consumer without a guest; 0: none */
        const char *project, *type;
        const char *actions;
        bool wants_all, later;
        const char *problem;
} Row;

typedef struct Placed {
        Consumer *consumers[2];
        ConsumerRead answers[2];
        size_t n;
} Placed;

static void add_consumer(Placed *placed, char letter, uint64_t vcpus)
{
        Consumer *consumer = look_make_consumer(letter, vcpus);

        placed->consumers[placed->n] = consumer;
        placed->answers[placed->n++] =
                (ConsumerRead){ .consumer = consumer->uuid, .holding = consumer, .here = true };
}

static void placed_done(Placed *placed)
{
        for (size_t i = 0; i < placed->n; i++)
                consumer_free(placed->consumers[i]);
}

static void check(const Row *row)
{
        _cleanup_(host_view_freep) HostView *view = look_make_view("host");
        _cleanup_(look_done) Look look;
        _cleanup_(placed_done) Placed placed = { .n = 0 };

        if (row->placed > 0)
                add_consumer(&placed, 'g', row->placed);
        if (row->migration > 0)
                add_consumer(&placed, 'm', row->migration);
        if (row->project)
                look_set_text(&placed.consumers[1]->project_id, row->project);
        if (row->type)
                look_set_text(&placed.consumers[1]->type, row->type);
        look_begin(&look);
        look.input.view = view;
        look.input.access = row->access;
        look.input.complete = row->complete;
        look.input.answers = placed.answers;
        look.input.n_answers = placed.n;
        facts_guest(&look.facts, 'g', "")->memory_mb = 512;
        look_add_claims(&look, row->claims);
        look_run(&look);
        if (row->later) {
                look.facts.facts.taken_usec += LATER;
                look_run(&look);
        }
        look_expect(&look, row->name, row->actions, row->problem);
        assert_int_equal(look.result.wants_all, row->wants_all);
}

static void test_pairs(void **state)
{
        static const Row rows[] = {
                { "ask first", OLD_NEW, CAN_ASK, .actions = "", .wants_all = true },
                { "Placement is away", OLD_NEW, AWAY, .actions = "" },
                { "confirmed", OLD_NEW, AWAY, true, 2, .actions = "release 1" },
                { "confirmed, and the target was not",
                  "g confirmed vcpus=1;g claimed target vcpus=2", AWAY, true, 2,
                  .actions = "release 1, confirm 2" },
                { "reverted", NEW_OLD, AWAY, true, 2, .actions = "release 2" },
                { "reverted, and the target is promised",
                  "g confirmed vcpus=2;g claimed expires=1001 target vcpus=1", AWAY, true, 2,
                  .actions = "" },
                { "reverted, and the target expired",
                  "g confirmed vcpus=2;g claimed expires=999 target vcpus=1", AWAY, true, 2,
                  .actions = "release 2, confirm 2" },
                { "its migration holds the old flavor", OLD_NEW, AWAY, true, 2, 1, .actions = "" },
                { "the migration is typed", OLD_NEW, AWAY, true, 2, 1, .type = "MIGRATION",
                  .actions = "" },
                { "an instance is no migration", OLD_NEW, AWAY, true, 2, 1, .type = "INSTANCE",
                  .actions = "release 1" },
                { "a migration of another project", OLD_NEW, AWAY, true, 2, 1, "q",
                  .actions = "release 1" },
                { "a consumer of another size", OLD_NEW, AWAY, true, 2, 3, .actions = "release 1" },
                { "the domain is the new one, Placement is not", OLD_NEW, AWAY, true, 1,
                  .actions = "" },
                { "Placement has neither", OLD_NEW, AWAY, true, 5, .actions = "" },
                { "Placement has nothing", OLD_NEW, AWAY, true, 0, .actions = "" },
                { "the domain has neither", "g confirmed vcpus=3;g confirmed target vcpus=4", AWAY,
                  true, 4, .actions = "" },
                { "a write is still to be sent",
                  "g confirmed vcpus=1;g confirmed target write_state=owed vcpus=2", AWAY, true, 2,
                  .actions = "" },
                { "the agent wrote the first",
                  "g confirmed write_state=written vcpus=1;"
                  "g confirmed target vcpus=2",
                  AWAY, true, 2, .actions = "release 1" },
                { "the domain has another device",
                  "g confirmed vcpus=1;g confirmed target vcpus=2 mdev=1", AWAY, true, 2,
                  .actions = "" },
                { "both are larger than the domain, confirmed",
                  "g confirmed read vcpus=3;g confirmed target read vcpus=4", AWAY, true, 4,
                  .actions = "release 1" },
                { "both are larger than the domain, reverted",
                  "g confirmed read vcpus=3;g confirmed target read vcpus=4", AWAY, true, 3,
                  .actions = "release 2" },
                { "both are larger than the domain, with a migration",
                  "g confirmed read vcpus=3;g confirmed target read vcpus=4", AWAY, true, 4, 3,
                  .actions = "" },
                { "both are larger than the domain, and Placement has neither",
                  "g confirmed read vcpus=3;g confirmed target read vcpus=4", AWAY, true, 5,
                  .actions = "" },
                { "of one size, later", "g confirmed vcpus=2;g confirmed target vcpus=2", AWAY,
                  true, 2, .actions = "", .later = true, .problem = TWO_OF_G },
                { "of one size, and a migration is there",
                  "g confirmed vcpus=2;g confirmed target vcpus=2", AWAY, true, 2, 2, .actions = "",
                  .later = true },
                { "alone", OLD_NEW, ALONE, .actions = "", .later = true, .problem = TWO_OF_G },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check(&rows[i]);
}

/* Only a known migration is asked about, at growing intervals. */
static void test_known_migration_is_read_again(void **state)
{
        _cleanup_(host_view_freep) HostView *view = look_make_view("host");
        _cleanup_(look_done) Look look;
        _cleanup_(placed_done) Placed placed = { .n = 0 };

        add_consumer(&placed, 'g', 2);
        add_consumer(&placed, 'm', 1);
        look_begin(&look);
        look.input.view = view;
        facts_guest(&look.facts, 'g', "");
        look_add_claims(&look, OLD_NEW);
        look.input.access = AWAY;
        look.input.complete = true;
        look.input.answers = placed.answers;
        look.input.n_answers = 2;
        look_run(&look);
        look_expect(&look, "found", "", NULL);
        look.input.complete = false;
        look.input.n_answers = 0;
        look.input.access = CAN_ASK;
        look.facts.facts.taken_usec += LATER;
        look_run(&look);
        assert_string_equal(look.actions, "ask 1");
        assert_true(uuid_equal(&look.result.actions[0].consumer, &placed.answers[1].consumer));
        assert_false(look.result.wants_all);
        /* The migration is gone: all consumers are read again. */
        look.input.access = AWAY;
        look.input.answers = &(ConsumerRead){ .consumer = make_guest('m') };
        look.input.n_answers = 1;
        look_run(&look);
        look_expect(&look, "gone", "", NULL);
        look.input.access = CAN_ASK;
        look.input.n_answers = 0;
        look_run(&look);
        assert_true(look.result.wants_all);
}

/* The first complete read for a new database: consumers without claim and guest. */
static void test_unread(void **state)
{
        static const struct {
                const char *name, *claims;
                ReconcileAccess access;
                bool complete, guest;
                const char *actions;
                bool wants_all;
                const char *problem;
        } rows[] = {
                { "ask first", "", CAN_ASK, false, false, "", true, NULL },
                { "Placement is away", "", AWAY, false, false, "", false, RECONCILE_UNREAD },
                { "there is no Placement", "", ALONE, false, false, "", false, NULL },
                { "a consumer alone", "", AWAY, true, false, "place", false, NULL },
                { "it has a guest", "", AWAY, true, true, "adopt", false, NULL },
                { "it has a claim", "m claimed vcpus=1", AWAY, true, false, "", false, NULL },
                { "its claim is of a guest", "x confirmed guest=m vcpus=1", AWAY, true, false, "",
                  false, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(look_done) Look look;
                _cleanup_(placed_done) Placed placed = { .n = 0 };

                add_consumer(&placed, 'm', 1);
                look_begin(&look);
                look.input.unread = true;
                look.input.access = rows[i].access;
                look.input.complete = rows[i].complete;
                look.input.answers = placed.answers;
                look.input.n_answers = rows[i].complete ? 1 : 0;
                if (rows[i].guest)
                        facts_guest(&look.facts, 'm', "");
                look_add_claims(&look, rows[i].claims);
                look_run(&look);
                if (strncmp(look.actions, rows[i].actions, strlen(rows[i].actions)) != 0 ||
                    (!rows[i].actions[0] && look.actions[0]))
                        fail_msg("%s: %s", rows[i].name, look.actions);
                assert_int_equal(look.result.wants_all, rows[i].wants_all);
                assert_int_equal(look.result.problems.n_items, rows[i].problem ? 1 : 0);
        }
}

/* A new database, and guests that claim when they start. Placement shows whether one that is off
 * was placed by another writer, which then cannot have its resources given out. */
static void test_unread_guests_that_are_off(void **state)
{
        static const struct {
                const char *name, *project, *type;
                bool here, complete, unread, away;
                const char *actions;
        } rows[] = {
                { "placed", "p", "unknown", true, true, true, false, "adopt g" },
                { "placed, and another host had it", "p", "unknown", true, true, true, true,
                  "adopt g" },
                { "on another host", "p", "unknown", false, true, true, false, "" },
                { "not all consumers were read", "p", "unknown", true, false, true, false, "" },
                { "no new database", "p", "unknown", true, true, false, false, "" },
                { "Placement has no types", "p", NULL, true, true, true, false, "adopt g" },
                { "the agent wrote it for an earlier start", "p", CLAIM_TYPE_GUEST, true, true,
                  true, false, "" },
                { "it did, to a Placement without types", CONSUMER_UNKNOWN_ID, NULL, true, true,
                  true, false, "" },
                { "it did, before Placement had types", CONSUMER_UNKNOWN_ID, "unknown", true, true,
                  true, false, "" },
                { "a typed consumer without a project", CONSUMER_UNKNOWN_ID, "INSTANCE", true, true,
                  true, false, "adopt g" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(look_done) Look look;
                _cleanup_(placed_done) Placed placed = { .n = 0 };
                const Uuid away = make_guest('g');

                add_consumer(&placed, 'g', 2);
                look_set_text(&placed.consumers[0]->project_id, rows[i].project);
                free(placed.consumers[0]->type);
                placed.consumers[0]->type = rows[i].type ? strdup(rows[i].type) : NULL;
                placed.answers[0].here = rows[i].here;
                look_begin(&look);
                look.input.started_only = true;
                look.input.unread = rows[i].unread;
                look.input.complete = rows[i].complete;
                look.input.access = AWAY;
                look.input.answers = placed.answers;
                look.input.n_answers = placed.n;
                look.input.away = &away;
                look.input.n_away = rows[i].away;
                facts_guest(&look.facts, 'g', "")->running = false;
                look_run(&look);
                look_expect(&look, rows[i].name, rows[i].actions,
                            rows[i].unread && !rows[i].complete ? RECONCILE_UNREAD : NULL);
        }
}

/* A new database, a guest whose allocations are elsewhere, and a consumer of its project and size:
 * only the consumer of a migration is counted by the claim of the guest. */
static void test_unread_migration(void **state)
{
        static const struct {
                const char *type, *actions;
                bool off; /* the guest is off, and claims when it starts */
        } rows[] = {
                { "unknown", "adopt g", .off = false },
                { "MIGRATION", "adopt g", .off = false },
                { "INSTANCE", "adopt g, place ", .off = false },
                { "MIGRATION", "", .off = true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(look_done) Look look;
                _cleanup_(placed_done) Placed placed = { .n = 0 };
                const Uuid host = make_uuid("host");

                add_consumer(&placed, 'g', 2);
                add_consumer(&placed, 'm', 2);
                placed.answers[0].here = false;
                look_set_text(&placed.consumers[1]->type, rows[i].type);
                assert_int_equal(consumer_add(placed.consumers[1], &host, "MEMORY_MB", 512), 0);
                look_begin(&look);
                look.input.unread = true;
                look.input.access = AWAY;
                look.input.complete = true;
                look.input.answers = placed.answers;
                look.input.n_answers = placed.n;
                look.input.started_only = rows[i].off;
                facts_guest(&look.facts, 'g', "")->running = !rows[i].off;
                look_run(&look);
                if (strncmp(look.actions, rows[i].actions, strlen(rows[i].actions)) != 0 ||
                    look.result.n_actions != (!rows[i].actions[0]            ? 0
                                              : strchr(rows[i].actions, ',') ? 2
                                                                             : 1))
                        fail_msg("%s: %s", rows[i].type, look.actions);
        }
}

TEST_MAIN(test_pairs, test_known_migration_is_read_again, test_unread,
          test_unread_guests_that_are_off, test_unread_migration)
