/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Every change of a claim is written with its event, and no other event is written. */

#include "base/text.h"
#include "claims/claims.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

static const EventAuthor root = { .uid = 0, .text = "root (computectl, pid 7)" };

static int64_t claim(Fixture *fixture, const char *name)
{
        Claim *claim = NULL;
        int64_t id;

        assert_int_equal(fixture_claim(fixture, name, "VCPU=1", &claim), CLAIM_DONE);
        id = claim->id;
        claim_free(claim);
        return id;
}

/* Returns all events, the oldest first, as lines of "kind claim author reason". */
static char *read_events(Fixture *fixture)
{
        char *text = strdup("");
        int64_t before = INT64_MAX;
        size_t n;

        do {
                EventList list = { 0 };

                assert_int_equal(claims_list_events(fixture->claims, before, &list, NULL), 0);
                n = list.n_events;
                for (size_t i = 0; i < n; i++) {
                        const Event *event = &list.events[i];
                        char *longer;

                        assert_true(event->id < before);
                        before = event->id;
                        longer = text_format("%s %lld %lld [%s] %s\n%s", event->kind,
                                             (long long)event->claim, (long long)event->uid,
                                             event->author, event->reason, text);
                        free(text);
                        text = longer;
                }
                event_list_done(&list);
        } while (n > 0);
        return text;
}

static void assert_events(Fixture *fixture, const char *expected)
{
        _cleanup_free_ char *text = read_events(fixture);

        assert_string_equal(text, expected);
}

static void test_claims_come_and_go(void **state)
{
        Fixture *fixture = *state;
        uint64_t n;

        fixture_create(fixture, "host VCPU=8");
        assert_events(fixture, "");
        claim(fixture, "a");
        claims_set_author(fixture->claims, &root);
        claim(fixture, "b");
        assert_int_equal(claims_release(fixture->claims, 1, "its host burns", NULL), 0);
        claims_set_author(fixture->claims, NULL);
        assert_int_equal(claims_release(fixture->claims, 1, "twice", NULL), CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_extend(fixture->claims, 2, 5, NULL), 0);
        assert_int_equal(claims_expire(fixture->claims, 10, &n, NULL), 0);
        /* a claim has its author in the request, and these requests have none */
        assert_events(fixture, "claimed 1 -1 [] \n"
                               "claimed 2 -1 [] \n"
                               "released 1 0 [root (computectl, pid 7)] its host burns\n"
                               "expired 2 -1 [] expired\n");
        assert_store_sane(fixture->path);
}

/* A request that yields an existing claim, and one that does not fit, write no event. */
static void test_nothing_happens(void **state)
{
        Fixture *fixture = *state;

        fixture_create(fixture, "host VCPU=1");
        claim(fixture, "a");
        claim(fixture, "a");
        assert_int_equal(fixture_claim(fixture, "b", "VCPU=1", NULL), CLAIM_E_NO_CAPACITY);
        assert_int_equal(claims_confirm(fixture->claims, 1, NULL), 0);
        assert_events(fixture, "claimed 1 -1 [] \n");
}

/* A pending claim has no listed event: Placement is being asked, and can refuse. */
static void test_pending(void **state)
{
        static const ClaimPlacing pending = { .write_state = CLAIM_WRITE_UNANSWERED };
        _cleanup_(claim_freep) Claim *ended = NULL;
        Fixture *fixture = *state;
        char reason[CLAIM_TEXT_MAX + 5];

        memset(reason, 'x', sizeof(reason) - 1);
        reason[sizeof(reason) - 1] = '\0';
        fixture_create(fixture, "host VCPU=8");
        for (unsigned i = 0; i < 3; i++) {
                _cleanup_(claim_freep) Claim *made = NULL;
                ClaimRequest request = { .consumer = uuid_make_random(), .by = &root };

                make_request(&request.resources, "VCPU=1");
                assert_int_equal(
                        claims_claim(fixture->claims, &request, &pending, &made, NULL, NULL),
                        CLAIM_DONE);
                resource_request_done(&request.resources);
        }
        assert_events(fixture, "");
        assert_int_equal(claims_withdraw(fixture->claims, 1, reason, NULL), 0);
        assert_int_equal(claims_get(fixture->claims, 1, &ended, NULL), 0);
        assert_int_equal(strlen(ended->end_reason), CLAIM_TEXT_MAX);
        assert_int_equal(claims_release(fixture->claims, 2, "not finished", NULL), 0);
        assert_int_equal(claims_set_write_state(fixture->claims, 3, CLAIM_WRITE_UNANSWERED,
                                                CLAIM_WRITE_WRITTEN, NULL, NULL),
                         0);
        assert_events(fixture, "claimed 3 0 [root (computectl, pid 7)] \n");
        assert_sql(fixture->path, "SELECT count(*) FROM events", "1");
}

static void test_moves(void **state)
{
        Fixture *fixture = *state;
        const ClaimReported reported = { .generation = 1 };
        Uuid from, to = uuid_make_random();
        char expected[200];
        ClaimMove move;
        Claim *made;

        fixture_create(fixture, "host VCPU=8");
        assert_int_equal(fixture_claim(fixture, "a", "VCPU=1", &made), CLAIM_DONE);
        from = made->consumer;
        claim_free(made);
        assert_int_equal(claims_begin_move(fixture->claims, &from, &to, "MIGRATION", &move, NULL),
                         0);
        assert_int_equal(claims_end_move(fixture->claims, &move, NULL, true, NULL), 0);
        assert_events(fixture, "claimed 1 -1 [] \n");
        claim_move_done(&move);
        assert_int_equal(claims_begin_move(fixture->claims, &from, &to, "MIGRATION", &move, NULL),
                         0);
        move.by = &root;
        assert_int_equal(claims_end_move(fixture->claims, &move, &reported, true, NULL), 0);
        claim_move_done(&move);
        snprintf(expected, sizeof(expected),
                 "claimed 1 -1 [] \n"
                 "moved 1 0 [root (computectl, pid 7)] from consumer %s\n",
                 from.text);
        assert_events(fixture, expected);
        snprintf(expected, sizeof(expected), "%s %s", to.text, from.text);
        assert_sql(fixture->path, "SELECT consumer || ' ' || guest FROM events WHERE id = 2",
                   expected);
}

/* The event of a claim has its allocations at that time, each provider and class once. */
static void test_parts(void **state)
{
        Fixture *fixture = *state;

        fixture_create(fixture, "host MEMORY_MB=4096; n0<host VCPU=4");
        assert_int_equal(fixture_claim(fixture, "a", "MEMORY_MB=64 _A:VCPU=1 _B:VCPU=2", NULL),
                         CLAIM_DONE);
        assert_sql(fixture->path, "SELECT allocations || devices FROM events",
                   "[{\"name\":\"host\",\"class\":\"MEMORY_MB\",\"amount\":64},"
                   "{\"name\":\"n0\",\"class\":\"VCPU\",\"amount\":3}][]");
}

static void test_notes(void **state)
{
        Fixture *fixture = *state;
        const Uuid consumer = uuid_make_random();
        EventNote note = { .kind = EVENT_CORDONED, .by = &root, .device = "host_0000:41:00.0" };
        char reason[CLAIM_TEXT_MAX + 5];

        memset(reason, 'x', sizeof(reason) - 1);
        reason[sizeof(reason) - 1] = '\0';
        fixture_open(fixture);
        assert_int_equal(claims_note(fixture->claims, &note, NULL), 0);
        note = (EventNote){ EVENT_HEALED, NULL, 5, &consumer, NULL, reason };
        assert_int_equal(claims_note(fixture->claims, &note, NULL), 0);
        assert_sql(fixture->path, "SELECT devices FROM events WHERE id = 1",
                   "[{\"device\":\"host_0000:41:00.0\"}]");
        assert_sql(
                fixture->path,
                "SELECT kind || claim_id || length(reason) || (consumer <> '') || devices FROM events WHERE id = 2",
                "healed52551[]");
}

static void insert_events(Fixture *fixture, int n)
{
        char sql[400];

        snprintf(
                sql, sizeof(sql),
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d)"
                " INSERT INTO events (usec, kind, uid, author, claim_id, consumer, guest,"
                "  allocations, devices, reason) SELECT 32503680000000000, 'cordoned', 0, '', 0,  '', '', '[]', '[]', '' FROM n",
                n);
        free(run_sql(fixture->path, sql));
}

/* Events are bounded by number and by age, at each 64th event. */
static void test_bounds(void **state)
{
        const EventNote note = { .kind = EVENT_CORDONED };
        Fixture *fixture = *state;

        fixture_open(fixture);
        insert_events(fixture, 2110);
        assert_int_equal(claims_note(fixture->claims, &note, NULL), 0);
        assert_sql(fixture->path, "SELECT count(*) FROM events", "2111");
        assert_int_equal(claims_note(fixture->claims, &note, NULL), 0);
        assert_sql(fixture->path, "SELECT count(*) || ' ' || min(id) FROM events", "2000 113");
        insert_events(fixture, 63);
        free(run_sql(fixture->path, "UPDATE events SET usec = 1 WHERE id < 2000"));
        assert_int_equal(claims_note(fixture->claims, &note, NULL), 0);
        assert_sql(fixture->path, "SELECT count(*) || ' ' || min(id) FROM events", "177 2000");
}

/* A change and its event are written together, or not at all. */
static void test_one_transaction(void **state)
{
        Fixture *fixture = *state;

        fixture_create(fixture, "host VCPU=8");
        claim(fixture, "a");
        free(run_sql(
                fixture->path,
                "CREATE TRIGGER no BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no'); END"));
        assert_true(fixture_claim(fixture, "b", "VCPU=1", NULL) < 0);
        assert_true(claims_release(fixture->claims, 1, "", NULL) < 0);
        assert_sql(fixture->path, "SELECT group_concat(id) FROM claims", "1");
        assert_sql(fixture->path, "SELECT count(*) FROM ended_claims", "0");
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_claims_come_and_go,
                test_nothing_happens, test_pending, test_moves, test_parts, test_notes, test_bounds,
                test_one_transaction)
