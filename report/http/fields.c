/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/http/fields.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/secret.h"

static const char *const field_names[_HTTP_FIELD_MAX] = {
        [HTTP_FIELD_CONTENT_TYPE] = "content-type",
        [HTTP_FIELD_REQUEST_ID] = "x-openstack-request-id",
        [HTTP_FIELD_LOCATION] = "location",
        [HTTP_FIELD_SUBJECT_TOKEN] = "x-subject-token",
        [HTTP_FIELD_LAST_MODIFIED] = "last-modified",
};

void http_fields_done(HttpFields *fields)
{
        for (int i = 0; i < _HTTP_FIELD_MAX; i++)
                secret_free(fields->values[i]);
        *fields = (HttpFields){ 0 };
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int set_value(char **value, const char *text, size_t n)
{
        while (n > 0 && is_blank(text[n - 1]))
                n--;
        while (n > 0 && is_blank(*text)) {
                text++;
                n--;
        }
        *value = secret_alloc(n + 1);
        if (!*value)
                return -ENOMEM;
        memcpy(*value, text, n);
        (*value)[n] = '\0';
        return 0;
}

int http_fields_add(HttpFields *fields, const char *line, size_t n)
{
        const char *colon = memchr(line, ':', n);
        size_t n_name = colon ? (size_t)(colon - line) : 0;

        if (n >= 5 && strncasecmp(line, "HTTP/", 5) == 0) {
                http_fields_done(fields);
                return 0;
        }
        if (n == 0 || *line == '\r' || *line == '\n')
                fields->ended = true;
        if (fields->ended || !colon)
                return 0;
        for (int i = 0; i < _HTTP_FIELD_MAX; i++)
                if (!fields->values[i] && strlen(field_names[i]) == n_name &&
                    strncasecmp(line, field_names[i], n_name) == 0)
                        return set_value(&fields->values[i], colon + 1, n - n_name - 1);
        return 0;
}

const char *http_fields_get(const HttpFields *fields, HttpField field)
{
        return fields->values[field] ? fields->values[field] : "";
}
