/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The few header fields of an answer that somebody reads, kept from the lines that curl hands on.
 * Curl's own store of them (curl_easy_header()) is younger than the curl of EL9. */

#include <stdbool.h>
#include <stddef.h>

typedef enum HttpField {
        HTTP_FIELD_CONTENT_TYPE,
        HTTP_FIELD_REQUEST_ID,
        HTTP_FIELD_LOCATION,
        HTTP_FIELD_SUBJECT_TOKEN, /* a secret */
        HTTP_FIELD_LAST_MODIFIED,
        _HTTP_FIELD_MAX,
} HttpField;

typedef struct HttpFields {
        char *values[_HTTP_FIELD_MAX];
        bool ended; /* by an empty line: what comes then are trailers, until the next status line */
} HttpFields;

/* NULL is not allowed; all zero is. Secrets are wiped. */
void http_fields_done(HttpFields *fields);

/* Takes a line as it came, with or without its end; it need not end with NUL. A status line begins
 * anew. Of a field that comes twice the first counts; what is no field is passed over. -ENOMEM. */
int http_fields_add(HttpFields *fields, const char *line, size_t n);

/* Without the blanks around it; "" when the answer has none. Valid until the next line. */
const char *http_fields_get(const HttpFields *fields, HttpField field);
