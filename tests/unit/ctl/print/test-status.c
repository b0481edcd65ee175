/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/status.h"

#include "base/text.h"
#include "tests/fixtures/ctl-capture.h"

#define WELL                                                                              \
        "{'state': 'ok', 'summary': 'Placement is equal to this host', 'version': '1.0'," \
        " 'node': 'host1', 'driver': 'libvirt', 'last_poll_usec': 1699999988000000,"      \
        " 'n_providers': 3, 'n_requests': 5"

static void test_exit_codes(void **state)
{
        static const struct {
                const char *members;
                int code;
        } cases[] = {
                { "{\"state\": \"ok\"}", EXIT_SUCCESS },
                { "{\"state\": \"pending\"}", CTL_STATUS_NOT_WELL },
                { "{\"state\": \"warning\"}", CTL_STATUS_NOT_WELL },
                { "{\"state\": \"degraded\"}", CTL_STATUS_NOT_WELL },
                { "{\"state\": \"not-running\"}", CTL_STATUS_NOT_RUNNING },
                { "{\"state\": \"a new one\"}", CTL_STATUS_NOT_WELL },
                { "{}", CTL_STATUS_NOT_WELL },
        };
        _cleanup_(json_done) json_t *made = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(json_done) json_t *status = parse_json(cases[i].members);

                assert_int_equal(ctl_status_exit(status), cases[i].code);
        }
        made = ctl_status_make_not_running("It sleeps");
        assert_int_equal(ctl_status_exit(made), CTL_STATUS_NOT_RUNNING);
        assert_string_equal(json_string_value(json_object_get(made, "summary")), "It sleeps");
}

static void test_pages(void **state)
{
        static const PrintRow rows[] = {
                { WELL ", 'sync_state': 'synced', 'root': 'r', 'last_sync_usec': 1699999800000000}",
                  .text = "● compute-agent on host1: Placement is equal to this host\n"
                          "       Node: host1\n"
                          "       Root: r\n"
                          "     Driver: libvirt; last polled Tue 2023-11-14 22:13:08 UTC; 12s ago\n"
                          "       Sync: synced; last equal Tue 2023-11-14 22:10:00 UTC; 3min 20s ago\n"
                          "  Providers: 3\n"
                          "     Claims: 0\n"
                          "  Placement: 5 requests, 0 writes, 0 conflicts\n"
                          "    Version: 1.0\n" },
                { "{'state': 'not-running', 'summary': 'It sleeps'}", .text = "○ It sleeps\n" },
                { "{'driver': 'libvirt', 'node': '', 'sync_state': 'pending'}",
                  .has = { "Node: unknown before the first poll\n",
                           "Driver: libvirt; not polled yet\n" } },
                { WELL ", 'sync_state': 'synced', 'reshape_access': 'refused'}",
                  .has = { "lacks the role service" } },
                { WELL ", 'sync_state': 'synced', 'reshape_access': 'allowed'}",
                  .lacks = { "role" } },
                { WELL ", 'sync_state': 'synced', 'n_pending_writes': 2, 'n_pending_removals': 1}",
                  .has = { "    Pending: 2 to write to Placement, 1 to remove, 0 to move\n" } },
                /* the names of release 0.2 */
                { WELL ", 'sync_state': 'synced', 'n_pending_removals': 3, 'n_pending_moves': 4}",
                  .has = { "    Pending: 0 to write to Placement, 3 to remove, 4 to move\n" } },
                { WELL ", 'sync_state': 'synced'}", .lacks = { "Pending" } },
                { WELL ", 'sync_state': 'standalone'}", .has = { "Sync: standalone\n" },
                  .lacks = { "requests" } },
                { "{'reasons': [{'text': 'Placement cannot be reached, retrying', 'command': 'x'}]}",
                  .has = { "    Reasons: Placement cannot be\n"
                           "             reached, retrying. See \"x\"\n" },
                  .width = 40 },
                { "{'state': 'degraded', 'summary': 'new claims are refused (and 1 more)',"
                  " 'hypervisor_error': 'gone', 'last_poll_usec': 1, 'sync_state': 'offline',"
                  " 'reasons': [{'state': 'degraded', 'text': 'disk \\u001b[2J full', 'command': 'df'},"
                  " {'state': 'warning', 'text': 'Cordoned: by ann', 'command': 'drain'}]}",
                  .has = { "new claims are refused (and 1 more)",
                           "    Reasons: \033[0;1;31mdisk \\x1b[2J full. See \"df\"\033[0m\n"
                           "             \033[0;1;33mCordoned: by ann. See \"drain\"",
                           "offline; not equal since the start",
                           "The data is from the last successful poll" },
                  .colours = true },
        };

        check_rows(ctl_status_print, rows, ARRAY_SIZE(rows));
}

/* No line is longer than the terminal, and no word of a sentence is lost. */
static void test_narrow_page(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle narrow = STYLE_PIPE;

        narrow.width = 80;
        narrow.utf8 = false; /* the locale is C */
        capture_print(
                &capture, ctl_status_print,
                parse_quoted(
                        "{'node': 'compute-with-a-long-name.rack7.example.org', 'n_pending_writes': 4711,"
                        " 'last_poll_usec': 1, 'last_sync_usec': 1, 'sync_state': 'synced',"
                        " 'summary': 'Placement is equal to this host, but the last audit found problems',"
                        " 'reasons': [{'text': 'Cordoned by ann: the second fan of the power supply in rack 7 is broken,"
                        " and the new one comes on Monday', 'command': 'computectl drain'}],"
                        " 'n_requests': 1234567890, 'n_writes': 1, 'n_conflicts': 12345}"),
                narrow);
        assert_contains(
                capture.text,
                ": Placement is\n  equal to this host, but the last audit found problems\n");
        assert_contains(capture.text, "1234567890 requests, 1 write, 12345 conflicts\n");
        assert_contains(capture.text, "4711 to write to Placement, 0 to remove, 0 to move\n");
        assert_contains(capture.text,
                        "is\n             broken, and the new one comes on Monday. See");
        for (char *line = strtok(capture.text, "\n"); line; line = strtok(NULL, "\n"))
                assert_true(text_count_characters(line) <= 80);
}

#define TREE                                                                                     \
        "{'providers': [{'inventories': {"                                                       \
        "   'VCPU': {'used': 5, 'capacity': 16}, 'MEMORY_MB': {'used': 512, 'capacity': 512}}}," \
        "  {'inventories': {'VCPU': {'used': 1, 'capacity': 4}}}, {'inventories': {}}]}"

/* Prints the line of a document {"status", "tree"}. */
static void print_line(const json_t *document, CtlPage *page)
{
        ctl_status_print_line(json_object_get(document, "status"),
                              json_object_get(document, "tree"), page);
}

static void test_lines(void **state)
{
        static const PrintRow rows[] = {
                { "{'status': " WELL ", 'n_claims': 2, 'sync_state': 'synced'}, 'tree': " TREE "}",
                  .text = "synced: Placement is equal to this host; 3 providers, 2 claims; VCPU 6/20, MEMORY_MB 512/512" },
                { "{'status': {'state': 'not-running', 'summary': 'go\\ne'}}", .text = "go\\x0ae" },
                /* amounts saturate */
                { "{'status': " WELL "}, 'tree': {'providers': ["
                  "{'inventories': {'A': {'used': 9223372036854775807}}},"
                  " {'inventories': {'A': {'used': 9223372036854775807}}}]}}",
                  .has = { "; A 9223372036854775807/0" } },
        };

        check_rows(print_line, rows, ARRAY_SIZE(rows));
}

TEST_MAIN_AFTER(setenv("TZ", "UTC", true), NULL, NULL, test_exit_codes, test_pages,
                test_narrow_page, test_lines)
