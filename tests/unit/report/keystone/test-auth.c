/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/keystone/auth.h"

#include "report/placement/outcome.h"
#include "tests/fakes/http.h"
#include "tests/unit/test.h"

static uint64_t fake_now_usec;

int __wrap_sd_event_now(sd_event *event, clockid_t clock, uint64_t *ret);

int __wrap_sd_event_now(sd_event *event, clockid_t clock, uint64_t *ret)
{
        *ret = fake_now_usec;
        return 0;
}

static const KeystoneConfig no_keystone;

static void test_fixed(void **state)
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
                { REPORTER_AUTH_ADMIN_TOKEN, "sec\xc3\xa9", -EINVAL, NULL, "character" },
                { REPORTER_AUTH_PASSWORD, NULL, -EINVAL, NULL, "auth_url" },
                { _REPORTER_AUTH_INVALID, NULL, -EINVAL, NULL, "auth_type" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const AuthConfig config = { .kind = cases[i].kind,
                                            .token = cases[i].token,
                                            .keystone = &no_keystone };
                _cleanup_(auth_freep) Auth *auth = NULL;
                Error error = ERROR_NULL;
                AuthPass pass;

                assert_int_equal(auth_new(&auth, NULL, &config, NULL, NULL, NULL, &error),
                                 cases[i].r);
                if (cases[i].r < 0) {
                        assert_null(auth);
                        assert_non_null(strstr(error.text, cases[i].words));
                        assert_null(strstr(error.text, "sec"));
                        continue;
                }
                assert_int_equal(auth_get(auth, &pass, NULL), 0);
                assert_null(pass.endpoint);
                if (cases[i].header)
                        assert_string_equal(pass.header, cases[i].header);
                else
                        assert_null(pass.header);
                assert_false(auth_note_answer(auth, pass.serial, 401, NULL));
        }
}

/* Keystone. */

#define FAILS(n, code)                                                    \
        {                                                                 \
                .match = "POST", .times = n, .status = code, .body = "{}" \
        }

#define VERSION(code, text)                                              \
        {                                                                \
                .match = "GET", .times = 0, .status = code, .body = text \
        }

static const KeystoneConfig keystone = {
        .auth_url = (char *)"http://keystone:5000",
        .user_id = (char *)"7",
        .password = (char *)"secret",
        .project_id = (char *)"8",
};

typedef struct Fixture {
        sd_event *event;
        Auth *auth;
        unsigned n_told;
        AuthPass pass;
        Error error;
} Fixture;

static void on_changed(void *userdata)
{
        ((Fixture *)userdata)->n_told++;
}

static int set_up(void **state)
{
        static const AuthConfig config = {
                .kind = REPORTER_AUTH_PASSWORD,
                .keystone = &keystone,
                .wants_endpoint = true,
        };
        Fixture *fixture = calloc(1, sizeof(Fixture));

        assert_non_null(fixture);
        assert_true(sd_event_new(&fixture->event) >= 0);
        fake_now_usec = 1000 * USEC_PER_SEC;
        fake_http_begin(NULL, "");
        assert_int_equal(auth_new(&fixture->auth, fixture->event, &config,
                                  &(HttpConfig){ .max_connections = 4 }, on_changed, fixture, NULL),
                         0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        Fixture *fixture = *state;

        auth_free(fixture->auth);
        sd_event_unref(fixture->event);
        free(fixture);
        fake_http_begin(NULL, "");
        return 0;
}

static int get(Fixture *fixture)
{
        fixture->error = ERROR_NULL;
        return auth_get(fixture->auth, &fixture->pass, &fixture->error);
}

/* Waits for the end of the exchange. */
static void wait_told(Fixture *fixture)
{
        fixture->n_told = 0;
        fake_http_wait(fixture->event, &fixture->n_told, 1);
}

static int get_new(Fixture *fixture)
{
        int r = get(fixture);

        if (r != -EAGAIN)
                return r;
        wait_told(fixture);
        return get(fixture);
}

static size_t n_asked(void)
{
        return fake_http_count("POST /auth/tokens");
}

static void pass_time(unsigned seconds)
{
        fake_now_usec += seconds * USEC_PER_SEC;
}

static void test_one_request_for_all(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(GIVES(1, "one", "http://placement")), "");
        for (unsigned i = 0; i < 20; i++)
                assert_int_equal(get(fixture), -EAGAIN);
        wait_told(fixture);
        for (unsigned i = 0; i < 20; i++)
                assert_int_equal(get(fixture), 0);
        assert_string_equal(fixture->pass.header, "X-Auth-Token: one");
        assert_string_equal(fixture->pass.endpoint, "http://placement");
        assert_int_equal(n_asked(), 1);
        assert_string_equal(fake_http_get_endpoint(), "http://keystone:5000/v3");
        assert_non_null(strstr(fake_http_find_body("POST"), "\"password\":\"secret\""));
}

/* A token is renewed in the background, from five minutes before its end, and no request waits. */
static void test_renewal(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(GIVES(1, "one", "http://placement"), FAILS(1, 503),
                               GIVES(1, "two", "http://placement")),
                        "");
        assert_int_equal(get_new(fixture), 0);
        pass_time(3299);
        assert_int_equal(get(fixture), 0);
        assert_int_equal(n_asked(), 1);
        pass_time(1);
        assert_int_equal(get(fixture), 0);
        assert_string_equal(fixture->pass.header, "X-Auth-Token: one");
        assert_int_equal(n_asked(), 2);
        wait_told(fixture);

        /* Keystone is away, so the old token stays in use. */
        assert_int_equal(get(fixture), 0);
        assert_int_equal(n_asked(), 2);
        pass_time(2);
        assert_int_equal(get(fixture), 0);
        assert_int_equal(n_asked(), 3);
        wait_told(fixture);
        assert_int_equal(get(fixture), 0);
        assert_string_equal(fixture->pass.header, "X-Auth-Token: two");
        assert_int_equal(n_asked(), 3);
}

static void test_end_of_life(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(GIVES(1, "one", "http://placement"), FAILS(0, 503)), "");
        assert_int_equal(get_new(fixture), 0);
        pass_time(3570);
        assert_int_equal(get(fixture), -EAGAIN);
        wait_told(fixture);
        assert_int_equal(get(fixture), REPORT_E_UNAVAILABLE);
        assert_non_null(strstr(fixture->error.text, "(503)"));
        assert_int_equal(n_asked(), 2);
}

/* A wrong password: the pauses are one minute, two, four and so on up to half an hour. */
static void test_slow_retry(void **state)
{
        static const unsigned pauses[] = { 60, 120, 240, 480, 960, 1800, 1800 };
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(FAILS(0, 401), VERSION(200, "{\"version\":{}}")), "");
        assert_int_equal(get_new(fixture), REPORT_E_UNAUTHORIZED);
        for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
                pass_time(pauses[i] - 1);
                assert_int_equal(get(fixture), REPORT_E_UNAUTHORIZED);
                assert_non_null(strstr(fixture->error.text, "next attempt in 1 s"));
                assert_null(strstr(fixture->error.text, "secret"));
                assert_int_equal(n_asked(), i + 1);
                pass_time(1);
                assert_int_equal(get_new(fixture), REPORT_E_UNAUTHORIZED);
                assert_int_equal(n_asked(), i + 2);
        }
}

/* A proxy in front of Keystone asks for a password of its own, which locks no account. */
static void test_refusal_of_another_server(void **state)
{
        static const struct {
                int status;
                const char *body;
                int result;
        } cases[] = {
                { 401, "<html>Who are you?</html>", REPORT_E_UNAVAILABLE },
                { 401, "{\"error\": {\"code\": 401}}", REPORT_E_UNAVAILABLE },
                { 200, "It works!", REPORT_E_UNAVAILABLE },
                { 200, "{\"version\": {\"id\": \"v3.14\"}}", REPORT_E_UNAUTHORIZED },
                { 300, "{\"versions\": {\"values\": []}}", REPORT_E_UNAUTHORIZED },
                { 503, "busy", REPORT_E_UNAUTHORIZED },
        };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                bool elsewhere = cases[i].result == REPORT_E_UNAVAILABLE;

                pass_time(3600);
                fake_http_begin(SCRIPT(FAILS(0, 401), VERSION(cases[i].status, cases[i].body)), "");
                assert_int_equal(get_new(fixture), cases[i].result);
                assert_int_equal(fake_http_count("GET /"), 1);
                assert_int_equal(strstr(fixture->error.text, "A server that is not Keystone") !=
                                         NULL,
                                 elsewhere);
                /* After the operator corrected it the next attempt is immediate, unless an account
                 * can be locked. */
                auth_ask_at_once(fixture->auth);
                assert_int_equal(get(fixture), elsewhere ? -EAGAIN : REPORT_E_UNAUTHORIZED);
                if (elsewhere)
                        wait_told(fixture);
        }
}

/* Parallel requests are all rejected with the same token, and one new token is requested. */
static void test_refused_token(void **state)
{
        Fixture *fixture = *state;
        uint64_t old;

        fake_http_begin(
                SCRIPT(GIVES(1, "one", "http://placement"), GIVES(1, "two", "http://placement")),
                "");
        assert_int_equal(get_new(fixture), 0);
        old = fixture->pass.serial;
        auth_note_answer(fixture->auth, old, 200, NULL);
        for (unsigned i = 0; i < 4; i++)
                assert_true(auth_note_answer(fixture->auth, old, 401, NULL));
        assert_int_equal(get_new(fixture), 0);
        assert_string_equal(fixture->pass.header, "X-Auth-Token: two");
        assert_true(auth_note_answer(fixture->auth, old, 401, NULL));
        assert_int_equal(get(fixture), 0);
        assert_int_equal(n_asked(), 2);
}

/* Placement accepts no token. That causes no endless loop and locks no account. */
static void test_useless_tokens(void **state)
{
        static const unsigned pauses[] = { 5, 10, 20, 40, 60, 60, 60 };
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(GIVES(0, "one", "http://placement")), "");
        for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
                assert_int_equal(get_new(fixture), 0);
                assert_int_equal(n_asked(), i + 1);
                assert_false(auth_note_answer(fixture->auth, fixture->pass.serial, 401,
                                              &fixture->error));
                assert_non_null(strstr(fixture->error.text, "keystone_authtoken"));
                assert_int_equal(get(fixture), REPORT_E_UNAUTHORIZED);
                pass_time(pauses[i] - 1);
                assert_int_equal(get(fixture), REPORT_E_UNAUTHORIZED);
                pass_time(1);
        }
}

/* Keystone rejects the credential while a token is valid, and then Placement rejects that token.
 * The pause that protects the account stays, and so does its reason. */
static void test_refused_token_in_a_pause_of_keystone(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(GIVES(1, "one", "http://placement"), FAILS(0, 401),
                               VERSION(200, "{\"version\":{}}")),
                        "");
        assert_int_equal(get_new(fixture), 0);
        assert_false(auth_note_answer(fixture->auth, fixture->pass.serial, 0, NULL));
        assert_int_equal(get_new(fixture), 0);
        assert_int_equal(n_asked(), 2);
        assert_false(auth_note_answer(fixture->auth, fixture->pass.serial, 401, NULL));
        pass_time(59);
        assert_int_equal(get(fixture), REPORT_E_UNAUTHORIZED);
        assert_non_null(strstr(fixture->error.text, "Keystone rejected the user"));
        pass_time(1);
        assert_int_equal(get(fixture), -EAGAIN);
        wait_told(fixture);
}

/* A request of an operator ends the pause, except after a failure that Keystone counts. */
static void test_request_ends_the_pause(void **state)
{
        static const FakeAnswer scripts[] = { GIVES(0, "one", "http://placement"), FAILS(0, 503),
                                              FAILS(0, 401) };
        static const bool asked[] = { true, true, false };

        for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
                Fixture *fixture;

                tear_down(state);
                set_up(state);
                fixture = *state;
                fake_http_begin(SCRIPT(scripts[i], VERSION(200, "{\"version\":{}}")), "");
                (void)get_new(fixture);
                if (i == 0)
                        assert_false(
                                auth_note_answer(fixture->auth, fixture->pass.serial, 401, NULL));
                assert_true(get(fixture) > 0);
                auth_ask_at_once(fixture->auth);
                if ((get(fixture) == -EAGAIN) != asked[i])
                        fail_msg("case %zu", i);
                assert_int_equal(n_asked(), asked[i] ? 2 : 1);
        }
}

/* The token ended on its way to a slow Placement. */
static void test_old_token_refused(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(
                SCRIPT(GIVES(1, "one", "http://placement"), GIVES(1, "two", "http://placement")),
                "");
        assert_int_equal(get_new(fixture), 0);
        pass_time(3590);
        assert_true(auth_note_answer(fixture->auth, fixture->pass.serial, 401, NULL));
        assert_int_equal(get_new(fixture), 0);
        assert_string_equal(fixture->pass.header, "X-Auth-Token: two");
}

/* The values that doctor shows. */
static void test_describe(void **state)
{
        Fixture *fixture = *state;
        const KeystoneToken *token;

        fake_http_begin(SCRIPT(GIVES(1, "one", "http://placement")), "");
        assert_null(auth_get_token(fixture->auth));
        assert_int_equal(get_new(fixture), 0);
        token = auth_get_token(fixture->auth);
        assert_string_equal(token->endpoint, "http://placement");
        assert_int_equal(token->issued_usec, 1795226400 * USEC_PER_SEC);
        assert_int_equal(token->roles.n_items, 0);
}

/* Placement moved: the endpoint is looked up at once, then once a minute. The old one stays in use
 * if that fails. */
static void test_moved_endpoint_is_looked_up(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(
                SCRIPT(GIVES(1, "one", "http://old"), GIVES(1, "two", "http://new"), FAILS(0, 503)),
                "");
        assert_int_equal(get_new(fixture), 0);
        auth_note_answer(fixture->auth, fixture->pass.serial, 0, NULL);
        assert_int_equal(get(fixture), -EAGAIN);
        wait_told(fixture);
        assert_int_equal(get(fixture), 0);
        assert_string_equal(fixture->pass.endpoint, "http://new");

        auth_note_answer(fixture->auth, fixture->pass.serial, 0, NULL);
        assert_int_equal(get(fixture), 0);
        assert_int_equal(n_asked(), 2);
        pass_time(60);
        auth_note_answer(fixture->auth, fixture->pass.serial, 0, NULL);
        assert_int_equal(get_new(fixture), 0);
        assert_int_equal(n_asked(), 3);
        assert_string_equal(fixture->pass.endpoint, "http://new");
}

static void test_keystone_away(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT({ .match = "POST", .times = 1, .result = HTTP_E_UNREACHABLE },
                               { .match = "POST",
                                 .times = 1,
                                 .status = 503,
                                 .body = "",
                                 .retry_after_sec = 20 },
                               GIVES(1, "one", "http://placement")),
                        "");
        assert_int_equal(get_new(fixture), REPORT_E_UNREACHABLE);
        assert_non_null(strstr(fixture->error.text, "Keystone"));
        pass_time(1);
        assert_int_equal(get_new(fixture), REPORT_E_UNAVAILABLE);
        pass_time(19);
        assert_int_equal(get(fixture), REPORT_E_UNAVAILABLE);
        assert_int_equal(n_asked(), 2);
        pass_time(1);
        assert_int_equal(get_new(fixture), 0);
}

static void test_free_under_way(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT({ .match = "POST", .never = true }), "");
        assert_int_equal(get(fixture), -EAGAIN);
        fixture->auth = auth_free(fixture->auth);
        assert_int_equal(fixture->n_told, 0);
}

TEST_MAIN_WITH(set_up, tear_down, test_fixed, test_one_request_for_all, test_renewal,
               test_end_of_life, test_slow_retry, test_refusal_of_another_server,
               test_refused_token, test_useless_tokens, test_refused_token_in_a_pause_of_keystone,
               test_moved_endpoint_is_looked_up, test_old_token_refused, test_describe,
               test_request_ends_the_pause, test_keystone_away, test_free_under_way)
