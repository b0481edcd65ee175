/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/auth.h"

#include "tests/test.h"

static void test_table(void **state)
{
        static const struct {
                ReporterAuth kind;
                const char *token;
                int r;
                const char *header, *words;
        } cases[] = {
                { REPORTER_AUTH_NONE, NULL, 0, NULL, NULL },
                { REPORTER_AUTH_NONE, "ignored", 0, NULL, NULL },
                { REPORTER_AUTH_ADMIN_TOKEN, "secret", 0, "X-Auth-Token: secret", NULL },
                { REPORTER_AUTH_ADMIN_TOKEN, NULL, -EINVAL, NULL, "needs token" },
                { REPORTER_AUTH_ADMIN_TOKEN, "", -EINVAL, NULL, "needs token" },
                { REPORTER_AUTH_ADMIN_TOKEN, "sec\r\nX-Evil: 1", -EINVAL, NULL, "line break" },
                { REPORTER_AUTH_ADMIN_TOKEN, "secret\n", -EINVAL, NULL, "line break" },
                { REPORTER_AUTH_ADMIN_TOKEN,
                  "s\xc3\xa9"
                  "cret",
                  -EINVAL, NULL, "character" },
                { REPORTER_AUTH_PASSWORD, NULL, -EOPNOTSUPP, NULL, "auth_type = password" },
                { REPORTER_AUTH_V3APPLICATIONCREDENTIAL, NULL, -EOPNOTSUPP, NULL,
                  "auth_type = v3applicationcredential" },
                { _REPORTER_AUTH_INVALID, NULL, -EINVAL, NULL, "auth_type" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(auth_freep) Auth *auth = NULL;
                Error error = ERROR_NULL;

                assert_int_equal(auth_new(&auth, cases[i].kind, cases[i].token, &error),
                                 cases[i].r);
                if (cases[i].r < 0) {
                        assert_null(auth);
                        assert_non_null(strstr(error.text, cases[i].words));
                        assert_null(strstr(error.text, "sec"));
                } else if (cases[i].header) {
                        assert_string_equal(auth_get_header(auth), cases[i].header);
                } else {
                        assert_null(auth_get_header(auth));
                }
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_table) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
