/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/http/lanes.h"

#include "tests/unit/test.h"

#define MAX_LANES 8
#define MSEC      USEC_PER_MSEC

/* Plays a story, with as many requests under way as permitted. A digit is a window in which the
 * server gave n times the answers per second of one request at a time. "r" is one more answer. "R"
 * is a failure. "c" is a crowd of two served connections. "." is a pause of two seconds, and " "
 * one of a minute. */
static HttpLanes play(const char *story, bool writes, size_t max)
{
        uint64_t now = 100 * USEC_PER_SEC;
        HttpLanes lanes = { .max = max, .reads.limit = 1, .writes.limit = 1 };
        HttpLane *lane = writes ? &lanes.writes : &lanes.reads;

        for (const char *c = story; *c; c++) {
                size_t speed = *c >= '1' && *c <= '9' ? (size_t)(*c - '0') : 1;

                if (*c == ' ' || *c == '.')
                        now += *c == ' ' ? 61 * USEC_PER_SEC : 2 * USEC_PER_SEC;
                else if (*c == 'c')
                        http_lanes_note_crowd(&lanes, 2, now);
                else
                        do
                                http_lanes_note_answer(&lanes, writes, *c == 'R',
                                                       lane->limit * 10 * MSEC / speed, lane->limit,
                                                       now += 10 * MSEC);
                        while (*c != 'r' && lane->n_answers > 0);
        }
        return lanes;
}

static void test_sequences_of_answers(void **state)
{
        static const struct {
                const char *about, *story;
                size_t reads, writes;
        } cases[] = {
                { "nothing is known", "", 1, 1 },
                { "few answers", "rrrrrrrr", 1, 1 },
                { "a window at one, then two are tried", "1", 2, 2 },
                { "two are twice as fast, then four are tried", "12", 4, 4 },
                { "two are not faster", "11", 1, 1 },
                { "nothing is tried for a minute", "1111111", 1, 1 },
                { "then it is tried again", "11 1", 2, 2 },
                { "and refused again", "11 11", 1, 1 },
                { "four are not faster", "122", 2, 2 },
                { "eight are", "1248", 8, 8 },
                { "half of the share is enough", "146", 8, 8 },
                { "less is not", "145", 2, 2 },
                { "the maximum is kept", "1248 ", 8, 8 },
                { "and tried again from half of it", "1248 r", 4, 4 },
                { "with the same result", "1248 48", 8, 8 },
                { "a server that got slower", "1248 44", 4, 4 },
                { "and slower", "1248 44 22", 2, 2 },
                { "a pause ends what was tried", "1.r", 1, 1 },
                { "but no result", "122.r", 2, 2 },
                { "a failure", "12R", 4, 1 },
                { "is remembered for a minute", "12R48", 8, 1 },
                { "not for ever", "12R 1", 4, 2 },
                { "a crowd", "1248c", 2, 2 },
                { "is remembered for a minute", "1248c1248", 2, 2 },
                { "a crowd never raises a limit", "c", 1, 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                size_t reads = play(cases[i].story, false, MAX_LANES).reads.limit;
                size_t writes = play(cases[i].story, true, MAX_LANES).writes.limit;

                if (reads != cases[i].reads || writes != cases[i].writes)
                        fail_msg("%s: %zu, %zu", cases[i].about, reads, writes);
        }
}

static void test_may_start(void **state)
{
        static const struct {
                size_t n_active;
                bool read, write;
        } cases[] = { { 0, true, true },  { 1, true, true },   { 2, true, false },
                      { 3, true, false }, { 4, false, false }, { 9, false, false } };
        HttpLanes lanes = { .max = MAX_LANES, .reads.limit = 4, .writes.limit = 2 };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(http_lanes_may_start(&lanes, cases[i].n_active, false),
                                 cases[i].read);
                assert_int_equal(http_lanes_may_start(&lanes, cases[i].n_active, true),
                                 cases[i].write);
        }
}

/* Answers that come while the limit is not used up tell nothing about it. */
static void test_no_demand_no_growth(void **state)
{
        HttpLanes lanes = play("12", false, MAX_LANES);

        for (int i = 0; i < 100; i++)
                http_lanes_note_answer(&lanes, false, false, MSEC, 3, USEC_PER_SEC);
        assert_int_equal(lanes.reads.limit, 4);
}

/* A simulated server: workers that take the requests in their order, and a way to it. */
typedef struct Server {
        uint64_t service_usec, way_usec; /* an answer takes half to three halves of service_usec */
        size_t n_workers;
        unsigned contention; /* percent of service_usec more for each further request under way */
} Server;

static uint64_t draw(uint64_t *seed, uint64_t below)
{
        *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (*seed >> 33) % below;
}

/* Sends a request at this time. Returns the time of its answer. */
static uint64_t serve(const Server *server, uint64_t *free_usec, size_t n_active, uint64_t now,
                      uint64_t *seed)
{
        uint64_t service = server->service_usec / 2 + draw(seed, server->service_usec);
        size_t worker = 0;

        for (size_t i = 1; i < server->n_workers; i++)
                if (free_usec[i] < free_usec[worker])
                        worker = i;
        service += service * server->contention * (n_active - 1) / 100;
        free_usec[worker] = MAX(free_usec[worker], now + server->way_usec / 2) + service;
        return free_usec[worker] + server->way_usec / 2;
}

/* Sends requests for ten minutes, always as many as permitted. Returns the number of answers in a
 * thousand that came under this limit, without those of the first second. */
static uint64_t simulate(const Server *server, size_t limit, uint64_t seed, size_t *ret_n_changes)
{
        uint64_t free_usec[MAX_LANES] = { 0 }, began[MAX_LANES] = { 0 }, ends[MAX_LANES] = { 0 };
        uint64_t now = 0, n_answers = 1, n_right = 0;
        size_t n_active = 0, last_limit = 1;
        HttpLanes lanes = { .max = MAX_LANES, .reads.limit = 1, .writes.limit = 1 };

        *ret_n_changes = 0;
        while (now < 600 * USEC_PER_SEC) {
                size_t next = SIZE_MAX;

                for (size_t i = 0; i < MAX_LANES; i++)
                        if (ends[i] == 0 && http_lanes_may_start(&lanes, n_active, false)) {
                                began[i] = now;
                                ends[i] = serve(server, free_usec, ++n_active, now, &seed);
                        }
                for (size_t i = 0; i < MAX_LANES; i++)
                        if (ends[i] > 0 && (next == SIZE_MAX || ends[i] < ends[next]))
                                next = i;
                now = ends[next];
                http_lanes_note_answer(&lanes, false, false, now - began[next], n_active, now);
                ends[next] = 0;
                n_active--;
                *ret_n_changes += lanes.reads.limit != last_limit;
                last_limit = lanes.reads.limit;
                n_answers += now > USEC_PER_SEC;
                n_right += now > USEC_PER_SEC && lanes.reads.limit == limit;
        }
        return n_right * 1000 / n_answers;
}

static void test_simulated_servers(void **state)
{
        static const struct {
                const char *about;
                Server server;
                size_t limit;
        } cases[] = {
                { "one worker", { 10 * MSEC, 500, 1, 0 }, 1 },
                { "eight workers", { 10 * MSEC, 500, 8, 0 }, 8 },
                { "one fast core", { MSEC, 200, 1, 0 }, 1 },
                { "two workers", { 10 * MSEC, 500, 2, 0 }, 2 },
                { "one worker far away", { MSEC, 20 * MSEC, 1, 0 }, 8 },
                { "threads of one interpreter", { 10 * MSEC, 500, 8, 80 }, 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (uint64_t seed = 1; seed <= 10; seed++) {
                        size_t n_changes;
                        uint64_t right =
                                simulate(&cases[i].server, cases[i].limit, seed, &n_changes);

                        if (right < 800 || n_changes > 10 * 4)
                                fail_msg("%s, seed %d: %d of 1000, %zu changes", cases[i].about,
                                         (int)seed, (int)right, n_changes);
                }
}

static void test_timeouts_grow_with_answer_times(void **state)
{
        static const struct {
                uint64_t answer_usec, read, write;
        } cases[] = {
                { 0, 500 * MSEC, 1000 * MSEC },
                { 100 * MSEC, 800 * MSEC, 1000 * MSEC },
                { 500 * MSEC, 4000 * MSEC, 4000 * MSEC },
                { 9000 * MSEC, 5000 * MSEC, 5000 * MSEC },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HttpLanes lanes = { .answer_usec = cases[i].answer_usec };

                assert_int_equal(http_lanes_get_patience_usec(&lanes, false), cases[i].read);
                assert_int_equal(http_lanes_get_patience_usec(&lanes, true), cases[i].write);
        }
}

static void test_one_connection(void **state)
{
        HttpLanes lanes = play("1 1c1R", true, 1);

        assert_int_equal(lanes.reads.limit, 1);
        assert_int_equal(lanes.writes.limit, 1);
}

TEST_MAIN(test_sequences_of_answers, test_may_start, test_no_demand_no_growth,
          test_simulated_servers, test_timeouts_grow_with_answer_times, test_one_connection)
