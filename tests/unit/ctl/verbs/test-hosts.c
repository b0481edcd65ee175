/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/hosts.h"

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

static void assert_names(const CtlHosts *hosts, const char *wanted)
{
        char text[256] = "";
        size_t n = 0;

        for (size_t i = 0; i < hosts->n; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i > 0 ? " " : "",
                                      hosts->names[i]);
        assert_string_equal(text, wanted);
}

static void test_lists(void **state)
{
        static const struct {
                const char *list;
                int r;
                const char *names;
        } cases[] = {
                { "a", 0, "a" },
                { "root@a,b:22,c", 0, "root@a b:22 c" },
                { "b,a,b", 0, "b a" },
                { "a,", -EINVAL, "a" },
                { "", -EINVAL, "" },
                { ",", -EINVAL, "" },
                { "-oProxyCommand=x", -EINVAL, "" },
                { "a,-x", -EINVAL, "a" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CtlHosts hosts = { 0 };

                assert_int_equal(ctl_hosts_add(&hosts, cases[i].list, NULL), cases[i].r);
                assert_names(&hosts, cases[i].names);
                ctl_hosts_done(&hosts);
        }
}

static void test_files(void **state)
{
        static const struct {
                const char *text;
                int r;
                const char *names;
        } cases[] = {
                { "a\n  b # rack 2\n\n# c\nroot@d", 0, "a b root@d" },
                { "a\r\nb\r\n", 0, "a b" },
                { "# nothing\n", -EINVAL, "" },
                { "", -EINVAL, "" },
                { "a\n-x\n", -EINVAL, "a" },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "hosts");
        CtlHosts none = { 0 };

        assert_int_equal(ctl_hosts_read(&none, path, NULL), -ENOENT);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CtlHosts hosts = { 0 };

                scratch_write(folder, "hosts", cases[i].text);
                assert_int_equal(ctl_hosts_read(&hosts, path, NULL), cases[i].r);
                assert_names(&hosts, cases[i].names);
                ctl_hosts_done(&hosts);
        }
}

static void test_the_worst_code(void **state)
{
        static const int order[] = { 0, 4, 5, 3, 1 };

        for (size_t i = 0; i < ARRAY_SIZE(order); i++)
                for (size_t j = 0; j < ARRAY_SIZE(order); j++)
                        assert_int_equal(ctl_hosts_worse(order[i], order[j]), order[MAX(i, j)]);
        assert_int_equal(ctl_hosts_worse(4, 137), 137);
}

TEST_MAIN(test_lists, test_files, test_the_worst_code)
