/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/http/endpoint.h"

#include "tests/unit/test.h"

static void test_good(void **state)
{
        static const struct {
                const char *text, *origin, *prefix, *socket_path;
                bool is_address;
        } cases[] = {
                { "http://127.0.0.1:8778", "http://127.0.0.1:8778", "", NULL, true },
                { "http://host:8778/", "http://host:8778", "", NULL, false },
                { "https://host/placement", "https://host", "/placement", NULL, false },
                { "https://host/placement//", "https://host", "/placement", NULL, false },
                { "HTTP://host/x", "http://host", "/x", NULL, false },
                { "http://[::1]:8778/x/y%20z", "http://[::1]:8778", "/x/y%20z", NULL, true },
                { "unix:///run/placement.sock", "http://localhost", "", "/run/placement.sock",
                  true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(http_endpoint_done) HttpEndpoint endpoint = HTTP_ENDPOINT_INIT;
                Error error = ERROR_NULL;

                if (http_endpoint_parse(cases[i].text, &endpoint, &error) < 0)
                        fail_msg("%s: %s", cases[i].text, error.text);
                assert_string_equal(endpoint.text, cases[i].text);
                assert_string_equal(endpoint.origin, cases[i].origin);
                assert_int_equal(endpoint.is_address, cases[i].is_address);
                assert_string_equal(endpoint.prefix, cases[i].prefix);
                if (cases[i].socket_path)
                        assert_string_equal(endpoint.socket_path, cases[i].socket_path);
                else
                        assert_null(endpoint.socket_path);
        }
}

static void test_bad(void **state)
{
        static const struct {
                const char *text, *words;
        } cases[] = {
                { "", "not a URL" },
                { "host:8778", "not a URL" },
                { "/placement", "not a URL" },
                { "http://", "not a URL" },
                { "http://host:99999", "not a URL" },
                { "http://ho st/", "not a URL" },
                { "ftp://host/", "must begin with" },
                { "file:///etc/passwd", "must begin with" },
                { "http://admin:hunter2@host/", "password" },
                { "http://hunter2@host/", "password" },
                { "http://host/?a=hunter2", "query" },
                { "http://host/#x", "fragment" },
                { "unix://", "absolute" },
                { "unix://run/x", "absolute" },
                { "unix:///", "absolute" },
                { "unix:///run/", "absolute" },
                { "unix:///"
                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                  "aaaa"
                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                  "107" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(http_endpoint_done) HttpEndpoint endpoint = HTTP_ENDPOINT_INIT;
                Error error = ERROR_NULL;

                if (http_endpoint_parse(cases[i].text, &endpoint, &error) != -EINVAL)
                        fail_msg("%s was taken", cases[i].text);
                if (!strstr(error.text, cases[i].words))
                        fail_msg("%s: \"%s\"", cases[i].text, error.text);
                /* A password in a URL is not in the message. */
                if (strchr(cases[i].text, '@'))
                        assert_null(strstr(error.text, "hunter2"));
                assert_null(endpoint.origin);
        }
}

TEST_MAIN(test_good, test_bad)
