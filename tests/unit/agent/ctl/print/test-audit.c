/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/audit.h"

#include <locale.h>

#include "base/allocation.h"
#include "tests/fixtures/ctl-capture.h"

#define UUID "b5ef2f5c-74c4-4a0a-8dd7-9f6a8f0d3b11"
#define FINDING(outcome, error)                                                                   \
        "{\"findings\": [{\"type\": \"leaked\", \"remedy\": \"release-share\", \"consumer\": "    \
        "\"" UUID "\", \"text\": \"it leaks\", \"outcome\": \"" outcome "\", \"error\": \"" error \
        "\"}], \"holding\": 3, \"in_flight\": 1}"

static void test_findings(void **state)
{
        static const struct {
                const char *document;
                int exit_code;
                const char *words[3];
        } rows[] = {
                { "{\"findings\": [], \"holding\": 3, \"in_flight\": 0}",
                  EXIT_SUCCESS,
                  { "Placement, claims and guests agree: 3 consumer(s).\n" } },
                { FINDING("found", ""),
                  CTL_AUDIT_FINDINGS,
                  { "release-share", "it leaks", "Skipped 1 recent consumer." } },
                { FINDING("healed", ""), CTL_AUDIT_REPAIRED, { "done", "it leaks", UUID } },
                { FINDING("failed", "refused"),
                  CTL_AUDIT_FINDINGS,
                  { "failed", "it leaks: refused" } },
                /* of a program that knows less or more */
                { "{}", EXIT_SUCCESS, { "agree: 0 consumer(s)" } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(json_done) json_t *document = parse_json(rows[i].document);
                _cleanup_(capture_done) Capture capture;
                CtlStyle style = STYLE_PIPE;

                capture_begin(&capture);
                assert_int_equal(ctl_audit_print(document, &style, capture.stream), 0);
                capture_end(&capture);
                for (size_t j = 0; j < 3 && rows[i].words[j]; j++)
                        if (!strstr(capture.text, rows[i].words[j]))
                                fail_msg("row %zu: %s", i, capture.text);
                assert_int_equal(ctl_audit_exit(document), rows[i].exit_code);
        }
}

static void test_consumers(void **state)
{
        static const char text[] =
                "{\"consumers\": [{\"consumer\": \"" UUID "\", \"project\": \"" CONSUMER_UNKNOWN_ID
                "\", \"guest\":"
                " \"vm1\", \"claim\": 7, \"here\": [{\"provider\": \"p\", \"name\": \"host1\","
                " \"resources\": {\"VCPU\": 2}}, {\"provider\": \"q\", \"name\": \"gpu\","
                " \"resources\": {\"VGPU\": 1}}], \"elsewhere\": [{\"provider\": \"far\","
                " \"name\": \"\", \"resources\": {\"DISK_GB\": 5}}], \"devices\":"
                " [\"0000:41:00.0\", \"0000:42:00.0\", \"0000:41:00.0\"], \"cpus\": \"2,8\"}, {}]}";
        static const char *const words[] = { "vm1",
                                             "7",
                                             UUID "  -        vm1",
                                             "VCPU=2 of host1; VGPU=1 of gpu",
                                             "DISK_GB=5 of far",
                                             "0000:41:00.0 (2), 0000:42:00.0",
                                             "2,8" };
        _cleanup_(json_done) json_t *document = parse_json(text), *empty = parse_json("{}");
        _cleanup_(capture_done) Capture capture, nothing;
        CtlStyle style = STYLE_PIPE;

        capture_begin(&capture);
        assert_int_equal(ctl_consumers_print(document, &style, capture.stream), 0);
        capture_end(&capture);
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (!strstr(capture.text, words[i]))
                        fail_msg("%s\n%s", words[i], capture.text);
        capture_begin(&nothing);
        assert_int_equal(ctl_consumers_print(empty, &style, nothing.stream), 0);
        capture_end(&nothing);
        assert_string_equal(nothing.text,
                            "No consumer holds anything of this host in Placement.\n");
}

TEST_MAIN(test_findings, test_consumers)
