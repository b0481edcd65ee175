/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/watch.h"

#include "base/json.h"
#include "base/text.h"
#include "ctl/print/status.h"
#include "tests/fixtures/ctl-capture.h"

#define GUEST   "11111111-2222-4333-8444-555555555555"
#define UNKNOWN "99999999-2222-4333-8444-555555555555"

#define STATUS                                                                             \
        "{'state': 'ok', 'summary': 'Placement is equal to this host',"                    \
        " 'node': 'host1', 'driver': 'libvirt', 'sync_state': 'synced', 'n_providers': 2," \
        " 'n_claims': 2, 'n_requests': 30, 'n_writes': 4, 'n_conflicts': 1,"               \
        " 'last_poll_usec': 1699999997000000, 'last_sync_usec': 1699999940000000}"
#define TREE                                                                                     \
        "{'providers': [{'name': 'host1', 'inventories': {"                                      \
        "   'VCPU': {'used': 5, 'capacity': 16}, 'MEMORY_MB': {'used': 512, 'capacity': 512}}}," \
        "  {'name': 'cell\\u001b[31m', 'inventories': {'VCPU': {'used': 1, 'capacity': 4}}},"    \
        "  {'name': 'bare', 'inventories': {}}]}"
#define CLAIMS                                                                                   \
        "{'claims': [{'id': 7, 'consumer': '" GUEST "', 'guest': 'web-1', 'state': 'confirmed'," \
        "   'created_usec': 1699999940000000, 'allocations': [{'resources': {'VCPU': 2}},"       \
        "   {'resources': {'VCPU': 1, 'VGPU': 1}}],"                                             \
        "   'devices': [{'address': '0000:41:00.0'}, {'address': '', 'device': 'mtty'}]},"       \
        "  {'id': 8, 'consumer': '" UNKNOWN "', 'state': 'claimed', 'created_usec': 0,"          \
        "   'allocations': [], 'devices': []}]}"

/* {"status", "tree", "claims"}; without a status it is not running. */
static void print_by(const json_t *document, CtlPage *page,
                     void (*print)(const CtlWatchFacts *facts, CtlPage *page))
{
        _cleanup_json_ json_t *gone = ctl_status_make_not_running("gone");
        const json_t *status = json_object_get(document, "status");

        print(&(CtlWatchFacts){ status ? status : gone, json_object_get(document, "tree"),
                                json_object_get(document, "claims") },
              page);
}

static void print(const json_t *document, CtlPage *page)
{
        print_by(document, page, ctl_watch_print);
}

static void print_line(const json_t *document, CtlPage *page)
{
        print_by(document, page, ctl_watch_print_line);
}

static void test_pages(void **state)
{
        static const PrintRow rows[] = {
                { "{'status': " STATUS ", 'tree': " TREE ", 'claims': " CLAIMS "}",
                  .text = "● compute-agent on host1: Placement is equal to this host\n"
                          "  Polled 3s ago; published 1min ago; 30 requests, 4 writes, 1 conflicts\n"
                          "\n"
                          "PROVIDER      CLASS      USED  FREE  CAPACITY  USAGE\n"
                          "host1         VCPU          5    11        16  ▉▉▉▉▉▉░░░░░░░░░░░░░░  31%\n"
                          "              MEMORY_MB   512     0       512  ▉▉▉▉▉▉▉▉▉▉▉▉▉▉▉▉▉▉▉▉ 100%\n"
                          "cell\\x1b[31m  VCPU          1     3         4  ▉▉▉▉▉░░░░░░░░░░░░░░░  25%\n"
                          "\n"
                          "CLAIM  GUEST                                 STATE      SINCE     RESOURCES       "
                          "DEVICES\n"
                          "    7  web-1                                 confirmed  1min ago  VCPU=3, VGPU=1  "
                          "0000:41:00.0, mtty\n"
                          "    8  " UNKNOWN "  claimed    never\n" },
                { "{'status': {'node': 'host1', 'reasons': [{'text': 'Cordoned: by ann'},"
                  " {'text': 'Withheld: card (missing)'}]},"
                  " 'tree': {'providers': [{'name': 'card',"
                  " 'inventories': {'VGPU': {'used': 3, 'capacity': 0}}}]}}",
                  .has = { "\n  Cordoned: by ann\n  Withheld: card (missing)\n", "▉    -\n" },
                  .lacks = { "%" } },
                { "{}", .has = { "○ gone\n" }, .lacks = { "Polled" } },
                { "{'status': {'sync_state': 'standalone', 'last_poll_usec': 1},"
                  " 'claims': {'claims': []}}",
                  .has = { "\nNo claims.\n" }, .lacks = { "requests" } },
                { "{'status': {'sync_state': 'offline', 'reasons': [{'text': 'refused\\u001b'}]}}",
                  .has = { "\n  refused\\x1b\n" }, .lacks = { "No claims" } },
                { "{'status': {'sync_state': 'synced', 'n_owed_writes': 1, 'n_owed_moves': 1,"
                  " 'reasons': [{'text': 'forbidden'}]}}",
                  .has = { "0 conflicts, 2 owed\n  forbidden\n" }, .lacks = { "No claims" } },
                { "{'status': {'sync_state': 'synced'}, 'claims': {'claims': 7}}",
                  .has = { "Polled never; not published since the start" }, .lacks = { "GUEST" } },
        };

        check_rows(print, rows, ARRAY_SIZE(rows));
}

/* Nothing that was written is longer than the terminal, and nothing of a sentence is lost. */
static void test_narrow_page(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle narrow = STYLE_PIPE;

        narrow.width = 80;
        narrow.utf8 = false; /* the locale is C */
        capture_print(
                &capture, print,
                parse_quoted(
                        "{'status': {'node': 'compute-with-a-long-name.rack7.example.org', 'n_owed_writes': 4711,"
                        " 'last_poll_usec': 1, 'last_sync_usec': 1, 'sync_state': 'synced',"
                        " 'summary': 'Placement is equal to this host, but the last audit found problems',"
                        " 'reasons': [{'text': 'Cordoned by ann: the second fan of the power supply in rack 7 is broken,"
                        " and the new one comes on Monday'}],"
                        " 'n_requests': 1234567890, 'n_writes': 1234567, 'n_conflicts': 12345},"
                        " 'claims': {'claims': [{'id': 4711, 'state': 'confirmed', 'guest':"
                        " 'a-guest-with-a-name-that-is-longer-than-the-terminal-has-columns-for-the-table',"
                        " 'allocations': [{'resources': {'MEMORY_MB': 1234567, 'VCPU': 128, 'VGPU': 16}}],"
                        " 'devices': [{'address': '0000:41:00.0'}, {'address': '0000:81:00.0'}]}]}}"),
                narrow);
        assert_contains(
                capture.text,
                ": Placement is\n  equal to this host, but the last audit found problems\n");
        assert_contains(capture.text, "1234567\n  writes, 12345 conflicts, 4711 owed\n");
        assert_contains(capture.text, "broken, and\n  the new one comes on Monday\n");
        for (char *line = strtok(capture.text, "\n"); line; line = strtok(NULL, "\n"))
                assert_true(text_count_characters(line) <= 80);
}

static void test_lines(void **state)
{
        static const PrintRow rows[] = {
                { "{'status': " STATUS ", 'tree': " TREE "}",
                  .text = "synced: Placement is equal to this host; 2 providers, 2 claims; VCPU 6/20, MEMORY_MB 512/512" },
                { "{'status': {'state': 'not-running', 'summary': 'go\\ne'}}", .text = "go\\x0ae" },
                /* amounts saturate */
                { "{'status': " STATUS ", 'tree': {'providers': ["
                  "{'inventories': {'A': {'used': 9223372036854775807}}},"
                  " {'inventories': {'A': {'used': 9223372036854775807}}}]}}",
                  .has = { "; A 9223372036854775807/0" } },
        };

        check_rows(print_line, rows, ARRAY_SIZE(rows));
}

TEST_MAIN(test_pages, test_narrow_page, test_lines)
