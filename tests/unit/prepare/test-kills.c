/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs that are killed at a random write. In each round the cards, the claims and the open handles
 * are drawn, a run is killed, and a second run ends. Then each claim has its type, unless a process
 * has its function open, and no run wrote to a function that must not change.
 *
 * COMPUTE_AGENT_SEED repeats a seed, and COMPUTE_AGENT_ROUNDS sets the number of rounds. */

#include <signal.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>

#include "base/log.h"
#include "prepare/run.h"
#include "tests/fixtures/prepare.h"

#define ROUNDS      30
#define N_FUNCTIONS 6 /* functions of each card */
#define N_CLAIMS    8
#define SECOND      "0000:c2:00.0"
#define SECTIONS                                                                              \
        "[device_prepare a]\ndevice_addresses = " CARD "," SECOND "\nvirtual_functions = 6\n" \
        "vgpu_types = true\n"

ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);

/* The number of writes until the process is killed; 0: never. */
static unsigned kill_after;

/* Addresses that no run can write to; also the words of a write to one of them. */
static char protected[2 * N_FUNCTIONS][PCI_ADDRESS_SIZE];
static size_t n_protected;

/* Ends the process before a write to a protected file, or before the last allowed write. */
ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
        char name[64], path[512];
        ssize_t length;

        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        length = readlink(name, path, sizeof(path) - 1);
        path[MAX(length, 0)] = '\0';
        for (size_t i = 0; i < n_protected; i++)
                if (strstr(path, protected[i]))
                        _exit(99);
        if (kill_after > 0 && --kill_after == 0)
                raise(SIGKILL);
        return __real_write(fd, bytes, n);
}

/* The drawn state of a function. */
typedef struct Drawn {
        char address[PCI_ADDRESS_SIZE];
        uint64_t type, wanted; /* wanted 0: no claim */
        bool open, pending;
} Drawn;

static void draw(PrepareFixture *f, Drawn drawn[2 * N_FUNCTIONS])
{
        static const char *const states[] = { "confirmed", "claimed", "pending" };
        int64_t claim = 1;

        end_claims(f);
        n_protected = 0;
        for (unsigned i = 0; i < 2 * N_FUNCTIONS; i++) {
                Drawn *d = &drawn[i];
                char target[32], type[32];
                const char *state = states[rand() % 3];

                *d = (Drawn){ .type = rand() % 2 ? 0 : 1 + (uint64_t)rand() % 2,
                              .open = rand() % 4 == 0 };
                function_address(i < N_FUNCTIONS ? CARD : SECOND, i % N_FUNCTIONS, d->address);
                put_type(f, d->address, d->type);
                snprintf(target, sizeof(target), "../x/%u", 40 + i);
                put_link(f, d->address, "iommu_group", target);
                end_process(f, 100 + i);
                snprintf(target, sizeof(target), "/dev/vfio/%u", 40 + i);
                if (d->open)
                        put_handle(f, 100 + i, target);
                if (claim <= N_CLAIMS && rand() % 2) {
                        d->wanted = 1 + (uint64_t)rand() % 2;
                        d->pending = strcmp(state, "pending") == 0;
                        snprintf(type, sizeof(type), "nvidia-%" PRIu64, d->wanted);
                        put_claim(f, claim++, state, d->address, type);
                }
                if (d->open || (d->wanted && d->type == d->wanted))
                        memcpy(protected[n_protected++], d -> address, PCI_ADDRESS_SIZE);
        }
}

/* Runs in a child process. Returns true if it was not killed. */
static bool run_child(PrepareFixture *f, unsigned after)
{
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                kill_after = after;
                _exit(prepare_run(f->config, &f->paths, false, NULL) < 0 ? 98 : 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFSIGNALED(status))
                return false;
        if (WEXITSTATUS(status) != 0)
                fail_msg("a run %s",
                         WEXITSTATUS(status) == 99 ? "wrote to a protected function" : "failed");
        return true;
}

static void check(PrepareFixture *f, const Drawn *d, unsigned round)
{
        uint64_t type = get_type(f, d->address);
        uint64_t expected = d->open                              ? d->type
                            : d->wanted && !d->pending           ? d->wanted
                            : d->pending && d->type == d->wanted ? d->type
                                                                 : 0;

        if (type != expected)
                fail_msg("round %u: %s is %" PRIu64 ", expected %" PRIu64 " (was %" PRIu64
                         ", wanted %" PRIu64 "%s%s)",
                         round, d->address, type, expected, d->type, d->wanted,
                         d->open ? ", open" : "", d->pending ? ", pending" : "");
}

static unsigned read_number(const char *name, unsigned otherwise)
{
        const char *text = getenv(name);

        return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void test_killed_runs(void **state)
{
        PrepareFixture *f = *state;
        unsigned start = read_number("COMPUTE_AGENT_SEED", (unsigned)time(NULL));
        unsigned n_rounds = read_number("COMPUTE_AGENT_ROUNDS", ROUNDS), n_killed = 0;
        Drawn drawn[2 * N_FUNCTIONS];

        print_message("COMPUTE_AGENT_SEED=%u\n", start);
        srand(start);
        log_set_level(LOG_EMERG);
        configure(f, SECTIONS);
        put_card(f, CARD, N_FUNCTIONS, N_FUNCTIONS);
        put_card(f, SECOND, N_FUNCTIONS, N_FUNCTIONS);
        for (unsigned round = 0; round < n_rounds; round++) {
                draw(f, drawn);
                n_killed += !run_child(f, 1 + (unsigned)rand() % 12);
                assert_true(run_child(f, 0));
                for (size_t i = 0; i < 2 * N_FUNCTIONS; i++)
                        check(f, &drawn[i], round);
        }
        assert_true(n_rounds < ROUNDS || n_killed > n_rounds / 8);
}

/* A run between two writes of sriov_numvfs leaves no functions, and the next run makes them. */
static void test_killed_without_functions(void **state)
{
        PrepareFixture *f = *state;

        log_set_level(LOG_EMERG);
        n_protected = 0;
        configure(f, SECTIONS);
        put_card(f, SECOND, N_FUNCTIONS, N_FUNCTIONS);
        for (unsigned after = 1; after < 8; after++) {
                put_card(f, CARD, 3, N_FUNCTIONS);
                if (run_child(f, after))
                        break;
                assert_true(run_child(f, 0));
                assert_int_equal(get(f, CARD, "sriov_numvfs"), N_FUNCTIONS);
        }
}

TEST_MAIN_WITH(prepare_setup, prepare_teardown, test_killed_runs, test_killed_without_functions)
