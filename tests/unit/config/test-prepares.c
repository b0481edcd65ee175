/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The sections [device_prepare NAME]. */

#include "tests/fixtures/config.h"

static void test_sections_are_read(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c =
                load_text(f, "[device_prepare l40s]\n"
                             "device_addresses = 0000:C1:00.0, 0000:c2:00.0\n"
                             "virtual_functions = 32\n"
                             "vgpu_types = true\n"
                             "[device_prepare mig]\n"
                             "device_addresses = 0000:41:00.0\n"
                             "driver_override = vfio-pci\n"
                             "unit = mig-layout@.service\n");
        const HostPrepare *prepares = c->driver.host.prepares;

        assert_string_equal(f->warnings, "");
        assert_int_equal(c->driver.host.n_prepares, 2);
        assert_string_equal(prepares[0].name, "l40s");
        assert_string_equal(prepares[0].device_addresses[0], "0000:c1:00.0");
        assert_string_equal(prepares[0].device_addresses[1], "0000:c2:00.0");
        assert_null(prepares[0].device_addresses[2]);
        assert_int_equal(prepares[0].virtual_functions, 32);
        assert_true(prepares[0].vgpu_types);
        assert_null(prepares[0].driver_override);
        assert_null(prepares[0].unit);
        assert_int_equal(prepares[1].virtual_functions, 0);
        assert_false(prepares[1].vgpu_types);
        assert_string_equal(prepares[1].driver_override, "vfio-pci");
        assert_string_equal(prepares[1].unit, "mig-layout@.service");
}

/* A drop-in changes one option of a section, and an empty text is the default. */
static void test_drop_in_changes_an_option(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = NULL;

        scratch_write(f->folder, "x.conf.d/a.conf",
                      "[device_prepare a]\nvirtual_functions = 16\nunit =\n");
        c = load_text(f, "[device_prepare a]\ndevice_addresses = 0000:c1:00.0\n"
                         "virtual_functions = 8\nunit = x@.service\ndriver_override =\n");
        assert_int_equal(c->driver.host.n_prepares, 1);
        assert_int_equal(c->driver.host.prepares[0].virtual_functions, 16);
        assert_null(c->driver.host.prepares[0].unit);
        assert_null(c->driver.host.prepares[0].driver_override);
}

/* The number of blanks and the case of letters do not make another section. */
static void test_blanks_before_the_name_do_not_matter(void **state)
{
        static const char *const spellings[] = { "device_prepare a", "device_prepare  a",
                                                 "device_prepare   A" };

        for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
                _cleanup_(config_freep) Config *c = NULL;
                Fixture *f = *state;
                char text[300];

                snprintf(text, sizeof(text),
                         "[device_prepare  a]\ndevice_addresses = $card\n"
                         "virtual_functions = 8\n[%s]\ncard = 0000:c1:00.0\n"
                         "virtual_functions = 16\nunit = x@.service\n",
                         spellings[i]);
                c = load_text(f, text);
                assert_int_equal(c->driver.host.n_prepares, 1);
                assert_string_equal(c->driver.host.prepares[0].device_addresses[0], "0000:c1:00.0");
                assert_int_equal(c->driver.host.prepares[0].virtual_functions, 16);
                assert_string_equal(c->driver.host.prepares[0].unit, "x@.service");
        }
}

static void test_unknown_names_cause_a_warning(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c =
                load_text(f, "[device_prepare]\nx = 1\n[device_prepare a]\n"
                             "device_addresses = 0000:c1:00.0\nvfs = 3\n");

        assert_int_equal(c->driver.host.n_prepares, 1);
        assert_string_equal(f->warnings,
                            "x.conf:1: unknown section [device_prepare], ignoring\n"
                            "x.conf:5: unknown option [device_prepare a] vfs, ignoring\n");
}

static void test_references_are_replaced(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c =
                load_text(f, "[DEFAULT]\ncard = 0000:c1:00.0\n[device_prepare a]\n"
                             "device_addresses = $card\n");

        assert_string_equal(c->driver.host.prepares[0].device_addresses[0], "0000:c1:00.0");
}

#define A    "[device_prepare a]\n"
#define CARD "device_addresses = 0000:c1:00.0\n"

static void test_bad_sections_are_refused(void **state)
{
        static const struct {
                const char *text, *expected;
        } cases[] = {
                { A "vgpu_types = true\n",
                  "x.conf:1: [device_prepare a] device_addresses must list at least one card" },
                { A "device_addresses = c1:00.0\n",
                  "x.conf:2: [device_prepare a] device_addresses: \"c1:00.0\": must be a "
                  "comma-separated list of PCI addresses such as 0000:c1:00.0" },
                { A "device_addresses = 0000:c1:00.0, 0000:C1:00.0\n",
                  "x.conf:2: [device_prepare a] device_addresses: 0000:c1:00.0 is listed twice" },
                { A CARD "[device_prepare b]\n" CARD,
                  "x.conf:4: [device_prepare b] device_addresses: 0000:c1:00.0 already belongs to "
                  "[device_prepare a]" },
                { A CARD "[device_prepare  a]\nvirtual_functions = -1\n",
                  "x.conf:4: [device_prepare  a] virtual_functions: \"-1\": must be a whole number "
                  "from 0 to 65535" },
                { A CARD "virtual_functions = -1\n",
                  "x.conf:3: [device_prepare a] virtual_functions: \"-1\": must be a whole number "
                  "from 0 to 65535" },
                { A CARD "vgpu_types = perhaps\n",
                  "x.conf:3: [device_prepare a] vgpu_types: \"perhaps\": must be true or false" },
                { A CARD "driver_override = ../vfio\n",
                  "x.conf:3: [device_prepare a] driver_override: \"../vfio\": must be a "
                  "kernel driver such as vfio-pci, or empty" },
                { A CARD "unit = mig.service\n",
                  "x.conf:3: [device_prepare a] unit: \"mig.service\": must be a template "
                  "such as mig-layout@.service, or empty" },
                { A CARD "unit = --force@.service\n",
                  "x.conf:3: [device_prepare a] unit: the value must be a template "
                  "such as mig-layout@.service, or empty" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect_refused(*state, cases[i].text, cases[i].expected);
}

TEST_MAIN_WITH(setup, teardown, test_sections_are_read, test_drop_in_changes_an_option,
               test_blanks_before_the_name_do_not_matter, test_unknown_names_cause_a_warning,
               test_references_are_replaced, test_bad_sections_are_refused)
