/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the parser and the matcher of [pci] device_spec. The rows "H5" are cases of these facts
 * of Nova. */
#include "drivers/host/pci-spec.h"
#include "tests/fixtures/host.h"

static SnapshotDevice make_device(const char *address, const char *physical_function)
{
        SnapshotDevice device = {
                .name = TEXT("pci"),
                .is_pci = true,
                .vendor_id = 0x10de,
                .product_id = 0x1eb8,
        };

        strcpy(device.address, address);
        strcpy(device.physical_function, physical_function);
        return device;
}

static void test_matching(void **state)
{
        static const struct {
                const char *about, *spec, *address, *physical_function;
                bool match;
        } cases[] = {
                { "H5: no key matches all", "{}", "0000:81:00.0", "", true },
                { "H5: ids", "{'vendor_id': '10de', 'product_id': '1eb8'}", "0000:81:00.0", "", 1 },
                { "H5: 0x and capitals", "{'vendor_id': ' 0x10DE '}", "0000:81:00.0", "", true },
                { "H5: any vendor", "{'vendor_id': '*', 'product_id': '*'}", "0000:81:00.0", "",
                  1 },
                { "H5: other vendor", "{'vendor_id': '8086'}", "0000:81:00.0", "", false },
                { "H5: other product", "{'product_id': '1eb9'}", "0000:81:00.0", "", false },
                { "H5: address", "{'address': '0000:81:00.0'}", "0000:81:00.0", "", true },
                { "H5: other address", "{'address': '0000:81:00.1'}", "0000:81:00.0", "", false },
                { "H5: glob", "{'address': '*:81:*.*'}", "0000:81:1f.7", "", true },
                { "H5: glob of a function", "{'address': '*:81:*.1'}", "0000:81:00.0", "", false },
                { "H5: no domain", "{'address': '81:00.0'}", "0000:81:00.0", "", true },
                { "H5: no domain, any", "{'address': '81:00.0'}", "0001:81:00.0", "", true },
                { "H5: slot alone", "{'address': ':00.'}", "0000:81:00.3", "", true },
                { "H5: slot alone, other", "{'address': ':00.'}", "0000:81:01.3", "", false },
                { "H5: function alone", "{'address': '.3'}", "0000:81:01.3", "", true },
                { "H5: short numbers", "{'address': '0:81:0.0'}", "0000:81:00.0", "", true },
                { "H5: all blank", "{'address': ''}", "0000:81:00.0", "", true },
                { "H5: regex", "{'address': {'bus': '8[0-3]', 'function': '[0-2]'}}",
                  "0000:81:00.2", "", true },
                { "H5: regex with repetitions",
                  "{'address': {'bus': '(8|[*+(]+)(1|2){1}', 'slot': '[]0^]+.*', 'domain': '0{4}'}}",
                  "0000:81:00.2", "", true },
                { "H5: a comment does not begin a class", "{'address': {'bus': '(?#[)8{,3}1'}}",
                  "0000:81:00.2", "", true },
                { "H5: conditions", "{'address': {'bus': '(8)?(?P<n>1)?(?(1)$|x)(?(n)|x)'}}",
                  "0000:81:00.2", "", true },
                { "H5: a class with spaces", "{'address': {'bus': '(?x-i:[8 #] 1)'}}",
                  "0000:81:00.2", "", true },
                { "H5: regex, other bus", "{'address': {'bus': '8[2-3]'}}", "0000:81:00.2", "",
                  false },
                { "H5: regex is anchored at the start", "{'address': {'bus': '1'}}", "0000:81:00.2",
                  "", false },
                { "H5: regex need not match all", "{'address': {'bus': '8'}}", "0000:81:00.2", "",
                  true },
                { "H5: alternatives are anchored, too", "{'address': {'bus': '0|1'}}",
                  "0000:81:00.2", "", false },
                { "H5: regex with a count", "{'address': {'domain': '0{4}'}}", "0000:81:00.2", "",
                  true },
                { "H5: a PF's address matches its VFs", "{'address': '0000:81:00.0'}",
                  "0000:81:10.1", "0000:81:00.0", true },
                { "H5: so does an expression of digits alone",
                  "{'address': {'domain': '0000', 'bus': '81', 'slot': '00', 'function': '0'}}",
                  "0000:81:10.1", "0000:81:00.0", true },
                { "H5: but not with an empty text",
                  "{'address': {'domain': '0000', 'bus': '81', 'slot': '00', 'function': ''}}",
                  "0000:81:10.1", "0000:81:00.0", false },
                { "H5: or a part of the digits",
                  "{'address': {'domain': '0', 'bus': '8', 'slot': '0', 'function': '0'}}",
                  "0000:81:10.1", "0000:81:00.0", false },
                { "H5: but no glob", "{'address': '0000:81:00.*'}", "0000:81:10.1", "0000:81:00.0",
                  false },
                { "H5: ids count for VFs, too", "{'address': '0000:81:00.0', 'product_id': '1572'}",
                  "0000:81:10.1", "0000:81:00.0", false },
                { "H5: devname is not looked up", "{'devname': 'eth0'}", "0000:81:00.0", "",
                  false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
                SnapshotDevice device = make_device(cases[i].address, cases[i].physical_function);
                Error error = ERROR_NULL;

                if (specs_add(&specs, cases[i].spec, &error) < 0)
                        fail_msg("%s: %s", cases[i].about, error.text);
                if ((pci_specs_find(&specs, &device) != NULL) != cases[i].match)
                        fail_msg("%s", cases[i].about);
        }
}

/* A match of a costly pattern ends at its limits, and matches nothing. */
static void test_costly_patterns_end(void **state)
{
        static const char *const patterns[] = {
                "((((((((((a?)*)*)*)*)*)*)*)*)*)*b",
                "(((.*)*)*)*(((.*)*)*)*(((.*)*)*)*z",
                "(a|a?)+(a|a?)+(a|a?)+(a|a?)+b",
        };

        for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
                _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
                SnapshotDevice device = make_device("aaaa:81:00.0", "");
                char spec[256];

                snprintf(spec, sizeof(spec), "{'address': {'domain': '%s'}}", patterns[i]);
                assert_int_equal(specs_add(&specs, spec, NULL), 0);
                assert_null(pci_specs_find(&specs, &device));
        }
}

static void test_managed(void **state)
{
        static const struct {
                const char *spec;
                bool managed;
        } cases[] = { { "{}", true },
                      { "{'managed': 'yes'}", true },
                      { "{'managed': 'no'}", false },
                      { "{'managed': false}", false } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
                SnapshotDevice device = make_device("0000:81:00.0", "");

                assert_int_equal(specs_add(&specs, cases[i].spec, NULL), 0);
                assert_int_equal(pci_specs_find(&specs, &device)->managed, cases[i].managed);
        }
}

/* As in Nova: a device without a serial number does not match, so the next spec is tried. */
static void test_remote_managed(void **state)
{
        _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
        SnapshotDevice device = make_device("0000:81:00.2", "0000:81:00.0");

        assert_int_equal(specs_add(&specs, "[{'remote_managed': 'true'}, {'managed': 'no'}]", NULL),
                         0);
        assert_false(pci_specs_find(&specs, &device)->remote_managed);
        device.has_card_serial = true;
        assert_true(pci_specs_find(&specs, &device)->remote_managed);
}

static void test_refused(void **state)
{
        static const struct {
                const char *spec, *words;
        } cases[] = {
                { "", "not JSON" },
                { "{'address': ", "not JSON" },
                { "'0000:81:00.0'", "not JSON" },
                { "[{}, 5]", "a JSON object is expected" },
                { "{'vendor_id': 'NVIDIA'}", "vendor_id \"NVIDIA\" is not a hexadecimal number" },
                { "{'vendor_id': 4318}", "vendor_id must be a string" },
                { "{'vendor_id': ''}", "vendor_id \"\" is no" },
                { "{'vendor_id': '-1'}", "vendor_id \"-1\" is no" },
                { "{'product_id': '10000'}", "product_id 10000 is greater than FFFF" },
                { "{'address': '10000:81:00.0'}", "address: domain 10000 is greater than FFFF" },
                { "{'address': '0000:100:00.0'}", "bus 100 is greater than FF" },
                { "{'address': '0000:81:20.0'}", "slot 20 is greater than 1F" },
                { "{'address': '0000:81:00.8'}", "function 8 is greater than 7" },
                { "{'address': '0000:81:00.0.0'}", "function \"0.0\" is no" },
                { "{'address': '0:0:0:0.0'}", "more than three colons" },
                { "{'address': '8*:00.0'}", "bus \"8*\" is no" },
                { "{'address': 5}", "address must be a string" },
                { "{'address': {'bus': '['}}", "address: bus: \"[\": " },
                { "{'address': {'bus': 'a)|(b'}}", "address: bus" },
                { "{'address': {'bus': 5}}", "bus must be a string" },
                { "{'address': {'bus': '(?R)'}}", "Python does not support \"(?R)\"" },
                { "{'address': {'bus': '\\\\h'}}", "Python does not support" },
                { "{'address': {'bus': '[[:digit:]]'}}", "reads it differently" },
                { "{'address': {'bus': '(?xx:[8 -9])1'}}", "reads it differently" },
                { "{'address': {'bus': '(?x-x:8)'}}", "reads it differently" },
                { "{'address': {'bus': '(?#\\\\)8)1'}}", "reads it differently" },
                { "{'address': {'bus': '(?#8'}}", "reads it differently" },
                { "{'address': {'bus': '(?P<DEFINE>8)(?(DEFINE)2)'}}", "reads it differently" },
                { "{'address': {'bus': '(?P<R>8)(?(R)2)'}}", "reads it differently" },
                { "{'address': {'bus': '(8)(?(+1)2)'}}", "reads it differently" },
                { "{'address': {'bus': '(?P<n>8)(?(<n>)2)'}}", "reads it differently" },
                { "{'address': {'bus': '(?P<n>8)(?(\\u0027n\\u0027)2)'}}", "reads it differently" },
                { "{'address': {'bus': '8{1, 2}'}}", "reads it differently" },
                { "{'address': {'bus': '8{ ,2}'}}", "reads it differently" },
                { "{'address': {'bus': '(?x)8#[\\n(?R)'}}", "reads it differently" },
                { "{'address': {'bus': '(?x)8\\u200e1'}}", "reads it differently" },
                { "{'address': {'bus': '()()()()()()()()()()(8)\\\\118'}}",
                  "reads it differently" },
                { "{'address': {'bus': '(((8{1000}){1000}){1000})'}}", "too large" },
                { "{'address': '0000:81:00.0', 'devname': 'eth0'}", "address and devname" },
                { "{'live_migratable': 'perhaps'}", "live_migratable: \"perhaps\" is neither" },
                { "{'managed': 2}", "managed: \"?\" is neither" },
                { "{'resource_class': 'CUSTOM_Ü'}", "cannot become a name in Placement" },
                { "{'resource_class': 'CUSTOM_A-B'}", "cannot become a name in Placement" },
                { "{'resource_class': 7}", "resource_class must be a string" },
                { "{'traits': 'CUSTOM_A B'}", "cannot become a name in Placement" },
                { "{'traits': ['CUSTOM_A']}", "traits must be a string" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
                Error error = ERROR_NULL;

                assert_int_equal(specs_add(&specs, cases[i].spec, &error), -EINVAL);
                if (!strstr(error.text, cases[i].words))
                        fail_msg("%s: %s", cases[i].spec, error.text);
        }
}

static void test_c7_names(void **state)
{
        static const struct {
                const char *spec, *resource_class, *traits;
        } cases[] = {
                { "{}", "CUSTOM_PCI_10DE_1EB8", "" },
                { "{'resource_class': 'pgpu'}", "PGPU", "" },
                { "{'resource_class': 'CUSTOM_GPU'}", "CUSTOM_GPU", "" },
                { "{'resource_class': 'custom_gpu'}", "CUSTOM_GPU", "" },
                { "{'resource_class': 'my gpu--x__y'}", "CUSTOM_MY_GPU_X_Y", "" },
                { "{'resource_class': ''}", "CUSTOM_PCI_10DE_1EB8", "" },
                { "{'traits': 'HW_GPU_API_VULKAN,CUSTOM_A,blue,custom_b'}", "CUSTOM_PCI_10DE_1EB8",
                  "CUSTOM_A CUSTOM_B CUSTOM_BLUE HW_GPU_API_VULKAN " },
                { "{'traits': 'a, b'}", "CUSTOM_PCI_10DE_1EB8", "CUSTOM_A CUSTOM__B " },
                { "{'live_migratable': 'yes'}", "CUSTOM_PCI_10DE_1EB8", "HW_PCI_LIVE_MIGRATABLE " },
                { "{'one_time_use': true, 'live_migratable': false}", "CUSTOM_PCI_10DE_1EB8",
                  "HW_PCI_ONE_TIME_USE " },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
                _cleanup_(string_set_done) StringSet traits = STRING_SET_INIT;
                SnapshotDevice device = make_device("0000:81:00.0", "");
                char name[RESOURCE_CLASS_MAX + 1], all[512] = "";
                const PciSpec *spec;

                assert_int_equal(specs_add(&specs, cases[i].spec, NULL), 0);
                spec = pci_specs_find(&specs, &device);
                assert_non_null(spec);
                pci_spec_resource_class(spec, &device, name);
                assert_string_equal(name, cases[i].resource_class);
                assert_int_equal(pci_spec_add_traits(spec, &traits), 0);
                assert_true(string_set_remove(&traits, "COMPUTE_MANAGED_PCI_DEVICE"));
                for (size_t j = 0; j < traits.n_items; j++) {
                        strcat(all, traits.items[j]);
                        strcat(all, " ");
                }
                assert_string_equal(all, cases[i].traits);
        }
}

static void test_first_match_counts(void **state)
{
        _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
        SnapshotDevice device = make_device("0000:81:00.0", "");
        char name[RESOURCE_CLASS_MAX + 1];

        assert_int_equal(
                specs_add(
                        &specs,
                        "[{'vendor_id': '8086', 'resource_class': 'A'}, {'vendor_id': '10de', 'resource_class': 'B'}]",
                        NULL),
                0);
        assert_int_equal(specs_add(&specs, "{'resource_class': 'C'}", NULL), 0);
        pci_spec_resource_class(pci_specs_find(&specs, &device), &device, name);
        assert_string_equal(name, "CUSTOM_B");
        device.is_pci = false;
        assert_null(pci_specs_find(&specs, &device));
}

static void test_c7_checks(void **state)
{
        static const struct {
                const char *spec;
                bool report;
                const char *words; /* NULL: allowed */
        } cases[] = {
                { "{'devname': 'eth0'}", false, NULL },
                { "{'devname': 'eth0'}", true, "devname \"eth0\"" },
                { "{'one_time_use': 'yes'}", true, NULL },
                { "{'one_time_use': 'yes'}", false, "one_time_use needs" },
                { "{'one_time_use': 'no'}", false, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
                Error error = ERROR_NULL;
                int r;

                assert_int_equal(specs_add(&specs, cases[i].spec, NULL), 0);
                r = pci_specs_check(&specs, cases[i].report, &error);
                assert_int_equal(r, cases[i].words ? -EINVAL : 0);
                assert_non_null(strstr(error.text, cases[i].words ? cases[i].words : ""));
        }
}

static void test_limits(void **state)
{
        _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
        _cleanup_free_ char *text = malloc(PCI_SPEC_TEXT_MAX + 2);

        memset(text, '[', PCI_SPEC_TEXT_MAX + 1);
        text[PCI_SPEC_TEXT_MAX + 1] = '\0';
        assert_int_equal(pci_specs_add(&specs, text, NULL), -EINVAL);
        text[PCI_SPEC_TEXT_MAX] = '\0';
        assert_int_equal(pci_specs_add(&specs, text, NULL), -EINVAL);
        for (size_t i = 0; i < PCI_SPECS_MAX; i++)
                assert_int_equal(pci_specs_add(&specs, "{}", NULL), 0);
        assert_int_equal(pci_specs_add(&specs, "{}", NULL), -EINVAL);
}

TEST_MAIN(test_matching, test_costly_patterns_end, test_managed, test_remote_managed, test_refused,
          test_c7_names, test_first_match_counts, test_c7_checks, test_limits)
