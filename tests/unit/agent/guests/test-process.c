/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/life.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"

/* Starts a process that waits. Its name contains characters that confuse a parser. */
static pid_t start(void)
{
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                (void)prctl(PR_SET_NAME, ") S 1 2 (");
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        pause();
        }
        return pid;
}

static void test_process(void **state)
{
        char life[CLAIM_LIFE_SIZE], again[CLAIM_LIFE_SIZE];
        pid_t pid = start();
        siginfo_t info;
        Error error = ERROR_NULL;

        assert_int_equal(life_of_process((uint64_t)pid, life, &error), 0);
        assert_int_equal(life_of_process((uint64_t)pid, again, &error), 0);
        assert_string_equal(life, again);
        assert_true(life_lasts(life));
        assert_int_equal(kill(pid, SIGKILL), 0);
        /* The process is a zombie, so no other process can have its number. */
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        assert_false(life_lasts(life));
        assert_int_equal(life_of_process((uint64_t)pid, again, &error), -ESRCH);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_false(life_lasts(life));
        assert_int_equal(life_of_process((uint64_t)pid, again, &error), -ESRCH);
        assert_non_null(strstr(error.text, "does not run"));
}

/* Another process has the same number. */
static void test_another_process(void **state)
{
        char life[CLAIM_LIFE_SIZE], other[CLAIM_LIFE_SIZE], boot[64];
        uint64_t pid, ticks;

        assert_int_equal(life_of_process((uint64_t)getpid(), life, NULL), 0);
        assert_int_equal(sscanf(life, "process %" SCNu64 ", started at %" SCNu64 " of boot %63s",
                                &pid, &ticks, boot),
                         3);
        assert_int_equal(pid, getpid());
        assert_int_equal(strlen(boot), 32);
        snprintf(other, sizeof(other), "process %" PRIu64 ", started at %" PRIu64 " of boot %s",
                 pid, ticks - 1, boot);
        assert_false(life_lasts(other));
        boot[0] = boot[0] == '0' ? '1' : '0';
        snprintf(other, sizeof(other), "process %" PRIu64 ", started at %" PRIu64 " of boot %s",
                 pid, ticks, boot);
        assert_false(life_lasts(other));
}

static void test_no_process(void **state)
{
        static const uint64_t numbers[] = { 0, 1ULL << 31, UINT32_MAX, UINT64_MAX };
        char life[CLAIM_LIFE_SIZE] = "";

        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
                assert_int_equal(life_of_process(numbers[i], life, NULL), -ESRCH);
        assert_string_equal(life, "");
}

static void test_units(void **state)
{
        static const char *const wrong[] = { "", "a.service", "/../../etc", "/a/../b" };
        char life[CLAIM_LIFE_SIZE] = "", path[1024];

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                assert_int_equal(life_of_unit(wrong[i], life, NULL), -EINVAL);
        memset(path, 'a', sizeof(path) - 1);
        path[0] = '/';
        path[sizeof(path) - 1] = '\0';
        assert_int_equal(life_of_unit(path, life, NULL), -EINVAL);
        assert_int_equal(life_of_unit("/no-such.slice/x.service", life, NULL), -ESRCH);
        assert_string_equal(life, "");
        assert_false(life_lasts("unit /no-such.slice/x.service"));
}

/* A text that a later version wrote counts as alive. */
static void test_unknown(void **state)
{
        assert_true(life_lasts("machine a"));
        assert_true(life_lasts("process x"));
}

TEST_MAIN(test_process, test_another_process, test_no_process, test_units, test_unknown)
