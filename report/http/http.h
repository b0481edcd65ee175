/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An HTTP client on an sd-event loop, for one service. Only this folder and bench/ use curl.
 *
 * The client keeps connections open and uses them again. It sends as many requests at a time as the
 * server turns out to serve, at most max_connections (report/http/lanes.h). The others wait; reads
 * start in their order, and so do writes. It does not judge answers: every status of a server is an
 * answer. It follows no redirect, uses no proxy, and stores no cookie.
 *
 * All functions belong to the thread of the loop, and none blocks, except with curl before 7.87
 * (exchange.c). A callback never runs from inside http_client_send(). It runs exactly once for each
 * request that http_client_send() accepted and that is not cancelled. A callback can call every
 * function, http_client_free() too. The client wipes its copies of the bodies and headers of
 * requests and of the header fields of answers, but not the bodies of answers. */

#include <systemd/sd-event.h>

#include "base/error.h"
#include "base/placement-options.h"

#define HTTP_MAX_CONNECTIONS_LIMIT  64
#define HTTP_MAX_BODY_BYTES_DEFAULT (UINT64_C(8) * 1024 * 1024) /* parsed in 2 s, with 200 MB */

/* A request; http_client_send() copies it. */
typedef struct HttpRequest {
        const char *method;
        const char *path;           /* begins with "/", already quoted; appended to the endpoint */
        const char *const *headers; /* "Name: value", NULL-terminated; NULL: none */
        const char *body;           /* NULL: none */
        size_t body_size;
} HttpRequest;

typedef struct HttpResponse {
        int status;
        const char *body; /* NUL-terminated for convenience; can contain NULs */
        size_t body_size;
        const char *content_type, *request_id, *location; /* "" if the answer has none */
        const char *subject_token; /* the X-Subject-Token of Keystone, "" if the answer has none;
                                      never log it */
        uint64_t retry_after_sec;  /* at most 6 hours; 0 if the answer has none */
        uint64_t modified_sec;     /* since the epoch; 0: unknown, or not a GET */
} HttpResponse;

/* Reasons for a missing answer. */
typedef enum HttpResult {
        HTTP_DONE = 0,
        HTTP_E_UNREACHABLE = 1, /* no connection, a time-out, an incomplete answer, or another
                                   failure */
        HTTP_E_TLS,             /* an unusable certificate or key, or a failed TLS handshake */
        HTTP_E_BAD_ANSWER,      /* no HTTP, a too large answer, or a wrong encoding */
        _HTTP_RESULT_MAX,
} HttpResult;

typedef struct HttpClient HttpClient;
typedef struct HttpTransfer HttpTransfer; /* a request under way */

/* Makes a client, without a connection. The loop is referenced, and the strings of config are
 * borrowed, except the endpoint. -EINVAL with words for an unusable configuration, -ENOMEM, or an
 * errno of sd-event. */
int http_client_new(HttpClient **ret, sd_event *event, const HttpConfig *config, Error *reterr);

/* Sets the endpoint of requests that start from now on, queued ones included. Does nothing if it is
 * the present endpoint. -EINVAL (with words) and -ENOMEM change nothing. */
int http_client_set_endpoint(HttpClient *client, const char *endpoint, Error *reterr);

/* Cancels the requests under way, without callbacks. */
HttpClient *http_client_free(HttpClient *client);
DEFINE_CLEANUP(HttpClient *, http_client_free);

/* Sends a request or queues it. The handle in *ret_transfer is valid until the callback runs or the
 * transfer is cancelled. Both done and ret_transfer can be NULL. The client must have an endpoint.
 * Returns -EINVAL for an invalid path or header, or -ENOMEM. The callback done receives the end of
 * the request. result is HTTP_DONE with a response, else an HttpResult or a negative errno with
 * words in error. Both are borrowed for the call, and the handle is already invalid.
 *
 * Curl sends a request once more if the server closes a kept connection without a byte of an
 * answer. Then the server can receive a write twice. */
int http_client_send(HttpClient *client, const HttpRequest *request,
                     void (*done)(int result, const HttpResponse *response, const Error *error,
                                  void *userdata),
                     void *userdata, HttpTransfer **ret_transfer, Error *reterr);

/* Logs, at level debug, "METHOD BASEPATH: STATUS (REQUEST-ID)" with the fields of the journal. base
 * is the text before the path; it can be "". */
void http_response_log(const HttpResponse *response, const char *method, const char *base,
                       const char *path);

/* Cancels a request without its callback. The server can still receive the request. NULL is
 * allowed. Returns NULL. */
HttpTransfer *http_transfer_cancel(HttpTransfer *transfer);

/* Cancels a request that is still queued. Returns false, without an effect, if it has started or
 * ended. */
bool http_transfer_take_back(HttpTransfer *transfer);
