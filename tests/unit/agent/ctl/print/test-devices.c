/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/devices.h"

#include <locale.h>

#include "tests/fixtures/ctl-capture.h"
#include "tests/fixtures/ctl-claim.h"

typedef int (*Printer)(const json_t *document, const CtlStyle *style, FILE *output);

static void print(Printer printer, const char *text, Capture *capture)
{
        _cleanup_(json_done) json_t *document = parse_json(text);
        const CtlStyle style = STYLE_PIPE;

        capture_begin(capture);
        assert_int_equal(printer(document, &style, capture->stream), 0);
        capture_end(capture);
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

static void test_layout(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print(ctl_show_print,
              "{\"id\": 7, \"consumer_type\": \"INSTANCE\", \"allocations\": [], \"devices\": ["
              "{\"device\": \"pci_1\", \"address\": \"0000:41:00.0\", \"exists\": true}],"
              " \"cells\": [{\"cell\": 0, \"host_cell\": 1, \"memory_mb\": 512, \"page_kib\": 0,"
              " \"vcpus\": \"0-1\"}, {\"cell\": 1, \"host_cell\": 3, \"memory_mb\": 64,"
              " \"page_kib\": 2048, \"vcpus\": \"2\"}], \"cpus\": [{\"vcpu\": 0, \"dedicated\":"
              " true, \"cpus\": \"4\"}, {\"vcpu\": 1, \"dedicated\": false, \"cpus\": \"2-3\"},"
              " {\"vcpu\": 2, \"dedicated\": true, \"cpus\": \"8\"}]}",
              &capture);
        assert_contains(capture.text, "Type: INSTANCE");
        assert_contains(capture.text, "small  0-1   0=4 1=2-3\n");
        assert_contains(capture.text, "2048 KiB  2     2=8\n");
        assert_contains(capture.text, "0000:41:00.0  -     -");
}

static void test_mappings(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print(ctl_mappings_print, CLAIM(""), &capture);
        assert_string_equal(capture.text, "");
        capture_done(&capture);
        print(ctl_mappings_print, "{\"mappings\": {\"\": [\"p\"]}}", &capture);
        assert_string_equal(capture.text, "");
        capture_done(&capture);
        print(ctl_mappings_print,
              "{\"allocations\": [{\"provider\": \"p\", \"name\": \"host_gpu\"}],"
              " \"devices\": [{\"provider\": \"p\", \"group\": \"_A\", \"device\": \"pci_1\"},"
              " {\"provider\": \"p\", \"group\": \"_B\", \"device\": \"pci_1\", \"mdev\":"
              " \"m1\"}, {\"provider\": \"p\", \"group\": \"_B\", \"device\": \"pci_1\","
              " \"mdev\": \"m2\"}], \"mappings\": {\"\": [\"h\", \"p\"], \"_A\": [\"p\"],"
              " \"_B\": [\"p\"], \"_C\": [\"q\", 5], \"_D\": 7}}",
              &capture);
        assert_string_equal(capture.text, "\n"
                                          "GROUP  PROVIDER  DEVICE\n"
                                          "_A     host_gpu  pci_1\n"
                                          "_B     host_gpu  m1\n"
                                          "_B     host_gpu  m2\n"
                                          "_C     q         -\n");
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
              "\"\", \"name\": \"host\", \"class\": \"VCPU\", \"term\": \"capacity\", \"missing\": 3, \"text\": \"asks for 5\"}]}",
              &capture);
        assert_contains(capture.text, "It does not fit:\nVCPU: too much\n");
        assert_contains(capture.text, "capacity        3  asks for 5");
        capture_done(&capture);
        print(ctl_explain_print, "{\"fits\": true, \"summary\": \"\", \"providers\": []}",
              &capture);
        assert_string_equal(capture.text, "It fits.\n");
}

TEST_MAIN_AFTER(setlocale(LC_ALL, "C.UTF-8"), NULL, NULL, test_show, test_layout, test_mappings,
                test_problems, test_explain)
