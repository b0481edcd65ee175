/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rights and names of callers, over a fake bus whose polkit the test plays. */

#include "agent/bus/caller.h"
#include "formats/interface.h"
#include "tests/fakes/bus.h"

static FakeBus fake;
static BusGate *gate;
static Polkit polkit;
static BusCaller last; /* caller of the last served call */
static int n_checks;

static int serve(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        bus_caller_find(gate, call, &last);
        return sd_bus_reply_method_return(call, "s", "done");
}

/* Rejects the arguments of the method "Bad". */
static int check(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        n_checks++;
        return strcmp(sd_bus_message_get_member(call), "Bad") == 0
                       ? sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "bad")
                       : 0;
}

static int guard(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_caller_guard(&polkit, call, POLKIT_ACTION_CLAIM, check, serve, NULL, error);
}

static bool is_long(sd_bus_message *call)
{
        return false;
}

static int setup(void **state)
{
        fake_bus_begin(&fake);
        assert_true(bus_gate_new(&gate, fake.event, guard, is_long, NULL) >= 0);
        assert_true(bus_gate_attach(gate, fake.bus) >= 0);
        polkit = (Polkit){ .gate = gate };
        n_checks = 0;
        return 0;
}

static int teardown(void **state)
{
        bus_caller_forget(&polkit);
        bus_gate_free(gate);
        fake_bus_end(&fake);
        return 0;
}

static void call(const char *sender, const char *member)
{
        fake_bus_send(&fake, fake_bus_new_call(&fake, sender, "/x", "x.y", member));
}

static void test_rights(void **state)
{
        static const struct {
                const char *sender, *member, *verdict, *error;
                size_t n_questions;
        } cases[] = {
                { ":0.1", "Good", "no", "", 0 },
                { ":a.1", "Good", "yes", "", 1 },
                { ":a.1", "Good", "no", SD_BUS_ERROR_ACCESS_DENIED, 1 },
                { ":a.1", "Good", "ask", SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, 1 },
                { ":a.1", "Bad", "yes", SD_BUS_ERROR_INVALID_ARGS, 0 },
                { ":a.1", "Good", SD_BUS_ERROR_SERVICE_UNKNOWN, SD_BUS_ERROR_ACCESS_DENIED, 1 },
                { ":a.1", "Good", "org.freedesktop.systemd1.UnitMasked", SD_BUS_ERROR_ACCESS_DENIED,
                  1 },
                { ":a.1", "Good", "org.freedesktop.systemd1.NoSuchUnit", SD_BUS_ERROR_ACCESS_DENIED,
                  1 },
                { ":a.1", "Good", SD_BUS_ERROR_NO_REPLY, BUS_ERROR_BUSY, 1 },
                { ":a.1", "Good", "org.freedesktop.PolicyKit1.Error.Failed", BUS_ERROR_BUSY, 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                fake.verdict = cases[i].verdict;
                fake.n_questions = fake.n_answers = 0;
                call(cases[i].sender, cases[i].member);
                fake_bus_run(&fake, 1, USEC_PER_SEC);
                assert_int_equal(fake.n_answers, 1);
                assert_int_equal(fake.n_questions, cases[i].n_questions);
                if (strncmp(fake.answers[0].error, cases[i].error,
                            sizeof(fake.answers[0].error) - 1) != 0)
                        fail_msg("case %zu: \"%s\"", i, fake.answers[0].error);
        }
        assert_int_equal(n_checks, ARRAY_SIZE(cases) - 1); /* root's calls are not checked */
}

/* A user with too many open questions is refused; other users are not. */
static void test_open_questions_are_bounded(void **state)
{
        for (int i = 0; i < POLKIT_QUESTIONS_PER_USER + 2; i++)
                call(":a.1", "Good");
        call(":b.1", "Good");
        fake_bus_run(&fake, 3, USEC_PER_SEC / 2);
        assert_int_equal(fake.n_answers, 2);
        for (size_t i = 0; i < 2; i++) {
                assert_string_equal(fake.answers[i].to, ":a.1");
                assert_string_equal(fake.answers[i].error, SD_BUS_ERROR_LIMITS_EXCEEDED);
        }
        assert_int_equal(fake.n_questions, POLKIT_QUESTIONS_PER_USER + 1);
        bus_caller_forget(&polkit);
        assert_true(LIST_EMPTY(&polkit.questions));
}

static void test_names(void **state)
{
        char command[64];

        call(":0.1", "Good");
        fake_bus_run(&fake, 1, USEC_PER_SEC);
        assert_string_equal(last.name, "root");
        assert_int_equal(last.author.uid, 0);
        snprintf(command, sizeof(command), "root (test-caller, pid %d", (int)getpid());
        assert_memory_equal(last.author.text, command, strlen(command));
        fake.verdict = "yes";
        call(":a.1", "Good");
        fake_bus_run(&fake, 2, USEC_PER_SEC);
        snprintf(command, sizeof(command), "uid %d", FAKE_UID + 'a');
        assert_string_equal(last.name, command);
}

TEST_MAIN_WITH(setup, teardown, test_rights, test_open_questions_are_bounded, test_names)
