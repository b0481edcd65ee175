/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/verbs/config.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

/* What cat-config prints of a file with this text, without the line that names it. */
static char *cat(const char *text)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");
        char *printed = NULL;
        size_t n = 0;
        FILE *output = open_memstream(&printed, &n);
        Error error = ERROR_NULL;

        scratch_write(folder, "x.conf", text);
        if (ctl_config_cat(path, output, &error) < 0)
                fail_msg("%s", error.text);
        assert_int_equal(fclose(output), 0);
        assert_memory_equal(printed, "# /", 3);
        memmove(printed, strchr(printed, '\n') + 1, strlen(strchr(printed, '\n') + 1) + 1);
        return printed;
}

static void test_secrets_are_not_shown(void **state)
{
        static const struct {
                const char *text, *expected;
        } cases[] = {
                { "[placement]\ntoken = hush\n", "[placement]\ntoken = (not shown)\n" },
                { "[placement]\ntoken=hush", "[placement]\ntoken = (not shown)\n" },
                { "[Placement]\nTOKEN: hush\n", "[Placement]\nTOKEN = (not shown)\n" },
                { "[placement]\npassword = hush\n  hush\nusername = me\n",
                  "[placement]\npassword = (not shown)\nusername = me\n" },
                { "[placement]\npassword = hush\n\n  hush\nusername = me\n",
                  "[placement]\npassword = (not shown)\nusername = me\n" },
                { "[DEFAULT]\nhost = a\n b\n# plain words\n",
                  "[DEFAULT]\nhost = a\n b\n# plain words\n" },
                { "#[agent]\n#log_level = info\n\n", "#[agent]\n#log_level = info\n\n" },
                { "[placement]\n  token = hush\n", "[placement]\n  token = (not shown)\n" },
                { "[placement]\n#token = hush\n", "[placement]\n#token = (not shown)\n" },
                /* Pasted from nova.conf: nobody here knows what it is. */
                { "[database]\nconnection = mysql://a:hush@b\n",
                  "[database]\nconnection = (not shown)\n" },
                { "[mdev_nvidia-35]\nmax_instances = 2\n",
                  "[mdev_nvidia-35]\nmax_instances = 2\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *printed = cat(cases[i].text);

                assert_null(strstr(printed, "hush"));
                assert_string_equal(printed, cases[i].expected);
        }
}

static void test_check(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf"), *warnings = NULL;
        size_t n = 0, n_files = 0;
        FILE *output = open_memstream(&warnings, &n);
        Error error = ERROR_NULL;

        scratch_write(folder, "x.conf", "[agent]\nlog_level = info\nfoo = 1\n");
        assert_int_equal(ctl_config_check(path, NULL, output, &n_files, NULL), 0);
        assert_int_equal(n_files, 1);
        assert_int_equal(fflush(output), 0);
        assert_non_null(strstr(warnings, "x.conf:3: "));
        scratch_write(folder, "x.conf", "[agent]\nlog_level = loud\n");
        assert_int_equal(ctl_config_check(path, NULL, output, &n_files, &error), -EINVAL);
        assert_non_null(strstr(error.text, "x.conf:2: [agent] log_level"));
        assert_int_equal(fclose(output), 0);
}

/* They are systemd's, and only the service has them. */
static void test_without_the_credentials_of_the_service(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");
        size_t n_files;
        Error error = ERROR_NULL;

        assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
        scratch_write(folder, "x.conf",
                      "[placement]\nauth_type = admin_token\nendpoint_override = http://[::1]\n");
        assert_int_equal(ctl_config_check(path, NULL, stderr, &n_files, &error), -EINVAL);
        assert_ptr_equal(strstr(error.text, "Credentials of the service were not checked: "),
                         error.text);
}

/* What the unit's sandbox keeps from being written. */
static void test_a_state_dir_of_another(void **state)
{
        static const struct {
                const char *path;
                bool warned;
        } cases[] = {
                { LOCALSTATEDIR "/lib/compute-agent", false },
                { LOCALSTATEDIR "/lib/compute-agent/two", false },
                { LOCALSTATEDIR "/lib/compute-agents", true },
                { "/var/lib/nova", true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *path = scratch_path(folder, "x.conf"), *warnings = NULL;
                char text[100];
                size_t n = 0;
                FILE *output = open_memstream(&warnings, &n);

                snprintf(text, sizeof(text), "[agent]\nstate_dir = %s\n", cases[i].path);
                scratch_write(folder, "x.conf", text);
                assert_int_equal(ctl_config_check(path, NULL, output, NULL, NULL), 0);
                assert_int_equal(fclose(output), 0);
                assert_int_equal(strstr(warnings, "ReadWritePaths=") != NULL, cases[i].warned);
        }
}

TEST_MAIN(test_secrets_are_not_shown, test_check, test_without_the_credentials_of_the_service,
          test_a_state_dir_of_another)
