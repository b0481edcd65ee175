/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/keystone/token.h"

#include "base/secret.h"
#include "tests/fixtures/json.h"

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

/* Reads the body of an answer that has a token. */
static int read_body(const KeystoneConfig *config, const char *body, KeystoneToken *ret,
                     Error *reterr)
{
        const HttpResponse response = {
                .status = 201, .body = body, .body_size = strlen(body), .subject_token = "gAAAA"
        };

        return keystone_read_answer(config, REPORTER_AUTH_PASSWORD, true, &response, ret, reterr);
}

static void test_catalog(void **state)
{
        const struct {
                KeystoneConfig config;
                const char *url; /* NULL: rejected */
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

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(keystone_token_done) KeystoneToken token = KEYSTONE_TOKEN_INIT;
                Error error = ERROR_NULL;
                int r = read_body(&cases[i].config, TOKEN(""), &token, &error);

                if ((r == 0) != (cases[i].url != NULL))
                        fail_msg("case %zu: %d %s", i, r, error.text);
                if (cases[i].url)
                        assert_string_equal(token.endpoint, cases[i].url);
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
                _cleanup_(keystone_token_done) KeystoneToken token = KEYSTONE_TOKEN_INIT;
                const KeystoneConfig config = { 0 };
                Error error = ERROR_NULL;
                char body[500];

                snprintf(body, sizeof(body), "{\"token\":{" TIMES ",\"catalog\":%s}}", texts[i]);
                if (read_body(&config, body, &token, &error) != REPORT_E_UNAVAILABLE)
                        fail_msg("case %zu: %s", i, token.endpoint);
                assert_non_null(strstr(error.text, "Keystone's catalogue has"));
                assert_null(strstr(error.text, "SECRET"));
        }
}

static void test_token(void **state)
{
        _cleanup_(keystone_token_done) KeystoneToken token = KEYSTONE_TOKEN_INIT;
        const KeystoneConfig config = { 0 };

        assert_int_equal(
                read_body(&config, TOKEN(",\"project\":{\"name\":\"service\"}"), &token, NULL),
                REPORT_DONE);
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
                { 201, "{\"token\":", "ok", REPORT_E_UNAVAILABLE, "not a token of Keystone" },
                { 201, "<html>", "ok", REPORT_E_UNAVAILABLE, "not a token of Keystone" },
                { 201, "[]", "ok", REPORT_E_UNAVAILABLE, "it has no token" },
                { 201, "", "ok", REPORT_E_UNAVAILABLE, "not a token of Keystone" },
                { 201, "{\"token\":{\"issued_at\":5,\"expires_at\":\"x\"}}", "ok",
                  REPORT_E_UNAVAILABLE, "issued_at" },
                { 201,
                  "{\"token\":{\"issued_at\":\"2026-11-21T02:00:00Z\",\"expires_at\":\"soon\"}}",
                  "ok", REPORT_E_UNAVAILABLE, "not a time" },
                { 201,
                  "{\"token\":{\"issued_at\":\"2026-11-21T02:00:00Z\",\"expires_at\":"
                  "\"2026-11-21T02:00:00Z\"}}",
                  "ok", REPORT_E_UNAVAILABLE, "is before issued_at" },
                { 201, "{\"token\":{" TIMES "}}", "ok", REPORT_E_UNAVAILABLE,
                  "no service of type" },
                { 401, "{}", "", REPORT_E_UNAUTHORIZED, "rejected the user nova (401)" },
                { 403, "{}", "", REPORT_E_UNAUTHORIZED, "(403)" },
                { 404, "", "", REPORT_E_UNAVAILABLE, "auth_url" },
                { 300, "{}", "", REPORT_E_UNAVAILABLE, "auth_url" },
                { 302, "", "", REPORT_E_UNAVAILABLE, "auth_url" },
                { 400, "{}", "", REPORT_E_UNAVAILABLE, "(400)" },
                { 503, "<html>", "", REPORT_E_UNAVAILABLE, "(503)" },
        };

        static const KeystoneConfig config = { .username = (char *)"nova",
                                               .password = (char *)"SECRET" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const HttpResponse response = { .status = cases[i].status,
                                                .body = cases[i].body,
                                                .body_size = strlen(cases[i].body),
                                                .subject_token = cases[i].subject };
                _cleanup_(keystone_token_done) KeystoneToken token = KEYSTONE_TOKEN_INIT;
                Error error = ERROR_NULL;
                int r = keystone_read_answer(&config, REPORTER_AUTH_PASSWORD, true, &response,
                                             &token, &error);

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
                uint64_t usec; /* 0: rejected */
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
                _cleanup_(keystone_token_done) KeystoneToken token = KEYSTONE_TOKEN_INIT;
                const KeystoneConfig config = { 0 };
                char body[2000];
                int r;

                snprintf(body, sizeof(body),
                         "{\"token\":{\"issued_at\":\"%s\",\"expires_at\":"
                         "\"2100-01-01T00:00:00Z\",\"catalog\":" CATALOG "}}",
                         cases[i].text);
                r = read_body(&config, body, &token, NULL);
                if (r != (cases[i].usec ? 0 : REPORT_E_UNAVAILABLE) ||
                    token.issued_usec != cases[i].usec)
                        fail_msg("case %zu: %d %llu", i, r, (unsigned long long)token.issued_usec);
        }
}

/* Requests. */

static void test_base_url(void **state)
{
        static const struct {
                const char *auth_url, *base;
        } cases[] = {
                { "http://k:5000", "http://k:5000/v3" },
                { "http://k:5000/", "http://k:5000/v3" },
                { "http://k:5000/v3", "http://k:5000/v3" },
                { "http://k:5000/v3//", "http://k:5000/v3" },
                { "https://k/identity", "https://k/identity/v3" },
                { "https://k/identity/v3/", "https://k/identity/v3" },
                { "https://k/v3x", "https://k/v3x/v3" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *base = NULL;

                assert_int_equal(keystone_make_base_url(cases[i].auth_url, &base), 0);
                assert_string_equal(base, cases[i].base);
        }
}

#define IDENTITY(user) "{'identity':{'methods':['password'],'password':{'user':" user "}}"
#define BY_NAME        "{'name':'nova','domain':{'name':'Default'},'password':'s\\\"3'}"
#define NAMED                                                              \
        .username = (char *)"nova", .user_domain_name = (char *)"Default", \
        .password = (char *)"s\"3"

/* Kind and configuration of a row. */
#define PASSWORD(...)           \
        REPORTER_AUTH_PASSWORD, \
        {                       \
                __VA_ARGS__     \
        }
#define CREDENTIAL(...)                        \
        REPORTER_AUTH_V3APPLICATIONCREDENTIAL, \
        {                                      \
                __VA_ARGS__                    \
        }

static const struct {
        ReporterAuth kind;
        KeystoneConfig config;
        const char *auth; /* with ' for " */
} bodies[] = {
        { PASSWORD(NAMED, .project_name = (char *)"service",
                   .project_domain_id = (char *)"default"),
          IDENTITY(BY_NAME) ",'scope':{'project':{'name':'service','domain':{'id':'default'}}}}" },
        { PASSWORD(.user_id = (char *)"7", .username = (char *)"ignored", .password = (char *)"p",
                   .project_id = (char *)"8", .project_name = (char *)"ignored"),
          IDENTITY("{'id':'7','password':'p'}") ",'scope':{'project':{'id':'8'}}}" },
        { PASSWORD(.username = (char *)"u", .password = (char *)"p", .project_name = (char *)"x",
                   .default_domain_id = (char *)"d"),
          IDENTITY(
                  "{'name':'u','domain':{'id':'d'},'password':'p'}") ",'scope':{'project':{'name':'"
                                                                     "x','domain':{'id':'d'}}}}" },
        { PASSWORD(NAMED, .domain_name = (char *)"Default"),
          IDENTITY(BY_NAME) ",'scope':{'domain':{'name':'Default'}}}" },
        { PASSWORD(NAMED, .domain_id = (char *)"default"),
          IDENTITY(BY_NAME) ",'scope':{'domain':{'id':'default'}}}" },
        { PASSWORD(NAMED, .system_scope = (char *)"all"),
          IDENTITY(BY_NAME) ",'scope':{'system':{'all':true}}}" },
        { PASSWORD(NAMED, .trust_id = (char *)"t"),
          IDENTITY(BY_NAME) ",'scope':{'OS-TRUST:trust':{'id':'t'}}}" },
        { CREDENTIAL(.application_credential_id = (char *)"4711",
                     .application_credential_secret = (char *)"p", .username = (char *)"ignored"),
          "{'identity':{'methods':['application_credential'],'application_credential':"
          "{'id':'4711','secret':'p'}}}" },
        { CREDENTIAL(.application_credential_name = (char *)"agent",
                     .application_credential_secret = (char *)"p", .username = (char *)"u",
                     .user_domain_id = (char *)"d"),
          "{'identity':{'methods':['application_credential'],'application_credential':"
          "{'name':'agent','user':{'name':'u','domain':{'id':'d'}},'secret':'p'}}}" },
        { PASSWORD(.username = (char *)"\"password\":\"\"",
                   .user_domain_id = (char *)"\"secret\":\"\"",
                   .password = (char *)"\"\\\n\x01\xc3\xa4\x7f", .project_id = (char *)"8"),
          "{'identity':{'methods':['password'],'password':{'user':{'name':"
          "'\\'password\\':\\'\\'','domain':{'id':'\\'secret\\':\\'\\''},"
          "'password':'\\'\\\\\\n\\u0001\xc3\xa4\x7f'}}},'scope':{'project':{'id':'8'}}}" },
};

static void test_bodies(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
                _cleanup_(secret_freep) char *text = NULL;
                _cleanup_json_ json_t *auth = fixture_json(bodies[i].auth), *body = NULL;

                assert_int_equal(
                        keystone_make_token_request(&bodies[i].config, bodies[i].kind, &text), 0);
                assert_int_equal(json_parse(text, strlen(text), &body, NULL), 0);
                if (!json_equal(json_object_get(body, "auth"), auth))
                        fail_msg("case %zu: %s", i, text);
                assert_int_equal(json_object_size(body), 1);
        }
}

/* A secret that is not UTF-8 cannot be JSON. That is an error, not a crash. */
static void test_foreign_password(void **state)
{
        KeystoneConfig config = { .user_id = (char *)"7",
                                  .password = (char *)"\xff",
                                  .project_id = (char *)"8" };
        char *text = NULL;

        assert_int_equal(keystone_make_token_request(&config, REPORTER_AUTH_PASSWORD, &text),
                         -ENOMEM);
        assert_null(text);
}

TEST_MAIN(test_catalog, test_hostile_catalogs, test_token, test_answers, test_time, test_base_url,
          test_bodies, test_foreign_password)
