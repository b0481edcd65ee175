/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One request and its answer, on an easy handle of curl. A handle is set up once and used for one
 * request after another until one gets no answer, because making a handle costs a client more than
 * sending a request. */

#include <curl/curl.h>

#include "report/http/endpoint.h"
#include "report/http/http.h"

typedef struct HttpHandles {
        CURL *idle[HTTP_MAX_CONNECTIONS_LIMIT];
        size_t n_idle;
} HttpHandles;

/* Header fields of an answer that are kept. */
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
        CURL *easy; /* NULL: the exchange never got a handle */
        char *method, *path;
        struct curl_slist *headers;
        char *request_body; /* NULL: none */
        size_t request_size;

        char *fields[_HTTP_FIELD_MAX];
        bool fields_ended; /* an empty line ended them; the next lines are trailers until a status
                            * line */
        char *body;
        size_t body_size, body_allocated;
        bool too_large;
        char detail[CURL_ERROR_SIZE];
} HttpExchange;

void http_handles_done(HttpHandles *handles);

/* Copies the request into exchange, which must be zeroed. -ENOMEM; http_exchange_done() is needed
 * then too. */
int http_exchange_init(HttpExchange *exchange, const HttpRequest *request);

/* Takes an idle handle or makes one, and sets it up for the exchange, unless the exchange has one.
 * All handles of *handles have the same config and endpoint; config outlives them. The handle gets
 * userdata as its CURLINFO_PRIVATE. -ENOMEM. */
int http_exchange_begin(HttpExchange *exchange, HttpHandles *handles, const HttpConfig *config,
                        const HttpEndpoint *endpoint, void *userdata);

/* Returns the outcome of an exchange that ended with that code: HTTP_DONE and its answer, whose
 * texts are borrowed from the exchange, or with words another HttpResult or -ENOMEM. */
int http_exchange_judge(const HttpExchange *exchange, CURLcode code, const HttpConfig *config,
                        const HttpEndpoint *endpoint, HttpResponse *ret, Error *reterr);

/* Frees the exchange, and wipes the body and headers of the request and the header fields of the
 * answer. The easy handle goes to *handles, which keeps it if there is room. The argument handles
 * must be NULL after a failure or a cancellation, because curl's multi handle can still own parts
 * of the easy handle, and if the endpoint changed. */
void http_exchange_done(HttpExchange *exchange, HttpHandles *handles);
