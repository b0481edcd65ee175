/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A token has three times, all counted from the moment when it was asked for, by a clock that
 * nobody sets (CLOCK_BOOTTIME: a host that slept has an old token): it is renewed in the background
 * from renew_usec on, is not sent any more from end_usec on, and in between both are right.
 *
 * After a failure nothing is asked for until retry_usec. A credential that Keystone refuses waits a
 * minute, then twice as long each time up to half an hour: Keystone locks accounts by counting such
 * failures. A token that Placement refuses locks none: five seconds, and up to a minute.
 *
 * Invariants: at most one exchange is under way. The token that is there is used as long as it can
 * be, also when the next one fails to come. A token that Placement never took is not replaced in
 * haste: the next one would be refused, too. */

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/secret.h"
#include "report/http/event.h"
#include "report/keystone/answer.h"
#include "report/keystone/auth-engine.h"
#include "report/keystone/request.h"

#define ANSWER_MAX_BYTES    (UINT64_C(8) << 20)
#define RENEW_EARLY_USEC    (300 * USEC_PER_SEC)
#define STOP_EARLY_USEC     (30 * USEC_PER_SEC)
#define RETRY_USEC          USEC_PER_SEC
#define RETRY_ASKED_MAX     (600 * USEC_PER_SEC) /* of Retry-After */
#define REFUSED_FIRST_USEC  (60 * USEC_PER_SEC)
#define REFUSED_MAX_USEC    (1800 * USEC_PER_SEC)
#define UNUSABLE_FIRST_USEC (5 * USEC_PER_SEC) /* of a token that Placement refuses */
#define UNUSABLE_MAX_USEC   (60 * USEC_PER_SEC)
#define DOUBT_USEC          (60 * USEC_PER_SEC)

typedef struct AuthKeystone {
        Auth auth;
        AuthConfig config;
        sd_event *event;
        char *base_url;
        HttpClient *http;
        HttpTransfer *transfer; /* the exchange under way */
        uint64_t asked_usec;

        KeystoneToken token; /* header NULL: there is none */
        uint64_t serial;
        uint64_t renew_usec, end_usec;
        bool proven;  /* Placement took it */
        bool doubted; /* Placement is not where it says */
        uint64_t may_doubt_usec;

        int failure; /* of the last exchange, 0: none */
        Error error;
        uint64_t retry_usec;
        bool locks;                   /* Keystone counts it */
        uint64_t refused_pause_usec;  /* the last one; 0 since a token was taken by Placement */
        uint64_t unusable_pause_usec; /* the same */
} AuthKeystone;

static AuthKeystone *keystone_of(Auth *auth)
{
        return (AuthKeystone *)auth;
}

static uint64_t now_usec(const AuthKeystone *keystone)
{
        return event_now_usec(keystone->event, CLOCK_BOOTTIME);
}

static void keystone_free(Auth *auth)
{
        AuthKeystone *keystone = keystone_of(auth);

        http_client_free(keystone->http);
        keystone_token_done(&keystone->token);
        sd_event_unref(keystone->event);
        free(keystone->base_url);
        free(keystone);
}

static bool is_alive(const AuthKeystone *keystone)
{
        return keystone->token.header && now_usec(keystone) < keystone->end_usec;
}

/* The exchange */

static void take_token(AuthKeystone *keystone, KeystoneToken *token)
{
        uint64_t lifetime = token->lifetime_usec, asked = keystone->asked_usec;

        keystone_token_done(&keystone->token);
        keystone->token = *token;
        *token = KEYSTONE_TOKEN_INIT;
        keystone->serial++;
        keystone->proven = keystone->doubted = false;
        keystone->renew_usec = keystone->end_usec = UINT64_MAX;
        if (lifetime != UINT64_MAX) {
                keystone->renew_usec = asked + lifetime - MIN(lifetime / 4, RENEW_EARLY_USEC);
                keystone->end_usec = asked + lifetime - MIN(lifetime / 8, STOP_EARLY_USEC);
        }
        keystone->failure = 0;
        keystone->error = ERROR_NULL;
        log_debug("Keystone gave a token for %s that lives %" PRIu64 " s%s%s",
                  keystone->token.scope, lifetime / USEC_PER_SEC,
                  keystone->token.endpoint ? "; Placement is at " : "",
                  keystone->token.endpoint ? keystone->token.endpoint : "");
}

/* Twice the last one, within these. */
static uint64_t next_pause(uint64_t *last_usec, uint64_t first_usec, uint64_t max_usec)
{
        *last_usec = MIN(MAX(*last_usec * 2, first_usec), max_usec);
        return *last_usec;
}

static void note_failure(AuthKeystone *keystone, int failure, const Error *error, uint64_t pause)
{
        keystone->failure = failure;
        keystone->error = *error;
        keystone->retry_usec = now_usec(keystone) + pause;
        keystone->doubted = false; /* what is there is all there is */
        log_debug("Keystone gave no token: %s", error->text);
}

static uint64_t pause_after(AuthKeystone *keystone, int failure, const HttpResponse *response)
{
        uint64_t asked = response ? response->retry_after_sec * USEC_PER_SEC : 0;

        if (failure == REPORT_E_UNAUTHORIZED)
                return next_pause(&keystone->refused_pause_usec, REFUSED_FIRST_USEC,
                                  REFUSED_MAX_USEC);
        return MAX(RETRY_USEC, MIN(asked, RETRY_ASKED_MAX));
}

static int outcome_of_http(int result)
{
        if (result < 0)
                return result;
        return result == HTTP_E_BAD_ANSWER ? REPORT_E_UNAVAILABLE : REPORT_E_UNREACHABLE;
}

static void on_answer(int result, const HttpResponse *response, const Error *error, void *userdata)
{
        _cleanup_(keystone_token_done) KeystoneToken token = KEYSTONE_TOKEN_INIT;
        AuthKeystone *keystone = userdata;
        Error words = ERROR_NULL;

        keystone->transfer = NULL;
        if (result == HTTP_DONE) {
                http_response_log(response, "POST", keystone->base_url, KEYSTONE_TOKENS_PATH);
                result = keystone_read_answer(keystone->config.keystone, keystone->config.kind,
                                              keystone->config.wants_endpoint, response, &token,
                                              &words);
        } else {
                result = outcome_of_http(result);
                error_setf(&words, error->code, "No token from Keystone: %s", error->text);
        }
        if (result == REPORT_DONE)
                take_token(keystone, &token);
        else
                note_failure(keystone, result, &words, pause_after(keystone, result, response));
        keystone->locks = result == REPORT_E_UNAUTHORIZED;
        if (keystone->auth.listener)
                keystone->auth.listener(keystone->auth.userdata);
}

static int start_exchange(AuthKeystone *keystone, Error *reterr)
{
        static const char *const headers[] = { "Accept: application/json",
                                               "Content-Type: application/json", NULL };
        _cleanup_(secret_freep) char *body = NULL;

        if (keystone_make_token_request(keystone->config.keystone, keystone->config.kind, &body) <
            0)
                return error_oom(reterr);
        keystone->asked_usec = now_usec(keystone);
        return http_client_send(keystone->http,
                                &(HttpRequest){
                                        .method = "POST",
                                        .path = KEYSTONE_TOKENS_PATH,
                                        .headers = headers,
                                        .body = body,
                                        .body_size = strlen(body),
                                },
                                on_answer, keystone, &keystone->transfer, reterr);
}

/* Passes */

static int hand_out(const AuthKeystone *keystone, AuthPass *ret)
{
        *ret = (AuthPass){
                .header = keystone->token.header,
                .endpoint = keystone->token.endpoint,
                .serial = keystone->serial,
        };
        return 0;
}

static int refuse(const AuthKeystone *keystone, uint64_t now, Error *reterr)
{
        uint64_t wait_sec = (keystone->retry_usec - now + USEC_PER_SEC - 1) / USEC_PER_SEC;

        if (keystone->failure == REPORT_E_UNAUTHORIZED)
                error_setf(reterr, keystone->error.code, "%.190s; asked again in %" PRIu64 " s",
                           keystone->error.text, wait_sec);
        else
                error_setf(reterr, keystone->error.code, "%s", keystone->error.text);
        return keystone->failure;
}

static int keystone_get(Auth *auth, AuthPass *ret, Error *reterr)
{
        AuthKeystone *keystone = keystone_of(auth);
        uint64_t now = now_usec(keystone);
        bool alive = is_alive(keystone);
        bool due = !alive || keystone->doubted || now >= keystone->renew_usec;
        bool paused = keystone->failure != 0 && now < keystone->retry_usec;
        int r;

        if (due && !keystone->transfer && !paused) {
                r = start_exchange(keystone, reterr);
                if (r < 0 && !alive)
                        return r;
        }
        if (alive && !(keystone->doubted && keystone->transfer))
                return hand_out(keystone, ret);
        return keystone->transfer ? -EAGAIN : refuse(keystone, now, reterr);
}

static void keystone_note_accepted(Auth *auth, uint64_t serial)
{
        AuthKeystone *keystone = keystone_of(auth);

        if (serial != keystone->serial)
                return;
        keystone->proven = true;
        keystone->refused_pause_usec = keystone->unusable_pause_usec = 0;
}

static bool keystone_note_refused(Auth *auth, uint64_t serial, Error *reterr)
{
        AuthKeystone *keystone = keystone_of(auth);
        Error words;

        /* Others of the same pass were refused before, and a new one is on its way, or is not to
         * be had: auth_get() says which. */
        if (serial != keystone->serial || !keystone->token.header)
                return true;
        keystone_token_done(&keystone->token);
        /* An old one may have ended on its way to a slow Placement. */
        if (keystone->proven || now_usec(keystone) >= keystone->renew_usec)
                return true;
        error_setf(
                &words, EACCES,
                "Placement does not accept the token that Keystone just gave (401): see [keystone_authtoken] of Placement, and that its clock is right");
        note_failure(
                keystone, REPORT_E_UNAUTHORIZED, &words,
                next_pause(&keystone->unusable_pause_usec, UNUSABLE_FIRST_USEC, UNUSABLE_MAX_USEC));
        error_setf(reterr, words.code, "%s", words.text);
        return false;
}

static void keystone_doubt_endpoint(Auth *auth, uint64_t serial)
{
        AuthKeystone *keystone = keystone_of(auth);
        uint64_t now = now_usec(keystone);

        if (serial != keystone->serial || !keystone->token.endpoint ||
            now < keystone->may_doubt_usec)
                return;
        keystone->may_doubt_usec = now + DOUBT_USEC;
        keystone->doubted = true;
}

static void keystone_ask_at_once(Auth *auth)
{
        AuthKeystone *keystone = keystone_of(auth);

        if (!keystone->locks)
                keystone->retry_usec = 0;
}

static bool keystone_describe(const Auth *auth, AuthDescription *ret)
{
        const AuthKeystone *keystone = (const AuthKeystone *)auth;

        if (!keystone->token.header)
                return false;
        *ret = (AuthDescription){
                .scope = keystone->token.scope,
                .endpoint = keystone->token.endpoint,
                .roles = &keystone->token.roles,
                .issued_usec = keystone->token.issued_usec,
        };
        return true;
}

static const AuthOps keystone_ops = {
        .describe = keystone_describe,
        .free = keystone_free,
        .get = keystone_get,
        .note_accepted = keystone_note_accepted,
        .note_refused = keystone_note_refused,
        .doubt_endpoint = keystone_doubt_endpoint,
        .ask_at_once = keystone_ask_at_once,
};

static int make_http(AuthKeystone *keystone, const HttpConfig *http, Error *reterr)
{
        HttpConfig config = *http;
        int r;

        if (keystone_make_base_url(keystone->config.keystone->auth_url, &keystone->base_url) < 0)
                return error_oom(reterr);
        config.endpoint = keystone->base_url;
        config.service = "Keystone";
        config.max_connections = 1;
        config.max_body_bytes = ANSWER_MAX_BYTES;
        r = http_client_new(&keystone->http, keystone->event, &config, reterr);
        return r < 0 ? error_prefixf(reterr, r, "auth_url in [placement]") : 0;
}

int auth_keystone_new(Auth **ret, sd_event *event, const AuthConfig *config, const HttpConfig *http,
                      Error *reterr)
{
        AuthKeystone *keystone = calloc(1, sizeof(AuthKeystone));
        _cleanup_(auth_freep) Auth *auth = (Auth *)keystone;
        const char *option = NULL;
        int r;

        if (!keystone)
                return error_oom(reterr);
        auth->ops = &keystone_ops;
        keystone->config = *config;
        keystone->event = sd_event_ref(event);
        keystone->token = KEYSTONE_TOKEN_INIT;
        r = keystone_config_check(config->keystone, config->kind, &option, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "[placement] %s", option ? option : "auth_type");
        r = make_http(keystone, http, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(auth);
        return 0;
}
