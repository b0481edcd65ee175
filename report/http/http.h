/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An HTTP client on an sd-event loop, for one service. Curl stays behind it.
 *
 * It keeps connections open and uses them again, and sends as many requests at a time as the server
 * turns out to serve, at most max_connections (report/http/lanes.h); the others wait in order. It
 * knows nothing of Placement: every status that a server sends is an answer. It follows no
 * redirect, uses no proxy, and stores no cookie.
 *
 * All functions belong to the thread of the loop and none blocks. A callback is never called from
 * inside http_client_send(), and exactly once per request unless it is cancelled. Inside a callback
 * everything is allowed, http_client_free() too. Its copies of bodies and headers are wiped. */

#include <systemd/sd-event.h>

#include "base/error.h"
#include "base/placement-options.h"

#define HTTP_MAX_CONNECTIONS_LIMIT  64
#define HTTP_MAX_BODY_BYTES_DEFAULT (UINT64_C(8) * 1024 * 1024) /* parsed in 2 s, in 200 MB */

/* What to send. Copied. */
typedef struct HttpRequest {
        const char *method;
        const char *path;           /* begins with "/", quoted already; appended to the endpoint */
        const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
        const char *body;           /* NULL: none */
        size_t body_size;
} HttpRequest;

typedef struct HttpResponse {
        int status;
        const char *body; /* NUL-terminated for convenience; may hold NULs itself */
        size_t body_size;
        const char *content_type, *request_id, *location; /* "" when the answer has none */
        const char *subject_token;                        /* the same, of Keystone; never log it */
        uint64_t retry_after_sec;                         /* 0 when the answer has none */
        uint64_t modified_sec;                            /* since the epoch; 0: it does not say */
} HttpResponse;

/* Why there is no answer. */
typedef enum HttpResult {
        HTTP_DONE = 0,
        HTTP_E_UNREACHABLE = 1, /* no connection, a time-out, a cut answer */
        HTTP_E_TLS,             /* a certificate or key does not do */
        HTTP_E_BAD_ANSWER,      /* not HTTP, or larger than allowed */
        _HTTP_RESULT_MAX,
} HttpResult;

typedef struct HttpClient HttpClient;
typedef struct HttpTransfer HttpTransfer; /* a request under way */

/* result: HTTP_DONE with a response, else an HttpResult or a negative errno with words in error.
 * Both are borrowed for the call. The transfer's handle is void already. */
typedef void (*HttpDone)(int result, const HttpResponse *response, const Error *error,
                         void *userdata);

/* Does not connect. -EINVAL with words for a configuration that cannot work, -ENOMEM. The loop is
 * referenced. */
int http_client_new(HttpClient **ret, sd_event *event, const HttpConfig *config, Error *reterr);

/* The requests that start from now on go there, with those that wait for their turn. Nothing
 * changes when it is where they go already, nor with -EINVAL (with words) and -ENOMEM. */
int http_client_set_endpoint(HttpClient *client, const char *endpoint, Error *reterr);

/* Cancels what is under way. */
HttpClient *http_client_free(HttpClient *client);
DEFINE_CLEANUP(HttpClient *, http_client_free);

/* Takes a request. ret_transfer (may be NULL) is valid until the callback is called or it is
 * cancelled; done may be NULL. -EINVAL for a path or header that is none, -ENOMEM.
 *
 * A request is sent again, once, when the server closes a kept connection without a byte of an
 * answer: the server may then see a write twice. */
int http_client_send(HttpClient *client, const HttpRequest *request, HttpDone done, void *userdata,
                     HttpTransfer **ret_transfer, Error *reterr);

/* Logs, at level debug, "METHOD BASEPATH: STATUS (REQUEST-ID)" with the fields of the journal.
 * base: what stands before the path, "" for nothing. */
void http_response_log(const HttpResponse *response, const char *method, const char *base,
                       const char *path);

/* Its callback is not called. The server may see the request all the same. NULL is allowed; returns
 * NULL. */
HttpTransfer *http_transfer_cancel(HttpTransfer *transfer);

/* Cancels a request that still waits for its turn. False: it is past that, nothing happens. */
bool http_transfer_take_back(HttpTransfer *transfer);
