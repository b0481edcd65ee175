/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/host.h"

#include <locale.h>

#include "tests/fixtures/ctl-capture.h"

#define MDEV   "663a4c06-0bc7-5385-8dc8-1ccdf8d20dff"
#define DOMAIN "cf447404-72fa-5ea7-8367-d258ba73da75"

#define HOST                                                                            \
        "{'format': '" SNAPSHOT_FORMAT "', 'driver': 'libvirt', 'nodename': 'host1',"   \
        " 'arch': 'x86_64', 'hypervisor': 'QEMU', 'hypervisor_version': 7002011,"       \
        " 'memory_kib': 33554432, 'online_cpus': '0-1',"                                \
        " 'taken_realtime_usec': 1699999988000000,"                                     \
        " 'cells': [{'id': 0, 'memory_kib': 33554432, 'cpus': [{'id': 0}, {'id': 1}],"  \
        "  'pages': [{'size_kib': 4, 'count': 1000}, {'size_kib': 2048, 'count': 512}," \
        "  {'size_kib': 1048576, 'count': 0}]}, {'id': 3}],"                            \
        " 'devices': [{'name': 'pci_0000_41_00_0', 'address': '0000:41:00.0',"          \
        "  'class_code': 197120, 'product': 'GPU \\u001b[1m', 'driver': 'nvidia',"      \
        "  'numa_node': 1, 'mdev_types': [{'id': 'nvidia-35', 'name': 'V100',"          \
        "  'available_instances': 4}, {'id': 'nvidia-36', 'available_instances': 0,"    \
        "  'created_instances': 1, 'name': 'V36'}]},"                                   \
        "  {'name': 'mtty_mtty', 'mdev_types': [{'id': 'mtty-1',"                       \
        "  'available_instances': 24}]},"                                               \
        "  {'name': 'pci_0000_00_00_0', 'address': '0000:00:00.0',"                     \
        "  'class_code': 393216, 'vendor_id': 32902, 'product_id': 4120},"              \
        "  {'name': 'pci_0000_51_00_0', 'address': '0000:51:00.0',"                     \
        "  'is_physical_function': true, 'max_virtual_functions': 8},"                  \
        "  {'name': 'pci_0000_51_00_1', 'address': '0000:51:00.1',"                     \
        "  'physical_function': '0000:51:00.0'}],"                                      \
        " 'mdevs': [{'uuid': '" MDEV "', 'type': 'nvidia-35',"                          \
        "  'parent': 'pci_0000_41_00_0'}],"                                             \
        " 'domains': [{'uuid': '" DOMAIN "', 'name': 'guest', 'state': 'running',"      \
        "  'vcpus': 4, 'memory_kib': 4194304, 'mdevs': ['" MDEV "']}]}"

static void print(const json_t *document, CtlPage *page)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        Error error = ERROR_NULL;

        if (snapshot_from_json(document, &snapshot, &error) < 0)
                fail_msg("%s", error.text);
        ctl_host_print(snapshot, page);
}

static void test_pages(void **state)
{
        static const PrintRow rows[] = {
                { HOST,
                  .text = "host1\n"
                          "x86_64, QEMU 7.2.11, driver libvirt\n"
                          "2 CPUs, 32 GiB memory, no disk\n"
                          "polled Tue 2023-11-14 22:13:08 UTC; 12s ago\n"
                          "\n"
                          "NUMA cells (2)\n"
                          "CELL  MEMORY  CPUS  CPU LIST  HUGE PAGES\n"
                          "   0  32 GiB     2  0-1       512 × 2 MiB\n"
                          "   3   0 KiB     0\n"
                          "\n"
                          "Devices (4)\n"
                          "DEVICE        CELL  PRODUCT             DRIVER  TYPE         AVAILABLE  TYPE "
                          "NAME\n"
                          "mtty_mtty        -  0000:0000           -       mtty-1              24\n"
                          "0000:41:00.0     1  GPU \\x1b[1m         nvidia  nvidia-35            4  V100\n"
                          "                                                nvidia-36            0  V36 "
                          "(created)\n"
                          "0000:51:00.0     -  0000:0000           -       up to 8 VFs\n"
                          "0000:51:00.1     -  VF of 0000:51:00.0  -\n"
                          "1 other device: --all shows it.\n"
                          "\n"
                          "Mediated devices (1)\n"
                          "UUID                                  TYPE       PARENT        DOMAIN\n" MDEV
                          "  nvidia-35  0000:41:00.0  guest\n"
                          "\n"
                          "Domains (1)\n"
                          "NAME   STATE    VCPUS  MEMORY  DEVICES  UUID\n"
                          "guest  running      4   4 GiB        1  " DOMAIN "\n" },
                { HOST, .has = { "Devices (5)", "0000:00:00.0     -  8086:1018" },
                  .lacks = { "other device" }, .all = true },
                { "{'format': '" SNAPSHOT_FORMAT "', 'nodename': 'a\\u001b[2J'}",
                  .has = { "a\\x1b[2J" }, .lacks = { "\033[2J", "NUMA" }, .colours = true },
                { "{'format': '" SNAPSHOT_FORMAT "', 'nodename': 'a'}", .lacks = { "polled" } },
        };

        check_rows(print, rows, ARRAY_SIZE(rows));
}

TEST_MAIN_AFTER((setenv("TZ", "UTC", true), setlocale(LC_CTYPE, "C.UTF-8")), NULL, NULL, test_pages)
