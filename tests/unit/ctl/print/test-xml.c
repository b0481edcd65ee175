/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/xml.h"

#include <locale.h>

#include "base/json.h"
#include "tests/fixtures/ctl-capture.h"
#include "tests/fixtures/ctl-claim.h"

/* A host with the domain of one guest: its emulator and I/O threads are pinned. */
#define GUEST "11111111-2222-4333-8444-555555555555"
static const char host[] = "{'domains': [{'uuid': 'other', 'emulator_cpus': '9'}, {'uuid': '" GUEST
                           "', 'emulator_cpus': '4-5', 'iothread_cpus': '6', 'config_cpus': '7'}]}";

static void print(const json_t *claim, CtlPage *page)
{
        _cleanup_json_ json_t *document = parse_quoted(host);

        ctl_xml_print(claim, document, page);
}

static void print_without_host(const json_t *claim, CtlPage *page)
{
        ctl_xml_print(claim, NULL, page);
}

static void test_devices(void **state)
{
        _cleanup_(capture_done) Capture capture, foreign;
        static const PrintRow rows[] = {
                { "{'devices': [{'address': '0000:41:1f.7', 'mdev': ''},"
                  " {'address': '0000:41:00.0\\u0027/>', 'mdev': ''}, {'address': ''}]}",
                  .text = "<hostdev mode='subsystem' type='pci' managed='yes'>\n  <source>\n"
                          "    <address domain='0x0000' bus='0x41' slot='0x1f' function='0x7'/>\n"
                          "  </source>\n</hostdev>\n" },
                /* With managed "no" in [pci] device_spec, the operator binds the driver. */
                { "{'devices': [{'address': '0000:41:1f.7', 'mdev': '', 'managed': false}]}",
                  .has = { "type='pci' managed='no'>" } },
        };

        capture_print(&capture, print, parse_json(CLAIM(DEVICE("pci_1", MDEV_1, "true"))),
                      STYLE_PIPE);
        assert_string_equal(capture.text,
                            "<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci'>\n"
                            "  <source>\n    <address uuid='" MDEV_1 "'/>\n  </source>\n"
                            "</hostdev>\n");
        /* Names can be arbitrary text: none can end the comment or begin an element. An invalid
         * uuid is left out. */
        capture_print(&foreign, print,
                      parse_json(CLAIM(DEVICE("x--><evil/>", MDEV_2,
                                              "false") "," DEVICE("y", "'/><evil", "true"))),
                      STYLE_PIPE);
        assert_contains(foreign.text, "<parent>x?-?\?evil?\?</parent>");
        assert_contains(foreign.text, "<uuid>" MDEV_2 "</uuid>");
        assert_contains(foreign.text, "<type id='nvidia-35'/>");
        assert_lacks(foreign.text, "evil/");
        assert_lacks(foreign.text, "'/><evil");
        check_rows(print, rows, ARRAY_SIZE(rows));
}

static void test_layout(void **state)
{
        static const PrintRow row = {
                "{'devices': [{'address': '0000:41:00.0'}],"
                " 'cells': [{'cell': 0, 'host_cell': 1, 'memory_mb': 512, 'page_kib': 0,"
                " 'vcpus': '0-1'}, {'cell': 1, 'host_cell': 3, 'memory_mb': 64,"
                " 'page_kib': 2048, 'vcpus': '2'}], 'cpus': [{'vcpu': 0, 'cpus': '4'},"
                " {'vcpu': 1, 'cpus': '2-3'}, {'vcpu': 2, 'cpus': '8\\u0027/>'}]}",
                .text = "<memory unit='MiB'>576</memory>\n<vcpu placement='static'>3</vcpu>\n<cputune>\n"
                        "  <vcpupin vcpu='0' cpuset='4'/>\n  <vcpupin vcpu='1' cpuset='2-3'/>\n"
                        "  <vcpupin vcpu='2'/>\n  <emulatorpin cpuset='2-4'/>\n</cputune>\n"
                        "<numatune>\n  <memory mode='strict' nodeset='1,3'/>\n"
                        "  <memnode cellid='0' mode='strict' nodeset='1'/>\n"
                        "  <memnode cellid='1' mode='strict' nodeset='3'/>\n</numatune>\n"
                        "<memoryBacking>\n  <hugepages>\n    <page size='2048' unit='KiB' nodeset='1'/>\n"
                        "  </hugepages>\n</memoryBacking>\n<cpu>\n  <numa>\n"
                        "    <cell id='0' cpus='0-1' memory='512' unit='MiB'/>\n"
                        "    <cell id='1' cpus='2' memory='64' unit='MiB'/>\n  </numa>\n</cpu>\n"
                        "<!-- insert into <devices>: -->\n"
                        "<hostdev mode='subsystem' type='pci' managed='yes'>\n  <source>\n"
                        "    <address domain='0x0000' bus='0x41' slot='0x00' function='0x0'/>\n"
                        "  </source>\n</hostdev>\n",
        };

        check_rows(print, &row, 1);
}

/* The emulator threads of a guest keep their pin. The claim also holds CPUs for its I/O threads and
 * for its next start. */
static void test_emulator(void **state)
{
#define PINNED                                                                             \
        "'cells': [{'cell': 0, 'host_cell': 1, 'memory_mb': 512, 'page_kib': 0,"           \
        " 'vcpus': '0-1'}], 'cpus': [{'vcpu': 0, 'cpus': '2'}, {'vcpu': 1, 'cpus': '3'}]," \
        " 'devices': [], 'held': '2-7'"
        static const PrintRow rows[] = {
                { "{" PINNED ", 'consumer': 'else', 'consumer_type': 'LIBVIRT'}",
                  .has = { "<emulatorpin cpuset='2-3'/>" } },
                { "{" PINNED ", 'consumer': '" GUEST "', 'consumer_type': 'LIBVIRT'}",
                  .has = { "<emulatorpin cpuset='4-5'/>" } },
                /* The layout of a request can differ from that of its guest. */
                { "{" PINNED ", 'consumer': '" GUEST "', 'consumer_type': 'INSTANCE'}",
                  .has = { "<emulatorpin cpuset='2-3'/>" } },
        };

        check_rows(print, rows, ARRAY_SIZE(rows));
        check_rows(print_without_host, rows, 1);
}

TEST_MAIN_AFTER(setlocale(LC_ALL, "C.UTF-8"), NULL, NULL, test_devices, test_layout, test_emulator)
