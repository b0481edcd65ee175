/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/keystone/config.h"

#include "tests/unit/test.h"

#define URL   .auth_url = (char *)"http://k:5000"
#define USER  .username = (char *)"nova", .user_domain_name = (char *)"Default"
#define WORD  .password = (char *)"SECRET"
#define SCOPE .project_name = (char *)"service", .project_domain_id = (char *)"default"
#define APP   .application_credential_secret = (char *)"SECRET"

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
        const char *option; /* NULL: usable */
        const char *words;
} cases[] = {
        { PASSWORD(URL, USER, WORD, SCOPE), NULL, NULL },
        { PASSWORD(URL, WORD, .user_id = (char *)"7", .project_id = (char *)"8"), NULL, NULL },
        { PASSWORD(URL, WORD, .username = (char *)"u", .project_name = (char *)"p",
                   .default_domain_name = (char *)"d"),
          NULL, NULL },
        { PASSWORD(URL, USER, WORD, .domain_name = (char *)"d"), NULL, NULL },
        { PASSWORD(URL, USER, WORD, .system_scope = (char *)"all"), NULL, NULL },
        { PASSWORD(URL, USER, WORD, .trust_id = (char *)"t"), NULL, NULL },
        { PASSWORD(USER, WORD, SCOPE), "auth_type", "auth_url" },
        { PASSWORD(USER, WORD, SCOPE, .auth_url = (char *)"http://k:5000/v2.0"), "auth_url",
          "v2.0" },
        { PASSWORD(URL, WORD, SCOPE), "auth_type", "username" },
        { PASSWORD(URL, WORD, SCOPE, .username = (char *)"nova"), "auth_type", "user_domain_name" },
        { PASSWORD(URL, USER, SCOPE), "auth_type", "placement-password" },
        { PASSWORD(URL, USER, SCOPE, .password = (char *)""), "auth_type", "password" },
        { PASSWORD(URL, USER, SCOPE, .password = (char *)"\xff"), "password", "UTF-8" },
        { CREDENTIAL(URL, .application_credential_id = (char *)"1",
                     .application_credential_secret = (char *)"a\xc3"),
          "application_credential_secret", "UTF-8" },
        { PASSWORD(URL, USER, WORD), "auth_type", "a scope" },
        { PASSWORD(URL, USER, WORD, .project_name = (char *)"p"), "auth_type",
          "project_domain_name" },
        { PASSWORD(URL, USER, WORD, SCOPE, .domain_id = (char *)"d"), "domain_id",
          "project_name is also set" },
        { PASSWORD(URL, USER, WORD, SCOPE, .trust_id = (char *)"d"), "trust_id",
          "project_name is also set" },
        { PASSWORD(URL, USER, WORD, .system_scope = (char *)"some"), "system_scope",
          "must be all" },
        { PASSWORD(URL, USER, WORD, SCOPE, .interface = (char *)"public",
                   .valid_interfaces = (char *[]){ (char *)"public", NULL }),
          "interface", "valid_interfaces" },
        { CREDENTIAL(URL, APP, .application_credential_id = (char *)"4711"), NULL, NULL },
        { CREDENTIAL(URL, APP, USER, .application_credential_name = (char *)"agent"), NULL, NULL },
        { CREDENTIAL(URL, APP), "auth_type", "credential_id" },
        { CREDENTIAL(URL, APP, .application_credential_name = (char *)"agent"), "auth_type",
          "username" },
        { CREDENTIAL(URL, .application_credential_id = (char *)"4711"), "auth_type", "secret" },
        { CREDENTIAL(URL, APP, SCOPE, .application_credential_id = (char *)"4711"), "project_name",
          "already has a scope" },
};

static void test_check(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *option = NULL;
                Error error = ERROR_NULL;
                int r = keystone_config_check(&cases[i].config, cases[i].kind, &option, &error);

                if (r != (cases[i].option ? -EINVAL : 0))
                        fail_msg("case %zu: %d, %s", i, r, error.text);
                if (!cases[i].option)
                        continue;
                assert_string_equal(option, cases[i].option);
                if (!strstr(error.text, cases[i].words))
                        fail_msg("case %zu: %s", i, error.text);
                assert_null(strstr(error.text, "SECRET"));
        }
}

TEST_MAIN(test_check)
