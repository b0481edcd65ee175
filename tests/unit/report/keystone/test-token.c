/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/keystone/token.h"

#include "tests/unit/test.h"

#define ENDPOINT(interface, region, url)                                                     \
        "{\"interface\":\"" interface "\",\"region_id\":\"" region "\",\"region\":\"" region \
        "\",\"url\":\"" url "\"}"
#define SERVICE(type, name, endpoints) \
        "{\"type\":\"" type "\",\"name\":\"" name "\",\"endpoints\":[" endpoints "]}"
#define PLACEMENT_ENDPOINTS                                                        \
        ENDPOINT("public", "one", "http://one-public")                             \
        "," ENDPOINT("internal", "one", "http://one-internal") "," ENDPOINT(       \
                "public", "two", "http://two-public") "," ENDPOINT("admin", "bad", \
                                                                   "unix:///run/x.sock")
#define CATALOG                                                                                 \
        "[" SERVICE("compute", "nova", ENDPOINT("internal", "one", "http://nova")) "," SERVICE( \
                "placement", "placement",                                                       \
                PLACEMENT_ENDPOINTS) "," SERVICE("placement", "other",                          \
                                                 ENDPOINT("internal", "one", "http://other")) "]"
#define TIMES                                                                              \
        "\"issued_at\":\"2026-11-21T02:00:00.000000Z\",\"expires_at\":\"2026-11-21T03:00:" \
        "00.000000Z\""
#define ROLES       "\"roles\":[{\"name\":\"admin\"},{\"name\":\"service\"},{\"id\":\"7\"},5]"
#define TOKEN(more) "{\"token\":{" TIMES "," ROLES ",\"catalog\":" CATALOG more "}}"

#define LIST(...)                 \
        (char *[])                \
        {                         \
                __VA_ARGS__, NULL \
        }

static void test_catalog(void **state)
{
        const struct {
                KeystoneConfig config;
                const char *url; /* NULL: refused */
                const char *words;
        } cases[] = {
                { { 0 }, "http://one-internal", NULL },
                { { .region_name = (char *)"two" }, "http://two-public", NULL },
                { { .service_name = (char *)"other" }, "http://other", NULL },
                { { .service_type = (char *)"compute" }, "http://nova", NULL },
                { { .interface = (char *)"public" }, "http://one-public", NULL },
                { { .interface = (char *)"publicURL" }, "http://one-public", NULL },
                { { .valid_interfaces = LIST((char *)"admin", (char *)"public"),
                    .region_name = (char *)"two" },
                  "http://two-public",
                  NULL },
                { { .valid_interfaces = LIST((char *)"internal"), .region_name = (char *)"two" },
                  NULL,
                  "two/public" },
                { { .region_name = (char *)"three" }, NULL, "region_name" },
                { { .service_type = (char *)"volume" }, NULL, "no service of type volume" },
                { { .interface = (char *)"admin" }, NULL, "unix:///run/x.sock" },
        };
        _cleanup_json_ json_t *catalog = NULL;

        assert_int_equal(json_parse(CATALOG, strlen(CATALOG), &catalog, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *url = NULL;
                Error error = ERROR_NULL;
                int r = keystone_catalog_find(catalog, &cases[i].config, &url, &error);

                if ((r == 0) != (cases[i].url != NULL))
                        fail_msg("case %zu: %d %s", i, r, error.text);
                if (cases[i].url)
                        assert_string_equal(url, cases[i].url);
                else if (!strstr(error.text, cases[i].words))
                        fail_msg("case %zu: %s", i, error.text);
        }
}

static void test_hostile_catalogs(void **state)
{
        static const char *const texts[] = {
                "[]",
                "{}",
                "[5, null, [], \"x\", {}]",
                "[{\"type\":\"placement\"}]",
                "[{\"type\":\"placement\",\"endpoints\":5}]",
                "[{\"type\":\"placement\",\"endpoints\":{\"a\":{}}}]",
                "[{\"type\":\"placement\",\"endpoints\":[5,null,[],{}]}]",
                "[{\"type\":5,\"endpoints\":[{\"interface\":\"public\",\"url\":\"http://x\"}]}]",
                "[{\"type\":\"placement\",\"endpoints\":[{\"interface\":7,\"url\":\"http://x\"}]}]",
                "[{\"type\":\"placement\",\"endpoints\":[{\"interface\":\"public\",\"url\":7}]}]",
                "[{\"type\":\"placement\",\"endpoints\":[{\"interface\":\"public\","
                "\"url\":\"http://u:SECRET@x\"}]}]",
                "[{\"type\":\"placement\",\"endpoints\":[{\"interface\":\"public\","
                "\"url\":\"file:///etc/shadow\"}]}]",
                "[{\"type\":\"placement\",\"endpoints\":[{\"interface\":\"public\","
                "\"url\":\"http://x/\\r\\nX-Evil: 1\"}]}]",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_json_ json_t *catalog = NULL;
                KeystoneConfig config = { 0 };
                const char *url = NULL;
                Error error = ERROR_NULL;

                assert_int_equal(json_parse(texts[i], strlen(texts[i]), &catalog, NULL), 0);
                if (keystone_catalog_find(catalog, &config, &url, &error) == 0)
                        fail_msg("case %zu: %s", i, url);
                assert_null(strstr(error.text, "SECRET"));
        }
}

static int read_answer(const HttpResponse *response, KeystoneToken *ret, Error *reterr)
{
        static const KeystoneConfig config = { .username = (char *)"nova",
                                               .password = (char *)"SECRET" };

        return keystone_read_answer(&config, REPORTER_AUTH_PASSWORD, true, response, ret, reterr);
}

static void test_token(void **state)
{
        static const char *const body = TOKEN(",\"project\":{\"name\":\"service\"}");
        const HttpResponse response = {
                .status = 201, .body = body, .body_size = strlen(body), .subject_token = "gAAAA"
        };
        _cleanup_(keystone_token_done) KeystoneToken token = KEYSTONE_TOKEN_INIT;

        assert_int_equal(read_answer(&response, &token, NULL), REPORT_DONE);
        assert_string_equal(token.header, "X-Auth-Token: gAAAA");
        assert_string_equal(token.endpoint, "http://one-internal");
        assert_int_equal(token.lifetime_usec, 3600 * USEC_PER_SEC);
        assert_int_equal(token.issued_usec, 1795226400 * USEC_PER_SEC);
        assert_int_equal(token.roles.n_items, 2);
        assert_true(string_set_contains(&token.roles, "service"));
        assert_string_equal(token.scope, "project service");
}

static void test_answers(void **state)
{
        static const struct {
                int status;
                const char *body, *subject;
                int result;
                const char *words;
        } cases[] = {
                { 201, TOKEN(""), "ok", REPORT_DONE, NULL },
                { 201, TOKEN(",\"system\":{\"all\":true}"), "ok", REPORT_DONE, NULL },
                { 201, "{\"token\":{\"expires_at\":null,\"catalog\":" CATALOG "}}", "ok",
                  REPORT_DONE, NULL },
                { 201, TOKEN(""), "", REPORT_E_UNAVAILABLE, "missing" },
                { 201, TOKEN(""), "SECRET two", REPORT_E_UNAVAILABLE, "no token" },
                { 201, "{\"token\":", "ok", REPORT_E_UNAVAILABLE, "no token of Keystone's" },
                { 201, "<html>", "ok", REPORT_E_UNAVAILABLE, "no token of Keystone's" },
                { 201, "[]", "ok", REPORT_E_UNAVAILABLE, "it has no token" },
                { 201, "", "ok", REPORT_E_UNAVAILABLE, "no token of Keystone's" },
                { 201, "{\"token\":{\"issued_at\":5,\"expires_at\":\"x\"}}", "ok",
                  REPORT_E_UNAVAILABLE, "issued_at" },
                { 201,
                  "{\"token\":{\"issued_at\":\"2026-11-21T02:00:00Z\",\"expires_at\":\"soon\"}}",
                  "ok", REPORT_E_UNAVAILABLE, "no time" },
                { 201,
                  "{\"token\":{\"issued_at\":\"2026-11-21T02:00:00Z\",\"expires_at\":"
                  "\"2026-11-21T02:00:00Z\"}}",
                  "ok", REPORT_E_UNAVAILABLE, "ends before" },
                { 201, "{\"token\":{" TIMES "}}", "ok", REPORT_E_UNAVAILABLE,
                  "no service of type" },
                { 401, "{}", "", REPORT_E_UNAUTHORIZED, "refuses the user nova (401)" },
                { 403, "{}", "", REPORT_E_UNAUTHORIZED, "(403)" },
                { 404, "", "", REPORT_E_UNAVAILABLE, "auth_url" },
                { 300, "{}", "", REPORT_E_UNAVAILABLE, "auth_url" },
                { 302, "", "", REPORT_E_UNAVAILABLE, "auth_url" },
                { 400, "{}", "", REPORT_E_UNAVAILABLE, "(400)" },
                { 503, "<html>", "", REPORT_E_UNAVAILABLE, "(503)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const HttpResponse response = { .status = cases[i].status,
                                                .body = cases[i].body,
                                                .body_size = strlen(cases[i].body),
                                                .subject_token = cases[i].subject };
                _cleanup_(keystone_token_done) KeystoneToken token = KEYSTONE_TOKEN_INIT;
                Error error = ERROR_NULL;
                int r = read_answer(&response, &token, &error);

                if (r != cases[i].result || (cases[i].words && !strstr(error.text, cases[i].words)))
                        fail_msg("case %zu: %d %s", i, r, error.text);
                assert_null(strstr(error.text, "SECRET"));
                assert_true((r == REPORT_DONE) == (token.header != NULL));
        }
}

static void test_time(void **state)
{
        static const struct {
                const char *text;
                uint64_t usec; /* 0: refused */
        } cases[] = {
                { "1970-01-01T00:00:01Z", USEC_PER_SEC },
                { "1970-01-01T00:00:01.5Z", 1500000 },
                { "1970-01-01T00:00:01.000001Z", 1000001 },
                { "1970-01-01T00:00:01.0000019Z", 1000001 },
                { "2026-11-21T02:00:00.000000Z", UINT64_C(1795226400000000) },
                { "1970-01-01T00:00:01", 0 },
                { "1970-01-01T00:00:01+00:00", 0 },
                { "1970-01-01 00:00:01Z", 0 },
                { "1970-1-01T00:00:001Z", 0 },
                { "1970-13-01T00:00:01Z", 0 },
                { "1970-01--1T00:00:01Z", 0 },
                { "1960-01-01T00:00:01Z", 0 },
                { " 970-01-01T00:00:01Z", 0 },
                { "", 0 },
                { "Z", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t usec = 0;
                int r = keystone_read_time(cases[i].text, &usec);

                if (r != (cases[i].usec ? 0 : -EBADMSG) || usec != cases[i].usec)
                        fail_msg("case %zu: %d %llu", i, r, (unsigned long long)usec);
        }
}

TEST_MAIN(test_catalog, test_hostile_catalogs, test_token, test_answers, test_time)
