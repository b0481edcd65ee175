/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The sections [device_clean NAME]. */

#include "tests/fixtures/config.h"

#define PCI "[pci]\nreport_in_placement = true\n"

static void test_sections_are_read(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c =
                load_text(f, PCI "[device_clean nvme]\n"
                                 "resource_classes = CUSTOM_NVME, CUSTOM_DISK\n"
                                 "clean = compute-agent-clean-nvme@.service\n"
                                 "prove = compute-agent-prove-nvme@.service\n"
                                 "timeout_sec = 7200\n"
                                 "[device_clean gpus]\n"
                                 "device_addresses = 0000:C1:00.0\n"
                                 "clean = reset@.service\nprove =\n");
        const HostClean *cleans = c->driver.host.cleans;

        assert_string_equal(f->warnings, "");
        assert_int_equal(c->driver.host.n_cleans, 2);
        assert_string_equal(cleans[0].name, "nvme");
        assert_null(cleans[0].device_addresses);
        assert_string_equal(cleans[0].resource_classes[1], "CUSTOM_DISK");
        assert_string_equal(cleans[0].clean, "compute-agent-clean-nvme@.service");
        assert_string_equal(cleans[0].prove, "compute-agent-prove-nvme@.service");
        assert_int_equal(cleans[0].timeout_usec, 7200 * USEC_PER_SEC);
        assert_string_equal(cleans[1].device_addresses[0], "0000:c1:00.0");
        assert_null(cleans[1].prove);
        assert_int_equal(cleans[1].timeout_usec, 3600 * USEC_PER_SEC);
}

/* The number of blanks before the name does not make another section. */
static void test_blanks_before_the_name_do_not_matter(void **state)
{
        _cleanup_(config_freep) Config *c =
                load_text(*state, PCI "[device_clean  a]\ndevice_addresses = 0000:c1:00.0\n"
                                      "[device_clean a]\nclean = reset@.service\n");

        assert_int_equal(c->driver.host.n_cleans, 1);
        assert_string_equal(c->driver.host.cleans[0].clean, "reset@.service");
}

static void test_unknown_names_cause_a_warning(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c =
                load_text(f, PCI "[device_clean a]\ndevice_addresses = 0000:c1:00.0\n"
                                 "clean = reset@.service\nproof = x\n");

        assert_int_equal(c->driver.host.n_cleans, 1);
        assert_string_equal(f->warnings,
                            "x.conf:6: unknown option [device_clean a] proof, ignoring\n");
}

/* Nothing is cleaned where nothing is reserved. */
static void test_a_mode_without_reservations_causes_a_warning(void **state)
{
#define SECTION "[device_clean a]\ndevice_addresses = 0000:c1:00.0\nclean = reset@.service\n"
#define PLACED  "[placement]\nauth_type = none\nendpoint_override = http://p\n[agent]\nnova = "
        static const struct {
                const char *text;
                bool warns;
        } cases[] = {
                { PCI SECTION PLACED "observe\n", true },
                { PCI SECTION PLACED "beside\n", false },
                { PCI SECTION PLACED "top\n", false },
                { PCI PLACED "observe\n", false },
                { PCI SECTION, false },
        };
        Fixture *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(config_freep) Config *c = load_text(f, cases[i].text);

                assert_int_equal(config_leaves_unclean(c), i == 0 || i == 3);
                assert_int_equal(strstr(f->warnings, "No device of [device_clean NAME]") != NULL,
                                 cases[i].warns);
        }
}

#define A     "[device_clean a]\n"
#define CARD  "device_addresses = 0000:c1:00.0\n"
#define UNIT  "clean = reset@.service\n"
#define CLASS "resource_classes = CUSTOM_NVME\n"

static void test_bad_sections_are_refused(void **state)
{
        static const struct {
                const char *text, *expected;
        } cases[] = {
                { A CARD UNIT,
                  "x.conf:1: [device_clean a]: needs [pci] report_in_placement = true" },
                { PCI A UNIT,
                  "x.conf:3: [device_clean a]: device_addresses or resource_classes must list "
                  "something" },
                { PCI A CARD, "x.conf:3: [device_clean a]: clean must name a template of systemd" },
                { PCI A CARD "clean = reset.service\n",
                  "x.conf:5: [device_clean a] clean: \"reset.service\": must be a template such as "
                  "compute-agent-clean-nvme@.service" },
                { PCI A UNIT "resource_classes = VGPU\n",
                  "x.conf:3: [device_clean a]: vGPUs cannot be cleaned, only whole devices" },
                { PCI A UNIT CARD "[device_clean b]\n" UNIT CARD,
                  "x.conf:6: [device_clean b]: 0000:c1:00.0 already belongs to [device_clean a]" },
                { PCI A UNIT CLASS "[device_clean b]\n" UNIT CLASS,
                  "x.conf:6: [device_clean b]: CUSTOM_NVME already belongs to [device_clean a]" },
                { PCI A CARD UNIT "timeout_sec = 0\n",
                  "x.conf:6: [device_clean a] timeout_sec: \"0\": must be a number of seconds "
                  "from 1 to 604800" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect_refused(*state, cases[i].text, cases[i].expected);
}

TEST_MAIN_WITH(setup, teardown, test_sections_are_read, test_blanks_before_the_name_do_not_matter,
               test_unknown_names_cause_a_warning,
               test_a_mode_without_reservations_causes_a_warning, test_bad_sections_are_refused)
