/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/driver-words.h"
#include "drivers/registry.h"
#include "tests/fixtures/host.h"

static void test_refusals(void **state)
{
        static const struct {
                const char *name, *uri, *static_path;
                double ratio;
                int r;
                const char *words;
        } cases[] = {
                { "xen", "x", "x", 0, -ENOENT,
                  "Unknown driver \"xen\". The drivers are libvirt, linux and static" },
                { "", "x", "x", 0, -ENOENT, "Unknown driver" },
                { "libvirt", "", "x", 0, -EINVAL, "[libvirt] connection_uri" },
                { "libvirt", NULL, "x", 0, -EINVAL, "[libvirt] connection_uri" },
                { "static", "x", "", 0, -EINVAL, "[static] path" },
                { "static", "x", NULL, 0, -EINVAL, "[static] path" },
                { "static", "x", "x", -1, -EINVAL, "cpu_allocation_ratio" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                DriverConfig config = { .host = config_make(NULL, 0) };
                Driver *driver = NULL;
                Error error = ERROR_NULL;
                int r;

                config.libvirt.connection_uri = cases[i].uri;
                config.static_path = cases[i].static_path;
                config.host.cpu_allocation_ratio = cases[i].ratio;
                r = driver_new(&driver, cases[i].name, &config, NULL, &error);
                if (r != cases[i].r || !strstr(error.text, cases[i].words))
                        fail_msg("case %zu: %d (%s)", i, r, error.text);
                assert_null(driver);
        }
        assert_null(driver_free(NULL));
}

static void test_advice_of_each_driver(void **state)
{
        static const struct {
                const char *name, *advice;
        } cases[] = {
                { "libvirt", "libvirt runs" },      { "linux", "/proc and /sys" },
                { "static", "[static] path" },      { NULL, "libvirt runs" },
                { "of no driver", "libvirt runs" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const DriverWords *words = driver_words(cases[i].name);

                assert_non_null(strstr(words->advice, cases[i].advice));
                assert_true(words->command[0] != '\0');
        }
}

TEST_MAIN(test_refusals, test_advice_of_each_driver)
