/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The sections [device_shapes NAME]. */

#include "tests/fixtures/config.h"

#define PCI "[pci]\nreport_in_placement = true\n"

static void test_sections_are_read(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c =
                load_text(f, PCI "[device_shapes hgx]\n"
                                 "resource_class = CUSTOM_HGX_GPU\n"
                                 "members = 0000:1B:00.0, 0000:43:00.0\n"
                                 "partitions = 0=1-2, 1=1, 2=2\n"
                                 "activate = fabric-partition@.service\n"
                                 "deactivate = fabric-partition-off@.service\n"
                                 "timeout_sec = 5\n"
                                 "[device_shapes mig]\n"
                                 "resource_class = CUSTOM_MIG\n"
                                 "members = 2\nmanaged = no\n"
                                 "partitions = a=1@0000:41:00.4, b=2@0000:41:00.5\n");
        const HostShapes *shapes = c->driver.host.shapes;

        assert_string_equal(f->warnings, "");
        assert_int_equal(c->driver.host.n_shapes, 2);
        assert_string_equal(shapes[0].set.name, "hgx");
        assert_string_equal(shapes[0].set.resource_class, "CUSTOM_HGX_GPU");
        assert_string_equal(shapes[0].set.members[0], "0000:1b:00.0");
        assert_int_equal(shapes[0].set.n_partitions, 3);
        assert_true(shapes[0].managed);
        assert_string_equal(shapes[0].activate, "fabric-partition@.service");
        assert_string_equal(shapes[0].deactivate, "fabric-partition-off@.service");
        assert_int_equal(shapes[0].timeout_usec, 5 * USEC_PER_SEC);
        assert_null(shapes[1].set.members);
        assert_int_equal(shapes[1].set.n_members, 2);
        assert_false(shapes[1].managed);
        assert_null(shapes[1].activate);
        assert_int_equal(shapes[1].timeout_usec, 60 * USEC_PER_SEC);
}

static void test_unknown_names_cause_a_warning(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c =
                load_text(f, PCI "[device_shapes a]\nresource_class = CUSTOM_A\nmembers = 1\n"
                                 "partitions = a=1@0000:41:00.4\nslots = x\n");

        assert_int_equal(c->driver.host.n_shapes, 1);
        assert_string_equal(f->warnings,
                            "x.conf:7: unknown option [device_shapes a] slots, ignoring\n");
}

#define A              "[device_shapes a]\n"
#define CLASS          "resource_class = CUSTOM_A\n"
#define CARD           "members = 0000:c1:00.0\n"
#define ONE            "partitions = x=1\n"
#define WHOLE          CLASS CARD ONE
#define OTHER          "resource_class = CUSTOM_B\nmembers = 0000:c2:00.0\n" ONE
#define UNITS(on, off) "activate = " on "@.service\ndeactivate = " off "@.service\n"

static void test_bad_sections_are_refused(void **state)
{
        static const struct {
                const char *text, *expected;
        } cases[] = {
                { A WHOLE, "x.conf:1: [device_shapes a]: needs [pci] report_in_placement = true" },
                { PCI "[device_shapes a b]\n" WHOLE,
                  "x.conf:3: [device_shapes a b]: the name must have 1 to 32 letters, digits, "
                  "\"_\", \".\" and \"-\"" },
                { PCI A CARD ONE,
                  "x.conf:3: [device_shapes a]: resource_class must be a class such as "
                  "CUSTOM_HGX_GPU" },
                { PCI A CARD ONE "resource_class = VGPU\n",
                  "x.conf:3: [device_shapes a]: resource_class must be a class such as "
                  "CUSTOM_HGX_GPU" },
                { PCI A CLASS ONE,
                  "x.conf:3: [device_shapes a]: members must list devices or be a number" },
                { PCI A CLASS CARD,
                  "x.conf:3: [device_shapes a]: partitions must list 1 to 256 partitions" },
                { PCI A CLASS "members = c1:00.0\n" ONE,
                  "x.conf:3: [device_shapes a]: \"c1:00.0\" must be a PCI address such as "
                  "0000:c1:00.0" },
                { PCI A CLASS "members = 1\npartitions = x=1@0000:c1\n",
                  "x.conf:3: [device_shapes a]: \"0000:c1\" must be a PCI address such as "
                  "0000:c1:00.0" },
                { PCI A WHOLE "activate = on@.service\n",
                  "x.conf:3: [device_shapes a]: activate and deactivate need each other" },
                { PCI A WHOLE "[device_shapes b]\n" WHOLE,
                  "x.conf:7: [device_shapes b]: 0000:c1:00.0 already belongs to "
                  "[device_shapes a]" },
                { PCI
                  "[device_clean n]\ndevice_addresses = 0000:c1:00.0\nclean = r@.service\n" A WHOLE,
                  "x.conf:6: [device_shapes a]: 0000:c1:00.0 is in [device_clean n], but devices "
                  "of a set are not cleaned" },
                { PCI "[device_clean n]\nresource_classes = CUSTOM_A\nclean = r@.service\n" A WHOLE,
                  "x.conf:6: [device_shapes a]: CUSTOM_A is in [device_clean n], but devices of a "
                  "set are not cleaned" },
                { PCI "[devices]\nenabled_mdev_types = nvidia-35\n[mdev_nvidia-35]\n"
                      "device_addresses = 0000:c1:00.0\n" A WHOLE,
                  "x.conf:7: [device_shapes a]: 0000:c1:00.0 is in [mdev_nvidia-35]" },
                { PCI A WHOLE UNITS("on", "off") "[device_shapes b]\n" OTHER UNITS("go", "off"),
                  "x.conf:9: [device_shapes b]: partition x has the unit of partition x of "
                  "[device_shapes a]. Change the ID, or a template" },
                { PCI A WHOLE UNITS("on", "off") "[device_shapes b]\n" OTHER UNITS("off", "on"),
                  "x.conf:9: [device_shapes b]: partition x has the unit of partition x of "
                  "[device_shapes a]. Change the ID, or a template" },
                { PCI A WHOLE "timeout_sec = 0\n",
                  "x.conf:7: [device_shapes a] timeout_sec: \"0\": must be a number of seconds "
                  "from 1 to 604800" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect_refused(*state, cases[i].text, cases[i].expected);
}

static void test_sets_share_ids_without_common_units(void **state)
{
        _cleanup_(config_freep) Config *c =
                load_text(*state, PCI A WHOLE UNITS("on", "off") "[device_shapes b]\n" OTHER UNITS(
                                          "go", "stop") "[device_shapes c]\nresource_class = "
                                                        "CUSTOM_C\nmembers = 0000:c3:00.0\n" ONE);

        assert_int_equal(c->driver.host.n_shapes, 3);
}

/* systemd limits the name of a unit to 255 bytes, of which the id of a partition can have 32. */
static void test_the_name_of_a_unit_fits_with_each_id(void **state)
{
        for (int n = 223; n <= 224; n++) {
                _cleanup_free_ char *text =
                        text_format(PCI A WHOLE "activate = %0*d@.service\ndeactivate = "
                                                "off@.service\n",
                                    n - (int)strlen("@.service"), 0);

                if (n == 223)
                        config_free(load_text(*state, text));
                else
                        expect_refused(*state, text,
                                       "x.conf:7: [device_shapes a] activate: the value must be a "
                                       "template such as fabric-partition@.service, or empty");
        }
}

TEST_MAIN_WITH(setup, teardown, test_sections_are_read, test_unknown_names_cause_a_warning,
               test_bad_sections_are_refused, test_sets_share_ids_without_common_units,
               test_the_name_of_a_unit_fits_with_each_id)
