/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/http/http.h"
#include "report/placement/outcome.h"
#include "report/placement/request.h"

#include "tests/unit/test.h"

#define FAULT(code_, detail_)                                                \
        "{\"errors\":[{\"status\":409,\"title\":\"x\",\"detail\":\"" detail_ \
        "\",\"code\":\"" code_ "\"}]}"

static PlacementVerdict judge_of(const char *method, const char *path, int status, const char *type,
                                 const char *body, Error *error)
{
        PlacementRequest request = {
                .method = method,
                .path = (char *)path,
                .microversion = "1.30",
                .body = (char *)"{}",
        };
        HttpResponse response = {
                .status = status,
                .body = body,
                .body_size = strlen(body),
                .content_type = type,
                .request_id = "",
                .location = "http://elsewhere/",
                .retry_after_sec = status == 503 || status == 429 ? 17 : 0,
        };

        return placement_judge(&request, &response, error);
}

static PlacementVerdict judge(const char *path, int status, const char *type, const char *body,
                              Error *error)
{
        return judge_of("PUT", path, status, type, body, error);
}

/* A creation has a microversion without codes. Its only conflict is that of the name or uuid. */
static void test_creation_with_a_used_name(void **state)
{
        static const struct {
                const char *method, *path;
                int outcome;
        } cases[] = {
                { "POST", "/resource_providers", REPORT_E_DUPLICATE_NAME },
                { "POST", "/reshaper", REPORT_E_REFUSED },
                { "PUT", "/resource_providers/u", REPORT_E_REFUSED },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;

                assert_int_equal(judge_of(cases[i].method, cases[i].path, 409, "application/json",
                                          "{\"errors\":[{\"detail\":\"exists\"}]}", &error)
                                         .outcome,
                                 cases[i].outcome);
        }
}

/* A role can permit reads alone. Without reads, Placement cannot be used. */
static void test_forbidden(void **state)
{
        static const struct {
                const char *method;
                int outcome;
        } cases[] = {
                { "GET", REPORT_E_UNREADABLE },
                { "PUT", REPORT_E_FORBIDDEN },
                { "POST", REPORT_E_FORBIDDEN },
                { "DELETE", REPORT_E_FORBIDDEN },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;

                assert_int_equal(
                        judge_of(cases[i].method, "/allocations/u", 403, "", "", &error).outcome,
                        cases[i].outcome);
                assert_non_null(strstr(error.text, cases[i].method));
        }
}

static void test_statuses(void **state)
{
        static const struct {
                int status;
                const char *body;
                int outcome;
                PlacementCode code;
                const char *words; /* a part of the message */
        } cases[] = {
                { 200, "{}", REPORT_DONE, PLACEMENT_CODE_NONE, NULL },
                { 204, "", REPORT_DONE, PLACEMENT_CODE_NONE, NULL },
                { 301, "", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "http://elsewhere/" },
                { 304, "", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "redirect" },
                { 400, FAULT("placement.undefined_code", "no such trait"), REPORT_E_REFUSED,
                  PLACEMENT_CODE_UNDEFINED, "no such trait" },
                { 400, "<html>Bad", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "instead of JSON" },
                { 401, "Authentication required", REPORT_E_UNAUTHORIZED, PLACEMENT_CODE_NONE,
                  "Placement rejects the credentials (401)" },
                { 403, FAULT("placement.undefined_code", "no"), REPORT_E_FORBIDDEN,
                  PLACEMENT_CODE_UNDEFINED, "(in an older Placement: admin)" },
                { 404, "<html>nginx</html>", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE,
                  "endpoint" },
                { 404, FAULT("placement.undefined_code", "gone"), REPORT_E_REFUSED,
                  PLACEMENT_CODE_UNDEFINED, "gone" },
                { 406,
                  "{\"errors\":[{\"status\":406,\"max_version\":\"1.17\",\"min_version\":\"1.0\"}]"
                  "}",
                  REPORT_E_TOO_OLD, PLACEMENT_CODE_NONE, "1.0 to 1.17" },
                { 406, "nothing acceptable", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "406" },
                { 409, FAULT("placement.concurrent_update", "generation"), REPORT_E_CONFLICT,
                  PLACEMENT_CODE_CONCURRENT_UPDATE, "generation" },
                { 409, FAULT("placement.inventory.inuse", "VGPU"), REPORT_E_IN_USE,
                  PLACEMENT_CODE_INVENTORY_IN_USE, "VGPU" },
                { 409, FAULT("placement.resource_provider.inuse", "x"), REPORT_E_IN_USE,
                  PLACEMENT_CODE_PROVIDER_IN_USE, "409" },
                { 409, FAULT("placement.resource_provider.cannot_delete_parent", "x"),
                  REPORT_E_IN_USE, PLACEMENT_CODE_CANNOT_DELETE_PARENT, "409" },
                { 409, FAULT("placement.duplicate_name", "x"), REPORT_E_DUPLICATE_NAME,
                  PLACEMENT_CODE_DUPLICATE_NAME, "409" },
                { 409, FAULT("placement.undefined_code", "capacity"), REPORT_E_REFUSED,
                  PLACEMENT_CODE_UNDEFINED, "capacity" },
                { 409, FAULT("placement.some_day", "x"), REPORT_E_REFUSED, PLACEMENT_CODE_UNDEFINED,
                  "409" },
                /* Only the code decides, never the text (facts G2.12). */
                { 409, FAULT("placement.undefined_code", "placement.concurrent_update"),
                  REPORT_E_REFUSED, PLACEMENT_CODE_UNDEFINED, "409" },
                { 409, "", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "no body" },
                { 413, FAULT("x", "too large"), REPORT_E_REFUSED, PLACEMENT_CODE_UNDEFINED,
                  "Raise the limit" },
                { 413, "<html>Request Entity Too Large", REPORT_E_REFUSED, PLACEMENT_CODE_NONE,
                  "the size of PUT /traits/X (413), which is 2 bytes" },
                /* facts E1: the other codes and statuses. */
                { 400, FAULT("placement.resource_provider.not_found", "u"), REPORT_E_REFUSED,
                  PLACEMENT_CODE_PROVIDER_NOT_FOUND, "u" },
                { 400, FAULT("placement.query.duplicate_key", "k"), REPORT_E_REFUSED,
                  PLACEMENT_CODE_UNDEFINED, "k" },
                { 400, FAULT("placement.query.bad_value", "v"), REPORT_E_REFUSED,
                  PLACEMENT_CODE_UNDEFINED, "v" },
                { 400, FAULT("placement.query.missing_value", "v"), REPORT_E_REFUSED,
                  PLACEMENT_CODE_UNDEFINED, "v" },
                { 405, FAULT("placement.undefined_code", "Allow"), REPORT_E_REFUSED,
                  PLACEMENT_CODE_UNDEFINED, "405" },
                { 405, "<html>", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "endpoint" },
                { 408, "", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "408" },
                { 414, "<html>URI Too Long", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "414" },
                { 415, FAULT("placement.undefined_code", "json"), REPORT_E_REFUSED,
                  PLACEMENT_CODE_UNDEFINED, "415" },
                { 429, "", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "wait 17 s" },
                /* facts E7: a lost race inside PUT traits. */
                { 500, FAULT("placement.undefined_code", "race"), REPORT_E_UNAVAILABLE,
                  PLACEMENT_CODE_UNDEFINED, "race" },
                { 504, "<html>Gateway Time-out", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "504" },
                { 500, "{\"errors\":[{\"detail\":\"(x) database is locked\"}]}",
                  REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "locked" },
                { 502, "<html>Bad Gateway</html>", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE,
                  "502" },
                { 503, "", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "wait 17 s" },
                { 999, "", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "999" },
                { 0, "", REPORT_E_UNAVAILABLE, PLACEMENT_CODE_NONE, "JSON" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;
                PlacementVerdict verdict =
                        judge("/traits/X?a=b", cases[i].status, "text/html", cases[i].body, &error);

                if (verdict.outcome != cases[i].outcome || verdict.code != cases[i].code)
                        fail_msg("case %zu (%d): outcome %d, code %d", i, cases[i].status,
                                 verdict.outcome, (int)verdict.code);
                if (cases[i].words && !strstr(error.text, cases[i].words))
                        fail_msg("case %zu (%d): \"%s\"", i, cases[i].status, error.text);
                assert_null(strstr(error.text, "a=b"));
                assert_int_equal(verdict.database_locked,
                                 cases[i].status == 500 && strstr(cases[i].body, "locked") != NULL);
        }
}

/* Bodies that have the form of Placement's and wrong values: no code, no crash. */
static void test_hostile_bodies(void **state)
{
        static const char *const bodies[] = {
                "",
                "{",
                "null",
                "[]",
                "{}",
                "{\"errors\":null}",
                "{\"errors\":{}}",
                "{\"errors\":[]}",
                "{\"errors\":[null]}",
                "{\"errors\":[\"placement.concurrent_update\"]}",
                "{\"errors\":[{\"code\":\"placement.concurrent_update\"",
                "{\"errors\":[{\"code\":\"placement.concurrent_update\"}],\"errors\":[]}",
                "\xff\xfe",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
                Error error = ERROR_NULL;
                PlacementVerdict verdict = judge("/x", 409, "", bodies[i], &error);

                assert_int_equal(verdict.outcome, REPORT_E_UNAVAILABLE);
                assert_int_equal(verdict.code, PLACEMENT_CODE_NONE);
                assert_false(verdict.from_placement);
                assert_true(error.text[0] != '\0');
        }
}

static void test_odd_members(void **state)
{
        Error error = ERROR_NULL;
        PlacementVerdict verdict =
                judge("/x", 409, "", "{\"errors\":[{\"code\":5,\"detail\":[1]}]}", &error);

        assert_int_equal(verdict.outcome, REPORT_E_REFUSED);
        assert_true(verdict.from_placement);
        assert_non_null(strstr(error.text, "no reason given"));
}

static void test_detail_is_tidied(void **state)
{
        Error error = ERROR_NULL;

        judge("/x", 400, "application/json",
              FAULT("placement.undefined_code",
                    "The server could not comply.\\n\\n No such   trait(s):\\n X.  "),
              &error);
        assert_string_equal(error.text, "Placement refuses PUT /x (400): No such trait(s): X");
}

static void test_long_detail_is_cut(void **state)
{
        char body[6000] = "{\"errors\":[{\"detail\":\"";
        Error error = ERROR_NULL;
        size_t n = strlen(body);

        memset(body + n, 'x', 5000);
        strcpy(body + n + 5000, "\"}]}");
        judge("/x", 400, "application/json", body, &error);
        assert_true(strlen(error.text) < ERROR_TEXT_MAX);
}

/* Every Placement has a list of providers, in every version. */
static void test_endpoint_without_placement(void **state)
{
        static const char *const bodies[] = { "<html>", FAULT("placement.undefined_code", "gone") };
        Error error;

        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
                PlacementVerdict verdict =
                        judge("/resource_providers?in_tree=x", 404, "", bodies[i], &error);

                assert_int_equal(verdict.outcome, REPORT_E_UNAVAILABLE);
                assert_non_null(strstr(
                        error.text,
                        "There is no Placement at the endpoint (404 to PUT /resource_providers)"));
                (void)judge("/resource_providers/u/traits", 404, "", bodies[i], &error);
                assert_null(strstr(error.text, "no Placement at the endpoint"));
        }
}

static void test_reshaper_role(void **state)
{
        Error error = ERROR_NULL;

        judge("/reshaper", 403, "", "", &error);
        assert_non_null(strstr(error.text, "the role service"));
        assert_null(strstr(error.text, "admin"));
}

TEST_MAIN(test_endpoint_without_placement, test_creation_with_a_used_name, test_forbidden,
          test_statuses, test_hostile_bodies, test_odd_members, test_detail_is_tidied,
          test_long_detail_is_cut, test_reshaper_role)
