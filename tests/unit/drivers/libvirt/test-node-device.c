/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses the XML of node devices. The texts have the form of libvirt, shortened. */
#include "drivers/libvirt/node-device.h"
#include "tests/unit/test.h"

#define UUID    "c60cc60c-c60c-4c60-8c60-c60cc60cc60c"
#define UUID_   "c60cc60c_c60c_4c60_8c60_c60cc60cc60c"
#define ADDRESS "<domain>0</domain><bus>65</bus><slot>0</slot><function>1</function>"

static void parse(const char *text, NodeDevice *ret)
{
        Error error = ERROR_NULL;

        if (node_device_parse(text, ret, &error) != 0)
                fail_msg("%s", error.text);
}

/* Parses a PCI function with these members. */
static void parse_function(const char *members, NodeDevice *ret)
{
        char text[1024];

        snprintf(text, sizeof(text),
                 "<device><name>pci_0000_41_00_1</name><capability type='pci'>" ADDRESS
                 "%s</capability></device>",
                 members);
        parse(text, ret);
}

static void test_gpu(void **state)
{
        _cleanup_(node_device_done) NodeDevice node = { 0 };
        const SnapshotDevice *gpu = &node.device;

        parse("<device><name>pci_0000_41_00_1</name><path>/sys/x</path>"
              "<parent>pci_0000_40_01_0</parent><driver><name>nvidia</name></driver>"
              "<capability type='pci'><class>0x030200</class>" ADDRESS
              "<product id='0x13bd'>GM107GL [Tesla &quot;M10&quot;]</product>"
              "<vendor id='0x10de'>NVIDIA Corporation</vendor>"
              "<capability type='virt_functions' maxCount='16'/>"
              "<capability type='mdev_types'>"
              "<type id='nvidia-35'><name>GRID M10-0B</name><deviceAPI>vfio-pci</deviceAPI>"
              "<availableInstances>15</availableInstances></type>"
              "<type id='nvidia-36'><deviceAPI>vfio-pci</deviceAPI>"
              "<availableInstances>0</availableInstances></type></capability>"
              "<iommuGroup number='27'><address domain='0x0000' bus='0x41' slot='0x00'"
              " function='0x1'/></iommuGroup><numa node='2'/></capability></device>",
              &node);
        assert_int_equal(node.kind, NODE_DEVICE_DEVICE);
        assert_string_equal(gpu->name, "pci_0000_41_00_1");
        assert_string_equal(gpu->parent, "pci_0000_40_01_0");
        assert_string_equal(gpu->driver, "nvidia");
        assert_true(gpu->is_pci);
        assert_string_equal(gpu->address, "0000:41:00.1");
        assert_int_equal(gpu->vendor_id, 0x10de);
        assert_int_equal(gpu->product_id, 0x13bd);
        assert_int_equal(gpu->class_code, 0x030200);
        assert_string_equal(gpu->vendor, "NVIDIA Corporation");
        assert_string_equal(gpu->product, "GM107GL [Tesla \"M10\"]");
        assert_int_equal(gpu->numa_node, 2);
        assert_true(gpu->is_physical_function);
        assert_int_equal(gpu->max_virtual_functions, 16);
        assert_string_equal(gpu->physical_function, "");
        assert_int_equal(gpu->n_mdev_types, 2);
        assert_string_equal(gpu->mdev_types[0].id, "nvidia-35");
        assert_string_equal(gpu->mdev_types[0].name, "GRID M10-0B");
        assert_int_equal(gpu->mdev_types[0].available_instances, 15);
        assert_string_equal(gpu->mdev_types[1].name, "");
}

static void test_virtual_function(void **state)
{
        _cleanup_(node_device_done) NodeDevice node = { 0 };

        parse_function("<capability type='phys_function'><address domain='0x0000' bus='0x41'"
                       " slot='0x00' function='0x0'/></capability>",
                       &node);
        assert_int_equal(node.kind, NODE_DEVICE_DEVICE);
        assert_string_equal(node.device.physical_function, "0000:41:00.0");
        assert_false(node.device.is_physical_function);
        assert_string_equal(node.device.driver, "");
        assert_string_equal(node.device.vendor, "");
        assert_string_equal(node.device.parent, "");
        assert_int_equal(node.device.numa_node, NUMA_NODE_NONE);
}

/* Only the read-only part has the serial number of the card. */
static void test_card_serial(void **state)
{
        static const struct {
                const char *vpd;
                bool has;
        } cases[] = {
                { "", false },
                { "<capability type='vpd'><name>n</name><fields access='readonly'>"
                  "<part_number>p</part_number></fields></capability>",
                  false },
                { "<capability type='vpd'><name>n</name><fields access='readonly'>"
                  "<serial_number/></fields></capability>",
                  false },
                { "<capability type='vpd'><name>n</name><fields access='readwrite'>"
                  "<serial_number>s</serial_number></fields></capability>",
                  false },
                { "<capability type='vpd'><name>n</name><fields access='readwrite'/>"
                  "<fields access='readonly'><serial_number>MT2113X00000</serial_number></fields>"
                  "</capability>",
                  true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(node_device_done) NodeDevice node = { 0 };

                parse_function(cases[i].vpd, &node);
                assert_int_equal(node.device.has_card_serial, cases[i].has);
                assert_string_equal(node.device.serial, cases[i].has ? "MT2113X00000" : "");
        }
}

/* Parents that are not PCI functions. A device in a PCI domain of 32 bits is none either. */
static void test_other_parents(void **state)
{
        static const char types[] = "<capability type='mdev_types'><type id='t-1'>"
                                    "<deviceAPI>vfio-pci</deviceAPI><availableInstances>24"
                                    "</availableInstances></type></capability>";
        static const struct {
                const char *prefix, *suffix;
        } cases[] = {
                { "", "" }, /* mtty */
                { "<capability type='css'><cssid>0</cssid><ssid>0</ssid>", "</capability>" },
                { "<capability type='ap_matrix'>", "</capability>" },
                { "<capability type='pci'><domain>65536</domain><bus>1</bus><slot>0</slot>"
                  "<function>0</function>",
                  "</capability>" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(node_device_done) NodeDevice node = { 0 };
                char text[1024];

                snprintf(text, sizeof(text), "<device><name>mtty_mtty</name>%s%s%s</device>",
                         cases[i].prefix, types, cases[i].suffix);
                parse(text, &node);
                assert_int_equal(node.kind, NODE_DEVICE_DEVICE);
                assert_string_equal(node.device.name, "mtty_mtty");
                assert_false(node.device.is_pci);
                assert_string_equal(node.device.address, "");
                assert_int_equal(node.device.mdev_types[0].available_instances, 24);
        }
}

/* G4.8: since 7.7 libvirt appends the parent to the uuid */
static void test_mdev_names_g4_8(void **state)
{
        static const struct {
                const char *name, *uuid_element;
        } cases[] = {
                { "mdev_" UUID_ "_0000_41_00_0", "" },
                { "mdev_" UUID_, "" },
                { "mdev_" UUID_ "_mtty_mtty", "<uuid>C60CC60C-C60C-4C60-8C60-C60CC60CC60C</uuid>" },
                { "whatever", "<uuid>" UUID "</uuid>" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(node_device_done) NodeDevice node = { 0 };
                char text[1024];

                snprintf(text, sizeof(text),
                         "<device><name>%s</name><parent>pci_0000_41_00_0</parent>"
                         "<capability type='mdev'><type id='nvidia-35'/>%s"
                         "<iommuGroup number='3'/></capability></device>",
                         cases[i].name, cases[i].uuid_element);
                parse(text, &node);
                assert_int_equal(node.kind, NODE_DEVICE_MDEV);
                assert_string_equal(node.mdev.uuid.text, UUID);
                assert_string_equal(node.mdev.type, "nvidia-35");
                assert_string_equal(node.mdev.parent, "pci_0000_41_00_0");
        }
}

static void test_kinds(void **state)
{
        static const struct {
                const char *text;
                int kind;
        } cases[] = {
                { "<device><name>computer</name><capability type='system'/></device>",
                  NODE_DEVICE_OTHER },
                { "<device><name>x</name></device>", NODE_DEVICE_OTHER },
                { "<device><name>x</name><capability/></device>", NODE_DEVICE_OTHER },
                { "<device><name>x</name><capability type='pci'><domain>65536</domain>"
                  "<bus>1</bus><slot>0</slot><function>0</function></capability></device>",
                  NODE_DEVICE_OTHER },
                { "<device><name>vdpa_0</name><parent>pci_0000_05_00_2</parent>"
                  "<capability type='vdpa'/></device>",
                  NODE_DEVICE_VDPA },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(node_device_done) NodeDevice node = { 0 };

                parse(cases[i].text, &node);
                assert_int_equal(node.kind, cases[i].kind);
        }
}

#define PCI(inside) "<device><name>p</name><capability type='pci'>" inside "</capability></device>"
#define MDEV(name, inside)                                                               \
        "<device><name>" name "</name><parent>p</parent><capability type='mdev'>" inside \
        "</capability></device>"

static void test_hostile(void **state)
{
        static const struct {
                const char *text, *words;
        } cases[] = {
                { "", "Not XML" },
                { "<node/>", "Expected <device>" },
                { "<device/>", "no name" },
                { "<device><name> </name></device>", "no name" },
                { PCI(""), "p: domain is missing" },
                { PCI("<domain>0</domain><bus>0</bus><slot>0</slot>"), "function is missing" },
                { PCI("<domain>-1</domain>"), "domain is not a number" },
                { PCI("<class>red</class>" ADDRESS), "class is not a number" },
                { PCI(ADDRESS "<vendor id='0x1ffffffff'/>"), "vendor is too large" },
                { PCI(ADDRESS "<numa node='-1'/>"), "numa node is not a number" },
                { PCI(ADDRESS "<numa node='2147483648'/>"), "numa node is too large" },
                { PCI(ADDRESS "<capability type='virt_functions' maxCount='many'/>"), "maxCount" },
                { PCI(ADDRESS "<capability type='phys_function'><address/></capability>"),
                  "domain is missing" },
                { PCI(ADDRESS "<capability type='mdev_types'><type/></capability>"), "no id" },
                { PCI(ADDRESS "<capability type='mdev_types'><type id='t'/></capability>"),
                  "availableInstances is missing" },
                { PCI(ADDRESS "<capability type='mdev_types'><type id='t'><availableInstances>"
                              "99999999999999999999</availableInstances></type></capability>"),
                  "availableInstances is too large" },
                { MDEV("mdev_1", "<type id='t'/>"), "No uuid" },
                { MDEV("mdev_" UUID_ "x", "<type id='t'/>"), "No uuid" },
                { MDEV("mdev_" UUID_, ""), "No type" },
                { "<device><name>mdev_" UUID_ "</name><capability type='mdev'><type id='t'/>"
                  "</capability></device>",
                  "No parent" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(node_device_done) NodeDevice node = { 0 };
                Error error = ERROR_NULL;
                int r = node_device_parse(cases[i].text, &node, &error);

                if (r != -EBADMSG || !strstr(error.text, cases[i].words))
                        fail_msg("%s: %d, \"%s\"", cases[i].text, r, error.text);
                assert_null(node.device.name);
                assert_null(node.mdev.type);
        }
}

/* The next poll reads these devices again, even without an event. */
static void test_changes_silently(void **state)
{
        static const struct {
                const char *members;
                bool expected;
        } cases[] = {
                { "<class>0x030200</class>", true },
                { "<class>0x030000</class><driver><name>nvidia</name></driver>", true },
                { "<class>0x120000</class>", true },
                { "<class>0x020000</class>", false },
                { "<class>0x020000</class><capability type='virt_functions' maxCount='64'/>",
                  false },
                { "<class>0x0b4000</class><capability type='virt_functions' maxCount='16'/>",
                  true },
                { "<class>0x0b4000</class>", false },
                { "<class>0x030200</class><capability type='phys_function'><address domain='0'"
                  " bus='0x41' slot='0' function='0'/></capability>",
                  true },
                { "", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(node_device_done) NodeDevice node = { 0 };

                parse_function(cases[i].members, &node);
                if (snapshot_device_changes_silently(&node.device) != cases[i].expected)
                        fail_msg("%s", cases[i].members);
        }
}

/* A host can have many virtual functions. One with a driver is complete, so it does not change
 * silently. */
static void test_a_bound_virtual_function_tells_its_changes(void **state)
{
        _cleanup_(node_device_done) NodeDevice node = { 0 };

        parse("<device><name>pci_0000_41_00_1</name><driver><name>nvidia</name></driver>"
              "<capability type='pci'><class>0x030200</class>" ADDRESS
              "<capability type='phys_function'><address domain='0x0000' bus='0x41' slot='0x00'"
              " function='0x0'/></capability></capability></device>",
              &node);
        assert_false(snapshot_device_changes_silently(&node.device));
}

TEST_MAIN(test_gpu, test_virtual_function, test_card_serial, test_other_parents,
          test_mdev_names_g4_8, test_kinds, test_hostile, test_changes_silently,
          test_a_bound_virtual_function_tells_its_changes)
