/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The endpoint of a service: "http://host:port/path", "https://…" or "unix:///path/to.sock". */

#include "base/error.h"

typedef struct HttpEndpoint {
        char *text;        /* as given, for messages; it never holds a password */
        char *origin;      /* "https://host:8778"; "http://localhost" for a socket */
        char *prefix;      /* of every path: "/placement", without a slash at the end; may be "" */
        char *socket_path; /* NULL for TCP */
        bool is_address;   /* the host is one, or a socket: there is no name to look up */
} HttpEndpoint;

#define HTTP_ENDPOINT_INIT ((HttpEndpoint){ 0 })

void http_endpoint_done(HttpEndpoint *endpoint);

/* ret must be initialised. -EINVAL with words that say what is allowed: a user or password, a query
 * or a fragment in the URL are refused. -ENOMEM. */
int http_endpoint_parse(const char *text, HttpEndpoint *ret, Error *reterr);

/* Quotes a part of a path or query: all but letters, digits and "-._~" as %XX. The caller frees;
 * NULL: out of memory. */
char *http_quote(const char *text);
