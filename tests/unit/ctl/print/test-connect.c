/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/connect.h"

#include "base/json.h"
#include "ctl/print/json.h"
#include "tests/fixtures/ctl-capture.h"

/* "keystone=ok role=bad": the findings in order; each that is not well says what to do. */
static void summarise(const json_t *findings, char *text, size_t size)
{
        const json_t *finding;
        size_t i, n = 0;

        text[0] = '\0';
        json_array_foreach((json_t *)findings, i, finding) {
                const char *state = ctl_json_text(finding, "state");

                assert_int_equal(strcmp(state, "ok") != 0,
                                 ctl_json_text(finding, "advice")[0] != '\0');
                n += (size_t)snprintf(text + n, size - n, "%s%s=%s", n > 0 ? " " : "",
                                      ctl_json_text(finding, "check"), state);
        }
}

static void test_table(void **state)
{
        static const struct {
                const char *connect; /* with ' for " */
                const char *findings, *words;
        } cases[] = {
                { "{'keystone':true,'scope':'project service','roles':['service'],'endpoint':'http://p'}",
                  "keystone=ok endpoint=ok", "project service; roles: service" },
                { "{'keystone':true,'scope':'system','roles':['admin','reader'],'endpoint':''}",
                  "keystone=ok endpoint=ok", "admin, reader" },
                { "{'keystone':true,'scope':'x','roles':['reader'],'endpoint':'http://p'}",
                  "keystone=ok role=warning", "" },
                { "{'keystone':true,'scope':'x','roles':[],'placement_error':'no','placement_"
                  "outcome':'forbidden'}",
                  "keystone=ok role=bad", "none" },
                { "{'keystone':true,'scope':'x','roles':[],'placement_error':'gone','placement_"
                  "outcome':"
                  "'unreachable'}",
                  "keystone=ok endpoint=bad", "" },
                { "{'keystone':true,'error':'wrong','outcome':'unauthorized'}", "keystone=bad",
                  "wrong" },
                { "{'keystone':true,'error':'gone','outcome':'unreachable'}", "keystone=bad",
                  "gone" },
                { "{'keystone':true,'error':'nowhere','outcome':'unavailable'}", "keystone=bad",
                  "nowhere" },
                { "{'keystone':true,'scope':'x','roles':['service'],'clock_ahead_sec':-6}",
                  "keystone=ok endpoint=ok clock=warning", "" },
                { "{'keystone':true,'scope':'x','roles':['service'],'clock_ahead_sec':5}",
                  "keystone=ok endpoint=ok", "" },
                { "{'keystone':false,'endpoint':'http://p'}", "endpoint=ok", "at http://p" },
                { "{'keystone':false,'placement_error':'gone','placement_outcome':'unreachable'}",
                  "endpoint=bad", "gone" },
                { "{'microversion':'1.39'}", "endpoint=ok version=ok", "" },
                { "{'microversion':'1.38'}", "endpoint=ok version=ok", "" },
                { "{'microversion':'1.37'}", "endpoint=ok version=warning", "" },
                { "{'microversion':'2.0'}", "endpoint=ok version=ok", "" },
                { "{'microversion':'new'}", "endpoint=ok", "" },
                { "{'keystone':true,'roles':5,'scope':[],'error':7}", "keystone=ok role=warning",
                  "no scope" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *connect = parse_quoted(cases[i].connect),
                                      *findings = json_array();
                char summary[200];

                assert_int_equal(ctl_connect_judge(connect, findings), 0);
                summarise(findings, summary, sizeof(summary));
                assert_string_equal(summary, cases[i].findings);
                assert_non_null(
                        strstr(ctl_json_text(json_array_get(findings, 0), "text"), cases[i].words));
        }
}

/* Who has the role already is not told to give it. */
static void test_which_role_is_advised(void **state)
{
        static const char format[] =
                "{\"keystone\":true,\"roles\":[\"%s\"],\"placement_error\":\"no\",\"placement_outcome\":\"forbidden\"}";
        static const char *const cases[][2] = { { "reader", "--project PROJECT service\"" },
                                                { "service", "--project PROJECT admin\"" } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *connect = NULL, *findings = json_array();
                char text[200];

                snprintf(text, sizeof(text), format, cases[i][0]);
                connect = json_loads(text, 0, NULL);
                assert_non_null(connect);
                assert_int_equal(ctl_connect_judge(connect, findings), 0);
                assert_non_null(
                        strstr(ctl_json_text(json_array_get(findings, 1), "advice"), cases[i][1]));
        }
}

TEST_MAIN(test_table, test_which_role_is_advised)
