/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/status.h"

#include "tests/fixtures/ctl-capture.h"

#define WELL                                                                    \
        "\"state\": \"ok\", \"summary\": \"Placement is equal to this host\", " \
        "\"version\": \"1.0\", \"node\": \"host1\", \"driver\": \"libvirt\", "  \
        "\"last_poll_usec\": 1699999988000000, \"n_providers\": 3, \"n_requests\": 5"

static void test_exit_codes(void **state)
{
        static const struct {
                const char *members;
                CtlStatusExit code;
        } cases[] = {
                { "{\"state\": \"ok\"}", CTL_STATUS_OK },
                { "{\"state\": \"pending\"}", CTL_STATUS_NOT_WELL },
                { "{\"state\": \"warning\"}", CTL_STATUS_NOT_WELL },
                { "{\"state\": \"degraded\"}", CTL_STATUS_NOT_WELL },
                { "{\"state\": \"not-running\"}", CTL_STATUS_NOT_RUNNING },
                { "{\"state\": \"a new one\"}", CTL_STATUS_NOT_WELL },
                { "{}", CTL_STATUS_NOT_WELL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(json_done) json_t *status = parse_json(cases[i].members);

                assert_int_equal(ctl_status_exit(status), cases[i].code);
        }
}

static void print(const char *members, CtlStyle style, Capture *capture)
{
        _cleanup_(json_done) json_t *status = parse_json(members);

        capture_begin(capture);
        assert_int_equal(ctl_status_print(status, &style, capture->stream), 0);
        capture_end(capture);
}

static void test_page(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print("{" WELL
              ", \"sync_state\": \"synced\", \"root\": \"r\", \"last_sync_usec\": 1699999800000000}",
              STYLE_PIPE, &capture);
        assert_string_equal(
                capture.text,
                "● compute-agent on host1: Placement is equal to this host\n"
                "       Node: host1\n"
                "       Root: r\n"
                "     Driver: libvirt; last polled Tue 2023-11-14 22:13:08 UTC; 12s ago\n"
                "       Sync: synced; last published Tue 2023-11-14 22:10:00 UTC; 3min 20s ago\n"
                "  Providers: 3\n"
                "     Claims: 0\n"
                "  Placement: 5 requests, 0 writes, 0 conflicts\n"
                "    Version: 1.0\n");
}

static void test_before_the_first_poll(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print("{\"driver\": \"libvirt\", \"node\": \"\", \"sync_state\": \"pending\"}", STYLE_PIPE,
              &capture);
        assert_contains(capture.text, "Node: not known before the first poll\n");
        assert_contains(capture.text, "Driver: libvirt; not polled yet\n");
}

static void test_a_missing_role_is_shown(void **state)
{
        _cleanup_(capture_done) Capture refused, allowed;

        print("{" WELL ", \"sync_state\": \"synced\", \"reshape_access\": \"refused\"}", STYLE_PIPE,
              &refused);
        assert_contains(refused.text, "lacks the role service");
        print("{" WELL ", \"sync_state\": \"synced\", \"reshape_access\": \"allowed\"}", STYLE_PIPE,
              &allowed);
        assert_lacks(allowed.text, "role");
}

static void test_reasons_are_shown_and_harmless(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.colours = true;
        print("{\"state\": \"degraded\", \"summary\": \"claims cannot be taken (and 1 more)\","
              " \"hypervisor_error\": \"gone\", \"last_poll_usec\": 1, \"sync_state\": \"offline\","
              " \"reasons\": [{\"state\": \"degraded\", \"text\": \"disk \\u001b[2J full\","
              "  \"command\": \"df\"},  {\"state\": \"warning\", \"text\": \"Cordoned: by ann\", \"command\": \"drain\"}]}",
              style, &capture);
        assert_contains(capture.text, "claims cannot be taken (and 1 more)");
        assert_contains(capture.text,
                        "    Reasons: \033[0;1;31mdisk \\x1b[2J full; see \"df\"\033[0m\n");
        assert_contains(capture.text, "Cordoned: by ann; see \"drain\"");
        assert_contains(capture.text, "offline; not published since the start");
        assert_contains(capture.text, "The last poll that ended well is kept");
}

static void test_what_is_owed_is_shown(void **state)
{
        _cleanup_(capture_done) Capture owed, settled;

        print("{" WELL
              ", \"sync_state\": \"synced\", \"n_owed_writes\": 2, \"n_owed_removals\": 1}",
              STYLE_PIPE, &owed);
        assert_contains(owed.text,
                        "       Owed: 2 to write to Placement, 1 to remove, 0 to move\n");
        print("{" WELL ", \"sync_state\": \"synced\"}", STYLE_PIPE, &settled);
        assert_lacks(settled.text, "Owed");
}

static void test_long_reasons_are_wrapped(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.width = 40;
        print("{\"reasons\": [{\"text\": \"Placement cannot be reached, retrying\", \"command\": \"x\"}]}",
              style, &capture);
        assert_contains(capture.text, "    Reasons: Placement cannot be\n"
                                      "             reached, retrying; see \"x\"\n");
}

static void test_standalone_says_nothing_of_placement(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print("{" WELL ", \"sync_state\": \"standalone\"}", STYLE_PIPE, &capture);
        assert_lacks(capture.text, "requests");
        assert_contains(capture.text, "Sync: standalone\n");
}

static void test_not_running(void **state)
{
        _cleanup_(json_done) json_t *status = ctl_status_make_not_running("It sleeps");
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        assert_int_equal(ctl_status_exit(status), CTL_STATUS_NOT_RUNNING);
        capture_begin(&capture);
        assert_int_equal(ctl_status_print(status, &style, capture.stream), 0);
        assert_string_equal(capture_end(&capture), "○ It sleeps\n");
}

TEST_MAIN_AFTER(setenv("TZ", "UTC", true), NULL, NULL, test_exit_codes, test_page,
                test_before_the_first_poll, test_a_missing_role_is_shown,
                test_reasons_are_shown_and_harmless, test_what_is_owed_is_shown,
                test_long_reasons_are_wrapped, test_standalone_says_nothing_of_placement,
                test_not_running)
