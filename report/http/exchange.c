/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sets up an easy handle of curl for one request, and collects the answer. An HttpExchange copies
 * its request at the start and gets a handle at its first activation, so a thousand exchanges can
 * wait while few are active. Handles are used again after an answer of any status, and no option of
 * a request reaches the next one. The header fields that the product needs, except Retry-After, are
 * kept from the lines that curl passes on. curl_easy_header() is younger than the curl of EL9.
 *
 * Curl must never wait on the caller's thread. It would in one place: a request that ends during
 * the look-up of its host joins the thread that asks the name servers, which can take minutes. With
 * QUICK_EXIT curl abandons that thread, which ends when the C library gives up. Until then it
 * counts as a task of the service. When there are many tasks, a request that needs a look-up fails.
 * Curl before 7.87 has no QUICK_EXIT and can block the loop; configure warns of it. No proxy is
 * looked up (PROXY ""), and no .netrc, cookie, HSTS or alt-svc file is read, because none is
 * enabled.
 *
 * Tests: tests/unit/report/http/test-http.c tests/unit/report/http/test-queue.c */

#include "report/http/exchange.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/secret.h"
#include "base/text.h"
#include "report/http/error.h"

#define LOOKUPS_LEFT_MAX    16
#define RETRY_AFTER_MAX_SEC UINT64_C(21600) /* a larger Retry-After counts as this */

/* Sizes of curl's buffers for a transfer, which are allocated, wiped and freed for each one. They
 * fit into blocks of base/secret.c. The default of the receive buffer is just too large for a block
 * of 16 KiB, and that of the upload buffer, which TLS needs, for the largest block. Only answers to
 * reads are long. */
#define RECEIVE_BYTES       (16 * 1024L - 64)
#define RECEIVE_SHORT_BYTES (2 * 1024L - 64)
#define UPLOAD_BYTES        (16 * 1024L)

#define EASY_SET(easy, option, value)                                                \
        do {                                                                         \
                if (curl_easy_setopt((easy), CURLOPT_##option, (value)) != CURLE_OK) \
                        return -ENOMEM;                                              \
        } while (0)

/* Checks whether the process has at least LOOKUPS_LEFT_MAX threads beside one for each connection.
 * A number this high means that abandoned look-ups have not ended. Returns false if the number
 * cannot be read. */
static bool too_many_threads(const HttpConfig *config)
{
        struct stat st;

        /* one link for each task, and two for "." and ".." */
        return stat("/proc/self/task", &st) >= 0 &&
               st.st_nlink >= 2 + LOOKUPS_LEFT_MAX + config->max_connections;
}

/* Receives from curl the start of a look-up. Returns 1 to make the request fail before it. */
static int on_lookup(void *state, void *reserved, void *userdata)
{
        return too_many_threads(userdata) ? 1 : 0;
}

/* Bounds the number of look-ups. An endpoint that is an address needs none, so it gets no check:
 * the look-ups of another client must not make its requests fail. */
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

/* Makes curl trust the authorities of cafile and no other, or, without cafile, its defaults. Curl
 * reads them for each connection: the file can be replaced in place. Many builds of curl trust a
 * folder of the system, too, unless CAPATH is NULL. A TLS library without such folders refuses that
 * option. */
static int set_authorities(CURL *easy, const HttpConfig *config)
{
#if LIBCURL_VERSION_NUM >= 0x075700
        /* The default is a day. Curl before 7.87 keeps no authorities. */
        EASY_SET(easy, CA_CACHE_TIMEOUT, 0L);
#endif
        if (!config->cafile)
                return 0;
        EASY_SET(easy, CAINFO, config->cafile);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        return 0;
}

static int set_tls(CURL *easy, const HttpConfig *config)
{
        EASY_SET(easy, SSL_VERIFYPEER, config->insecure ? 0L : 1L);
        EASY_SET(easy, SSL_VERIFYHOST, config->insecure ? 0L : 2L);
        if (set_authorities(easy, config) < 0)
                return -ENOMEM;
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
        EASY_SET(easy, UPLOAD_BUFFERSIZE, UPLOAD_BYTES);
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

/* Handles. */

void http_handles_done(HttpHandles *handles)
{
        while (handles->n_idle > 0)
                curl_easy_cleanup(handles->idle[--handles->n_idle]);
}

/* Returns an idle handle, or makes one with the options that all requests share. */
static int take_handle(HttpHandles *handles, const HttpConfig *config, const HttpEndpoint *endpoint,
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

/* Resets the options of a request, so that none reaches the next request. The URL and the target
 * are not reset, because each request sets both. */
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

/* Keeps the handle for another exchange if possible, else frees it. No multi handle must own it. */
static void give_back_handle(HttpHandles *handles, CURL *easy)
{
        if (handles->n_idle < ARRAY_SIZE(handles->idle) && forget_request(easy) >= 0)
                handles->idle[handles->n_idle++] = easy;
        else
                curl_easy_cleanup(easy);
}

/* Requests. */

/* Returns true also for a PUT or POST without a body. Some proxies reject it with 411 unless it has
 * Content-Length: 0. */
static bool may_have_body(const char *method, const char *body)
{
        return body || method[0] == 'P';
}

static int set_request(HttpExchange *exchange, const HttpEndpoint *endpoint)
{
        _cleanup_free_ char *target = text_format("%s%s", endpoint->prefix, exchange->path);
        const char *body = exchange->request_body;
        CURL *easy = exchange->easy;

        if (!target)
                return -ENOMEM;
        /* Curl would parse and rewrite a path in the URL, so it gets the path as the target of the
         * request. */
        EASY_SET(easy, URL, endpoint->origin);
        EASY_SET(easy, REQUEST_TARGET, target);
        if (may_have_body(exchange->method, body)) {
                EASY_SET(easy, POSTFIELDSIZE_LARGE, (curl_off_t)exchange->request_size);
                EASY_SET(easy, POSTFIELDS, body ? body : "");
        }
        EASY_SET(easy, BUFFERSIZE,
                 strcmp(exchange->method, "GET") == 0 ? RECEIVE_BYTES : RECEIVE_SHORT_BYTES);
        EASY_SET(easy, CUSTOMREQUEST, exchange->method);
        EASY_SET(easy, HTTPHEADER, exchange->headers);
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

/* Copies the headers. An empty "Name:" removes a header that curl would add. */
static int copy_headers(HttpExchange *exchange, const HttpRequest *request)
{
        struct curl_slist **headers = &exchange->headers;
        bool may = may_have_body(request->method, request->body);

        /* For a large body curl would wait for 100 Continue, which WSGI servers send late. */
        if (may && add_header(headers, "Expect:") < 0)
                return -ENOMEM;
        if (may && !request->body && add_header(headers, "Content-Type:") < 0)
                return -ENOMEM;
        for (size_t i = 0; request->headers && request->headers[i]; i++)
                if (add_header(headers, request->headers[i]) < 0)
                        return -ENOMEM;
        return 0;
}

int http_exchange_init(HttpExchange *exchange, const HttpRequest *request)
{
        exchange->method = strdup(request->method);
        exchange->path = strdup(request->path);
        if (!exchange->method || !exchange->path || copy_headers(exchange, request) < 0)
                return -ENOMEM;
        if (!request->body)
                return 0;
        /* Curl borrows POSTFIELDS, so the exchange owns this copy. */
        exchange->request_body = secret_alloc(request->body_size + 1);
        if (!exchange->request_body)
                return -ENOMEM;
        memcpy(exchange->request_body, request->body, request->body_size);
        exchange->request_size = request->body_size;
        return 0;
}

/* Answers. */

static const char *const field_names[_HTTP_FIELD_MAX] = {
        [HTTP_FIELD_CONTENT_TYPE] = "content-type",
        [HTTP_FIELD_REQUEST_ID] = "x-openstack-request-id",
        [HTTP_FIELD_LOCATION] = "location",
        [HTTP_FIELD_SUBJECT_TOKEN] = "x-subject-token",
        [HTTP_FIELD_LAST_MODIFIED] = "last-modified",
};

static void forget_fields(HttpExchange *exchange)
{
        for (int i = 0; i < _HTTP_FIELD_MAX; i++)
                exchange->fields[i] = secret_free(exchange->fields[i]);
        exchange->fields_ended = false;
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Stores a value without the blanks around it, in memory for secrets. */
static int set_field(char **value, const char *text, size_t n)
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

/* Reads a header line, with or without its end; NUL need not follow. A status line starts a new
 * answer, because interim answers can precede the last one. If a field appears twice, the first one
 * counts. */
static int take_line(HttpExchange *exchange, const char *line, size_t n)
{
        const char *colon = memchr(line, ':', n);
        size_t n_name = colon ? (size_t)(colon - line) : 0;

        if (n >= 5 && strncasecmp(line, "HTTP/", 5) == 0) {
                forget_fields(exchange);
                return 0;
        }
        if (n == 0 || *line == '\r' || *line == '\n')
                exchange->fields_ended = true;
        if (exchange->fields_ended || !colon)
                return 0;
        for (int i = 0; i < _HTTP_FIELD_MAX; i++)
                if (!exchange->fields[i] && strlen(field_names[i]) == n_name &&
                    strncasecmp(line, field_names[i], n_name) == 0)
                        return set_field(&exchange->fields[i], colon + 1, n - n_name - 1);
        return 0;
}

/* Receives each line of the header from curl. A result below n ends the transfer. */
static size_t on_header(char *data, size_t size, size_t n, void *userdata)
{
        n *= size;
        return take_line(userdata, data, n) < 0 ? 0 : n;
}

static const char *field_of(const HttpExchange *exchange, HttpField field)
{
        return exchange->fields[field] ? exchange->fields[field] : "";
}

/* Receives each piece of the body from curl. A result below n ends the transfer. */
static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
        HttpExchange *exchange = userdata;
        const HttpConfig *config = exchange->config;
        size_t want;

        n *= size;
        if (n > config->max_body_bytes - exchange->body_size) {
                exchange->too_large = true;
                return 0;
        }
        /* The limit starts with the first byte, because a server can need long before it. */
        if (exchange->body_size == 0 && config->stall_timeout_usec > 0) {
                curl_easy_setopt(exchange->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
                curl_easy_setopt(exchange->easy, CURLOPT_LOW_SPEED_TIME,
                                 (long)MAX(config->stall_timeout_usec / USEC_PER_SEC, 1));
        }
        want = exchange->body_size + n + 1;
        if (want > exchange->body_allocated) {
                size_t grown = MAX(want, exchange->body_allocated * 2);
                char *body = realloc(exchange->body, grown);

                if (!body)
                        return 0;
                exchange->body = body;
                exchange->body_allocated = grown;
        }
        memcpy(exchange->body + exchange->body_size, data, n);
        exchange->body_size += n;
        exchange->body[exchange->body_size] = '\0';
        return n;
}

static int set_answer(HttpExchange *exchange, void *userdata)
{
        CURL *easy = exchange->easy;

        EASY_SET(easy, PRIVATE, userdata);
        EASY_SET(easy, ERRORBUFFER, exchange->detail);
        EASY_SET(easy, WRITEFUNCTION, on_body);
        EASY_SET(easy, WRITEDATA, exchange);
        EASY_SET(easy, HEADERFUNCTION, on_header);
        EASY_SET(easy, HEADERDATA, exchange);
        return 0;
}

int http_exchange_begin(HttpExchange *exchange, HttpHandles *handles, const HttpConfig *config,
                        const HttpEndpoint *endpoint, void *userdata)
{
        if (exchange->easy)
                return 0;
        exchange->config = config;
        if (take_handle(handles, config, endpoint, &exchange->easy) < 0 ||
            set_answer(exchange, userdata) < 0)
                return -ENOMEM;
        return set_request(exchange, endpoint);
}

/* Returns the last-modified of the answer to a GET, -1 if it is missing or invalid; 0 for another
 * method. The parser of curl takes 4 % of the instructions of a small request, and only the time of
 * a read is used. */
static time_t read_modified(const HttpExchange *exchange)
{
        if (strcmp(exchange->method, "GET") != 0)
                return 0;
        return curl_getdate(field_of(exchange, HTTP_FIELD_LAST_MODIFIED), NULL);
}

static void read_response(const HttpExchange *exchange, HttpResponse *ret)
{
        time_t modified = read_modified(exchange);
        curl_off_t retry_after = 0;
        long status = 0;

        curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(exchange->easy, CURLINFO_RETRY_AFTER, &retry_after);
        *ret = (HttpResponse){
                .status = (int)status,
                .body = exchange->body ? exchange->body : "",
                .body_size = exchange->body_size,
                .content_type = field_of(exchange, HTTP_FIELD_CONTENT_TYPE),
                .request_id = field_of(exchange, HTTP_FIELD_REQUEST_ID),
                .location = field_of(exchange, HTTP_FIELD_LOCATION),
                .subject_token = field_of(exchange, HTTP_FIELD_SUBJECT_TOKEN),
                .retry_after_sec =
                        retry_after > 0 ? MIN((uint64_t)retry_after, RETRY_AFTER_MAX_SEC) : 0,
                .modified_sec = modified > 0 ? (uint64_t)modified : 0,
        };
}

int http_exchange_judge(const HttpExchange *exchange, CURLcode code, const HttpConfig *config,
                        const HttpEndpoint *endpoint, HttpResponse *ret, Error *reterr)
{
        curl_off_t connected_usec = 0, resolved_usec = 0;
        long os_errno = 0, local_port = 0;
        CURL *easy = exchange->easy;

        if (code == CURLE_OK) {
                read_response(exchange, ret);
                return HTTP_DONE;
        }
        curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_errno);
        curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &resolved_usec);
        curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &connected_usec);
        curl_easy_getinfo(easy, CURLINFO_LOCAL_PORT, &local_port);
        return http_failure_translate(
                &(HttpFailure){
                        .code = code,
                        .os_errno = (int)os_errno,
                        .detail = exchange->detail,
                        .service = config->service,
                        .endpoint = endpoint->text,
                        .connect_timeout_usec = config->connect_timeout_usec,
                        .timeout_usec = config->timeout_usec,
                        .max_body_bytes = config->max_body_bytes,
                        .unix_socket = endpoint->socket_path != NULL,
                        .too_many_lookups = too_many_threads(config),
                        .resolved = resolved_usec > 0 || endpoint->is_address,
                        .reached = local_port > 0,
                        .connected = connected_usec > 0,
                        .too_large = exchange->too_large,
                },
                reterr);
}

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

void http_exchange_done(HttpExchange *exchange, HttpHandles *handles)
{
        if (exchange->easy && handles)
                give_back_handle(handles, exchange->easy);
        else
                curl_easy_cleanup(exchange->easy);
        curl_slist_free_all(exchange->headers);
        free(exchange->method);
        free(exchange->path);
        secret_free(exchange->request_body);
        forget_fields(exchange);
        free(exchange->body);
        *exchange = (HttpExchange){ 0 };
}
