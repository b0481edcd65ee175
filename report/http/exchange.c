/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Nothing of curl's may wait on the caller's thread. It would in one place: a request that ends
 * while its host is looked up joins the thread that asks the name servers, which may wait for these
 * for minutes. With QUICK_EXIT curl leaves that thread to itself. It ends when the C library gives
 * up; until then it is one task of the service more, so no further look-up begins when there are
 * many. Curl before 7.87 has no QUICK_EXIT, and does hold the loop then: configure says so. No
 * proxy is looked up (PROXY ""), and no .netrc, cookie, HSTS or alt-svc file is read:
 * these are only when they are asked for. */

#include "report/http/exchange.h"

#include <sys/stat.h>

#include "base/text.h"

#define LOOKUPS_LEFT_MAX 16

#define EASY_SET(easy, option, value)                                                \
        do {                                                                         \
                if (curl_easy_setopt((easy), CURLOPT_##option, (value)) != CURLE_OK) \
                        return -ENOMEM;                                              \
        } while (0)

/* Are there as many threads as those of this process, its connections and of look-ups that were
 * left to themselves can be? Whoever may not see it begins the look-up. */
static bool too_many_threads(const HttpConfig *config)
{
        struct stat st;

        /* a link for each task, beside "." and ".." */
        return stat("/proc/self/task", &st) >= 0 &&
               st.st_nlink >= 2 + LOOKUPS_LEFT_MAX + config->max_connections;
}

static int on_lookup(void *state, void *reserved, void *userdata)
{
        return too_many_threads(userdata) ? 1 : 0;
}

/* An address needs no look-up, and may not be held up by those of another client. */
static int set_lookup(CURL *easy, const HttpConfig *config, const HttpEndpoint *endpoint)
{
#if LIBCURL_VERSION_NUM >= 0x075700
        EASY_SET(easy, QUICK_EXIT, 1L);
#endif
        if (endpoint->is_address)
                return 0;
        EASY_SET(easy, RESOLVER_START_FUNCTION, on_lookup);
        EASY_SET(easy, RESOLVER_START_DATA, (void *)config);
        return 0;
}

static int set_tls(CURL *easy, const HttpConfig *config)
{
        EASY_SET(easy, SSL_VERIFYPEER, config->insecure ? 0L : 1L);
        EASY_SET(easy, SSL_VERIFYHOST, config->insecure ? 0L : 2L);
        if (config->cafile)
                EASY_SET(easy, CAINFO, config->cafile);
        if (config->certfile)
                EASY_SET(easy, SSLCERT, config->certfile);
        if (config->keyfile)
                EASY_SET(easy, SSLKEY, config->keyfile);
        return 0;
}

static int set_limits(CURL *easy, const HttpConfig *config)
{
        EASY_SET(easy, PROXY, "");
        EASY_SET(easy, FOLLOWLOCATION, 0L);
        EASY_SET(easy, NOSIGNAL, 1L);
        EASY_SET(easy, CONNECTTIMEOUT_MS, (long)(config->connect_timeout_usec / USEC_PER_MSEC));
        EASY_SET(easy, TIMEOUT_MS, (long)(config->timeout_usec / USEC_PER_MSEC));
        EASY_SET(easy, MAXFILESIZE_LARGE, (curl_off_t)config->max_body_bytes);
        return 0;
}

static int set_endpoint(CURL *easy, const HttpConfig *config, const HttpEndpoint *endpoint)
{
        EASY_SET(easy, PATH_AS_IS, 1L);
        if (endpoint->socket_path)
                EASY_SET(easy, UNIX_SOCKET_PATH, endpoint->socket_path);
        if (config->user_agent)
                EASY_SET(easy, USERAGENT, config->user_agent);
        return 0;
}

void http_handles_done(HttpHandles *handles)
{
        while (handles->n_idle > 0)
                curl_easy_cleanup(handles->idle[--handles->n_idle]);
}

int http_handles_take(HttpHandles *handles, const HttpConfig *config, const HttpEndpoint *endpoint,
                      CURL **ret)
{
        CURL *easy;

        if (handles->n_idle > 0) {
                *ret = handles->idle[--handles->n_idle];
                return 0;
        }
        easy = curl_easy_init();
        if (!easy)
                return -ENOMEM;
        if (set_limits(easy, config) < 0 || set_tls(easy, config) < 0 ||
            set_endpoint(easy, config, endpoint) < 0 || set_lookup(easy, config, endpoint) < 0) {
                curl_easy_cleanup(easy);
                return -ENOMEM;
        }
        *ret = easy;
        return 0;
}

/* Nothing of the last request may reach the next one. */
static int forget_request(CURL *easy)
{
        EASY_SET(easy, PRIVATE, NULL);
        EASY_SET(easy, ERRORBUFFER, NULL);
        EASY_SET(easy, WRITEDATA, NULL);
        EASY_SET(easy, HEADERDATA, NULL);
        EASY_SET(easy, HTTPHEADER, NULL);
        EASY_SET(easy, LOW_SPEED_LIMIT, 0L);
        EASY_SET(easy, LOW_SPEED_TIME, 0L);
        EASY_SET(easy, POSTFIELDS, NULL);
        EASY_SET(easy, POSTFIELDSIZE_LARGE, (curl_off_t)-1);
        EASY_SET(easy, CUSTOMREQUEST, NULL);
        EASY_SET(easy, HTTPGET, 1L);
        return 0;
}

void http_handles_give_back(HttpHandles *handles, CURL *easy)
{
        if (!easy)
                return;
        if (handles->n_idle < ARRAY_SIZE(handles->idle) && forget_request(easy) >= 0)
                handles->idle[handles->n_idle++] = easy;
        else
                curl_easy_cleanup(easy);
}

/* A PUT or POST without a body still says Content-Length: 0; some proxies answer 411 else. */
static bool may_have_body(const HttpRequest *request)
{
        return request->body || request->method[0] == 'P';
}

static int set_target(CURL *easy, const HttpEndpoint *endpoint, const HttpRequest *request)
{
        _cleanup_free_ char *target = text_format("%s%s", endpoint->prefix, request->path);

        if (!target)
                return -ENOMEM;
        /* As a part of the URL curl would take the path apart and write it anew several times. */
        EASY_SET(easy, URL, endpoint->origin);
        EASY_SET(easy, REQUEST_TARGET, target);
        if (may_have_body(request)) {
                EASY_SET(easy, POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
                EASY_SET(easy, POSTFIELDS, request->body ? request->body : "");
        }
        EASY_SET(easy, CUSTOMREQUEST, request->method);
        return 0;
}

static int add_header(struct curl_slist **headers, const char *line)
{
        struct curl_slist *list = curl_slist_append(*headers, line);

        if (!list)
                return -ENOMEM;
        *headers = list;
        return 0;
}

int http_headers_make(const HttpRequest *request, struct curl_slist **ret)
{
        /* Curl would ask for leave before it sends a large body, and WSGI servers answer late. */
        if (may_have_body(request) && add_header(ret, "Expect:") < 0)
                return -ENOMEM;
        if (may_have_body(request) && !request->body && add_header(ret, "Content-Type:") < 0)
                return -ENOMEM;
        for (size_t i = 0; request->headers && request->headers[i]; i++)
                if (add_header(ret, request->headers[i]) < 0)
                        return -ENOMEM;
        return 0;
}

int http_handle_set_request(CURL *easy, const HttpEndpoint *endpoint, const HttpRequest *request,
                            struct curl_slist *headers)
{
        if (set_target(easy, endpoint, request) < 0)
                return -ENOMEM;
        EASY_SET(easy, HTTPHEADER, headers);
        return 0;
}

void http_handle_get_response(CURL *easy, HttpResponse *ret)
{
        curl_off_t retry_after = 0;
        long status = 0;

        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after);
        ret->status = (int)status;
        ret->retry_after_sec = retry_after > 0 ? (uint64_t)retry_after : 0;
}

void http_handle_get_failure(CURL *easy, const HttpConfig *config, HttpFailure *ret)
{
        curl_off_t connected_usec = 0, resolved_usec = 0;
        long os_errno = 0, local_port = 0;

        curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_errno);
        curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &resolved_usec);
        curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &connected_usec);
        curl_easy_getinfo(easy, CURLINFO_LOCAL_PORT, &local_port);
        ret->os_errno = (int)os_errno;
        ret->too_many_lookups = too_many_threads(config);
        ret->resolved = resolved_usec > 0;
        ret->reached = local_port > 0;
        ret->connected = connected_usec > 0;
}
