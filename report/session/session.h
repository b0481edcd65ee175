/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A conversation with one Placement: sends typed requests with the necessary headers, judges the
 * answers, reads their JSON, and counts.
 *
 * Requests without a valid token wait while one is fetched (report/keystone/auth.h). A request that
 * is answered 401 is sent once more if auth can get another token, and queued requests wait for
 * that token. A request that a busy server rejects is sent again after a short wait, if
 * report/session/pace.h permits it. The session retries nothing else, and keeps no content of
 * Placement. A 2xx whose body is neither empty nor a JSON object ends in REPORT_E_UNAVAILABLE, also
 * after a write that was done. The rules are those of report/http/http.h: one thread, nothing
 * blocks, no callback from inside session_send(), and a callback can call every function. */

#include <jansson.h>
#include <systemd/sd-event.h>

#include "report/http/http.h"
#include "report/keystone/auth.h"
#include "report/placement/outcome.h"
#include "report/placement/request.h"
#include "report/session/nova-mode.h"

typedef struct SessionStatistics {
        uint64_t max_connections; /* HttpConfig.max_connections; the limit for parallel requests */
        uint64_t n_requests;
        uint64_t n_writes;         /* requests other than GET */
        uint64_t n_conflicts;      /* answers with placement.concurrent_update */
        uint64_t retry_after_usec; /* longest wait that a 429 or 503 of this attempt asked for */
        RequestCounts counts; /* numbers of answers and missing answers by route and status; further
                                 combinations are dropped when it is full */
} SessionStatistics;

typedef struct SessionAnswer {
        int status;               /* 0: no answer */
        PlacementVerdict verdict; /* valid if there is an answer */
        const json_t *body;       /* body of a 2xx; NULL: none */
        uint64_t modified_sec;    /* time of the last change by Placement's clock; 0: unknown */
        bool unchanged;           /* equal to PlacementRequest.seen; body is NULL */
        const char *text;         /* the body of any answer as text, of size bytes; NULL: no
                                     answer */
        size_t size;
} SessionAnswer;

typedef struct Session Session;
typedef struct SessionCall SessionCall; /* a request under way */

/* Makes a session. config is used as in http_client_new(); its endpoint is NULL if Keystone's
 * catalogue has it, and then auth gets wants_endpoint. Strings stay borrowed, except the endpoint
 * and the token. Requests that nova forbids are not sent and end in REPORT_E_REFUSED. -EINVAL with
 * words, -ENOMEM, or an errno of sd-event. */
int session_new(Session **ret, sd_event *event, const HttpConfig *config, const AuthConfig *auth,
                NovaMode nova, Error *reterr);

/* Cancels the requests under way, without callbacks. */
Session *session_free(Session *session);
DEFINE_CLEANUP(Session *, session_free);

/* Sends a request and owns it, also on failure. The handle in *ret_call is valid until the callback
 * runs or the call is cancelled. It is not stored if ret_call is NULL. A failure (-ENOMEM, -EINVAL)
 * runs no callback. The callback done receives the end of the request. result is REPORT_DONE, a
 * ReportOutcome or a negative errno; error has words unless result is 0. answer is never NULL. All
 * are borrowed for the call, and the handle is already invalid. */
int session_send(Session *session, PlacementRequest request,
                 void (*done)(int result, const SessionAnswer *answer, const Error *error,
                              void *userdata),
                 void *userdata, SessionCall **ret_call, Error *reterr);

/* Cancels a request without its callback. NULL is allowed. Returns NULL. */
SessionCall *session_call_cancel(SessionCall *call);

/* Returns the authentication of the session, borrowed. */
Auth *session_get_auth(Session *session);

/* Begins an attempt: all requests from now on share a new request id ("req-<uuid>"), by which
 * operators find them in the log of the service. Resets retry_after_usec and the credit of
 * report/session/pace.h. */
void session_begin_attempt(Session *session);

const SessionStatistics *session_get_statistics(const Session *session);
