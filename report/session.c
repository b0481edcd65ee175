/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/session.h"

#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/log.h"
#include "base/uuid.h"

struct SessionCall {
        TAILQ_ENTRY(SessionCall) link;
        Session *session;
        HttpTransfer *transfer;
        PlacementRequest request; /* for the judgement; its body is gone */
        SessionDone done;
        void *userdata;
};

struct Session {
        HttpClient *http;
        Auth *auth;
        uint64_t max_connections;
        char request_id[80]; /* a header line */
        TAILQ_HEAD(, SessionCall) calls;
        SessionStatistics statistics;
};

int session_new(Session **ret, sd_event *event, const HttpConfig *config, Auth *auth, Error *reterr)
{
        _cleanup_(session_freep) Session *session = calloc(1, sizeof(Session));
        int r;

        if (!session) {
                auth_free(auth);
                return error_oom(reterr);
        }
        TAILQ_INIT(&session->calls);
        session->auth = auth;
        session->max_connections = config->max_connections;
        session_begin_attempt(session);
        r = http_client_new(&session->http, event, config, reterr);
        if (r < 0)
                return r;
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

/* What became of a request that got no answer. */
static int outcome_of_http(int result)
{
        switch (result) {
        case HTTP_E_UNREACHABLE:
        case HTTP_E_TLS:
                return REPORT_E_UNREACHABLE;
        case HTTP_E_BAD_ANSWER:
                return REPORT_E_UNAVAILABLE;
        default:
                return result < 0 ? result : -EIO;
        }
}

/* A 2xx must be Placement's JSON, or nothing. */
static int read_body(const PlacementRequest *request, const HttpResponse *response, json_t **ret,
                     Error *reterr)
{
        if (response->body_size == 0)
                return REPORT_DONE;
        if (json_parse(response->body, response->body_size, ret, reterr) < 0 ||
            !json_is_object(*ret)) {
                error_setf(reterr, EBADMSG,
                           "The answer to %s %.*s (%d) is not Placement's JSON: something between "
                           "answers for it, or the endpoint of [placement] is wrong",
                           request->method, (int)strcspn(request->path, "?"), request->path,
                           response->status);
                return REPORT_E_UNAVAILABLE;
        }
        return REPORT_DONE;
}

static void count_answer(Session *session, const SessionAnswer *answer,
                         const HttpResponse *response)
{
        if (answer->verdict.code == PLACEMENT_CODE_CONCURRENT_UPDATE)
                session->statistics.n_conflicts++;
        if (response->status == 429 || response->status == 503)
                session->statistics.retry_after_usec = response->retry_after_sec * USEC_PER_SEC;
}

static void on_response(int result, const HttpResponse *response, const Error *error,
                        void *userdata)
{
        _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
        _cleanup_json_ json_t *body = NULL;
        SessionAnswer answer = { 0 };
        SessionCall *call = userdata;
        SessionDone done = call->done;
        void *done_userdata = call->userdata;
        Error words = ERROR_NULL;

        request = call->request;
        call->request = PLACEMENT_REQUEST_INIT;
        if (result == HTTP_DONE) {
                answer.status = response->status;
                answer.verdict = placement_judge(&request, response, &words);
                result = answer.verdict.outcome;
                if (result == REPORT_DONE)
                        result = read_body(&request, response, &body, &words);
                answer.body = body;
                count_answer(call->session, &answer, response);
                log_debug("%s %s: %d (%s)", request.method, request.path, response->status,
                          response->request_id);
        } else {
                result = outcome_of_http(result);
                words = *error;
                log_debug("%s %s: %s", request.method, request.path, words.text);
        }
        call_free(call);
        /* The session may be gone after this. */
        done(result, &answer, &words, done_userdata);
}

#define N_HEADERS_MAX 6

static int send_http(SessionCall *call, const PlacementRequest *request, Error *reterr)
{
        Session *session = call->session;
        const char *auth_header = auth_get_header(session->auth);
        const char *headers[N_HEADERS_MAX] = { "Accept: application/json" };
        char version[64];
        size_t n = 1;

        snprintf(version, sizeof(version), "OpenStack-API-Version: placement %s",
                 request->microversion);
        headers[n++] = version;
        headers[n++] = session->request_id;
        if (request->body)
                headers[n++] = "Content-Type: application/json";
        if (auth_header)
                headers[n++] = auth_header;

        return http_client_send(session->http,
                                &(HttpRequest){
                                        .method = request->method,
                                        .path = request->path,
                                        .headers = headers,
                                        .body = request->body,
                                        .body_size = request->body ? strlen(request->body) : 0,
                                },
                                on_response, call, &call->transfer, reterr);
}

int session_send(Session *session, const PlacementRequest *request, SessionDone done,
                 void *userdata, SessionCall **ret_call, Error *reterr)
{
        SessionCall *call = calloc(1, sizeof(SessionCall));
        int r;

        if (!call)
                return error_oom(reterr);
        call->session = session;
        call->done = done;
        call->userdata = userdata;
        call->request = (PlacementRequest){
                .method = request->method,
                .microversion = request->microversion,
                .path = strdup(request->path),
        };
        TAILQ_INSERT_TAIL(&session->calls, call, link);
        r = call->request.path ? send_http(call, request, reterr) : error_oom(reterr);
        if (r < 0) {
                call_free(call);
                return r;
        }
        session->statistics.n_requests++;
        session->statistics.n_writes += placement_request_writes(request);
        if (ret_call)
                *ret_call = call;
        return 0;
}

void session_widen(Session *session)
{
        session->statistics.n_requests += http_client_widen(session->http);
}

uint64_t session_get_max_connections(const Session *session)
{
        return session->max_connections;
}

void session_begin_attempt(Session *session)
{
        Uuid uuid = uuid_make_random();

        snprintf(session->request_id, sizeof(session->request_id), "X-Openstack-Request-Id: req-%s",
                 uuid.text);
        session->statistics.retry_after_usec = 0;
}

const SessionStatistics *session_get_statistics(const Session *session)
{
        return &session->statistics;
}
