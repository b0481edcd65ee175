/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/devices.h"

#include <locale.h>

#include "tests/fixtures/ctl-capture.h"
#include "tests/fixtures/ctl-claim.h"

static void test_show(void **state)
{
        static const PrintRow rows[] = {
                { CLAIM(DEVICE("pci_1", MDEV_1, "true") "," DEVICE("pci\\u001b[m", MDEV_2,
                                                                   "false")),
                  .has = { "Claim 7\n", "State: confirmed", "Created: ", "host_gpu  VGPU=2" },
                  .lacks = { "Expires", "Project" } },
                { CLAIM(DEVICE("pci_1", MDEV_1, "true") "," DEVICE("pci\\u001b[m", MDEV_2,
                                                                   "false")),
                  .has = { "pci_1", MDEV_1, "pci\\x1b[m", "to be made" } },
                { "{'id': 7, 'consumer_type': 'INSTANCE', 'allocations': [], 'devices': ["
                  "{'device': 'pci_1', 'address': '0000:41:00.0', 'exists': true}],"
                  " 'cells': [{'cell': 0, 'host_cell': 1, 'memory_mb': 512, 'page_kib': 0,"
                  " 'vcpus': '0-1'}, {'cell': 1, 'host_cell': 3, 'memory_mb': 64,"
                  " 'page_kib': 2048, 'vcpus': '2'}], 'cpus': [{'vcpu': 0, 'dedicated': true,"
                  " 'cpus': '4'}, {'vcpu': 1, 'dedicated': false, 'cpus': '2-3'},"
                  " {'vcpu': 2, 'dedicated': true, 'cpus': '8'}]}",
                  .has = { "Type: INSTANCE", "small  0-1   0=4 1=2-3\n", "2048 KiB  2     2=8\n",
                           "0000:41:00.0  -     -" } },
        };

        check_rows(ctl_show_print, rows, ARRAY_SIZE(rows));
}

static void test_mappings(void **state)
{
        static const PrintRow rows[] = {
                { CLAIM(""), .text = "" },
                { "{'mappings': {'': ['p']}}", .text = "" },
                { "{'allocations': [{'provider': 'p', 'name': 'host_gpu'}],"
                  " 'devices': [{'provider': 'p', 'group': '_A', 'device': 'pci_1'},"
                  " {'provider': 'p', 'group': '_B', 'device': 'pci_1', 'mdev': 'm1'},"
                  " {'provider': 'p', 'group': '_B', 'device': 'pci_1', 'mdev': 'm2'}],"
                  " 'mappings': {'': ['h', 'p'], '_A': ['p'], '_B': ['p'], '_C': ['q', 5], '_D': 7}}",
                  .text = "\n"
                          "GROUP  PROVIDER  DEVICE\n"
                          "_A     host_gpu  pci_1\n"
                          "_B     host_gpu  m1\n"
                          "_B     host_gpu  m2\n"
                          "_C     q         -\n" },
        };

        check_rows(ctl_mappings_print, rows, ARRAY_SIZE(rows));
}

static void test_problems(void **state)
{
        static const PrintRow rows[] = {
                { "{'problems': []}", .text = "Claims and guests agree.\n" },
                { "{'problems': [{'consumer': 'c', 'claim': 7, 'text': 'guest x'},"
                  "{'consumer': '', 'claim': 0, 'text': 'host y'}]}",
                  .text = "CLAIM  GUEST  PROBLEM\n"
                          "    7  c      guest x\n"
                          "    -  -      host y\n" },
        };

        check_rows(ctl_problems_print, rows, ARRAY_SIZE(rows));
}

static void test_explain(void **state)
{
        static const PrintRow rows[] = {
                { "{'fits': false, 'summary': 'VCPU: too much', 'providers': [{'group': '',"
                  " 'name': 'host', 'class': 'VCPU', 'term': 'capacity', 'missing': 3,"
                  " 'text': 'asks for 5'}]}",
                  .has = { "It does not fit:\nVCPU: too much\n",
                           "capacity        3  asks for 5" } },
                { "{'fits': true, 'summary': '', 'providers': []}", .text = "It fits.\n" },
        };

        check_rows(ctl_explain_print, rows, ARRAY_SIZE(rows));
}

TEST_MAIN_AFTER(setlocale(LC_ALL, "C.UTF-8"), NULL, NULL, test_show, test_mappings, test_problems,
                test_explain)
