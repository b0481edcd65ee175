/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bench/floor.h"

#include <curl/curl.h>
#include <stdio.h>

#include "base/macros.h"

DEFINE_CLEANUP(CURL *, curl_easy_cleanup);
DEFINE_CLEANUP(struct curl_slist *, curl_slist_free_all);

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
        return size * n;
}

static struct curl_slist *make_headers(void)
{
        static const char *const lines[] = {
                "Accept: application/json",
                "OpenStack-API-Version: placement 1.30",
                "X-Auth-Token: admin",
        };
        struct curl_slist *headers = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                struct curl_slist *more = curl_slist_append(headers, lines[i]);

                if (!more) {
                        curl_slist_free_all(headers);
                        return NULL;
                }
                headers = more;
        }
        return headers;
}

static int read_one(CURL *easy, const json_t *consumer, Error *reterr)
{
        char path[64];
        long status = 0;

        snprintf(path, sizeof(path), "/allocations/%s",
                 json_string_value(json_object_get(consumer, "uuid")));
        if (curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, path) != CURLE_OK)
                return error_oom(reterr);
        if (curl_easy_perform(easy) == CURLE_OK)
                curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        return status == 200 ? 0 : error_setf(reterr, EREMOTEIO, "GET %s: %ld", path, status);
}

int floor_read(const char *endpoint, const json_t *consumers, Error *reterr)
{
        _cleanup_(curl_slist_free_allp) struct curl_slist *headers = make_headers();
        _cleanup_(curl_easy_cleanupp) CURL *easy = curl_easy_init();
        const json_t *consumer;
        size_t i;
        int r = 0;

        if (!easy || !headers || curl_easy_setopt(easy, CURLOPT_URL, endpoint) != CURLE_OK ||
            curl_easy_setopt(easy, CURLOPT_PROXY, "") != CURLE_OK ||
            curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers) != CURLE_OK ||
            curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) != CURLE_OK)
                return error_oom(reterr);
        json_array_foreach(consumers, i, consumer) {
                r = read_one(easy, consumer, reterr);
                if (r < 0)
                        break;
        }
        return r;
}
