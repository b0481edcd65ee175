/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/claims.h"

#include <locale.h>

#include "tests/fixtures/ctl-capture.h"
#include "tests/fixtures/ctl-claim.h"
#include "tests/fixtures/ctl-events.h"

#define ALLOCATIONS                                                                   \
        "'allocations': [{'provider': 'r', 'name': 'host1', 'resources': {'VCPU': 2," \
        " 'MEMORY_MB': 512}}, {'provider': 'g', 'name': 'gpu', 'resources': {'VGPU': 1}}]"
#define LISTED                                                                                  \
        "{'id': 7, 'consumer': '11111111-2222-4333-8444-555555555555', 'state': 'claimed',"     \
        " 'created_usec': 1699999940000000, 'expires_usec': 1700000240000000, 'ended_usec': 0," \
        " 'end_reason': '', " ALLOCATIONS "}"
#define TARGET                                                                    \
        "{'id': 8, 'consumer': 'x', 'state': 'confirmed', 'resize_target': true," \
        " 'created_usec': 0, 'expires_usec': 0, 'allocations': []}"
#define ENDED                                                                               \
        "{'id': 5, 'consumer': 'y', 'state': 'released', 'created_usec': 1699990000000000," \
        " 'ended_usec': 1699996400000000, 'end_reason': 'gone \\u001b[m'}"
#define NAMED                                                                                 \
        "{'id': 9, 'consumer': '11111111-2222-4333-8444-555555555555', 'state': 'confirmed'," \
        " 'guest': 'web-1', 'created_usec': 0, 'expires_usec': 0, 'allocations': []}"
#define CLAIMS(claims) "{'claims': [" claims "]}"

static void print(const json_t *document, CtlPage *page)
{
        ctl_claims_print(document, false, page);
}

static void print_history(const json_t *document, CtlPage *page)
{
        ctl_claims_print(document, true, page);
}

static void test_pages(void **state)
{
        static const PrintRow rows[] = {
                { CLAIMS(LISTED "," TARGET),
                  .text =
                          "ID  CONSUMER                              STATE              CREATED   EXPIRES    "
                          "PROVIDER  RESOURCES\n"
                          " 7  11111111-2222-4333-8444-555555555555  claimed            1min ago  4min left  "
                          "host1     VCPU=2, MEMORY_MB=512\n"
                          "                                                                                  "
                          "gpu       VGPU=1\n"
                          " 8  x                                     confirmed, resize  -         -\n"
                          "\n2 claims.\n" },
                { CLAIMS(LISTED), .has = { " 7 11111111… claimed 4min left host1" },
                  .lacks = { "CREATED" }, .width = 80 },
                { CLAIMS(LISTED), .has = { "11111111-2222-4333-8444-555555555555" }, .width = 80,
                  .all = true },
                /* guests appear by name */
                { CLAIMS(NAMED "," TARGET),
                  .has = { "ID  GUEST  CONSUMER ",
                           " 9  web-1  11111111-2222-4333-8444-555555555555  confirmed",
                           " 8  -      x  " } },
                { CLAIMS(NAMED "," LISTED),
                  .has = { "ID GUEST     STATE", " 9 web-1     confirmed", " 7 11111111… claimed" },
                  .width = 80 },
                { CLAIMS(""), .text = "No claims.\n" },
                { CLAIMS(""), .text = "", .no_legend = true },
                { "{'claims': [], 'guests': [{'name': 'a\\u009bm', 'next_start': false}]}",
                  .text = "Guest a\\xc2\\x9bm uses it, but has no claim of it.\n" },
                { "{'claims': [], 'guests': [{'name': 'a\\u009bm'}]}",
                  .text = "Guest a\\xc2\\x9bm is on this host without a claim.\n" },
                { CLAIMS("{'id': 3, 'beyond_domain': {'A\\u009b': 1}}"),
                  .has = { "claim 3 A\\xc2\\x9b=1.\n" } },
        },
        ended[] = { { CLAIMS(LISTED "," ENDED), .has = { "ENDED", "1h ago", "gone \\x1b[m" },
                      .lacks = { "EXPIRES" } } },
        made[] = { { "{'id': 7, " ALLOCATIONS "}",
                     .text = "Claim 7\n"
                             "PROVIDER  RESOURCES\n"
                             "host1     VCPU=2, MEMORY_MB=512\n"
                             "gpu       VGPU=1\n"
                             "\n"
                             "After the guest started, confirm the claim: computectl confirm 7\n"
                             "After the guest ended, release the claim: computectl release 7\n" } };

        check_rows(print, rows, ARRAY_SIZE(rows));
        check_rows(print_history, ended, ARRAY_SIZE(ended));
        check_rows(ctl_claim_print, made, ARRAY_SIZE(made));
}

static void test_show(void **state)
{
        static const PrintRow rows[] = {
                { CLAIM(DEVICE("pci_1", MDEV_1, "true") "," DEVICE("pci\\u001b[m", MDEV_2,
                                                                   "false")),
                  .has = { "Claim 7\n", "State: confirmed", "Created: ", "host_gpu  VGPU=2" },
                  .lacks = { "Expires", "Project" } },
                { CLAIM(DEVICE("pci_1", MDEV_1, "true") "," DEVICE("pci\\u001b[m", MDEV_2,
                                                                   "false")),
                  .has = { "pci_1", MDEV_1, "pci\\x1b[m", "not created" } },
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
                { CLAIM(""), .lacks = { "GROUP" } },
                { "{'mappings': {'': ['p']}}", .lacks = { "GROUP" } },
                { "{'allocations': [{'provider': 'p', 'name': 'host_gpu'}],"
                  " 'devices': [{'provider': 'p', 'group': '_A', 'device': 'pci_1'},"
                  " {'provider': 'p', 'group': '_B', 'device': 'pci_1', 'mdev': 'm1'},"
                  " {'provider': 'p', 'group': '_B', 'device': 'pci_1', 'mdev': 'm2'}],"
                  " 'mappings': {'': ['h', 'p'], '_A': ['p'], '_B': ['p'], '_C': ['q', 5], '_D': 7}}",
                  .has = { "\nGROUP  PROVIDER  DEVICE\n"
                           "_A     host_gpu  pci_1\n"
                           "_B     host_gpu  m1\n"
                           "_B     host_gpu  m2\n"
                           "_C     q         -\n" } },
        };

        check_rows(ctl_show_print, rows, ARRAY_SIZE(rows));
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

static void test_events(void **state)
{
        static const PrintRow rows[] = {
                { "{'events': [" CLAIMED "," MOVED "," CORDONED "," STRANGE "]}",
                  .has = { "claimed       7  web-1",
                           "demo: VCPU=2, MEMORY_MB=64; gpu: VGPU=1; " MDEV, "root (x, pid 7)" } },
                { "{'events': [" CLAIMED "," MOVED "," CORDONED "," STRANGE "]}",
                  .has = { "moved        12  " VM, "the agent", "cordoned      -  -" } },
                /* a name from a user cannot control the terminal */
                { "{'events': [" CORDONED "]}",
                  .has = { "\\x1b[2J", "smoke\\x0a\\xe2\\x80\\xae" } },
                { "{'events': [" CLAIMED "," MOVED "]}", .has = { "1min ago", "11111111…" },
                  .width = 80 },
                { "{'events': []}", .text = "No events found.\n" },
        };

        check_rows(ctl_events_print, rows, ARRAY_SIZE(rows));
}

TEST_MAIN_AFTER(setlocale(LC_ALL, "C.UTF-8"), NULL, NULL, test_pages, test_show, test_mappings,
                test_problems, test_explain, test_events)
