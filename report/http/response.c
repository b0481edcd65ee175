/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What an answer says, and what a request is made of. Apart from http.c, so that it stands where a
 * fake takes the place of that. */

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "report/http/http.h"

void http_response_log(const HttpResponse *response, const char *method, const char *base,
                       const char *path)
{
        const char *id = response->request_id;
        char status[12];

        snprintf(status, sizeof(status), "%d", response->status);
        log_event(LOG_DEBUG, NULL,
                  LOG_FIELDS(LOG_FIELD_STATUS, status, LOG_FIELD_REQUEST_ID, id[0] ? id : NULL),
                  "%s %s%s: %s (%s)", method, base, path, status, id);
}

char *http_quote(const char *text)
{
        char *escaped = curl_easy_escape(NULL, text, 0), *ret = escaped ? strdup(escaped) : NULL;

        curl_free(escaped);
        return ret;
}
