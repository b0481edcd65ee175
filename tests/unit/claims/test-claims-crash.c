/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Kills a process that claims at a random moment. Every claim that it acknowledged exists, and no
 * claim exists in part. The file tests/unit/claims/test-claims-faults.c kills at every call that
 * writes. */

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define N_ROUNDS 50
#define HOST     "host VCPU=100000 MEMORY_MB=100000; gpu<host VGPU=100000"

typedef struct Acknowledged {
        int64_t id;
        ClaimState state;
} Acknowledged;

static void acknowledge(int fd, int64_t id, ClaimState state)
{
        const Acknowledged record = { .id = id, .state = state };

        if (write(fd, &record, sizeof(record)) != sizeof(record))
                _exit(3);
}

/* Claims, confirms and releases until it is killed. */
static void work(Fixture *fixture, unsigned round, int fd)
{
        if (fixture_open(fixture) < 0)
                _exit(4);
        for (unsigned i = 0;; i++) {
                Claim *claim;
                char name[32];

                snprintf(name, sizeof(name), "vm-%u-%u", round, i);
                if (fixture_claim(fixture, name, "VCPU=1,MEMORY_MB=2 _G:VGPU=3", &claim) != 0)
                        _exit(5);
                acknowledge(fd, claim->id, CLAIM_STATE_CLAIMED);
                if (i % 3 > 0 && claims_confirm(fixture->claims, claim->id, NULL) == 0)
                        acknowledge(fd, claim->id, CLAIM_STATE_CONFIRMED);
                if (i % 3 > 1 && claims_release(fixture->claims, claim->id, "done", NULL) == 0)
                        acknowledge(fd, claim->id, CLAIM_STATE_RELEASED);
                claim_free(claim);
        }
}

static void assert_acknowledged(Fixture *fixture, const Acknowledged *record)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (claims_get(fixture->claims, record->id, &claim, &fixture->error) != 0)
                fail_msg("%s", fixture->error.text);
        /* The next step might be done, but not acknowledged. */
        assert_true(claim->state == record->state || claim->state == record->state + 1);
        assert_int_equal(claim_sum(claim, "VCPU"), 1);
        assert_int_equal(claim_sum(claim, "MEMORY_MB"), 2);
        assert_int_equal(claim_sum(claim, "VGPU"), 3);
}

/* Returns the id of the newest claim, 0 before the first. */
static int64_t last_id(const Fixture *fixture)
{
        _cleanup_free_ char *id =
                run_sql(fixture->path, "SELECT seq FROM sqlite_sequence WHERE name = 'claims'");

        return strtoll(id, NULL, 10);
}

/* Lets a process work for some time, kills it, and returns the pipe with its acknowledgements.
 * Every fifth process is killed soon after its start, the others after their first claim. */
static int work_and_kill(Fixture *fixture, unsigned round)
{
        struct timespec time = { .tv_nsec = random() % 10000000 };
        struct pollfd told;
        int fds[2], status;
        pid_t pid;

        assert_int_equal(pipe(fds), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                close(fds[0]);
                work(fixture, round, fds[1]);
        }
        close(fds[1]);
        told = (struct pollfd){ .fd = fds[0], .events = POLLIN };
        if (round % 5 != 0)
                assert_int_equal(poll(&told, 1, -1), 1);
        nanosleep(&time, NULL);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        return fds[0];
}

static void test_killed_at_random(void **state)
{
        Fixture *fixture = *state;
        int64_t n_claims = 0;

        fixture_create(fixture, HOST);
        fixture_close(fixture);
        srandom(4711);
        for (unsigned round = 0; round < N_ROUNDS; round++) {
                Acknowledged record, previous = { .id = last_id(fixture) };
                bool told = false;
                int fd = work_and_kill(fixture, round);

                assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
                while (read(fd, &record, sizeof(record)) == sizeof(record)) {
                        if (told && previous.id != record.id)
                                assert_acknowledged(fixture, &previous);
                        n_claims += previous.id != record.id;
                        previous = record;
                        told = true;
                }
                close(fd);
                if (told)
                        assert_acknowledged(fixture, &previous);
                fixture_close(fixture);
                /* At most one claim more than was acknowledged. */
                assert_true(last_id(fixture) - previous.id <= 1);
                assert_store_sane(fixture->path);
        }
        /* Most rounds were killed in the middle of work. */
        assert_true(n_claims > N_ROUNDS);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_killed_at_random)
