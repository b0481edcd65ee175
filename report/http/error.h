/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Translates a CURLcode into an HttpResult or -ENOMEM, and a message. No other file does so. */

#include <curl/curl.h>

#include "report/http/http.h"

/* The facts about a failed transfer. */
typedef struct HttpFailure {
        CURLcode code;
        int os_errno;         /* 0: unknown */
        const char *detail;   /* curl's text; can be empty */
        const char *service;  /* name of the service for the message */
        const char *endpoint; /* for the message */
        uint64_t connect_timeout_usec, timeout_usec;
        uint64_t max_body_bytes;
        bool unix_socket;
        bool too_many_lookups; /* many threads run, so the look-up was probably rejected
                                  (exchange.c) */
        bool resolved;         /* an address is known */
        bool reached;          /* the host accepted the connection; TLS can be incomplete */
        bool connected;        /* a connection was complete, with TLS */
        bool too_large;        /* the body exceeded max_body_bytes */
} HttpFailure;

/* Returns an HttpResult other than HTTP_DONE, or -ENOMEM, with words. */
int http_failure_translate(const HttpFailure *failure, Error *reterr);
