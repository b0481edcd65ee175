/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A conversation with one Placement: sends typed requests with the headers that they need, judges
 * the answers, reads their JSON, and counts.
 *
 * Requests wait while their token is fetched (report/keystone/auth.h). A request that is answered
 * 401 is sent once more with a new token, and queued requests wait for that token. A request that a
 * busy server rejects is sent again after a short wait (report/session/pace.h). The session retries
 * nothing else, and keeps no content of Placement. As with report/http/http.h: one thread, nothing
 * blocks, no callback from inside session_send(), and a callback can call every function. */

#include <jansson.h>
#include <systemd/sd-event.h>

#include "report/http/http.h"
#include "report/keystone/auth.h"
#include "report/placement/outcome.h"
#include "report/placement/request.h"
#include "report/session/nova-mode.h"

typedef struct SessionStatistics {
        uint64_t max_connections; /* so many requests at most are under way */
        uint64_t n_requests;
        uint64_t n_writes;         /* those that were not GET */
        uint64_t n_conflicts;      /* answers with placement.concurrent_update */
        uint64_t retry_after_usec; /* the longest wait that a 429 or 503 of this attempt asked for
                                    */
        RequestCounts counts;      /* of requests that have ended */
} SessionStatistics;

typedef struct SessionAnswer {
        int status;               /* 0: there was no answer */
        PlacementVerdict verdict; /* of an answer */
        const json_t *body;       /* of a 2xx with a body; else NULL */
        uint64_t modified_sec;    /* when Placement changed it last; 0: unknown */
} SessionAnswer;

typedef struct Session Session;
typedef struct SessionCall SessionCall; /* a request under way */

/* result: REPORT_DONE, a ReportOutcome or a negative errno; error has words unless it is 0. answer
 * is never NULL. All are borrowed for the call; the handle of the request is void already. */
typedef void (*SessionDone)(int result, const SessionAnswer *answer, const Error *error,
                            void *userdata);

/* config as in http_client_new(); its endpoint is NULL where Keystone's catalogue has it, which
 * sets wants_endpoint of auth. Strings stay borrowed. Requests that nova does not allow end in
 * REPORT_E_REFUSED, unsent. -EINVAL with words, -ENOMEM. */
int session_new(Session **ret, sd_event *event, const HttpConfig *config, const AuthConfig *auth,
                NovaMode nova, Error *reterr);

/* Cancels what is under way. */
Session *session_free(Session *session);
DEFINE_CLEANUP(Session *, session_free);

/* Takes the request over, also on failure. ret_call is valid until the callback is called or it is
 * cancelled. -ENOMEM, -EINVAL. */
int session_send(Session *session, PlacementRequest request, SessionDone done, void *userdata,
                 SessionCall **ret_call, Error *reterr);

/* NULL is allowed; returns NULL. */
SessionCall *session_call_cancel(SessionCall *call);

/* See auth_ask_at_once(). */
void session_ask_at_once(Session *session);

/* See auth_get_token(). */
const KeystoneToken *session_get_token(const Session *session);

/* Gives the following requests a new request id ("req-<uuid>"), by which operators find all
 * requests of one attempt in the log of the service. */
void session_begin_attempt(Session *session);

const SessionStatistics *session_get_statistics(const Session *session);
