/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/watch.h"

#include "agent/ctl/print/status.h"
#include "base/json.h"
#include "base/text.h"
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

static void print(Capture *capture, const CtlWatchFacts *facts, CtlStyle style)
{
        ctl_watch_print(facts, capture_begin(capture, style));
        capture_end(capture);
}

static void test_out_of_use(void **state)
{
        _cleanup_json_ json_t *status = parse_quoted(
                                      "{'node': 'host1', 'reasons': [{'text': 'Cordoned: by ann'},"
                                      " {'text': 'Withheld: card (missing)'}]}"),
                              *tree = parse_quoted(
                                      "{'providers': [{'name': 'card',"
                                      " 'inventories': {'VGPU': {'used': 3, 'capacity': 0}}}]}");
        const CtlWatchFacts facts = { status, tree, NULL };
        _cleanup_(capture_done) Capture capture;

        print(&capture, &facts, STYLE_PIPE);
        assert_contains(capture.text, "\n  Cordoned: by ann\n  Withheld: card (missing)\n");
        assert_contains(capture.text, " 100%");
}

static void test_page(void **state)
{
        _cleanup_json_ json_t *status = parse_quoted(STATUS), *tree = parse_quoted(TREE),
                              *claims = parse_quoted(CLAIMS);
        const CtlWatchFacts facts = { status, tree, claims };
        _cleanup_(capture_done) Capture capture;

        print(&capture, &facts, STYLE_PIPE);
        assert_string_equal(
                capture.text,
                "● compute-agent on host1: Placement is equal to this host\n"
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
                "    8  " UNKNOWN "  claimed    never\n");
}

static void test_page_of_less(void **state)
{
        static const struct {
                const char *status; /* NULL: not running */
                const char *claims;
                const char *has, *lacks;
        } cases[] = {
                { NULL, NULL, "○ gone\n", "Polled" },
                { "{'sync_state': 'standalone', 'last_poll_usec': 1}", "{'claims': []}",
                  "\nNo claims.\n", "requests" },
                { "{'sync_state': 'offline', 'reasons': [{'text': 'refused\\u001b'}]}", NULL,
                  "\n  refused\\x1b\n", "No claims" },
                { "{'sync_state': 'synced', 'n_owed_writes': 1, 'n_owed_moves': 1, 'reasons': [{'text': 'forbidden'}]}",
                  NULL, "0 conflicts, 2 owed\n  forbidden\n", "No claims" },
                { "{'sync_state': 'synced'}", "{'claims': 7}",
                  "Polled never; not published since the start", "GUEST" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *status = cases[i].status
                                                        ? parse_quoted(cases[i].status)
                                                        : ctl_status_make_not_running("gone"),
                                      *claims = cases[i].claims ? parse_quoted(cases[i].claims)
                                                                : NULL;
                const CtlWatchFacts facts = { .status = status, .claims = claims };
                _cleanup_(capture_done) Capture capture;

                print(&capture, &facts, STYLE_PIPE);
                assert_contains(capture.text, cases[i].has);
                assert_lacks(capture.text, cases[i].lacks);
        }
}

/* Nothing that was written is longer than the terminal, and nothing of a sentence is lost. */
static void test_narrow_page(void **state)
{
        _cleanup_json_ json_t *
                status = parse_quoted(
                       "{'node': 'compute-with-a-long-name.rack7.example.org', 'n_owed_writes': 4711,"
                       " 'last_poll_usec': 1, 'last_sync_usec': 1, 'sync_state': 'synced',"
                       " 'summary': 'Placement is equal to this host, but the last audit found problems',"
                       " 'n_requests': 1234567890, 'n_writes': 1234567, 'n_conflicts': 12345}"),
               *claims = parse_quoted(
                       "{'claims': [{'id': 4711, 'state': 'confirmed', 'guest':"
                       " 'a-guest-with-a-name-that-is-longer-than-the-terminal-has-columns-for-the-table',"
                       " 'allocations': [{'resources': {'MEMORY_MB': 1234567, 'VCPU': 128, 'VGPU': 16}}],"
                       " 'devices': [{'address': '0000:41:00.0'}, {'address': '0000:81:00.0'}]}]}");
        const CtlWatchFacts facts = { .status = status, .claims = claims };
        CtlStyle narrow = STYLE_PIPE;
        _cleanup_(capture_done) Capture capture;

        narrow.width = 80;
        narrow.utf8 = false; /* the locale is C */
        print(&capture, &facts, narrow);
        assert_contains(
                capture.text,
                ": Placement is\n  equal to this host, but the last audit found problems\n");
        assert_contains(capture.text, "1234567\n  writes, 12345 conflicts, 4711 owed\n");
        for (char *line = strtok(capture.text, "\n"); line; line = strtok(NULL, "\n"))
                assert_true(text_count_characters(line) <= 80);
}

static void test_line(void **state)
{
        _cleanup_json_ json_t *status = parse_quoted(STATUS), *tree = parse_quoted(TREE),
                              *gone = ctl_status_make_not_running("go\ne");
        _cleanup_free_ char *line = NULL, *gone_line = NULL;

        line = ctl_watch_format_line(&(CtlWatchFacts){ .status = status, .tree = tree },
                                     &STYLE_PIPE);
        assert_string_equal(
                line,
                "synced: Placement is equal to this host; 2 providers, 2 claims; VCPU 6/20, MEMORY_MB 512/512");
        gone_line = ctl_watch_format_line(&(CtlWatchFacts){ .status = gone }, &STYLE_PIPE);
        assert_string_equal(gone_line, "go\\x0ae");
}

static void test_amounts_saturate(void **state)
{
        _cleanup_json_ json_t
                *status = parse_quoted(STATUS),
                *tree = parse_quoted(
                        "{'providers': [{'inventories': {'A': {'used': 9223372036854775807}}},"
                        " {'inventories': {'A': {'used': 9223372036854775807}}}]}");
        _cleanup_free_ char *line = ctl_watch_format_line(
                &(CtlWatchFacts){ .status = status, .tree = tree }, &STYLE_PIPE);

        assert_contains(line, "; A 9223372036854775807/0");
}

TEST_MAIN(test_page, test_narrow_page, test_out_of_use, test_page_of_less, test_line,
          test_amounts_saturate)
