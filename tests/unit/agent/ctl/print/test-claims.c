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

#define NAMED                                                                             \
        "{\"id\": 9, \"consumer\": \"11111111-2222-4333-8444-555555555555\", \"state\": " \
        "\"confirmed\", \"guest\": \"web-1\", \"created_usec\": 0, \"expires_usec\": 0, " \
        "\"allocations\": []}"

static void test_guests_stand_by_name(void **state)
{
        _cleanup_(json_done) json_t *document = NULL;
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        print(NAMED "," TARGET, false, style, &capture);
        assert_contains(capture.text, "ID  GUEST  CONSUMER ");
        assert_contains(capture.text, " 9  web-1  11111111-2222-4333-8444-555555555555  confirmed");
        assert_contains(capture.text, " 8  -      x  ");
        capture_done(&capture);
        style.width = 80;
        print(NAMED "," CLAIM, false, style, &capture);
        assert_contains(capture.text, "ID GUEST     STATE");
        assert_contains(capture.text, " 9 web-1     confirmed");
        assert_contains(capture.text, " 7 11111111… claimed");
        document = parse_json("{\"claims\": [" NAMED "," CLAIM "]}");
        ctl_claims_find(document, "web-1");
        assert_int_equal(json_array_size(json_object_get(document, "claims")), 1);
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

/* The ids that are left. */
static void assert_found(const char *what, const char *ids)
{
        _cleanup_(json_done) json_t *document = parse_json(
                "{\"claims\": [{\"id\": 1, \"consumer\": \"aaaaaaaa-2222-4333-8444-555555555555\", "
                "\"devices\": [{\"device\": \"pci_1\", \"address\": \"0000:41:00.0\", \"mdev\": "
                "\"bbbbbbbb-2222-4333-8444-555555555555\"}], \"cells\": [{\"cell\": 0, \"host_cell\": 1}], "
                "\"cpus\": [{\"vcpu\": 0, \"cpus\": \"4-6\"}], \"held\": \"4-6,20\"}, {\"id\": 2, "
                "\"consumer\": \"aaaaaaaa-2222-4333-8444-555555555555\", \"resize_target\": true, "
                "\"devices\": [], \"cells\": [], \"cpus\": [], \"held\": \"\"}, {\"id\": 3, "
                "\"consumer\": \"c\", \"devices\": [{\"device\": \"pci_1\", \"address\": \"0000:41:00.0\", \"mdev\": \"\"}]}]}");
        char found[16] = "";
        const json_t *claim;
        size_t i;

        ctl_claims_find(document, what);
        json_array_foreach(json_object_get(document, "claims"), i, claim)
                snprintf(found + strlen(found), sizeof(found) - strlen(found), "%d",
                         (int)json_integer_value(json_object_get(claim, "id")));
        assert_string_equal(found, ids);
}

static void test_finding(void **state)
{
        assert_found("aaaaaaaa-2222-4333-8444-555555555555", "12");
        assert_found("AAAAAAAA-2222-4333-8444-555555555555", "12");
        assert_found("bbbbbbbb-2222-4333-8444-555555555555", "1");
        assert_found("pci_1", "13");
        assert_found("0000:41:00.0", "13");
        assert_found("cell:1", "1");
        assert_found("cell:0", "");
        assert_found("cpu:5", "1");
        assert_found("cpu:20", "1");
        assert_found("cpu:7", "");
        assert_found("cpu:", "");
        assert_found("cpu:5x", "");
        assert_found("pci_2", "");
}

TEST_MAIN_AFTER(setlocale(LC_CTYPE, "C.UTF-8"), NULL, NULL, test_claims, test_finding, test_narrow,
                test_guests_stand_by_name, test_history, test_none, test_new_claim)
