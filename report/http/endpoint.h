/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The endpoint of a service: "http://host:port/path", "https://…" or "unix:///path/to.sock". */

#include "base/error.h"

typedef struct HttpEndpoint {
        char *text;   /* as given, for messages; it never contains a password */
        char *origin; /* "https://host:8778"; "http://localhost" for a socket */
        char *prefix; /* prefix of every path, for example "/placement", without a slash at the end;
                       * can be "" */
        char *socket_path; /* NULL for TCP */
        bool is_address;   /* true for an IP address or a socket: no look-up of a name is needed */
} HttpEndpoint;

#define HTTP_ENDPOINT_INIT ((HttpEndpoint){ 0 })

void http_endpoint_done(HttpEndpoint *endpoint);

/* Parses an endpoint. ret must be initialised. Rejects a user, password, query or fragment in the
 * URL. Returns -EINVAL with words, or -ENOMEM; ret is then unchanged. */
int http_endpoint_parse(const char *text, HttpEndpoint *ret, Error *reterr);
