/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/claims.h"

#include <locale.h>

#include "tests/fixtures/ctl-capture.h"

#define ALLOCATIONS                                                                     \
        "\"allocations\": [{\"provider\": \"r\", \"name\": \"host1\", \"resources\": "  \
        "{\"VCPU\": 2, \"MEMORY_MB\": 512}}, {\"provider\": \"g\", \"name\": \"gpu\", " \
        "\"resources\": {\"VGPU\": 1}}]"
#define CLAIM                                                                                   \
        "{\"id\": 7, \"consumer\": \"11111111-2222-4333-8444-555555555555\", \"state\": "       \
        "\"claimed\", \"created_usec\": 1699999940000000, \"expires_usec\": 1700000240000000, " \
        "\"ended_usec\": 0, \"end_reason\": \"\", " ALLOCATIONS "}"
#define TARGET                                                                                 \
        "{\"id\": 8, \"consumer\": \"x\", \"state\": \"confirmed\", \"resize_target\": true, " \
        "\"created_usec\": 0, \"expires_usec\": 0, \"allocations\": []}"
#define ENDED                                                                                    \
        "{\"id\": 5, \"consumer\": \"y\", \"state\": \"released\", \"created_usec\": "           \
        "1699990000000000, \"ended_usec\": 1699996400000000, \"end_reason\": \"gone \\u001b[m\"" \
        "}"

static void print(const char *claims, bool history, CtlStyle style, Capture *capture)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_(json_done) json_t *document = NULL;

        assert_true(asprintf(&text, "{\"claims\": [%s]}", claims) > 0);
        document = parse_json(text);
        capture_begin(capture);
        assert_int_equal(ctl_claims_print(document, history, &style, capture->stream), 0);
        capture_end(capture);
}

static void test_claims(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print(CLAIM "," TARGET, false, STYLE_PIPE, &capture);
        assert_string_equal(
                capture.text,
                "ID  CONSUMER                              STATE              CREATED   EXPIRES    "
                "PROVIDER  RESOURCES\n"
                " 7  11111111-2222-4333-8444-555555555555  claimed            1min ago  4min left  "
                "host1     VCPU=2, MEMORY_MB=512\n"
                "                                                                                  "
                "gpu       VGPU=1\n"
                " 8  x                                     confirmed, resize  -         -\n"
                "\n2 claims.\n");
}

static void test_narrow(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.width = 80;
        print(CLAIM, false, style, &capture);
        assert_contains(capture.text, " 7 11111111… claimed 4min left host1");
        assert_lacks(capture.text, "CREATED");
        capture_done(&capture);
        style.all = true;
        print(CLAIM, false, style, &capture);
        assert_contains(capture.text, "11111111-2222-4333-8444-555555555555");
}

static void test_history(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print(CLAIM "," ENDED, true, STYLE_PIPE, &capture);
        assert_contains(capture.text, "ENDED");
        assert_lacks(capture.text, "EXPIRES");
        assert_contains(capture.text, "1h ago");
        assert_contains(capture.text, "gone \\x1b[m");
}

static void test_none(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        print("", false, style, &capture);
        assert_string_equal(capture.text, "No claims.\n");
        capture_done(&capture);
        style.legend = false;
        print("", false, style, &capture);
        assert_string_equal(capture.text, "");
}

static void test_new_claim(void **state)
{
        _cleanup_(json_done) json_t *document = parse_json("{\"id\": 7, " ALLOCATIONS "}");
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        capture_begin(&capture);
        assert_int_equal(ctl_claim_print(document, &style, capture.stream), 0);
        assert_string_equal(capture_end(&capture),
                            "Claim 7\n"
                            "PROVIDER  RESOURCES\n"
                            "host1     VCPU=2, MEMORY_MB=512\n"
                            "gpu       VGPU=1\n"
                            "\n"
                            "When the guest runs, keep it: computectl confirm 7\n"
                            "When it is gone, give it back: computectl release 7\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_claims),    cmocka_unit_test(test_narrow),
                cmocka_unit_test(test_history),   cmocka_unit_test(test_none),
                cmocka_unit_test(test_new_claim),
        };

        setlocale(LC_CTYPE, "C.UTF-8");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
