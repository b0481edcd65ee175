/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/events.h"

#include <locale.h>

#include "tests/fixtures/ctl-capture.h"

#define VM   "11111111-2222-4333-8444-555555555555"
#define MDEV "21111111-2222-4333-8444-555555555555"
#define FROM "31111111-2222-4333-8444-555555555555"

#define CLAIMED                                                                                  \
        "{'usec': 1699999940000000, 'event': 'claimed', 'author': 'root (x, pid 7)',"            \
        " 'claim': 7, 'consumer': '" VM "', 'guest': 'web-1', 'of': '', 'allocations': ["        \
        "{'name': 'demo', 'class': 'VCPU', 'amount': 2}, {'name': 'demo', 'class': 'MEMORY_MB'," \
        " 'amount': 64}, {'name': 'gpu', 'class': 'VGPU', 'amount': 1}], 'devices': ["           \
        "{'device': 'pci_0000_41_00_0', 'address': '', 'mdev': '" MDEV "'}], 'reason': ''}"
#define MOVED                                                                                      \
        "{'usec': 1699996400000000, 'event': 'moved', 'author': '', 'claim': 12, 'consumer': '" VM \
        "', 'guest': '', 'allocations': [], 'devices': [], 'reason': 'from consumer " FROM "'}"
#define CORDONED                                                                              \
        "{'usec': 1699996400000000, 'event': 'cordoned', 'author': '\\u001b[2J', 'claim': 0," \
        " 'consumer': '', 'guest': '', 'allocations': [], 'devices': [{'device': 'gpu'}],"    \
        " 'reason': 'smoke\\n\\u202e'}"
/* As a file that somebody changed may have it. */
#define STRANGE "{'event': 7, 'allocations': {'a': 1}, 'devices': [5, [], null]}"

static void test_pages(void **state)
{
        static const PrintRow rows[] = {
                { "{'events': [" CLAIMED "," MOVED "," CORDONED "," STRANGE "]}",
                  .has = { "claimed       7  web-1",
                           "demo: VCPU=2, MEMORY_MB=64; gpu: VGPU=1; " MDEV, "root (x, pid 7)" } },
                { "{'events': [" CLAIMED "," MOVED "," CORDONED "," STRANGE "]}",
                  .has = { "moved        12  " VM, "the agent itself", "cordoned      -  -" } },
                /* what somebody called itself steers no terminal */
                { "{'events': [" CORDONED "]}",
                  .has = { "\\x1b[2J", "smoke\\x0a\\xe2\\x80\\xae" } },
                { "{'events': [" CLAIMED "," MOVED "]}", .has = { "1min ago", "11111111…" },
                  .width = 80 },
                { "{'events': []}", .text = "Nothing happened that is still known.\n" },
        };

        check_rows(ctl_events_print, rows, ARRAY_SIZE(rows));
}

static void test_find(void **state)
{
        static const struct {
                const char *what;
                size_t n;
        } cases[] = {
                { "7", 1 },
                { "0", 0 },
                { "web-1", 1 },
                { VM, 2 },
                { "11111111-2222-4333-8444-55555555555A", 0 },
                { FROM, 1 },
                { "31111111-2222-4333-8444-555555555555", 1 },
                { "pci_0000_41_00_0", 1 },
                { MDEV, 1 },
                { "gpu", 2 },
                { "smoke", 0 },
                { "", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(json_done) json_t *document = parse_quoted(
                        "{'events': [" CLAIMED "," MOVED "," CORDONED ",{}," STRANGE "]}");
                size_t n;

                ctl_events_find(document, cases[i].what);
                n = json_array_size(json_object_get(document, "events"));
                if (n != cases[i].n)
                        fail_msg("%s: %zu", cases[i].what, n);
        }
}

TEST_MAIN_AFTER(setlocale(LC_CTYPE, "C.UTF-8"), NULL, NULL, test_pages, test_find)
