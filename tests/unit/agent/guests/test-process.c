/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/process.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
        char process[CLAIM_PROCESS_SIZE], again[CLAIM_PROCESS_SIZE];
        pid_t pid = start();
        siginfo_t info;
        Error error = ERROR_NULL;

        assert_int_equal(process_identify((uint64_t)pid, process, &error), 0);
        assert_int_equal(process_identify((uint64_t)pid, again, &error), 0);
        assert_string_equal(process, again);
        assert_true(process_is_alive(process));
        assert_int_equal(kill(pid, SIGKILL), 0);
        /* The process is a zombie, so no other process can have its number. */
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        assert_false(process_is_alive(process));
        assert_int_equal(process_identify((uint64_t)pid, again, &error), -ESRCH);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_false(process_is_alive(process));
        assert_int_equal(process_identify((uint64_t)pid, again, &error), -ESRCH);
        assert_non_null(strstr(error.text, "does not run"));
}

static void *wait_for_ever(void *argument)
{
        for (;;)
                pause();
        return argument;
}

/* The main thread of a process has ended, but another one still has its devices. */
static void test_a_thread_is_left(void **state)
{
        char process[CLAIM_PROCESS_SIZE], path[64], text[256] = "";
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                pthread_t thread;

                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (pthread_create(&thread, NULL, wait_for_ever, NULL) == 0)
                        pthread_exit(NULL);
                _exit(1);
        }
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        for (size_t i = 0; i < 1000 && !strstr(text, ") Z "); i++) {
                _cleanup_fclose_ FILE *file = fopen(path, "re");

                assert_non_null(file);
                assert_non_null(fgets(text, sizeof(text), file));
                usleep(10000);
        }
        assert_non_null(strstr(text, ") Z "));
        assert_int_equal(process_identify((uint64_t)pid, process, NULL), 0);
        assert_true(process_is_alive(process));
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_false(process_is_alive(process));
}

/* Another process has the same number. */
static void test_another_process(void **state)
{
        char process[CLAIM_PROCESS_SIZE], other[CLAIM_PROCESS_SIZE], boot[64];
        uint64_t pid, ticks;

        assert_int_equal(process_identify((uint64_t)getpid(), process, NULL), 0);
        assert_int_equal(sscanf(process, "process %" SCNu64 ", started at %" SCNu64 " of boot %63s",
                                &pid, &ticks, boot),
                         3);
        assert_int_equal(pid, getpid());
        assert_int_equal(strlen(boot), 32);
        snprintf(other, sizeof(other), "process %" PRIu64 ", started at %" PRIu64 " of boot %s",
                 pid, ticks - 1, boot);
        assert_false(process_is_alive(other));
        boot[0] = boot[0] == '0' ? '1' : '0';
        snprintf(other, sizeof(other), "process %" PRIu64 ", started at %" PRIu64 " of boot %s",
                 pid, ticks, boot);
        assert_false(process_is_alive(other));
}

static void test_no_process(void **state)
{
        static const uint64_t numbers[] = { 0, 1ULL << 31, UINT32_MAX, UINT64_MAX };
        char process[CLAIM_PROCESS_SIZE] = "";

        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
                assert_int_equal(process_identify(numbers[i], process, NULL), -ESRCH);
        assert_string_equal(process, "");
}

/* An error of the read is no proof that the process has ended. */
static void test_no_descriptors(void **state)
{
        char process[CLAIM_PROCESS_SIZE] = "";
        struct rlimit limit, none;
        Error error = ERROR_NULL;

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        none = (struct rlimit){ 0, limit.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        assert_int_equal(process_identify((uint64_t)getpid(), process, &error), -ESRCH);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_non_null(strstr(error.text, strerror(EMFILE)));
        assert_string_equal(process, "");
}

static void test_units(void **state)
{
        static const char *const wrong[] = { "", "a.service", "/../../etc", "/a/../b" };
        char process[CLAIM_PROCESS_SIZE] = "", path[1024];

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                assert_int_equal(process_identify_unit(wrong[i], process, NULL), -EINVAL);
        memset(path, 'a', sizeof(path) - 1);
        path[0] = '/';
        path[sizeof(path) - 1] = '\0';
        assert_int_equal(process_identify_unit(path, process, NULL), -EINVAL);
        assert_int_equal(process_identify_unit("/no-such.slice/x.service", process, NULL), -ESRCH);
        assert_string_equal(process, "");
        assert_false(process_is_alive("unit /no-such.slice/x.service"));
}

/* A text that a later version wrote counts as alive. */
static void test_unknown(void **state)
{
        assert_true(process_is_alive("machine a"));
        assert_true(process_is_alive("process x"));
}

TEST_MAIN(test_process, test_a_thread_is_left, test_another_process, test_no_process,
          test_no_descriptors, test_units, test_unknown)
