/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/rbd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define GOOD "{\"stats\":{\"total_bytes\":1073741824},\"pools\":[{\"name\":\"vms\"}]}"

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
                uint64_t bytes = 0;
                Error error = ERROR_NULL;
                int r = rbd_parse(cases[i].text, strlen(cases[i].text), cases[i].pool, &bytes,
                                  &error);

                if (r != cases[i].r || bytes != cases[i].bytes)
                        fail_msg("%s: %d %llu", cases[i].text, r, (unsigned long long)bytes);
                assert_int_equal(r < 0, error.text[0] != '\0');
        }
}

/* Programs with the name of ceph, for what the real one does not do on demand. */
static void test_program(void **state)
{
        static const struct {
                const char *script; /* NULL: there is none */
                int r;
                const char *words;
        } cases[] = {
                { "echo '" GOOD "'", 0, "" },
                { "echo '" GOOD "'; echo 'a warning' >&2", 0, "" },
                { "[ \"$*\" = 'df --format=json --connect-timeout=5 --id=nova --conf=/etc/c.conf' ] && echo '" GOOD
                  "'",
                  0, "" },
                { NULL, -ENOPKG, "the program ceph is not installed" },
                { "echo 'error: \033[1m permission denied' >&2; exit 13", -EIO, "failed: error: " },
                { "exit 1", -EIO, "failed: no words" },
                { "kill -9 $$", -EIO, "failed: no words" },
                { "echo {", -EBADMSG, "cannot be read" },
                { "yes | head -c 2000000", -EIO, "File too large" },
        };
        _cleanup_free_ char *before = strdup(getenv("PATH"));

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *script = text_format("#!/bin/sh\n%s\n", cases[i].script ?: ""),
                                    *path = text_format("%s:/usr/bin:/bin", folder);
                const RbdPool pool = { "vms", "/etc/c.conf", "nova" };
                uint64_t bytes = 0;
                Error error = ERROR_NULL;
                int r;

                if (cases[i].script) {
                        scratch_write(folder, "ceph", script);
                        scratch_chmod(folder, "ceph", 0755);
                }
                setenv("PATH", cases[i].script ? path : folder, true);
                r = rbd_read_capacity(&pool, &bytes, &error);
                setenv("PATH", before, true);
                if (r != cases[i].r || !strstr(error.text, cases[i].words))
                        fail_msg("case %zu: %d %s", i, r, error.text);
                assert_int_equal(bytes, r == 0 ? 1073741824 : 0);
        }
}

/* A child that hangs, with a child of its own, is killed. */
static void test_hang(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *before = strdup(getenv("PATH")),
                            *path = text_format("%s:/usr/bin:/bin", folder);
        const RbdPool pool = { "vms", "", "" };
        uint64_t bytes;
        Error error = ERROR_NULL;

        scratch_write(folder, "ceph", "#!/bin/sh\nsleep 1000 & wait\n");
        scratch_chmod(folder, "ceph", 0755);
        setenv("PATH", path, true);
        assert_int_equal(rbd_read_capacity(&pool, &bytes, &error), -ETIMEDOUT);
        setenv("PATH", before, true);
        assert_non_null(strstr(error.text, "did not answer in 8 s"));
}

TEST_MAIN(test_parse, test_program, test_hang)
