/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Gets tokens from Keystone, gives the session the present one, and decides when another one is
 * requested. The session gets a token as a pass (AuthPass): a header, and perhaps the endpoint of
 * Placement. With auth_type none or admin_token there is no Keystone, and the pass never changes.
 *
 * A token has two times, renew_usec and end_usec, counted from the request for it (asked_usec). All
 * times here are of CLOCK_BOOTTIME, which cannot be set and which counts the time that a host
 * sleeps. From renew_usec on, the next use outside of a pause starts a renewal in the background,
 * and the old token is used until the new one arrives. From end_usec on, the old token is not
 * handed out any more.
 *
 * After a failure no token is requested until retry_usec, unless auth_ask_at_once() ends the pause,
 * which it does not after Keystone rejected the credential. Usually the pause is a second, or the
 * Retry-After of the answer up to ten minutes. If Keystone rejects the credential, the pause is a
 * minute and doubles each time up to half an hour, until Placement accepts a token. Keystone can
 * count such failures and lock accounts. If Placement rejects a token that it never accepted and
 * whose renewal was not due, no account is locked. Then the pause is five seconds and doubles up to
 * a minute.
 *
 * A server that rejects the credential is asked for its version document (GET). A server without
 * one is not Keystone but, for example, a proxy. That is an outage with a pause of five seconds to
 * a minute. Without an answer to the GET, or after one of an overloaded server, the rejection
 * counts.
 *
 * Invariants: at most one exchange is under way. A token is used until a new one replaces it or
 * until its end, also if its renewal fails, unless Placement rejects it. Then the token is dropped.
 * While a doubted endpoint is looked up again, requests wait. */

#include "report/keystone/auth.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/secret.h"
#include "report/http/event.h"
#include "report/keystone/token.h"

#define ANSWER_MAX_BYTES    (UINT64_C(8) << 20)
#define RENEW_EARLY_USEC    (300 * USEC_PER_SEC)
#define STOP_EARLY_USEC     (30 * USEC_PER_SEC)
#define RETRY_USEC          USEC_PER_SEC
#define RETRY_ASKED_MAX     (600 * USEC_PER_SEC) /* limit for Retry-After */
#define REFUSED_FIRST_USEC  (60 * USEC_PER_SEC)
#define REFUSED_MAX_USEC    (1800 * USEC_PER_SEC)
#define UNUSABLE_FIRST_USEC (5 * USEC_PER_SEC) /* after a rejected token or for another server */
#define UNUSABLE_MAX_USEC   (60 * USEC_PER_SEC)
/* Shortest time between two look-ups of a doubted endpoint. */
#define DOUBT_USEC (60 * USEC_PER_SEC)

struct Auth {
        AuthConfig config;
        void (*listener)(void *userdata);
        void *userdata;
        sd_event *event;
        char *base_url;
        HttpClient *http;       /* client for Keystone; NULL: no Keystone is used */
        HttpTransfer *transfer; /* the exchange under way */
        uint64_t asked_usec;    /* time of the last request for a token */

        KeystoneToken token; /* header NULL: no token */
        uint64_t serial;     /* number of the present token */
        uint64_t renew_usec, end_usec;
        bool proven;  /* Placement accepted the token */
        bool doubted; /* Placement was not at the endpoint of the token; the next exchange looks
                         the endpoint up again */
        uint64_t may_doubt_usec; /* the endpoint cannot be doubted again before this time */

        int failure; /* last failure: ReportOutcome or negative errno; 0: none since the token */
        Error error;
        uint64_t retry_usec; /* while failure is not 0, no exchange starts before this time */
        bool locks; /* Keystone counted a rejected credential; the pause cannot be shortened */
        uint64_t refused_pause_usec;  /* the last pause after Keystone rejected the credential; 0
                                         after Placement accepted a token */
        uint64_t unusable_pause_usec; /* last pause after a rejected token or for another server */
};

static uint64_t now_usec(const Auth *auth)
{
        return event_now_usec(auth->event, CLOCK_BOOTTIME);
}

Auth *auth_free(Auth *auth)
{
        if (!auth)
                return NULL;
        http_client_free(auth->http);
        keystone_token_done(&auth->token);
        sd_event_unref(auth->event);
        free(auth->base_url);
        free(auth);
        return NULL;
}

static bool is_alive(const Auth *auth)
{
        return auth->token.header && now_usec(auth) < auth->end_usec;
}

/* Replaces the token and computes its times. The lifetime is Keystone's, counted from the request,
 * so the clocks of the two hosts need not agree. The renewal is due RENEW_EARLY_USEC before the end
 * of the lifetime, or a quarter of it if that is shorter. The use of the token ends STOP_EARLY_USEC
 * before the end, or an eighth. */
static void take_token(Auth *auth, KeystoneToken *token)
{
        uint64_t lifetime = token->lifetime_usec, asked = auth->asked_usec;

        keystone_token_done(&auth->token);
        auth->token = *token;
        *token = KEYSTONE_TOKEN_INIT;
        auth->serial++;
        auth->proven = auth->doubted = false;
        auth->renew_usec = auth->end_usec = UINT64_MAX;
        if (lifetime != UINT64_MAX) {
                auth->renew_usec = asked + lifetime - MIN(lifetime / 4, RENEW_EARLY_USEC);
                auth->end_usec = asked + lifetime - MIN(lifetime / 8, STOP_EARLY_USEC);
        }
        auth->failure = 0;
        auth->error = ERROR_NULL;
        log_debug("Keystone issued a token for %s that is valid for %" PRIu64 " s%s%s",
                  auth->token.scope, lifetime / USEC_PER_SEC,
                  auth->token.endpoint ? "; Placement is at " : "",
                  auth->token.endpoint ? auth->token.endpoint : "");
}

/* Returns twice the last pause, within the limits, and stores it. */
static uint64_t next_pause(uint64_t *last_usec, uint64_t first_usec, uint64_t max_usec)
{
        *last_usec = MIN(MAX(*last_usec * 2, first_usec), max_usec);
        return *last_usec;
}

/* Starts a pause and keeps the failure. In the pause, auth_get() returns it to requests, unless
 * there is still a valid token. The rest of a pause that protects the account stays, with its
 * failure. */
static void note_failure(Auth *auth, int failure, const Error *error, uint64_t pause)
{
        uint64_t now = now_usec(auth);

        if (auth->locks && auth->retry_usec > now) {
                auth->retry_usec = MAX(auth->retry_usec, now + pause);
        } else {
                auth->failure = failure;
                auth->error = *error;
                auth->retry_usec = now + pause;
        }
        auth->doubted = false; /* there is no better endpoint at present */
        log_debug("Keystone issued no token: %s", error->text);
}

/* Returns the pause after a failure in microseconds. Retry-After counts only if the credential was
 * not rejected. */
static uint64_t pause_after(Auth *auth, int failure, const HttpResponse *response)
{
        uint64_t asked = response ? response->retry_after_sec * USEC_PER_SEC : 0;

        if (failure == REPORT_E_UNAUTHORIZED)
                return next_pause(&auth->refused_pause_usec, REFUSED_FIRST_USEC, REFUSED_MAX_USEC);
        return MAX(RETRY_USEC, MIN(asked, RETRY_ASKED_MAX));
}

/* Ends an exchange without a token, and wakes the session. */
static void end_exchange(Auth *auth, int result, const Error *error, uint64_t pause)
{
        note_failure(auth, result, error, pause);
        auth->locks = result == REPORT_E_UNAUTHORIZED;
        auth->listener(auth->userdata);
}

/* Returns true if the answer to GET of the base URL comes from another server than Keystone: it has
 * no version document. An answer of an overloaded server (408, 429, 5xx) proves nothing. */
static bool is_elsewhere(const HttpResponse *response)
{
        _cleanup_json_ json_t *body = NULL;
        int status = response->status;

        if (status == 408 || status == 429 || status >= 500)
                return false;
        if (json_parse(response->body, response->body_size, &body, NULL) < 0)
                return true;
        return !json_is_object(json_object_get(body, "version")) &&
               !json_object_get(body, "versions");
}

/* Receives the answer to GET of the base URL, after a rejection. */
static void on_version(int result, const HttpResponse *response, const Error *error, void *userdata)
{
        Auth *auth = userdata;
        Error words = auth->error;

        auth->transfer = NULL;
        if (result != HTTP_DONE || !is_elsewhere(response)) {
                end_exchange(auth, REPORT_E_UNAUTHORIZED, &words,
                             pause_after(auth, REPORT_E_UNAUTHORIZED, NULL));
                return;
        }
        error_setf(
                &words, EBADMSG,
                "A server that is not Keystone rejects the request for a token. GET of auth_url in [placement] returns %d",
                response->status);
        end_exchange(
                auth, REPORT_E_UNAVAILABLE, &words,
                next_pause(&auth->unusable_pause_usec, UNUSABLE_FIRST_USEC, UNUSABLE_MAX_USEC));
}

/* Asks whether the server that rejected the credential is Keystone, or only a proxy. */
static bool ask_for_version(Auth *auth, const Error *refusal)
{
        static const char *const headers[] = { "Accept: application/json", NULL };

        auth->error = *refusal;
        return http_client_send(auth->http,
                                &(HttpRequest){ .method = "GET", .path = "/", .headers = headers },
                                on_version, auth, &auth->transfer, NULL) >= 0;
}

/* Receives the answer to the request for a token. */
static void on_answer(int result, const HttpResponse *response, const Error *error, void *userdata)
{
        _cleanup_(keystone_token_done) KeystoneToken token = KEYSTONE_TOKEN_INIT;
        Auth *auth = userdata;
        Error words = ERROR_NULL;

        auth->transfer = NULL;
        if (result == HTTP_DONE) {
                http_response_log(response, "POST", auth->base_url, KEYSTONE_TOKENS_PATH);
                result =
                        keystone_read_answer(auth->config.keystone, auth->config.kind,
                                             auth->config.wants_endpoint, response, &token, &words);
        } else {
                result = report_outcome_of_http(result);
                error_setf(&words, error->code, "No token from Keystone: %s", error->text);
        }
        if (result == REPORT_E_UNAUTHORIZED && ask_for_version(auth, &words))
                return;
        if (result != REPORT_DONE) {
                end_exchange(auth, result, &words, pause_after(auth, result, response));
                return;
        }
        take_token(auth, &token);
        auth->locks = false;
        auth->listener(auth->userdata);
}

/* Sends the request for a token. The body has the secret and is wiped. */
static int start_exchange(Auth *auth, Error *reterr)
{
        static const char *const headers[] = { "Accept: application/json",
                                               "Content-Type: application/json", NULL };
        _cleanup_(secret_freep) char *body = NULL;

        if (keystone_make_token_request(auth->config.keystone, auth->config.kind, &body) < 0)
                return error_oom(reterr);
        auth->asked_usec = now_usec(auth);
        return http_client_send(auth->http,
                                &(HttpRequest){
                                        .method = "POST",
                                        .path = KEYSTONE_TOKENS_PATH,
                                        .headers = headers,
                                        .body = body,
                                        .body_size = strlen(body),
                                },
                                on_answer, auth, &auth->transfer, reterr);
}

static int hand_out(const Auth *auth, AuthPass *ret)
{
        *ret = (AuthPass){
                .header = auth->token.header,
                .endpoint = auth->token.endpoint,
                .serial = auth->serial,
        };
        return 0;
}

/* Returns the last failure to a request that comes without a valid token in the pause after it. */
static int refuse(const Auth *auth, uint64_t now, Error *reterr)
{
        uint64_t wait_sec = (auth->retry_usec - now + USEC_PER_SEC - 1) / USEC_PER_SEC;

        if (auth->failure == REPORT_E_UNAUTHORIZED)
                error_setf(reterr, auth->error.code, "%s; next attempt in %" PRIu64 " s",
                           auth->error.text, wait_sec);
        else
                error_setf(reterr, auth->error.code, "%s", auth->error.text);
        return auth->failure;
}

/* Decides between three results: hand out the token, wait for an exchange (-EAGAIN), or report the
 * last failure. Outside of a pause an exchange starts if there is no valid token, a renewal is due
 * or the endpoint is doubted. While there is a valid token, requests get it also during an
 * exchange, unless the endpoint is doubted: then they wait. */
int auth_get(Auth *auth, AuthPass *ret, Error *reterr)
{
        bool alive, due, paused;
        uint64_t now;
        int r;

        if (!auth->http)
                return hand_out(auth, ret);
        now = now_usec(auth);
        alive = is_alive(auth);
        due = !alive || auth->doubted || now >= auth->renew_usec;
        paused = auth->failure != 0 && now < auth->retry_usec;
        if (due && !auth->transfer && !paused) {
                r = start_exchange(auth, reterr);
                if (r < 0 && !alive)
                        return r;
        }
        if (alive && !(auth->doubted && auth->transfer))
                return hand_out(auth, ret);
        return auth->transfer ? -EAGAIN : refuse(auth, now, reterr);
}

static void note_accepted(Auth *auth, uint64_t serial)
{
        if (serial != auth->serial)
                return;
        auth->proven = true;
        auth->refused_pause_usec = auth->unusable_pause_usec = 0;
}

/* Drops the token that Placement answered with 401. Returns true if the request must be sent again
 * with another token, or false if the 401 is final. */
static bool note_refused(Auth *auth, uint64_t serial, Error *reterr)
{
        Error words;

        if (!auth->http)
                return false;
        /* Another request of the same pass was rejected before. Either a new pass is under way, or
         * auth_get() returns the reason that there is none. */
        if (serial != auth->serial || !auth->token.header)
                return true;
        keystone_token_done(&auth->token);
        /* An old token can have ended on its way to a slow Placement. */
        if (auth->proven || now_usec(auth) >= auth->renew_usec)
                return true;
        error_setf(
                &words, EACCES,
                "Placement rejects a new token of Keystone (401). Check [keystone_authtoken] of Placement, and its clock");
        note_failure(
                auth, REPORT_E_UNAUTHORIZED, &words,
                next_pause(&auth->unusable_pause_usec, UNUSABLE_FIRST_USEC, UNUSABLE_MAX_USEC));
        error_setf(reterr, words.code, "%s", words.text);
        return false;
}

/* Makes the next auth_get() look up the endpoint again, at most once in DOUBT_USEC. */
static void doubt_endpoint(Auth *auth, uint64_t serial)
{
        if (serial != auth->serial || !auth->token.endpoint ||
            now_usec(auth) < auth->may_doubt_usec)
                return;
        auth->may_doubt_usec = now_usec(auth) + DOUBT_USEC;
        auth->doubted = true;
}

bool auth_note_answer(Auth *auth, uint64_t serial, int status, Error *reterr)
{
        if (status == 401)
                return note_refused(auth, serial, reterr);
        if (status == 0)
                doubt_endpoint(auth, serial);
        else
                note_accepted(auth, serial);
        return false;
}

void auth_ask_at_once(Auth *auth)
{
        if (!auth->locks)
                auth->retry_usec = 0;
}

const KeystoneToken *auth_get_token(const Auth *auth)
{
        return auth->http && auth->token.header ? &auth->token : NULL;
}

/* Makes the header of a configured token. The token is not quoted in messages. */
static int set_header(Auth *auth, const char *token, Error *reterr)
{
        if (!token || !*token)
                return error_setf(reterr, EINVAL,
                                  "auth_type = admin_token in [placement] needs token");
        for (const char *c = token; *c; c++)
                if (*c <= ' ' || *c >= 0x7f)
                        return error_setf(
                                reterr, EINVAL,
                                "token in [placement] contains an invalid character, for example a space or a line break");
        auth->token.header = secret_join("X-Auth-Token: ", token);
        return auth->token.header ? 0 : error_oom(reterr);
}

static int make_http(Auth *auth, const HttpConfig *http, Error *reterr)
{
        const KeystoneConfig *keystone = auth->config.keystone;
        HttpConfig config;
        const char *option = NULL;
        int r = keystone_config_check(keystone, auth->config.kind, &option, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "[placement] %s", option);
        if (keystone_make_base_url(keystone->auth_url, &auth->base_url) < 0)
                return error_oom(reterr);
        config = *http;
        config.endpoint = auth->base_url;
        config.service = "Keystone";
        config.max_connections = 1;
        config.max_body_bytes = ANSWER_MAX_BYTES;
        r = http_client_new(&auth->http, auth->event, &config, reterr);
        return r < 0 ? error_prefixf(reterr, r, "auth_url in [placement]") : 0;
}

static int set_up(Auth *auth, const HttpConfig *http, Error *reterr)
{
        switch (auth->config.kind) {
        case REPORTER_AUTH_NONE:
                return 0;
        case REPORTER_AUTH_ADMIN_TOKEN:
                return set_header(auth, auth->config.token, reterr);
        case REPORTER_AUTH_PASSWORD:
        case REPORTER_AUTH_V3APPLICATIONCREDENTIAL:
                return make_http(auth, http, reterr);
        default:
                return error_setf(reterr, EINVAL, "auth_type in [placement] is unknown");
        }
}

int auth_new(Auth **ret, sd_event *event, const AuthConfig *config, const HttpConfig *http,
             void (*listener)(void *userdata), void *userdata, Error *reterr)
{
        _cleanup_(auth_freep) Auth *auth = calloc(1, sizeof(Auth));
        int r;

        if (!auth)
                return error_oom(reterr);
        auth->config = *config;
        auth->listener = listener;
        auth->userdata = userdata;
        auth->event = sd_event_ref(event);
        r = set_up(auth, http, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(auth);
        return 0;
}
