/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/config.h"

#include "base/text.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

/* Returns the output of cat-config for a file with this text, without the line of its name. */
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
                /* Pasted from nova.conf: the agent does not know these options. */
                { "[database]\nconnection = mysql://a:hush@b\n",
                  "[database]\nconnection = (not shown)\n" },
                { "[DEFAULT]\n#connection = mysql+x://a:hush@b/c?d\n#transport_url = rabbit://hu:hush@b\n",
                  "[DEFAULT]\n#connection = (not shown)\n#transport_url = (not shown)\n" },
                { "[a]\n#ca_key = hush\n# admin_pass: hush\n#metadata_secret=hush\n",
                  "[a]\n#ca_key = (not shown)\n# admin_pass = (not shown)\n#metadata_secret = (not shown)\n" },
                { "[placement]\nendpoint_override = http://a:hush@b\n",
                  "[placement]\nendpoint_override = (not shown)\n" },
                { "[placement]\nendpoint_override = http://[::1]:8778/a@b\n",
                  "[placement]\nendpoint_override = (not shown)\n" },
                { "# Files with a secret: read on\n", "# Files with a secret: read on\n" },
                { "# see http://[::1]:80 or a@b\n#supported_tpm_secret_security = user\n",
                  "# see http://[::1]:80 or a@b\n#supported_tpm_secret_security = user\n" },
                { "[DEFAULT]\nAdmin password: hush\nmy token = hush\n= hush\n",
                  "[DEFAULT]\nAdmin password = (not shown)\nmy token = (not shown)\n(not shown)\n" },
                { "[DEFAULT]\nhush\n[placement] token = hush\n[hush\n",
                  "[DEFAULT]\n(not shown)\n[placement] token = (not shown)\n(not shown)\n" },
                { "[DEFAULT]\nhost = a\n\n  hush\n", "[DEFAULT]\nhost = a\n\n(not shown)\n" },
                { "[mdev_nvidia-35]\nmax_instances = 2\n",
                  "[mdev_nvidia-35]\nmax_instances = 2\n" },
                { "[vgpu_nvidia-35]\ndevice_addresses = 0000:41:00.0\n",
                  "[vgpu_nvidia-35]\ndevice_addresses = 0000:41:00.0\n" },
                { "[device_shapes hgx]\nmembers = 2\n", "[device_shapes hgx]\nmembers = 2\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *printed = cat(cases[i].text);

                assert_null(strstr(printed, "hush"));
                assert_string_equal(printed, cases[i].expected);
        }
}

static void test_examine(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");
        _cleanup_(ctl_config_report_done) CtlConfigReport good = { 0 }, bad = { 0 };

        scratch_write(folder, "x.conf", "[agent]\nlog_level = info\nfoo = 1\n");
        assert_int_equal(ctl_config_examine(path, NULL, &good, NULL), 0);
        assert_int_equal(good.error.code, 0);
        assert_int_equal(good.config->warnings.n_items, 1);
        assert_non_null(strstr(good.config->warnings.items[0], "x.conf:3: "));
        scratch_write(folder, "x.conf", "[agent]\nlog_level = loud\n");
        assert_int_equal(ctl_config_examine(path, NULL, &bad, NULL), 0);
        assert_null(bad.config);
        assert_non_null(strstr(bad.error.text, "x.conf:2: [agent] log_level"));
}

/* systemd gives the credentials only to the service. */
static void test_without_the_credentials_of_the_service(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");
        _cleanup_(ctl_config_report_done) CtlConfigReport report = { 0 };

        assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
        scratch_write(folder, "x.conf",
                      "[placement]\nauth_type = admin_token\nendpoint_override = http://[::1]\n");
        assert_int_equal(ctl_config_examine(path, NULL, &report, NULL), 0);
        assert_int_equal(report.error.code, EINVAL);
        assert_ptr_equal(strstr(report.error.text, "Credentials of the service were not checked: "),
                         report.error.text);
}

/* Returns the number of warnings about the sandbox, for a configuration with this section [agent].
 * option: only those about this option; NULL: all. */
static size_t count_warnings(const CtlUnit *unit, const char *section, const char *option)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");
        _cleanup_(ctl_config_report_done) CtlConfigReport report = { 0 };
        char text[128];
        size_t n = 0;

        snprintf(text, sizeof(text), "[agent]\n%s\n", section);
        scratch_write(folder, "x.conf", text);
        assert_int_equal(ctl_config_examine(path, unit, &report, NULL), 0);
        for (size_t i = 0; i < report.files.n_items; i++)
                n += strstr(report.files.items[i], "ReadWritePaths=") &&
                     strstr(report.files.items[i], option ? option : "ReadWrite");
        return n;
}

static void test_the_sandbox_of_the_unit(void **state)
{
        static char *const paths[] = { (char *)"/var/lib/compute-agent", NULL };
        const CtlUnit unit = { .load_state = (char *)"loaded",
                               .user = (char *)"",
                               .read_only = true,
                               .writable = (char **)(uintptr_t)paths };
        static const struct {
                const char *text;
                const char *warned; /* NULL: no warning */
        } cases[] = {
                { "state_dir = /var/lib/compute-agent", NULL },
                { "state_dir = /var/lib/compute-agent/two", NULL },
                { "state_dir = /var/lib/compute-agents", "[agent] state_dir" },
                { "state_dir = /var/lib/nova", "[agent] state_dir" },
                { "state_dir = /var/lib/compute-agent\nmetrics_file = /var/lib/node/x.prom",
                  "[agent] metrics_file" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_int_equal(count_warnings(&unit, cases[i].text, cases[i].warned),
                                 cases[i].warned ? 1 : 0);
}

static void test_folders_that_the_sandbox_lets_write(void **state)
{
        static char *const paths[] = { (char *)"/run/compute-agent", (char *)"/srv/agent/", NULL };
        const CtlUnit strict = { .load_state = (char *)"loaded",
                                 .user = (char *)"",
                                 .read_only = true,
                                 .writable = (char **)(uintptr_t)paths };
        CtlUnit nothing = strict, open = strict;
        static const struct {
                const char *folder;
                bool may;
        } cases[] = {
                { "/run/compute-agent", true },
                { "/run/compute-agent/x", true },
                { "/run/compute-agent2", false },
                { "/srv/agent/state", true },
                { "/srv/agent", true },
                { "/srv", false },
                { "/", false },
        };

        nothing.writable = NULL;
        open.read_only = false;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *option = "[agent] state_dir";
                char text[128];

                snprintf(text, sizeof(text), "state_dir = %s", cases[i].folder);
                assert_int_equal(count_warnings(&strict, text, option), !cases[i].may);
                assert_int_equal(count_warnings(&nothing, text, option), 1);
                assert_int_equal(count_warnings(&open, text, option), 0);
        }
}

/* Compares one credential with the copies in the folder. how: the end of the sentence; NULL: there
 * is none. */
static void check_credential(const char *folder, const char *name, const char *path,
                             const char *how)
{
        _cleanup_(string_set_done) StringSet found = STRING_SET_INIT;
        CtlUnit unit = { .n_credentials = 1 };
        _cleanup_free_ char *text =
                text_format("%s (credential %s) %s", path, name, how ? how : "");

        unit.credentials = calloc(1, sizeof(*unit.credentials));
        unit.credentials->name = (char *)name;
        unit.credentials->path = (char *)path;
        assert_int_equal(setenv("CREDENTIALS_DIRECTORY", folder, 1), 0);
        assert_int_equal(ctl_config_compare_credentials(&unit, &found), 0);
        assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
        free(unit.credentials);
        assert_int_equal(found.n_items, how ? 1 : 0);
        if (how)
                assert_string_equal(found.items[0], text);
}

static void test_compare_credentials(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "file"),
                            *gone = scratch_path(folder, "gone");

        scratch_write(folder, "file", "one\n");
        scratch_write(folder, "same", "one\n");
        scratch_write(folder, "other", "two\n");
        check_credential(folder, "same", path, NULL);
        /* a file of systemd */
        check_credential(folder, "other", "stored", NULL);
        check_credential(folder, "other", path, "changed after the start of the service");
        check_credential(folder, "added", path,
                         "was added to the unit after the start of the service");
        check_credential(folder, "same", gone, "is missing, so the next start fails");
        /* the service does not run, and its next start reads the file */
        check_credential(gone, "added", path, NULL);
}

TEST_MAIN(test_secrets_are_not_shown, test_examine, test_without_the_credentials_of_the_service,
          test_the_sandbox_of_the_unit, test_folders_that_the_sandbox_lets_write,
          test_compare_credentials)
