/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/identity.h"

#include "tests/fixtures/ctl-capture.h"

#define GOOD                                                                                     \
        "{\"state\":\"good\",\"text\":\"Placement knows it\",\"advice\":\"\",\"name\":\"host\"," \
        "\"uuid\":\"U\",\"file\":\"/f\",\"placement_error\":\"\",\"own\":{\"uuid\":\"U\","       \
        "\"name\":\"host\",\"root\":true,\"generation\":4,\"consumers\":1,\"modified_usec\":"    \
        "1699999990000000},\"holder\":{\"uuid\":\"U\",\"name\":\"host\"},\"below\":2,"           \
        "\"changes\":[],\"done\":false,\"refused\":\"\"}"
#define TAKEN                                                                                      \
        "{\"state\":\"taken\",\"text\":\"It is taken\",\"advice\":\"Adopt it\",\"name\":\"host\"," \
        "\"uuid\":\"\",\"file\":\"\",\"placement_error\":\"\",\"own\":null,\"holder\":{\"uuid\":"  \
        "\"V\",\"name\":\"host\",\"root\":true,\"generation\":0,\"consumers\":-1,"                 \
        "\"modified_usec\":0},\"below\":0,\"changes\":[],\"done\":false,\"refused\":\"\"}"
#define AWAY                                                                                    \
        "{\"state\":\"unknown\",\"text\":\"Not known\",\"advice\":\"\",\"name\":\"\",\"uuid\":" \
        "\"U\",\"file\":\"/f\",\"placement_error\":\"no \\u001b answer\",\"own\":null,"         \
        "\"holder\":null,\"below\":0,\"changes\":[],\"done\":false,\"refused\":\"no answer\"}"
#define PLAN                                                                                     \
        "{\"state\":\"renamed\",\"text\":\"It was renamed\",\"advice\":\"Rename\",\"changes\":[" \
        "{\"uuid\":\"C\",\"from\":\"a_1\",\"to\":\"b_1\"},{\"uuid\":\"U\",\"from\":\"a\","       \
        "\"to\":\"b\"}],\"done\":false,\"refused\":\"\"}"
#define DONE                                                                                 \
        "{\"state\":\"good\",\"text\":\"Placement knows it\",\"advice\":\"\",\"changes\":[{" \
        "\"uuid\":\"U\",\"from\":\"a\",\"to\":\"b\"}],\"done\":true,\"refused\":\"\"}"

static void test_words(void **state)
{
        static const struct {
                const char *document, *word;
                int exit;
                const char *words[4], *lacks;
        } cases[] = {
                { GOOD,
                  "show",
                  EXIT_SUCCESS,
                  { "Host: host\n", "Read from: /f\n",
                    "U, named host, generation 4, held by 1 consumer, changed 10s ago\n",
                    "Below it: 2 provider(s)\n" },
                  "Its name has" },
                { GOOD, "check", EXIT_SUCCESS, { "Placement knows it.\n", "", "", "" }, "Host" },
                { TAKEN,
                  "show",
                  EXIT_SUCCESS,
                  { "Uuid: none yet\n", "Placement: no provider with this uuid\n",
                    "Its name has: V, named host, generation 0\n", "It is taken.\nAdopt it.\n" },
                  "Read from" },
                { TAKEN,
                  "check",
                  EXIT_FAILURE,
                  { "It is taken.\nAdopt it.\n", "", "", "" },
                  "Host" },
                { TAKEN,
                  "adopt",
                  EXIT_SUCCESS,
                  { "Would adopt: V, named host", "", "", "" },
                  "Host" },
                { AWAY,
                  "check",
                  EXIT_FAILURE,
                  { "Not known.\n", "no \\x1b answer.\n", "", "" },
                  "Host" },
                { AWAY,
                  "show",
                  EXIT_FAILURE,
                  { "does not answer", "no \\x1b answer\n", "", "" },
                  "Below" },
                { PLAN,
                  "rename",
                  EXIT_SUCCESS,
                  { "C  a_1 → b_1\nU  a → b\n", "", "", "" },
                  "renamed" },
                { DONE,
                  "rename",
                  EXIT_SUCCESS,
                  { "U  a → b\nPlacement knows it.\n", "", "", "" },
                  "Rename" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(json_done) json_t *document = parse_json(cases[i].document);
                _cleanup_(capture_done) Capture capture;
                bool checks = strcmp(cases[i].word, "check") == 0;
                FILE *stream = capture_begin(&capture)->stream;

                assert_int_equal(
                        checks ? ctl_identity_print_check(document, &STYLE_PIPE, stream)
                               : ctl_identity_print(document, cases[i].word, &STYLE_PIPE, stream),
                        0);
                capture_end(&capture);
                for (size_t j = 0; j < ARRAY_SIZE(cases[i].words); j++)
                        assert_contains(capture.text, cases[i].words[j]);
                assert_lacks(capture.text, cases[i].lacks);
                assert_int_equal(ctl_identity_exit(document, cases[i].word), cases[i].exit);
        }
}

/* No line is longer than the terminal, and labels stand alone on the left. */
static void test_narrow(void **state)
{
        _cleanup_(json_done) json_t *document = parse_json(
                "{\"state\": \"good\", \"name\": \"host\", \"uuid\": \"U\", \"file\": \"F\","
                " \"text\": \"It is a long sentence about one host\", \"own\": {\"uuid\":"
                " \"12345678-1234-1234-1234-123456789abc\", \"name\": \"host\", \"root\": true,"
                " \"generation\": 7, \"consumers\": 2}}");
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.width = 60;
        assert_int_equal(
                ctl_identity_print(document, "show", &style, capture_begin(&capture)->stream), 0);
        capture_end(&capture);
        assert_contains(capture.text, "   Placement: 12345678-1234-1234-1234-123456789abc, named\n"
                                      "              host, generation 7, held by 2 consumers\n");
        capture_done(&capture);
        style.width = 30;
        assert_int_equal(
                ctl_identity_print_check(document, &style, capture_begin(&capture)->stream), 0);
        assert_string_equal(capture_end(&capture), "It is a long sentence about\none host.\n");
}

static void test_finding(void **state)
{
        static const struct {
                const char *document, *finding;
        } cases[] = {
                { GOOD, "{\"check\":\"identity\",\"state\":\"ok\",\"text\":\"Placement knows it\","
                        "\"advice\":\"\"}" },
                { TAKEN, "{\"check\":\"identity\",\"state\":\"bad\",\"text\":\"It is taken\","
                         "\"advice\":\"Adopt it\"}" },
                { "{\"state\":\"new\",\"text\":\"New\",\"advice\":\"Start it\"}",
                  "{\"check\":\"identity\",\"state\":\"ok\",\"text\":\"New\",\"advice\":\"\"}" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(json_done) json_t *document = parse_json(cases[i].document),
                                            *findings = json_array(),
                                            *expected = parse_json(cases[i].finding);

                assert_int_equal(ctl_identity_judge(document, findings), 0);
                assert_true(json_equal(json_array_get(findings, 0), expected));
        }
}

TEST_MAIN(test_words, test_narrow, test_finding)
