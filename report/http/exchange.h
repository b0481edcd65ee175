/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One request and its answer, on an easy handle of curl's. The handles are set up once and used for
 * one request after another: to make a handle costs a client more than to send a request with it.
 */

#include <curl/curl.h>

#include "report/http/endpoint.h"
#include "report/http/http.h"

typedef struct HttpHandles {
        CURL *idle[HTTP_MAX_CONNECTIONS_LIMIT];
        size_t n_idle;
} HttpHandles;

/* The header fields of an answer that are kept. */
typedef enum HttpField {
        HTTP_FIELD_CONTENT_TYPE,
        HTTP_FIELD_REQUEST_ID,
        HTTP_FIELD_LOCATION,
        HTTP_FIELD_SUBJECT_TOKEN, /* a secret */
        HTTP_FIELD_LAST_MODIFIED,
        _HTTP_FIELD_MAX,
} HttpField;

typedef struct HttpExchange {
        const HttpConfig *config;
        CURL *easy; /* NULL: it was never active */
        char *method, *path;
        struct curl_slist *headers;
        char *request_body; /* NULL: none */
        size_t request_size;

        char *fields[_HTTP_FIELD_MAX];
        bool fields_ended; /* by an empty line: trailers follow, until the next status line */
        char *body;
        size_t body_size, body_allocated;
        bool too_large;
        char detail[CURL_ERROR_SIZE];
} HttpExchange;

void http_handles_done(HttpHandles *handles);

/* Copies the request into exchange, which is zeroed. -ENOMEM; http_exchange_done() also then. */
int http_exchange_init(HttpExchange *exchange, const HttpRequest *request);

/* Gives the exchange a handle, if it has none, and sets that up. config and endpoint are the same
 * for all handles, and outlive the exchange. userdata: CURLINFO_PRIVATE of the handle. -ENOMEM. */
int http_exchange_begin(HttpExchange *exchange, HttpHandles *handles, const HttpConfig *config,
                        const HttpEndpoint *endpoint, void *userdata);

/* The answer of an exchange that ended well; texts are borrowed from it. */
void http_exchange_get_response(const HttpExchange *exchange, HttpResponse *ret);

/* The outcome of an exchange that failed with that code: HTTP_E_…, or -ENOMEM, with words. */
int http_exchange_explain(const HttpExchange *exchange, CURLcode code, const HttpConfig *config,
                          const HttpEndpoint *endpoint, Error *reterr);

/* Wipes and frees. handles take the handle over; NULL where curl's multi handle may still own parts
 * of it: after a failure or a cancellation. */
void http_exchange_done(HttpExchange *exchange, HttpHandles *handles);
