/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl-devices.h"

#include <locale.h>

#include "tests/ctl-capture.h"

#define MDEV_1 "33333333-2222-4333-8444-555555555501"
#define MDEV_2 "33333333-2222-4333-8444-555555555502"
#define DEVICE(name, mdev, exists)                                                       \
        "{\"provider\": \"p\", \"group\": \"\", \"device\": \"" name "\", \"address\": " \
        "\"0000:41:00.0\", \"mdev_type\": \"nvidia-35\", \"mdev\": \"" mdev              \
        "\", \"exists\": " exists "}"
#define CLAIM(devices)                                                                         \
        "{\"id\": 7, \"consumer\": \"c\", \"state\": \"confirmed\", \"created_usec\": "        \
        "1699999940000000, \"expires_usec\": 0, \"ended_usec\": 0, \"end_reason\": \"\", "     \
        "\"boot_id\": \"b\", \"allocations\": [{\"provider\": \"p\", \"name\": \"host_gpu\", " \
        "\"resources\": {\"VGPU\": 2}}], \"devices\": [" devices "]}"

typedef int (*Printer)(const json_t *document, const CtlStyle *style, FILE *output);

static void print(Printer printer, const char *text, Capture *capture)
{
        _cleanup_(json_done) json_t *document = parse_json(text);
        const CtlStyle style = STYLE_PIPE;

        capture_begin(capture);
        assert_int_equal(printer(document, &style, capture->stream), 0);
        capture_end(capture);
}

static int print_xml(const json_t *claim, const CtlStyle *style, FILE *output)
{
        ctl_xml_print(claim, output);
        return 0;
}

static void test_show(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print(ctl_show_print,
              CLAIM(DEVICE("pci_1", MDEV_1, "true") "," DEVICE("pci\\u001b[m", MDEV_2, "false")),
              &capture);
        assert_contains(capture.text, "Claim 7\n");
        assert_contains(capture.text, "State: confirmed");
        assert_contains(capture.text, "Created: ");
        assert_lacks(capture.text, "Expires");
        assert_lacks(capture.text, "Project");
        assert_contains(capture.text, "host_gpu  VGPU=2");
        assert_contains(capture.text, "pci_1");
        assert_contains(capture.text, MDEV_1);
        assert_contains(capture.text, "pci\\x1b[m");
        assert_contains(capture.text, "to be made");
}

static void test_xml(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print(print_xml, CLAIM(DEVICE("pci_1", MDEV_1, "true")), &capture);
        assert_string_equal(capture.text,
                            "<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci'>\n"
                            "  <source>\n    <address uuid='" MDEV_1 "'/>\n  </source>\n"
                            "</hostdev>\n");
}

/* Names are foreign: none can end the comment or begin an element; a uuid that is none is left out.
 */
static void test_xml_of_foreign_names(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print(print_xml,
              CLAIM(DEVICE("x--><evil/>", MDEV_2, "false") "," DEVICE("y", "'/><evil", "true")),
              &capture);
        assert_contains(capture.text, "<parent>x?-?\?evil?\?</parent>");
        assert_contains(capture.text, "<uuid>" MDEV_2 "</uuid>");
        assert_contains(capture.text, "<type id='nvidia-35'/>");
        assert_lacks(capture.text, "evil/");
        assert_lacks(capture.text, "'/><evil");
}

static void test_problems(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print(ctl_problems_print, "{\"problems\": []}", &capture);
        assert_string_equal(capture.text, "Claims and guests agree.\n");
        capture_done(&capture);
        print(ctl_problems_print,
              "{\"problems\": [{\"consumer\": \"c\", \"claim\": 7, \"text\": \"guest x\"},"
              "{\"consumer\": \"\", \"claim\": 0, \"text\": \"host y\"}]}",
              &capture);
        assert_contains(capture.text, "    7  c      guest x\n");
        assert_contains(capture.text, "    -  -      host y\n");
}

static void test_explain(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print(ctl_explain_print,
              "{\"fits\": false, \"summary\": \"VCPU: too much\", \"providers\": [{\"group\": "
              "\"\", \"name\": \"host\", \"class\": \"VCPU\", \"term\": \"capacity\", \"missing\": "
              "3, \"text\": \"asks for 5\"}]}",
              &capture);
        assert_contains(capture.text, "It does not fit:\nVCPU: too much\n");
        assert_contains(capture.text, "capacity        3  asks for 5");
        capture_done(&capture);
        print(ctl_explain_print, "{\"fits\": true, \"summary\": \"\", \"providers\": []}",
              &capture);
        assert_string_equal(capture.text, "It fits.\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_show),
                cmocka_unit_test(test_xml),
                cmocka_unit_test(test_xml_of_foreign_names),
                cmocka_unit_test(test_problems),
                cmocka_unit_test(test_explain),
        };

        setlocale(LC_ALL, "C.UTF-8");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
