/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/ask/children.h"

#include <string.h>
#include <sys/stat.h>

#include "tests/fixtures/ctl-capture.h"

/* The helper is searched in the folder of the calling program, which is this one. */
static char path[PATH_MAX];

static void install(const char *script)
{
        FILE *file = fopen(path, "we");

        assert_non_null(file);
        fprintf(file, "#!/bin/sh\n%s\n", script);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(chmod(path, 0755), 0);
}

static int set_up(void **state)
{
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
        char *slash;

        assert_true(n > 0);
        path[n] = '\0';
        slash = strrchr(path, '/');
        strcpy(slash + 1, "computectl-helper");
        return 0;
}

static int tear_down(void **state)
{
        (void)unlink(path);
        return 0;
}

/* The document has the arguments, and standard input is empty. */
static void test_arguments_and_document(void **state)
{
        static const struct {
                const char *order, *format, *words[5], *config, *arguments;
        } cases[] = {
                { "discover", "compute-agent-host/1", { "linux" }, "c", "discover:linux:c:" },
                { "verify", "compute-agent-findings/1", { NULL }, NULL, "verify:" },
                { "connect", "compute-agent-connect/1", { "" }, "c", "connect::c:" },
                { "identity",
                  "compute-agent-identity/1",
                  { "adopt", "force", "n", "cloud" },
                  "c",
                  "identity:adopt:force:n:cloud:c:" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(json_done) json_t *document = NULL;
                char script[256];
                Error error = ERROR_NULL;

                snprintf(script, sizeof(script),
                         "cat >&2\nprintf '{\"format\": \"%s\", \"arguments\": \"'\n"
                         "printf '%%s:' \"$@\"\nprintf '\"}'",
                         cases[i].format);
                install(script);
                if (ctl_helper_ask(cases[i].order, cases[i].words, cases[i].config, &document,
                                   &error) < 0)
                        fail_msg("case %zu: %s", i, error.text);
                assert_string_equal(json_string_value(json_object_get(document, "arguments")),
                                    cases[i].arguments);
        }
}

static void test_failures(void **state)
{
        static const struct {
                const char *script, *words;
                int r;
        } cases[] = {
                { "echo '{}'; exit 1", "Cannot poll the host", -EIO },
                { "kill -9 $$", "Cannot poll the host", -EIO },
                { "echo a >&2; echo 'computectl: no libvirtd' >&2; exit 1",
                  "Cannot poll the host: no libvirtd", -EIO },
                { "echo 'not found' >&2; exit 127", "Cannot poll the host: not found", -EIO },
                { "echo '{\"format\": \"another/1\"}'", "has format \"another/1\"", -EBADMSG },
                { "echo '{'", "Cannot parse the reply", -EBADMSG },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                json_t *document = NULL;
                Error error = ERROR_NULL;

                install(cases[i].script);
                assert_int_equal(ctl_helper_ask("verify", NULL, NULL, &document, &error),
                                 cases[i].r);
                assert_contains(error.text, cases[i].words);
                assert_null(document);
        }
}

static void test_a_program_that_is_not_beside_this_one(void **state)
{
        char found[PATH_MAX];

        ctl_find_program(found, "computectl-nothing", "/usr/elsewhere");
        assert_string_equal(found, "/usr/elsewhere/computectl-nothing");
}

TEST_MAIN_WITH(set_up, tear_down, test_arguments_and_document, test_failures,
               test_a_program_that_is_not_beside_this_one)
