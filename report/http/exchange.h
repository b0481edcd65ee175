/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Curl's easy handles: set up once, used for one request after another. To make a handle costs a
 * client more than to send a request with it. */

#include <curl/curl.h>

#include "report/http/endpoint.h"
#include "report/http/error.h"
#include "report/http/http.h"

typedef struct HttpHandles {
        CURL *idle[HTTP_MAX_CONNECTIONS_LIMIT];
        size_t n_idle;
} HttpHandles;

void http_handles_done(HttpHandles *handles);

/* A handle that is set up for these; they are the same for all handles. -ENOMEM. */
int http_handles_take(HttpHandles *handles, const HttpConfig *config, const HttpEndpoint *endpoint,
                      CURL **ret);

/* Takes the handle over; NULL is allowed. It is in no multi handle any more. */
void http_handles_give_back(HttpHandles *handles, CURL *easy);

/* The header lines of a request. The caller frees ret, also on failure. -ENOMEM. */
int http_headers_make(const HttpRequest *request, struct curl_slist **ret);

/* Everything of one request but where its answer goes. Body and headers (instead of the request's)
 * are borrowed until the handle was given back. -ENOMEM. */
int http_handle_set_request(CURL *easy, const HttpEndpoint *endpoint, const HttpRequest *request,
                            struct curl_slist *headers);

/* The numbers of an answer: its status and how long it wants us to wait. */
void http_handle_get_response(CURL *easy, HttpResponse *ret);

/* What a handle that failed knows of the reason. */
void http_handle_get_failure(CURL *easy, const HttpConfig *config, HttpFailure *ret);
