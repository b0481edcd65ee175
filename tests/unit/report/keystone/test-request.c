/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/keystone/request.h"

#include "base/json.h"
#include "base/secret.h"
#include "tests/unit/test.h"

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
                _cleanup_json_ json_t *body = NULL, *auth = NULL;
                char wanted[1000];

                snprintf(wanted, sizeof(wanted), "%s", bodies[i].auth);
                for (char *c = wanted; *c; c++)
                        *c = *c == '\'' ? '"' : *c;
                assert_int_equal(json_parse(wanted, strlen(wanted), &auth, NULL), 0);
                assert_int_equal(
                        keystone_make_token_request(&bodies[i].config, bodies[i].kind, &text), 0);
                assert_int_equal(json_parse(text, strlen(text), &body, NULL), 0);
                if (!json_equal(json_object_get(body, "auth"), auth))
                        fail_msg("case %zu: %s", i, text);
                assert_int_equal(json_object_size(body), 1);
        }
}

/* What is no UTF-8 cannot be JSON: an error, no crash. */
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

TEST_MAIN(test_base_url, test_bodies, test_foreign_password)
