/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/rbd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define GOOD "{\"stats\":{\"total_bytes\":1073741824},\"pools\":[{\"name\":\"vms\"}]}"

/* Reads the capacity with this script in place of ceph; NULL: no program. */
static int run_program(const char *script, const RbdPool *pool, uint64_t *ret_bytes, Error *error)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *before = strdup(getenv("PATH")),
                            *text = text_format("#!/bin/sh\n%s\n", script ? script : ""),
                            *path = text_format("%s:/usr/bin:/bin", folder);
        RbdPool asked = *pool;
        int r;

        if (script) {
                scratch_write(folder, "ceph", text);
                scratch_chmod(folder, "ceph", 0755);
        }
        setenv("PATH", script ? path : folder, true);
        r = rbd_read(&asked, 1, ret_bytes, error);
        setenv("PATH", before, true);
        return r;
}

/* Reads the capacity with a program that writes these texts to its outputs and ends with this
 * status. */
static int run_ceph(const char *output, const char *words, int status, const RbdPool *pool,
                    uint64_t *ret_bytes, Error *error)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *script =
                text_format("cat %s/out; cat %s/err >&2; exit %d", folder, folder, status);

        scratch_write(folder, "out", output);
        scratch_write(folder, "err", words);
        return run_program(script, pool, ret_bytes, error);
}

static void test_parse(void **state)
{
        static const struct {
                const char *text, *pool;
                int r;
                uint64_t bytes;
        } cases[] = {
                { GOOD, "vms", 0, 1073741824 },
                { GOOD, "rbd", -ENODEV, 0 },
                { "", "vms", -EBADMSG, 0 },
                { "[]", "vms", -EBADMSG, 0 },
                { "{\"stats\":{\"total_bytes\":-1},\"pools\":[{\"name\":\"vms\"}]}", "vms",
                  -EBADMSG, 0 },
                { "{\"stats\":{\"total_bytes\":\"1\"},\"pools\":[{\"name\":\"vms\"}]}", "vms",
                  -EBADMSG, 0 },
                { "{\"stats\":{\"total_bytes\":1e400},\"pools\":[]}", "vms", -EBADMSG, 0 },
                { "{\"stats\":{\"total_bytes\":1}}", "vms", -EBADMSG, 0 },
                { "{\"stats\":{\"total_bytes\":1},\"pools\":{}}", "vms", -EBADMSG, 0 },
                { "{\"stats\":{\"total_bytes\":1},\"pools\":[1,null,{},{\"name\":1}]}", "vms",
                  -ENODEV, 0 },
                { "{\"stats\":{\"total_bytes\":1},\"pools\":[]} x", "vms", -EBADMSG, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const RbdPool pool = { .pool = cases[i].pool, .conf = "", .user = "" };
                uint64_t bytes = 0;
                Error error = ERROR_NULL;
                int r = run_ceph(cases[i].text, "", 0, &pool, &bytes, &error);

                if (r != cases[i].r || bytes != cases[i].bytes)
                        fail_msg("%s: %d %llu", cases[i].text, r, (unsigned long long)bytes);
                assert_int_equal(r < 0, error.text[0] != '\0');
        }
}

static void test_explain(void **state)
{
        static const struct {
                const char *words;
                int r;
                const char *expected;
        } cases[] = {
                { "Error initializing cluster client: ObjectNotFound('RADOS object not found (error calling conf_read_file)')\n",
                  -EIO,
                  "ceph cannot read /etc/c.conf. Make it readable for the user compute-agent" },
                { "2026-11-25T21:22:30.160+0000 7f0dd559a6c0 -1 --2- a log line\ntimed out\n",
                  -ETIMEDOUT, "no monitor of Ceph accepts client.nova in 5 s" },
                { "2026-11-25T21:22:30.160+0000 7f0d -1 auth: unable to find a keyring\n[errno 13] RADOS permission denied (error connecting to the cluster)\n",
                  -EIO,
                  "client.nova cannot connect: [errno 13] RADOS permission denied (error connecting to the cluster). Make its keyring readable for the user compute-agent, and grant it mon 'profile rbd'" },
                { "Error EACCES: access denied", -EIO, "failed: Error EACCES: access denied" },
                { "", -EIO, "failed: no reason given" },
                { "\n\n", -EIO, "failed: no reason given" },
        };
        static const RbdPool pool = { .pool = "vms", .conf = "/etc/c.conf", .user = "nova" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;
                int r = run_ceph("", cases[i].words, 1, &pool, NULL, &error);

                if (r != cases[i].r || !strstr(error.text, cases[i].expected))
                        fail_msg("%s: %d %s", cases[i].words, r, error.text);
        }
}

/* ceph prints the key of a malformed keyring. The key must not get into the status and the
 * journal. */
static void test_no_key_is_quoted(void **state)
{
        static const char *const cases[] = {
                "2026-11-25T21:22:35.476+0000 7ff92a51b6c0 -1 auth: error parsing file /etc/ceph/k: error setting modifier for [client.nova] type=key val=AQBQq1dn==: Malformed input\n",
                "2026-11-25T21:22:35.476+0000 7ff9 -1 auth: type=key val=AQBQq1dn==\n[errno 5] RADOS I/O error (error connecting to the cluster)\n",
                "auth: error setting modifier for [client.nova] type=key val=AQBQq1dn==: Malformed input\n",
                "KEY = AQBQq1dn==",
        };
        static const RbdPool pool = { .pool = "vms", .conf = "", .user = "" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;

                assert_int_equal(run_ceph("", cases[i], 1, &pool, NULL, &error), -EIO);
                if (strstr(error.text, "AQBQq1dn"))
                        fail_msg("%s", error.text);
        }
}

/* Programs with the name of ceph, for behaviour that the real one does not show on demand. */
static void test_program(void **state)
{
        static const struct {
                const char *script; /* NULL: no program */
                int r;
                const char *words;
        } cases[] = {
                { "echo '" GOOD "'", 0, "" },
                { "echo '" GOOD "'; echo 'a warning' >&2", 0, "" },
                { "[ \"$*\" = 'df --format=json --connect-timeout=5 --id=nova --conf=/etc/c.conf' ] && echo '" GOOD
                  "'",
                  0, "" },
                { NULL, -ENOPKG, "the program ceph is not installed" },
                { "echo 'error: \033[1m permission denied' >&2; exit 13", -EIO,
                  "failed: error: ?[1m permission denied" },
                { "exit 1", -EIO, "failed: no reason given" },
                { "kill -9 $$", -EIO, "failed: no reason given" },
                { "echo {", -EBADMSG, "cannot be read" },
                { "yes | head -c 2000000", -EIO, "File too large" },
        };
        static const RbdPool pool = { .pool = "vms", .conf = "/etc/c.conf", .user = "nova" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t bytes = 0;
                Error error = ERROR_NULL;
                int r = run_program(cases[i].script, &pool, &bytes, &error);

                if (r != cases[i].r || !strstr(error.text, cases[i].words))
                        fail_msg("case %zu: %d %s", i, r, error.text);
                assert_int_equal(bytes, r == 0 ? 1073741824 : 0);
        }
}

/* A child is killed if it hangs with a child of its own, or closes its outputs and keeps
 * running. Otherwise the thread would never return. */
static void test_hang(void **state)
{
        static const char *const scripts[] = { "sleep 1000 & wait", "exec sleep 1000 >&- 2>&-" };
        static const RbdPool pool = { .pool = "vms", .conf = "", .user = "" };

        for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
                Error error = ERROR_NULL;

                assert_int_equal(run_program(scripts[i], &pool, NULL, &error), -ETIMEDOUT);
                assert_non_null(strstr(error.text, "did not answer in 8 s"));
        }
}

/* Polls that follow each other closely start ceph once. The program appends a line to a file. */
static void test_figure_is_kept(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *before = strdup(getenv("PATH")),
                            *path = text_format("%s:/usr/bin:/bin", folder),
                            *script = text_format("#!/bin/sh\necho x >>%s/runs\nexit 1\n", folder),
                            *runs = text_format("%s/runs", folder);
        RbdPool pool = { .pool = "vms", .conf = "", .user = "" };
        const uint64_t now = UINT64_C(1000000);
        struct stat st;
        uint64_t bytes = 0;

        scratch_write(folder, "ceph", script);
        scratch_chmod(folder, "ceph", 0755);
        setenv("PATH", path, true);
        assert_int_equal(rbd_read(&pool, now, &bytes, NULL), -EIO);
        scratch_write(folder, "ceph", "#!/bin/sh\necho '" GOOD "'\n");
        scratch_chmod(folder, "ceph", 0755);
        assert_int_equal(rbd_read(&pool, now + RBD_KEEP_USEC - 1, &bytes, NULL), -EIO);
        assert_int_equal(bytes, 0);
        assert_int_equal(rbd_read(&pool, now + RBD_KEEP_USEC, &bytes, NULL), 0);
        assert_int_equal(bytes, 1073741824);
        scratch_write(folder, "ceph", script);
        scratch_chmod(folder, "ceph", 0755);
        bytes = 0;
        assert_int_equal(rbd_read(&pool, now + RBD_KEEP_USEC + 1, &bytes, NULL), 0);
        assert_int_equal(bytes, 1073741824);
        setenv("PATH", before, true);
        assert_int_equal(stat(runs, &st), 0);
        assert_int_equal(st.st_size, 2);
}

TEST_MAIN(test_parse, test_explain, test_no_key_is_quoted, test_program, test_hang,
          test_figure_is_kept)
