/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses the endpoint of a service. An endpoint is split into the parts that requests need: curl
 * connects to the origin or the socket, and the prefix is put in front of every path. Curl parses a
 * URL of http or https, so that this check and the later connection agree about it. Text of a
 * rejected URL is quoted only after the check for a password; the path of a rejected socket is
 * quoted without that check. A failure leaves the result unchanged. Pure. */

#include "report/http/endpoint.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

DEFINE_CLEANUP(CURLU *, curl_url_cleanup);

void http_endpoint_done(HttpEndpoint *endpoint)
{
        free(endpoint->text);
        free(endpoint->origin);
        free(endpoint->prefix);
        free(endpoint->socket_path);
        *endpoint = HTTP_ENDPOINT_INIT;
}

/* Parses the path after unix://. It must be absolute, must not end with a slash, and must fit into
 * sun_path with its NUL. */
static int parse_socket(const char *path, HttpEndpoint *ret, Error *reterr)
{
        size_t n = strlen(path);

        if (path[0] != '/' || n < 2 || path[n - 1] == '/')
                return error_setf(reterr, EINVAL,
                                  "A Unix socket is written unix:///absolute/path, not unix://%s",
                                  path);
        if (n >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
                return error_setf(
                        reterr, EINVAL,
                        "The path of a Unix socket has at most 107 characters, but this one has %zu",
                        n);
        ret->socket_path = strdup(path);
        ret->origin = strdup("http://localhost");
        ret->prefix = strdup("");
        ret->is_address = true;
        return ret->socket_path && ret->origin && ret->prefix ? 0 : error_oom(reterr);
}

/* Checks whether the URL has that part. */
static bool url_has(CURLU *url, CURLUPart part)
{
        char *value = NULL;
        bool has = curl_url_get(url, part, &value, 0) == CURLUE_OK;

        curl_free(value);
        return has;
}

/* Checks for an IPv4 address, or for brackets, which enclose an IPv6 address. */
static bool host_is_address(CURLU *url)
{
        struct in_addr address;
        char *host = NULL;
        bool is;

        if (curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
                return false;
        is = host[0] == '[' || inet_pton(AF_INET, host, &address) == 1;
        curl_free(host);
        return is;
}

/* Splits a URL that curl has normalised: it ends with its path. */
static int split(CURLU *url, HttpEndpoint *ret)
{
        char *whole = NULL, *path = NULL;

        if (curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK &&
            curl_url_get(url, CURLUPART_PATH, &path, 0) == CURLUE_OK) {
                ret->origin = strndup(whole, strlen(whole) - strlen(path));
                for (size_t n = strlen(path); n > 0 && path[n - 1] == '/'; n--)
                        path[n - 1] = '\0';
                ret->prefix = strdup(path);
        }
        curl_free(whole);
        curl_free(path);
        return ret->origin && ret->prefix ? 0 : -ENOMEM;
}

static int parse_url(const char *text, HttpEndpoint *ret, Error *reterr)
{
        _cleanup_(curl_url_cleanupp) CURLU *url = curl_url();

        if (!url)
                return error_oom(reterr);
        /* The text can contain a password, so it is not quoted before this check. */
        if (strstr(text, "://") == NULL ||
            curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
                return error_setf(
                        reterr, EINVAL,
                        "The endpoint is not a URL such as http://host:port/path, https://… or unix:///path");
        if (url_has(url, CURLUPART_USER) || url_has(url, CURLUPART_PASSWORD))
                return error_setf(reterr, EINVAL,
                                  "The endpoint must not contain a user or a password");
        if (url_has(url, CURLUPART_QUERY) || url_has(url, CURLUPART_FRAGMENT))
                return error_setf(reterr, EINVAL,
                                  "The endpoint must not contain a query or a fragment: %s", text);
        if (strncasecmp(text, "http://", strlen("http://")) != 0 &&
            strncasecmp(text, "https://", strlen("https://")) != 0)
                return error_setf(reterr, EINVAL,
                                  "The endpoint must begin with http://, https:// or unix://: %s",
                                  text);
        ret->is_address = host_is_address(url);
        return split(url, ret) < 0 ? error_oom(reterr) : 0;
}

/* Completes the endpoint before ret changes. */
int http_endpoint_parse(const char *text, HttpEndpoint *ret, Error *reterr)
{
        _cleanup_(http_endpoint_done) HttpEndpoint endpoint = HTTP_ENDPOINT_INIT;
        int r;

        if (strncmp(text, "unix://", strlen("unix://")) == 0)
                r = parse_socket(text + strlen("unix://"), &endpoint, reterr);
        else
                r = parse_url(text, &endpoint, reterr);
        if (r < 0)
                return r;
        endpoint.text = strdup(text);
        if (!endpoint.text)
                return error_oom(reterr);
        http_endpoint_done(ret);
        *ret = TAKE_STRUCT(endpoint);
        return 0;
}
