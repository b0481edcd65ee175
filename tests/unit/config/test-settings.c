/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config/settings.h"

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

/* Reads a file, replaces its references, and returns the value of an option. NULL: an error, with
 * words. */
static char *expand(const char *text, const char *section, const char *key, Error *error)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");
        _cleanup_(config_settings_done) ConfigSettings settings = {};
        const ConfigEntry *entry;
        const char *words;
        int r;

        scratch_write(folder, "x.conf", text);
        assert_int_equal(config_file_read(&settings, path, NULL), 0);
        r = config_expand(&settings, NULL, error);
        if (r < 0) {
                words = strstr(error->text, "x.conf:");
                memmove(error->text, words, strlen(words) + 1);
                return NULL;
        }
        entry = config_settings_find(&settings, section, key);
        assert_non_null(entry);
        return strdup(entry->value);
}

#define HOST(value) "[DEFAULT]\nhost = " value "\n"

/* The values of oslo.config 9.0; tests/integration/agent/test_oslo_config.py compares both. */
static void test_values(void **state)
{
        static const struct {
                const char *text, *section, *key, *value;
        } cases[] = {
                { HOST("plain"), "DEFAULT", "host", "plain" },
                { HOST("a$$b"), "DEFAULT", "host", "a$b" },
                { HOST("a\\$b"), "DEFAULT", "host", "a$b" },
                { HOST("$$$$"), "DEFAULT", "host", "$$" },
                { HOST("$ 5$5 ${ ${x $"), "DEFAULT", "host", "$ 5$5 ${ ${x $" },
                { HOST("$my_ip") "my_ip = 10.0.0.1\n", "DEFAULT", "host", "10.0.0.1" },
                { HOST("x${my_ip}y") "my_ip = 10.0.0.1\n", "DEFAULT", "host", "x10.0.0.1y" },
                { HOST("${keystone.name}!") "[keystone]\nname = k\n", "DEFAULT", "host", "k!" },
                { HOST("$keystone.name") "[keystone]\nname = k\n", "DEFAULT", "host", "k" },
                { HOST("$compute_driver"), "DEFAULT", "host", "libvirt" },
                { HOST("$instances_path"), "DEFAULT", "host", "/var/lib/nova/instances" },
                { HOST("$instances_path") "state_path = /s\n", "DEFAULT", "host", "/s/instances" },
                /* The same section wins over [DEFAULT]. */
                { "[DEFAULT]\na = 1\n[placement]\nusername = $a\na = 2\n", "placement", "username",
                  "2" },
                { "[DEFAULT]\na = 1\n[placement]\nusername = $a\n", "placement", "username", "1" },
                { "[DEFAULT]\na = $b\nb = $$c\n[placement]\nusername = $a\n", "placement",
                  "username", "$c" },
                { "[placement]\npassword = s3cr$$t\n", "placement", "password", "s3cr$t" },
                { "[placement]\npassword = $a\ntoken = s\n[DEFAULT]\na = x${placement.token}\n",
                  "placement", "password", "xs" },
                { "[placement]\npassword = $admin_token\n[DEFAULT]\nadmin_token = t\n", "placement",
                  "password", "t" },
                /* Options of other services stay unchanged. */
                { "[neutron]\nurl = $nowhere$$\n", "neutron", "url", "$nowhere$$" },
                { "[mdev_a]\nmdev_class = CUSTOM_$x\nx = Y\n", "mdev_a", "mdev_class", "CUSTOM_Y" },
                { "[device_shapes a]\nresource_class = CUSTOM_$x\nx = Y\n", "device_shapes a",
                  "resource_class", "CUSTOM_Y" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;
                _cleanup_free_ char *value =
                        expand(cases[i].text, cases[i].section, cases[i].key, &error);

                if (!value || strcmp(value, cases[i].value) != 0)
                        fail_msg("%s: %s %s", cases[i].text, value ?: "", error.text);
        }
}

static void test_refused(void **state)
{
        static const struct {
                const char *text, *words;
        } cases[] = {
                { HOST("$x"),
                  "x.conf:2: [DEFAULT] host: refers to x, which no file sets. Write the value, or $$ for a dollar sign" },
                { HOST("${a.b}"),
                  "x.conf:2: [DEFAULT] host: refers to a.b, which no file sets. Write the value, or $$ for a dollar sign" },
                { HOST("$host"), "x.conf:2: [DEFAULT] host: its references form a loop" },
                { HOST("$a") "a = $b\nb = $a\n",
                  "x.conf:2: [DEFAULT] host: its references form a loop" },
                { HOST("${placement.password}") "[placement]\npassword = s\n",
                  "x.conf:2: [DEFAULT] host: must not refer to the secret password" },
                { HOST("$a") "a = ${keystone_authtoken.password}\n[keystone_authtoken]\npassword=s\n",
                  "x.conf:2: [DEFAULT] host: must not refer to the secret password" },
                /* A secret that refers to the value first does not permit it. */
                { "[placement]\npassword = $host\ntoken = s\n" HOST("${placement.token}"),
                  "x.conf:5: [DEFAULT] host: must not refer to the secret token" },
                { "[placement]\npassword = $a\ntoken = s\n" HOST("$a") "a = ${placement.token}\n",
                  "x.conf:5: [DEFAULT] host: must not refer to the secret token" },
                /* A dollar sign in a password: the text after it is no part of the words. */
                { "[placement]\npassword = My$ecret\n",
                  "x.conf:2: [placement] password: refers to an option, which no file sets. Write the value, or $$ for a dollar sign" },
                { "[placement]\npassword = $a\na = x${y.ecret}\n",
                  "x.conf:2: [placement] password: refers to an option, which no file sets. Write the value, or $$ for a dollar sign" },
                { HOST("http://u:My$ecret@h"),
                  "x.conf:2: [DEFAULT] host: refers to an option, which no file sets. Write the value, or $$ for a dollar sign" },
                { HOST("http://u:My$ecretToken1@h"),
                  "x.conf:2: [DEFAULT] host: must not refer to a secret" },
                { HOST("http://u:$a@h") "a = My$ecret\n",
                  "x.conf:2: [DEFAULT] host: refers to an option, which no file sets. Write the value, or $$ for a dollar sign" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;
                _cleanup_free_ char *value = expand(cases[i].text, "DEFAULT", "host", &error);

                assert_null(value);
                assert_string_equal(error.text, cases[i].words);
        }
}

/* References that double at each step are limited. */
static void test_growth_is_bounded(void **state)
{
        char text[2000] = "[DEFAULT]\nhost = $a0\n", line[80];
        Error error = ERROR_NULL;

        for (int i = 0; i < 12; i++) {
                snprintf(line, sizeof(line), "a%d = $a%d$a%d$a%d$a%d\n", i, i + 1, i + 1, i + 1,
                         i + 1);
                strcat(text, line);
        }
        strcat(text, "a12 = x\n");
        assert_null(expand(text, "DEFAULT", "host", &error));
        assert_non_null(strstr(error.text, "is longer than 65536 bytes"));
}

TEST_MAIN(test_values, test_refused, test_growth_is_bounded)
