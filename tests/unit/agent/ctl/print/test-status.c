/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/status.h"

#include "tests/fixtures/ctl-capture.h"

#define WELL                                                                   \
        "\"version\": \"1.0\", \"node\": \"host1\", \"driver\": \"libvirt\", " \
        "\"last_poll_usec\": 1699999988000000, \"n_providers\": 3, \"n_requests\": 5"

/* The verdict of members, printed for a pipe. */
static json_t *make(const char *members)
{
        _cleanup_(json_done) json_t *object = parse_json(members);
        json_t *status = ctl_status_make(object);

        assert_non_null(status);
        return status;
}

static void test_verdict_table(void **state)
{
        static const struct {
                const char *members;
                const char *state;
                CtlStatusExit code;
        } cases[] = {
                { "{" WELL ", \"sync_state\": \"synced\"}", "ok", CTL_STATUS_OK },
                { "{" WELL ", \"sync_state\": \"standalone\"}", "ok", CTL_STATUS_OK },
                { "{" WELL ", \"sync_state\": \"pending\"}", "pending", CTL_STATUS_DEGRADED },
                { "{" WELL ", \"sync_state\": \"stale\"}", "degraded", CTL_STATUS_DEGRADED },
                { "{" WELL ", \"sync_state\": \"offline\"}", "degraded", CTL_STATUS_DEGRADED },
                { "{" WELL ", \"sync_state\": \"new one\"}", "degraded", CTL_STATUS_DEGRADED },
                { "{" WELL ", \"sync_state\": \"left-to-nova\", \"n_differences\": 3}", "ok",
                  CTL_STATUS_OK },
                { "{" WELL ", \"sync_state\": \"left-to-nova\", \"n_owed_writes\": 1}", "pending",
                  CTL_STATUS_DEGRADED },
                { "{" WELL ", \"sync_state\": \"synced\", \"claim_error\": \"full\"}", "degraded",
                  CTL_STATUS_DEGRADED },
                { "{" WELL ", \"sync_state\": \"synced\", \"hypervisor_error\": \"gone\"}",
                  "degraded", CTL_STATUS_DEGRADED },
                { "{" WELL ", \"sync_state\": \"synced\", \"n_owed_writes\": 1}", "pending",
                  CTL_STATUS_DEGRADED },
                { "{" WELL ", \"sync_state\": \"synced\", \"n_owed_removals\": 1,"
                  " \"owed_error\": \"forbidden\"}",
                  "degraded", CTL_STATUS_DEGRADED },
                { "{" WELL ", \"sync_state\": \"standalone\", \"n_owed_writes\": 1}", "ok",
                  CTL_STATUS_OK },
                { "{\"sync_state\": \"standalone\"}", "pending", CTL_STATUS_DEGRADED },
                { "{}", "pending", CTL_STATUS_DEGRADED },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(json_done) json_t *status = make(cases[i].members);

                assert_string_equal(json_string_value(json_object_get(status, "state")),
                                    cases[i].state);
                assert_int_equal(ctl_status_exit(status), cases[i].code);
                assert_true(json_string_length(json_object_get(status, "summary")) > 0);
                assert_int_equal(json_object_size(status), 3 + 30); /* always every member */
        }
}

static void print(const char *members, CtlStyle style, Capture *capture)
{
        _cleanup_(json_done) json_t *status = make(members);

        capture_begin(capture);
        assert_int_equal(ctl_status_print(status, &style, capture->stream), 0);
        capture_end(capture);
}

static void test_page(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print("{" WELL ", \"sync_state\": \"synced\", \"root\": \"r\", "
              "\"last_sync_usec\": 1699999800000000}",
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

static void test_errors_are_shown_and_harmless(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.colours = true;
        print("{" WELL ", \"sync_state\": \"offline\", \"sync_error\": \"refused \\u001b[2J\", "
              "\"hypervisor_error\": \"gone\", \"claim_error\": \"disk full\"}",
              style, &capture);
        assert_contains(capture.text, "claims cannot be taken");
        assert_contains(capture.text, "\033[0;1;31mrefused \\x1b[2J\033[0m\n");
        assert_contains(capture.text, "gone");
        assert_contains(capture.text, "disk full");
        assert_contains(capture.text, "offline; not published since the start");
        assert_contains(capture.text, "The last poll that ended well is kept");
}

static void test_cordons_are_shown(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print("{" WELL ", \"sync_state\": \"synced\", \"host_cordoned\": \"by ann\","
              " \"devices_cordoned\": \"gpu by bob\", \"devices_withheld\": \"card (missing)\","
              " \"host_unread\": \"Guest g cannot be read\"}",
              STYLE_PIPE, &capture);
        assert_contains(capture.text, "Cordoned: by ann");
        assert_contains(capture.text, "Cordoned: gpu by bob");
        assert_contains(capture.text, "Withheld: card (missing)");
        assert_contains(capture.text, "Unread: Guest g cannot be read");
}

static void test_what_is_owed_is_shown(void **state)
{
        _cleanup_(capture_done) Capture owed, settled;

        print("{" WELL ", \"sync_state\": \"synced\", \"n_owed_writes\": 2,"
              " \"n_owed_removals\": 1, \"owed_error\": \"forbidden\"}",
              STYLE_PIPE, &owed);
        assert_contains(owed.text, "Placement is not told of all claims yet\n");
        assert_contains(owed.text, "       Owed: 2 to write to Placement, 1 to remove, 0 to move\n"
                                   "             forbidden\n");
        /* The words of the last try are nobody's any more. */
        print("{" WELL ", \"sync_state\": \"synced\", \"owed_error\": \"forbidden\"}", STYLE_PIPE,
              &settled);
        assert_lacks(settled.text, "Owed");
        assert_lacks(settled.text, "forbidden");
}

static void test_long_errors_are_wrapped(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.width = 40;
        print("{" WELL ", \"sync_state\": \"offline\", "
              "\"sync_error\": \"Placement cannot be reached, retrying\"}",
              style, &capture);
        assert_contains(capture.text, "             Placement cannot be\n"
                                      "             reached, retrying\n");
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_verdict_table),
                cmocka_unit_test(test_page),
                cmocka_unit_test(test_before_the_first_poll),
                cmocka_unit_test(test_a_missing_role_is_shown),
                cmocka_unit_test(test_errors_are_shown_and_harmless),
                cmocka_unit_test(test_cordons_are_shown),
                cmocka_unit_test(test_what_is_owed_is_shown),
                cmocka_unit_test(test_long_errors_are_wrapped),
                cmocka_unit_test(test_standalone_says_nothing_of_placement),
                cmocka_unit_test(test_not_running),
        };

        setenv("TZ", "UTC", true);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
