/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/verbs.h"

#include "tests/fixtures/ctl-capture.h"

/* Replaces a verb: the name of the host is "code:output". Writes the name to standard error if it
 * is not ASCII. */
static int run(const CtlVerb *verb, Ctl *ctl)
{
        printf("%s", strchr(ctl->options.host, ':') + 1);
        if (strpbrk(ctl->options.host, "\xc3\xff"))
                fprintf(stderr, "%s\n", ctl->options.host);
        return (int)strtol(ctl->options.host, NULL, 10);
}

static int run_some(const char *a, const char *b, const char *c, CtlOptions options,
                    Capture *capture)
{
        static const CtlVerb verb = { .name = "status" };
        char *names[] = { (char *)a, (char *)b, (char *)c };
        size_t n = c ? 3 : 2;
        Ctl ctl = { .options = options };
        int code;

        ctl.options.hosts = (__typeof__(ctl.options.hosts)){ names, n, n };
        ctl.page = *capture_begin(capture, STYLE_PIPE);
        code = ctl_hosts_run(&ctl, &verb, run, NULL);
        capture_end(capture);
        return code;
}

static int run_hosts(const char *a, const char *b, CtlJson json, Capture *capture)
{
        return run_some(a, b, NULL, (CtlOptions){ .json = json }, capture);
}

static void test_the_worst_code_is_returned(void **state)
{
        static const char *const names[] = { "0:", "4:", "5:", "3:", "1:", "137:" };
        static const int codes[] = { 0, 4, 5, 3, 1, 137 };

        for (size_t i = 0; i < ARRAY_SIZE(names) - 1; i++)
                for (size_t j = 0; j < ARRAY_SIZE(names) - 1; j++) {
                        _cleanup_(capture_done) Capture capture;

                        assert_int_equal(run_hosts(names[i], names[j], CTL_JSON_OFF, &capture),
                                         codes[MAX(i, j)]);
                }
        for (size_t i = 0; i < 2; i++) {
                _cleanup_(capture_done) Capture capture;

                assert_int_equal(run_hosts(names[1], names[5], CTL_JSON_OFF, &capture), 137);
        }
}

static void test_outputs_are_printed_in_order(void **state)
{
        _cleanup_(capture_done) Capture text, json;

        assert_int_equal(run_hosts("3:{\"a\": 1}", "0:[2] 3", CTL_JSON_OFF, &text), 3);
        assert_string_equal(text.text, "==> 3:{\"a\": 1} (exit code 3) <==\n{\"a\": 1}\n"
                                       "==> 0:[2] 3 <==\n[2] 3");
        assert_int_equal(run_hosts("3:{\"a\": 1}", "0:[2] 3", CTL_JSON_SHORT, &json), 3);
        assert_contains(json.text, "\"code\":3,\"output\":{\"a\":1}");
        assert_contains(json.text, "\"code\":0,\"output\":[[2],3]");
}

/* A host without output is left out, with its empty line. */
static void test_quiet(void **state)
{
        static const struct {
                const char *names[3], *text;
        } cases[] = {
                { { "0:a", "0:", "4:b" }, "==> 0:a <==\na\n==> 4:b (exit code 4) <==\nb" },
                { { "0:a", "0:", "0:" }, "==> 0:a <==\na" },
                { { "0:", "3:", "0:a" }, "==> 0:a <==\na" },
                { { "0:", "0:", "0:" }, "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(capture_done) Capture text;

                run_some(cases[i].names[0], cases[i].names[1], cases[i].names[2],
                         (CtlOptions){ .quiet = true }, &text);
                assert_string_equal(text.text, cases[i].text);
        }
}

/* A host can write anything to standard error. */
static void test_bytes_that_are_no_text(void **state)
{
        _cleanup_(capture_done) Capture json;

        assert_int_equal(run_hosts("4:[\xff]", "0:[\"\xc3\xa4\"]", CTL_JSON_SHORT, &json), 4);
        assert_contains(json.text,
                        "{\"host\":\"4:[?]\",\"code\":4,\"output\":null,\"error\":\"4:[?]\\n\"}");
        assert_contains(json.text, "\"output\":[\"\xc3\xa4\"]");
}

TEST_MAIN(test_the_worst_code_is_returned, test_outputs_are_printed_in_order, test_quiet,
          test_bytes_that_are_no_text)
