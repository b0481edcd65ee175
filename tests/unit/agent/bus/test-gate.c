/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The gate over a fake bus: order, limits, refusals and unread answers. The letter in a sender's
 * name is its user; "0" is root. */

#include "agent/bus/gate.h"
#include "tests/fakes/bus.h"

#define QUIET_USEC (200 * USEC_PER_MSEC)

static FakeBus fake;
static BusGate *gate;
static unsigned n_steps; /* steps of each long answer */
static bool is_stuck;    /* no long answer makes progress */

/* A long answer. */
typedef struct Job {
        BusJob job;
        unsigned n_steps;
} Job;

static int step(BusJob *job, sd_bus_error *error)
{
        return is_stuck || ((Job *)job)->n_steps-- > 1                  ? 1
               : sd_bus_reply_method_return(job->call, "s", "long") > 0 ? 0
                                                                        : -EIO;
}

static void free_job(BusJob *job)
{
        free(job);
}

static bool is_long(sd_bus_message *call)
{
        return strcmp(sd_bus_message_get_member(call), "Explain") == 0;
}

/* Answers with the uid of the caller, which shows that the gate knows it. */
static int serve(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        const BusSender *sender = bus_gate_get_sender(gate, call);
        char text[32];
        Job *job;

        assert_non_null(sender);
        assert_int_equal(sender->pid, getpid());
        if (strcmp(sd_bus_message_get_member(call), "Fail") == 0)
                return -EACCES;
        if (!is_long(call)) {
                snprintf(text, sizeof(text), "%u", (unsigned)sender->uid);
                return sd_bus_reply_method_return(call, "s", text);
        }
        job = calloc(1, sizeof(Job));
        assert_non_null(job);
        *job = (Job){ { .step = step, .free = free_job, .call = sd_bus_message_ref(call) },
                      n_steps };
        bus_gate_begin(gate, &job->job);
        return 1;
}

static int setup(void **state)
{
        n_steps = 3;
        fake_bus_begin(&fake);
        assert_true(bus_gate_new(&gate, fake.event, serve, is_long, NULL) >= 0);
        assert_true(bus_gate_attach(gate, fake.bus) >= 0);
        return 0;
}

static int teardown(void **state)
{
        bus_gate_free(gate);
        fake_bus_end(&fake);
        return 0;
}

/* Sends a call with one text argument. size: its size in bytes; 0: no argument. */
static void call(const char *sender, const char *member, size_t size)
{
        sd_bus_message *m = fake_bus_new_call(&fake, sender, "/x", "x.y", member);
        char *text;

        if (size > 0) {
                assert_true(sd_bus_message_append_string_space(m, size, &text) >= 0);
                memset(text, 'x', size);
        }
        fake_bus_send(&fake, m);
}

/* Lists the answered callers in the order of their answers, for example "a.1 b.1". An error answer
 * is marked with '!'. */
static const char *format_answers(char *text, size_t size)
{
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < fake.n_answers && n < size; i++)
                n += (size_t)snprintf(text + n, size - n, "%s%s%s", i > 0 ? " " : "",
                                      fake.answers[i].to + 1, fake.answers[i].error[0] ? "!" : "");
        return text;
}

static void test_root_first_and_users_in_turn(void **state)
{
        static const struct {
                const char *calls, *answers;
        } cases[] = {
                { "a.1", "a.1" },
                { "a.1 a.1 a.1 b.1", "a.1 b.1 a.1 a.1" },
                { "a.1 a.2 a.3 b.1 b.1", "a.1 b.1 a.2 b.1 a.3" },
                { "a.1 b.1 a.1 0.1 0.1", "0.1 0.1 a.1 b.1 a.1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char name[16], text[256];
                size_t n_calls = 0;
                int n;

                if (i > 0)
                        (void)setup(state);
                for (const char *p = cases[i].calls; sscanf(p, "%14s%n", name + 1, &n) == 1;
                     p += n, n_calls++) {
                        name[0] = ':';
                        call(name, "Short", 0);
                }
                fake_bus_run(&fake, n_calls, QUIET_USEC);
                assert_string_equal(format_answers(text, sizeof(text)), cases[i].answers);
                if (i + 1 < ARRAY_SIZE(cases))
                        (void)teardown(state);
        }
        assert_string_equal(fake.answers[0].text, "0");
}

static void test_failures_are_answered(void **state)
{
        call(":a.1", "Fail", 0);
        fake_bus_run(&fake, 1, QUIET_USEC);
        assert_string_equal(fake.answers[0].error, SD_BUS_ERROR_ACCESS_DENIED);
}

/* Refusals are sent late, so that an immediate retry gains nothing. */
static void test_too_many_calls(void **state)
{
        size_t n_refused = 0;

        for (int i = 0; i < BUS_CALLS_PER_USER + 3; i++)
                call(i % 2 ? ":a.1" : ":a.2", "Short", 0);
        call(":b.1", "Short", 0);
        fake_bus_run(&fake, BUS_CALLS_PER_USER + 4, 2 * BUS_REFUSAL_USEC);
        assert_int_equal(fake.n_answers, BUS_CALLS_PER_USER + 4);
        for (size_t i = 0; i < fake.n_answers; i++) {
                if (!fake.answers[i].error[0])
                        continue;
                n_refused++;
                assert_string_equal(fake.answers[i].error, SD_BUS_ERROR_LIMITS_EXCEEDED);
                assert_int_equal(fake.answers[i].to[1], 'a');
                assert_true(fake.answers[i].usec >= BUS_REFUSAL_USEC);
        }
        assert_int_equal(n_refused, 3);
}

static void test_size_of_arguments(void **state)
{
        static const struct {
                const char *sender, *member;
                size_t size;
                bool refused;
        } cases[] = {
                { ":a.1", "Short", BUS_CALL_SIZE_MAX - BUS_CALL_SIZE_OF_A_VALUE, false },
                { ":a.1", "Short", BUS_CALL_SIZE_MAX, true },
                { ":0.1", "Short", BUS_CALL_SIZE_MAX, true },
                { ":0.1", "PrepareGuest", BUS_CALL_SIZE_MAX, false },
                { ":0.1", "PrepareGuest", BUS_CALL_SIZE_OF_A_GUEST, true },
                { ":a.1", "PrepareGuest", BUS_CALL_SIZE_MAX, true },
        };

        /* These calls make the users known. */
        call(":a.1", "Short", 0);
        call(":0.1", "Short", 0);
        fake_bus_run(&fake, 2, QUIET_USEC);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                fake.n_answers = 0;
                call(cases[i].sender, cases[i].member, cases[i].size);
                fake_bus_run(&fake, 1, 2 * BUS_REFUSAL_USEC);
                assert_int_equal(fake.n_answers, 1);
                if (strcmp(fake.answers[0].error,
                           cases[i].refused ? SD_BUS_ERROR_LIMITS_EXCEEDED : "") != 0)
                        fail_msg("case %zu: \"%s\"", i, fake.answers[0].error);
        }
}

/* A long answer is made in steps. Other users are served between the steps, and a second long
 * answer after it. */
static void test_long_answers(void **state)
{
        char text[256];

        n_steps = 6;
        call(":a.1", "Explain", 0);
        call(":b.1", "Explain", 0);
        call(":c.1", "Short", 0);
        call(":c.1", "Short", 0);
        fake_bus_run(&fake, 4, QUIET_USEC);
        assert_string_equal(format_answers(text, sizeof(text)), "c.1 c.1 a.1 b.1");
}

static void test_callers_that_are_gone(void **state)
{
        char text[64];

        fake.gone = ":a.1";
        call(":a.1", "Short", 0);
        call(":b.1", "Short", 0);
        fake_bus_run(&fake, 2, QUIET_USEC);
        assert_string_equal(format_answers(text, sizeof(text)), "b.1");
}

/* A caller that does not read gets no answers until it reads; other callers get theirs. */
static void test_unread_answers(void **state)
{
        size_t n;

        fake.unread = BUS_UNREAD_MAX + 1;
        call(":a.1", "Describe", 0);
        fake_bus_run(&fake, 1, QUIET_USEC);
        call(":a.1", "Short", 0);
        call(":b.1", "Short", 0);
        for (int i = 0; i < 20; i++)
                (void)sd_event_run(fake.event, 10 * USEC_PER_MSEC);
        n = fake.n_answers;
        assert_int_equal(n, 2);
        assert_string_equal(fake.answers[1].to, ":b.1");
        fake.unread = 0;
        fake_bus_run(&fake, 3, QUIET_USEC);
        assert_int_equal(fake.n_answers, 3);
        assert_string_equal(fake.answers[2].to, ":a.1");
}

/* The refused calls of one user do not stop the turns of other users, although the input never
 * ends. */
static void test_turns_during_refused_calls(void **state)
{
        uint64_t end;
        bool served = false;

        call(":a.1", "Short", 0);
        call(":b.1", "Short", 0);
        fake_bus_run(&fake, 2, QUIET_USEC);
        fake.n_answers = 0;
        for (int i = 0; i < 4 * BUS_CALLS_PER_USER; i++)
                call(":a.1", "Short", 0);
        call(":b.1", "Short", 0);
        end = clock_usec(CLOCK_MONOTONIC) + 10 * USEC_PER_SEC;
        while (!served && clock_usec(CLOCK_MONOTONIC) < end) {
                call(":a.1", "Short", 0);
                assert_true(sd_event_run(fake.event, 0) >= 0);
                for (size_t i = 0; i < fake.n_answers; i++)
                        served = served || strcmp(fake.answers[i].to, ":b.1") == 0;
        }
        assert_true(served);
}

/* A long answer counts also if the bus was asked about unread bytes, because of a refusal, before
 * the answer was sent. */
static void test_unread_long_answer(void **state)
{
        for (int i = 0; i < BUS_CALLS_PER_USER + 1; i++)
                call(":a.1", "Short", 0);
        fake_bus_run(&fake, BUS_CALLS_PER_USER, QUIET_USEC);
        is_stuck = true;
        call(":a.2", "Explain", 0);
        fake_bus_run(&fake, BUS_CALLS_PER_USER + 1, 2 * BUS_REFUSAL_USEC);
        assert_string_equal(fake.answers[BUS_CALLS_PER_USER].error, SD_BUS_ERROR_LIMITS_EXCEEDED);
        is_stuck = false;
        fake.unread = BUS_UNREAD_MAX + 1;
        fake_bus_run(&fake, BUS_CALLS_PER_USER + 2, QUIET_USEC);
        assert_string_equal(fake.answers[BUS_CALLS_PER_USER + 1].text, "long");
        call(":a.2", "Short", 0);
        fake_bus_run(&fake, BUS_CALLS_PER_USER + 3, QUIET_USEC);
        assert_int_equal(fake.n_answers, BUS_CALLS_PER_USER + 2);
}

/* sd-bus answers introspection, and the gate limits these calls. */
static void test_introspection_is_bounded(void **state)
{
        size_t n_refused = 0;

        for (int i = 0; i < BUS_CALLS_PER_USER + 2; i++)
                fake_bus_send(&fake, fake_bus_new_call(&fake, ":a.1", "/",
                                                       "org.freedesktop.DBus.Introspectable",
                                                       "Introspect"));
        fake_bus_run(&fake, BUS_CALLS_PER_USER + 2, 2 * BUS_REFUSAL_USEC);
        assert_int_equal(fake.n_answers, BUS_CALLS_PER_USER + 2);
        for (size_t i = 0; i < fake.n_answers; i++)
                n_refused += strcmp(fake.answers[i].error, SD_BUS_ERROR_LIMITS_EXCEEDED) == 0;
        assert_int_equal(n_refused, 2);
}

static void test_detaching_forgets_calls(void **state)
{
        call(":a.1", "Explain", 0);
        call(":a.1", "Short", 0);
        for (int i = 0; i < 4; i++)
                (void)sd_event_run(fake.event, 0);
        bus_gate_detach(gate);
        fake_bus_run(&fake, 1, QUIET_USEC);
        assert_int_equal(fake.n_answers, 0);
}

TEST_MAIN_WITH(setup, teardown, test_root_first_and_users_in_turn, test_failures_are_answered,
               test_too_many_calls, test_size_of_arguments, test_long_answers,
               test_callers_that_are_gone, test_unread_answers, test_turns_during_refused_calls,
               test_unread_long_answer, test_introspection_is_bounded, test_detaching_forgets_calls)
