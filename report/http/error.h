/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one place where a CURLcode becomes an outcome and words that say what to do. */

#include <curl/curl.h>

#include "report/http/http.h"

/* What is known of a transfer that failed. */
typedef struct HttpFailure {
        CURLcode code;
        int os_errno;         /* 0 when unknown */
        const char *detail;   /* curl's own words, may be empty */
        const char *service;  /* its name, for the message */
        const char *endpoint; /* for the message */
        uint64_t connect_timeout_usec, timeout_usec;
        uint64_t max_body_bytes;
        bool unix_socket;
        bool too_many_lookups; /* that wait for name servers: none was begun */
        bool resolved;         /* there is an address */
        bool reached;          /* the host took the connection; TLS may not have been through */
        bool connected;        /* a connection stood, TLS and all */
        bool too_large;        /* the body passed max_body_bytes */
} HttpFailure;

/* HTTP_E_…, or -ENOMEM. */
int http_failure_translate(const HttpFailure *failure, Error *reterr);
