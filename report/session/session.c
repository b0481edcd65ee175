/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sends the requests to Placement: rejects requests that [agent] nova forbids, gets a pass (the
 * header that authenticates) from auth, adds the headers, judges each answer, parses a new body of
 * a success, and counts. A SessionCall is one request until its callback. A call without a transfer
 * is held: it waits for a pass of auth, or for a busy server (the gate). A call that is rejected
 * when it is made is held too, until the loop tries again and, if it is still rejected, runs its
 * callback. When the pass changes or is rejected, or a busy server shuts the gate, the calls that
 * http has not started yet are taken back and held. Held calls are sent from a deferred event
 * source, oldest first. Invariant: a call starts over after a 401 at most once. After the answer of
 * a busy server it starts over as often as report/session/pace.h permits. A callback can free the
 * session, so each function that runs one does it last. */

#include "report/session/session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/jitter.h"
#include "base/json.h"
#include "base/log.h"
#include "base/uuid.h"
#include "report/http/event.h"
#include "report/session/pace.h"

struct SessionCall {
        TAILQ_ENTRY(SessionCall) link;
        Session *session;
        HttpTransfer *transfer; /* NULL: the call is held */
        uint64_t pass;          /* serial of the pass with which it was sent last */
        bool refused;           /* it started over after a 401 */
        PlacementRequest request;
        void (*done)(int result, const SessionAnswer *answer, const Error *error, void *userdata);
        void *userdata;
};

struct Session {
        sd_event *event;
        HttpClient *http;
        Auth *auth;
        char request_id[80]; /* a header line with the request id of the attempt */
        TAILQ_HEAD(, SessionCall) calls;
        sd_event_source *deferred; /* sends held calls */
        SessionPace pace;
        NovaMode nova;
        sd_event_source
                *gate; /* timer that ends the wait for a busy server; on while the gate is shut */
        SessionStatistics statistics;
};

static int on_deferred(sd_event_source *source, void *userdata);

/* Schedules the sending of held calls. */
static void look_after_held(Session *session)
{
        sd_event_source_set_enabled(session->deferred, SD_EVENT_ONESHOT);
}

/* Holds the calls that wait for a connection, and schedules their sending with the pass of that
 * time. The held calls count as not sent. */
static void hold_queued(void *userdata)
{
        Session *session = userdata;
        SessionCall *call;

        TAILQ_FOREACH(call, &session->calls, link)
                if (call->transfer && http_transfer_take_back(call->transfer)) {
                        call->transfer = NULL;
                        session->statistics.n_requests--;
                        session->statistics.n_writes -= placement_request_writes(&call->request);
                }
        look_after_held(session);
}

static int on_gate_open(sd_event_source *source, uint64_t usec, void *userdata)
{
        look_after_held(userdata);
        return 0;
}

/* Holds all calls that have not started until pace.shut_until_usec, the end of the wait for the
 * busy server. */
static void shut_gate(Session *session)
{
        (void)sd_event_source_set_time(session->gate, session->pace.shut_until_usec);
        (void)sd_event_source_set_enabled(session->gate, SD_EVENT_ONESHOT);
        hold_queued(session);
}

static int make_deferred(Session *session, sd_event *event)
{
        int r = event_add_deferred(event, &session->deferred, on_deferred, session);

        if (r < 0)
                return r;
        r = sd_event_add_time(event, &session->gate, CLOCK_MONOTONIC, 0, USEC_PER_MSEC,
                              on_gate_open, session);
        return r < 0 ? r : sd_event_source_set_enabled(session->gate, SD_EVENT_OFF);
}

int session_new(Session **ret, sd_event *event, const HttpConfig *config, const AuthConfig *auth,
                NovaMode nova, Error *reterr)
{
        _cleanup_(session_freep) Session *session = calloc(1, sizeof(Session));
        AuthConfig auth_config = *auth;
        int r;

        if (!session)
                return error_oom(reterr);
        if (config->endpoint ? !*config->endpoint : auth_config.kind <= REPORTER_AUTH_ADMIN_TOKEN)
                return error_setf(reterr, EINVAL, "[placement] has no endpoint");
        auth_config.wants_endpoint = !config->endpoint;
        TAILQ_INIT(&session->calls);
        session->event = sd_event_ref(event);
        session->statistics.max_connections = config->max_connections;
        session->nova = nova;
        session_begin_attempt(session);
        r = auth_new(&session->auth, event, &auth_config, config, hold_queued, session, reterr);
        if (r < 0)
                return r;
        r = make_deferred(session, event);
        if (r < 0)
                return error_setf(reterr, r, "[placement]: Cannot set up HTTP: %s", strerror(-r));
        r = http_client_new(&session->http, event, config, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "[placement]");
        *ret = TAKE_PTR(session);
        return 0;
}

Session *session_free(Session *session)
{
        SessionCall *call;

        if (!session)
                return NULL;
        while ((call = TAILQ_FIRST(&session->calls)))
                session_call_cancel(call);
        http_client_free(session->http);
        auth_free(session->auth);
        sd_event_source_disable_unref(session->deferred);
        sd_event_source_disable_unref(session->gate);
        sd_event_unref(session->event);
        free(session);
        return NULL;
}

static SessionCall *call_free(SessionCall *call)
{
        TAILQ_REMOVE(&call->session->calls, call, link);
        placement_request_done(&call->request);
        free(call);
        return NULL;
}

SessionCall *session_call_cancel(SessionCall *call)
{
        if (!call)
                return NULL;
        http_transfer_cancel(call->transfer);
        return call_free(call);
}

/* Reads the body of a 2xx, which must be a JSON object or empty. */
static int read_body(const PlacementRequest *request, const HttpResponse *response, json_t **ret,
                     Error *reterr)
{
        if (response->body_size == 0)
                return REPORT_DONE;
        if (json_parse_with_nul(response->body, response->body_size, ret, reterr) < 0 ||
            !json_is_object(*ret)) {
                error_setf(
                        reterr, EBADMSG,
                        "The answer to %s %.*s (%d) is not Placement's JSON. Check the endpoint of [placement], and any proxy before it",
                        request->method, (int)strcspn(request->path, "?"), request->path,
                        response->status);
                return REPORT_E_UNAVAILABLE;
        }
        return REPORT_DONE;
}

/* Counts a request by method, route and status. A new combination is dropped if there are already
 * REQUEST_COUNTS_MAX. */
static void count_request(RequestCounts *counts, const char *method, const char *route, int status)
{
        size_t i = 0;

        while (i < counts->n_items &&
               (counts->items[i].status != status || strcmp(counts->items[i].route, route) != 0 ||
                strcmp(counts->items[i].method, method) != 0))
                i++;
        if (i == REQUEST_COUNTS_MAX)
                return;
        if (i == counts->n_items) {
                counts->items[i].method = method;
                counts->items[i].route = route;
                counts->items[i].status = status;
                counts->n_items++;
        }
        counts->items[i].n++;
}

/* Counts conflicts, and notes the longest Retry-After of a 429 or 503. */
static void count_answer(Session *session, const SessionAnswer *answer,
                         const HttpResponse *response)
{
        if (answer->verdict.code == PLACEMENT_CODE_CONCURRENT_UPDATE)
                session->statistics.n_conflicts++;
        if (response->status == 429 || response->status == 503)
                session->statistics.retry_after_usec =
                        MAX(session->statistics.retry_after_usec,
                            response->retry_after_sec * USEC_PER_SEC);
}

/* Checks whether Placement did not answer at its endpoint: it is unreachable, or the answer does
 * not have Placement's form. */
static bool is_nowhere(int result, const SessionAnswer *answer)
{
        return result == REPORT_E_UNREACHABLE ||
               (result == REPORT_E_UNAVAILABLE && !answer->verdict.from_placement) ||
               (result == REPORT_E_UNAVAILABLE && answer->status < 300);
}

/* Passes the status to auth, or 0 if Placement was not at its endpoint. Returns true if the call
 * must start over with another pass. That happens at most once for each call. */
static bool learn(SessionCall *call, int result, const SessionAnswer *answer, Error *reterr)
{
        bool nowhere = is_nowhere(result, answer);

        if (answer->status == 0 && !nowhere)
                return false;
        return auth_note_answer(call->session->auth, call->pass, nowhere ? 0 : answer->status,
                                reterr) &&
               !call->refused;
}

/* Holds the call and all queued ones until auth has another pass. */
static void start_over(SessionCall *call)
{
        call->refused = true;
        call->transfer = NULL;
        hold_queued(call->session);
}

/* Returns true if the server was busy and the call now waits for it. */
static bool wait_for_server(SessionCall *call, const HttpResponse *response)
{
        Session *session = call->session;
        uint64_t random = response && response->status >= 400 ? jitter_random() : 0;

        if (!response ||
            !session_pace_note(&session->pace, response->status,
                               MIN(response->retry_after_sec, UINT64_C(3600)) * USEC_PER_SEC,
                               event_now_usec(session->event, CLOCK_MONOTONIC), random))
                return false;
        call->transfer = NULL;
        shut_gate(session);
        return true;
}

/* Frees the call and runs its callback, which can free the session. */
static void end_call(SessionCall *call, int result, const SessionAnswer *answer, const Error *words)
{
        const SessionCall ended = *call;

        call_free(call);
        ended.done(result, answer, words, ended.userdata);
}

static void on_response(int result, const HttpResponse *response, const Error *error,
                        void *userdata)
{
        _cleanup_json_ json_t *body = NULL;
        SessionAnswer answer = { 0 };
        SessionCall *call = userdata;
        const PlacementRequest *request = &call->request;
        Error words = ERROR_NULL;

        if (result == HTTP_DONE) {
                answer.status = response->status;
                answer.modified_sec = response->modified_sec;
                answer.verdict = placement_judge(request, response, &words);
                result = answer.verdict.outcome;
                answer.text = response->body;
                answer.size = response->body_size;
                answer.unchanged = result == REPORT_DONE &&
                                   request->seen.modified_sec == response->modified_sec &&
                                   fingerprint_matches(&request->seen.body, response->body,
                                                       response->body_size);
                if (result == REPORT_DONE && !answer.unchanged)
                        result = read_body(request, response, &body, &words);
                answer.body = body;
                count_answer(call->session, &answer, response);
                http_response_log(response, request->method, "", request->path);
        } else {
                result = report_outcome_of_http(result);
                words = *error;
                log_debug("%s %s: %s", request->method, request->path, words.text);
        }
        count_request(&call->session->statistics.counts, request->method, request->route,
                      answer.status);
        if (wait_for_server(call, response))
                return;
        if (learn(call, result, &answer, &words))
                start_over(call);
        else
                end_call(call, result, &answer, &words);
}

#define N_HEADERS_MAX 6

/* Makes the headers and gives the request to http. */
static int send_http(SessionCall *call, const AuthPass *pass, Error *reterr)
{
        Session *session = call->session;
        const PlacementRequest *request = &call->request;
        const char *headers[N_HEADERS_MAX] = { "Accept: application/json" };
        char version[64];
        size_t n = 1;
        int r;

        snprintf(version, sizeof(version), "OpenStack-API-Version: placement %s",
                 request->microversion);
        headers[n++] = version;
        headers[n++] = session->request_id;
        if (request->body)
                headers[n++] = "Content-Type: application/json";
        if (pass->header)
                headers[n++] = pass->header;
        call->pass = pass->serial;
        r = http_client_send(session->http,
                             &(HttpRequest){
                                     .method = request->method,
                                     .path = request->path,
                                     .headers = headers,
                                     .body = request->body,
                                     .body_size = request->body ? strlen(request->body) : 0,
                             },
                             on_response, call, &call->transfer, reterr);
        if (r < 0)
                return r;
        session->statistics.n_requests++;
        session->statistics.n_writes += placement_request_writes(request);
        return 0;
}

/* Sends the call. Returns 0, or -EAGAIN if it stays held. Returns REPORT_E_REFUSED if [agent] nova
 * forbids it, a ReportOutcome of auth_get(), or another negative errno. session_send() returns only
 * 0 or a negative errno; the callback gets the positive results. */
static int try_send(SessionCall *call, Error *reterr)
{
        Session *session = call->session;
        const char *why =
                nova_mode_refuses_request(session->nova, call->request.method, call->request.path);
        AuthPass pass;
        int r;

        if (why) {
                error_setf(reterr, EPERM, "%s", why);
                return REPORT_E_REFUSED;
        }
        if (event_now_usec(session->event, CLOCK_MONOTONIC) < session->pace.shut_until_usec)
                return -EAGAIN;
        r = auth_get(session->auth, &pass, reterr);
        if (r == 0 && pass.endpoint)
                r = http_client_set_endpoint(session->http, pass.endpoint, reterr);
        return r == 0 ? send_http(call, &pass, reterr) : r;
}

static SessionCall *first_held(Session *session)
{
        SessionCall *call;

        TAILQ_FOREACH(call, &session->calls, link)
                if (!call->transfer)
                        return call;
        return NULL;
}

/* Sends the held calls until one cannot be sent yet. A call that fails ends the run, because its
 * callback can free the session; the rest follow in the next turn of the loop. */
static int on_deferred(sd_event_source *source, void *userdata)
{
        static const SessionAnswer no_answer = { 0 };
        Session *session = userdata;
        Error words = ERROR_NULL;
        SessionCall *call;

        while ((call = first_held(session))) {
                int r = try_send(call, &words);

                if (r == 0)
                        continue;
                if (r == -EAGAIN)
                        break;
                sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                end_call(call, r, &no_answer, &words);
                break;
        }
        return 0;
}

int session_send(Session *session, PlacementRequest request,
                 void (*done)(int result, const SessionAnswer *answer, const Error *error,
                              void *userdata),
                 void *userdata, SessionCall **ret_call, Error *reterr)
{
        SessionCall *call = request.path ? calloc(1, sizeof(SessionCall)) : NULL;
        int r;

        if (!call) {
                placement_request_done(&request);
                return error_oom(reterr);
        }
        call->request = request;
        call->session = session;
        call->done = done;
        call->userdata = userdata;
        TAILQ_INSERT_TAIL(&session->calls, call, link);
        r = try_send(call, reterr);
        if (r < 0 && r != -EAGAIN) {
                call_free(call);
                return r;
        }
        /* A callback must not run from here, so the loop tries to send again and reports the
         * rejection. */
        if (r > 0)
                look_after_held(session);
        if (ret_call)
                *ret_call = call;
        return 0;
}

Auth *session_get_auth(Session *session)
{
        return session->auth;
}

void session_begin_attempt(Session *session)
{
        Uuid uuid = uuid_make_random();

        snprintf(session->request_id, sizeof(session->request_id), "X-Openstack-Request-Id: req-%s",
                 uuid.text);
        session->statistics.retry_after_usec = 0;
        session->pace.credit = 0; /* only successes from now on permit a wait */
}

const SessionStatistics *session_get_statistics(const Session *session)
{
        return &session->statistics;
}
