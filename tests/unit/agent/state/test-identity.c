/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/state/identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define A "6a2f4d0a-3c5b-4b6f-8a7d-1f6f0b9d3c11"
#define B "0e0c6d0f-8f2a-4a4f-9f1b-6f0a2c3d4e14"

/* A configuration with these files and this state folder. */
#define CONFIG(names, folder)                             \
        (&(Config){ .files = (char **)(uintptr_t)(names), \
                    .state_dir = (char *)(uintptr_t)(folder) })

static void test_content(void **state)
{
        static const struct {
                const char *content;
                int r;
        } cases[] = {
                { A, 0 },
                { A "\n", 0 },
                { "\n " A " \t", 0 },
                { "6A2F4D0A-3C5B-4B6F-8A7D-1F6F0B9D3C11\r\n", 0 },
                { "6a2f4d0a3c5b4b6f8a7d1f6f0b9d3c11\n", 0 },
                /* Nova reads at most 40 bytes. */
                { A "\n\n\n\nanything", 0 },
                { A "\n# no", -EINVAL },
                { A "x", -EINVAL },
                { "          " A, -EINVAL },
                { "", -EINVAL },
                { "\n\n", -EINVAL },
                { "host1\n", -EINVAL },
                { "6a2f4d0a-3c5b-4b6f-8a7d-1f6f0b9d3c1", -EINVAL },
                { "{6a2f4d0a-3c5b-4b6f-8a7d-1f6f0b9d3c11}", -EINVAL },
                { "6a2f4d0a3c5b4b6f8a7d1f6f0b9d3c1g", -EINVAL },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Uuid uuid = UUID_NULL;
                Error error = ERROR_NULL;
                bool created = true;
                char expected[512];

                scratch_write(folder, "compute_id", cases[i].content);
                if (identity_load(CONFIG(NULL, folder), &uuid, &created, &error) != cases[i].r)
                        fail_msg("\"%s\": %s", cases[i].content, error.text);
                if (cases[i].r == 0) {
                        assert_string_equal(uuid.text, A);
                        assert_false(created);
                        continue;
                }
                snprintf(expected, sizeof(expected), "%s/compute_id contains no uuid", folder);
                assert_int_equal(strncmp(error.text, expected, strlen(expected)), 0);
                assert_true(uuid_empty(&uuid));
                assert_true(created);
        }
}

static void test_nul_is_no_end(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        Uuid uuid = UUID_NULL;

        scratch_write_bytes(folder, "compute_id", A "\0 ", 38);
        assert_int_equal(identity_load(CONFIG(NULL, folder), &uuid, NULL, NULL), -EINVAL);
}

static void test_copies(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *etc = scratch_path(folder, "etc/x.conf");
        _cleanup_free_ char *drop_in = scratch_path(folder, "etc/x.conf.d/a.conf");
        _cleanup_free_ char *state_dir = scratch_path(folder, "state");
        const char *const files[] = { etc, drop_in, NULL };
        Uuid uuid = UUID_NULL;
        Error error = ERROR_NULL;
        bool created = true;
        char expected[512], *in_state;

        /* One file beside a configuration file is enough. No file is created in the state folder,
         * which need not exist. */
        scratch_write(folder, "etc/x.conf.d/compute_id", A);
        assert_int_equal(identity_load(CONFIG(files, state_dir), &uuid, &created, &error), 0);
        assert_string_equal(uuid.text, A);
        assert_false(created);

        scratch_write(folder, "etc/compute_id", A "\n");
        scratch_write(folder, "state/compute_id", A "\n");
        assert_int_equal(identity_load(CONFIG(files, state_dir), &uuid, &created, &error), 0);
        assert_string_equal(uuid.text, A);

        scratch_write(folder, "state/compute_id", B "\n");
        assert_int_equal(identity_load(CONFIG(files, state_dir), &uuid, &created, &error), -EINVAL);
        snprintf(expected, sizeof(expected), "%s/etc/compute_id and %s/compute_id differ", folder,
                 state_dir);
        assert_int_equal(strncmp(error.text, expected, strlen(expected)), 0);
        assert_string_equal(uuid.text, A);
        in_state = scratch_read(folder, "state/compute_id");
        assert_string_equal(in_state, B "\n");
        free(in_state);

        /* A bad copy is an error, even if all others agree. */
        scratch_write(folder, "state/compute_id", "");
        assert_int_equal(identity_load(CONFIG(files, state_dir), &uuid, &created, &error), -EINVAL);
        assert_non_null(strstr(error.text, "state/compute_id contains no uuid"));
}

/* Nova's file counts only if there is no other one, and it is never written. */
static void test_nova(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *state_dir = scratch_path(folder, "state");
        _cleanup_free_ char *nova_dir = scratch_path(folder, "nova");
        const Config config = { .state_dir = state_dir, .state_path = nova_dir };
        const Uuid other = uuid_make_random();
        Uuid uuid = UUID_NULL;
        bool created = true;
        Error error = ERROR_NULL;

        scratch_write(folder, "nova/compute_id", A "\n");
        assert_int_equal(identity_load(&config, &uuid, &created, &error), 0);
        assert_string_equal(uuid.text, A);
        assert_false(created);
        assert_int_equal(identity_replace(&config, &other, false, &error), -EEXIST);
        assert_non_null(strstr(error.text, "nova/compute_id belongs to the operator or to Nova"));
        scratch_write(folder, "state/compute_id", B "\n");
        assert_int_equal(identity_load(&config, &uuid, &created, &error), 0);
        assert_string_equal(uuid.text, B);
}

static void test_file_without_folder(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *state_dir = scratch_path(folder, "state");
        const char *const files[] = { "x.conf", NULL };
        Uuid uuid = UUID_NULL;
        char *old = getcwd(NULL, 0);

        scratch_write(folder, "compute_id", B);
        assert_non_null(old);
        assert_int_equal(chdir(folder), 0);
        assert_int_equal(identity_load(CONFIG(files, state_dir), &uuid, NULL, NULL), 0);
        assert_string_equal(uuid.text, B);
        assert_int_equal(chdir(old), 0);
        free(old);
}

static void test_create(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *conf = scratch_path(folder, "etc/x.conf");
        _cleanup_free_ char *state_dir = scratch_path(folder, "state");
        _cleanup_free_ char *path = scratch_path(folder, "state/compute_id");
        _cleanup_free_ char *content = NULL, *elsewhere = NULL;
        const char *const files[] = { conf, NULL };
        Uuid first = UUID_NULL, second = UUID_NULL;
        bool created = false;
        struct stat st;
        char line[64];

        scratch_mkdir(folder, "etc");
        scratch_mkdir(folder, "state");
        assert_int_equal(identity_load(CONFIG(files, state_dir), &first, &created, NULL), 0);
        assert_true(created);
        content = scratch_read(folder, "state/compute_id");
        snprintf(line, sizeof(line), "%s\n", first.text);
        assert_string_equal(content, line);
        elsewhere = scratch_read(folder, "etc/compute_id");
        assert_null(elsewhere);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0644);
        assert_int_equal(st.st_nlink, 1);

        assert_int_equal(identity_load(CONFIG(files, state_dir), &second, &created, NULL), 0);
        assert_false(created);
        assert_true(uuid_equal(&first, &second));
}

static void test_cannot_create(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *missing = scratch_path(folder, "missing");
        _cleanup_free_ char *file = scratch_path(folder, "file");
        _cleanup_free_ char *taken = scratch_path(folder, "taken");
        Uuid uuid = UUID_NULL;
        Error error = ERROR_NULL;

        assert_int_equal(identity_load(CONFIG(NULL, missing), &uuid, NULL, &error), -ENOENT);
        assert_non_null(strstr(error.text, "There is no folder "));
        assert_non_null(strstr(error.text, "[agent] state_dir"));

        scratch_write(folder, "file", "");
        assert_int_equal(identity_load(CONFIG(NULL, file), &uuid, NULL, &error), -ENOTDIR);
        assert_non_null(strstr(error.text, "There is no folder "));

        scratch_mkdir(folder, "taken");
        scratch_mkdir(folder, "taken/compute_id");
        assert_int_equal(identity_load(CONFIG(NULL, taken), &uuid, NULL, &error), -EISDIR);
        assert_non_null(strstr(error.text, "compute_id: Is a directory"));

        assert_int_equal(identity_load(CONFIG(NULL, "/proc"), &uuid, NULL, &error), -ENOENT);
        assert_true(uuid_empty(&uuid));
}

/* Loads the identity in a child without rights, because root can write everywhere. */
static int load_without_rights(const char *state_dir)
{
        Error error = ERROR_NULL;
        Uuid uuid;
        int r;

        if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
                return 1;
        r = identity_load(CONFIG(NULL, state_dir), &uuid, NULL, &error);
        if (r != -EACCES)
                return 2;
        return strstr(error.text,
                      "compute_id cannot be created: Permission denied. Make the folder writable, or put the file")
                       ? 0
                       : 3;
}

static void test_read_only_folder(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *state_dir = scratch_path(folder, "state");
        int status;
        pid_t pid;

        assert_int_equal(chmod(folder, 0755), 0);
        scratch_mkdir(folder, "state");
        scratch_chmod(folder, "state", 0555);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                _exit(load_without_rights(state_dir));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        scratch_chmod(folder, "state", 0755);
}

#define N_RACERS 8

/* Waits until the gate is closed, so that all processes begin at once, and writes the answer. */
static void race(int gate, int answers, const char *folder)
{
        struct {
                Uuid uuid;
                bool created;
        } answer = {};
        char byte;

        if (read(gate, &byte, 1) != 0 ||
            identity_load(CONFIG(NULL, folder), &answer.uuid, &answer.created, NULL) < 0)
                _exit(1);
        _exit(write(answers, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1);
}

static void run_race(const char *folder)
{
        struct {
                Uuid uuid;
                bool created;
        } answer;
        int gate[2], answers[2], status;
        size_t n_created = 0;
        pid_t pids[N_RACERS];
        Uuid first = UUID_NULL;

        assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
        assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
        for (size_t i = 0; i < N_RACERS; i++) {
                pids[i] = fork();
                assert_true(pids[i] >= 0);
                if (pids[i] == 0) {
                        close(gate[1]);
                        race(gate[0], answers[1], folder);
                }
        }
        close(gate[1]);
        for (size_t i = 0; i < N_RACERS; i++) {
                assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
                assert_int_equal(status, 0);
                assert_int_equal(read(answers[0], &answer, sizeof(answer)), sizeof(answer));
                n_created += answer.created;
                if (i == 0)
                        first = answer.uuid;
                assert_true(uuid_equal(&answer.uuid, &first));
        }
        assert_int_equal(n_created, 1);
        close(gate[0]);
        close(answers[0]);
        close(answers[1]);
}

static void test_race(void **state)
{
        for (size_t i = 0; i < 10; i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();

                run_race(folder);
        }
}

static void test_find_makes_nothing(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *conf = scratch_path(folder, "etc/x.conf"), *path = NULL,
                            *expected = scratch_path(folder, "etc/compute_id");
        const char *const files[] = { conf, NULL };
        Uuid uuid = UUID_NULL;

        assert_int_equal(identity_find(CONFIG(files, folder), &uuid, &path, NULL), 0);
        assert_null(path);
        scratch_write(folder, "etc/compute_id", A);
        assert_int_equal(identity_find(CONFIG(files, folder), &uuid, &path, NULL), 1);
        assert_string_equal(path, expected);
        assert_string_equal(uuid.text, A);
        scratch_write(folder, "compute_id", B);
        assert_int_equal(identity_find(CONFIG(files, folder), &uuid, &path, NULL), -EINVAL);
}

static void test_replace(void **state)
{
        static const struct {
                const char *in_state, *beside; /* NULL: there is none */
                int r;
        } cases[] = {
                { NULL, NULL, 0 },
                { A, NULL, 0 },
                { B, NULL, 0 },
                { NULL, A, -EEXIST },
                { A, A, -EEXIST },
                { A, B, -EINVAL },
                { "no uuid", NULL, -EINVAL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *conf = scratch_path(folder, "etc/x.conf"), *path = NULL;
                const char *const files[] = { conf, NULL };
                Uuid uuid = UUID_NULL, found = UUID_NULL;
                Error error = ERROR_NULL;

                assert_int_equal(uuid_from_text(B, &uuid), 0);
                if (cases[i].in_state)
                        scratch_write(folder, "compute_id", cases[i].in_state);
                if (cases[i].beside)
                        scratch_write(folder, "etc/compute_id", cases[i].beside);
                if (identity_replace(CONFIG(files, folder), &uuid, false, &error) != cases[i].r)
                        fail_msg("case %zu: %s", i, error.text);
                if (cases[i].r < 0)
                        continue;
                assert_int_equal(identity_find(CONFIG(files, folder), &found, &path, NULL), 1);
                assert_string_equal(found.text, B);
        }
}

TEST_MAIN(test_nova, test_content, test_nul_is_no_end, test_copies, test_file_without_folder,
          test_create, test_cannot_create, test_read_only_folder, test_find_makes_nothing,
          test_replace, test_race)
