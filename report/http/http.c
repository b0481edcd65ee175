/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Implements the HTTP client: a queue of transfers, their start within the limits of lanes.h, and
 * their callbacks. An HttpTransfer is queued, then active (curl has it), then ended (it waits for
 * its callback). One that curl does not accept is never active. Each turn of the loop runs at most
 * one callback. After curl was called, on_settled() runs the first one without another turn. A
 * deferred event source runs the others. A callback can free the client. http_client_free() then
 * marks the transfer whose callback runs, so that deliver() returns false, and nothing of the
 * client is read after it.
 *
 * Curl itself could queue requests above a number of connections, but their time-out would already
 * run in curl's queue. So the queue is here.
 *
 * A request can stall at a server that gives each connection a worker. If all workers wait at idle
 * connections, no worker reads the request (report/http/lanes.h). At a sign of such a stall, idle
 * connections are closed until the request ends, and the lanes shrink. The stalled request itself
 * is not sent again. */

#include "report/http/http.h"

#include <assert.h>
#include <curl/curl.h>
#include <pthread.h>
#include <string.h>
#include <sys/queue.h>

#include "base/secret.h"
#include "report/http/event.h"
#include "report/http/exchange.h"
#include "report/http/lanes.h"
#include "report/http/loop.h"

typedef enum TransferState {
        TRANSFER_QUEUED,
        TRANSFER_ACTIVE,
        TRANSFER_ENDED,
} TransferState;

struct HttpTransfer {
        TAILQ_ENTRY(HttpTransfer) link;
        HttpClient *client; /* NULL: the callback of this transfer freed the client */
        TransferState state;
        HttpExchange exchange;
        /* NULL: the answer is ignored */
        void (*done)(int result, const HttpResponse *response, const Error *error, void *userdata);
        void *userdata;
        bool writes;
        bool stands; /* counts in n_standing: stalled when on_watch() last shrank the lanes, and
                        still active */
        uint64_t started_usec;
        unsigned endpoint_number; /* number of the endpoint that the handle was set up for */
        HttpEndpoint replaced; /* the endpoint of the handle, if the client has another one since */
        CURLcode code;         /* valid when it has ended */
};

typedef TAILQ_HEAD(TransferList, HttpTransfer) TransferList;

struct HttpClient {
        HttpConfig config;
        HttpEndpoint endpoint;
        unsigned endpoint_number; /* number of the present endpoint */
        sd_event *event;
        sd_event_source *deferred;
        HttpLoop *loop;
        HttpHandles handles;
        TransferList queued, active, ended;
        HttpTransfer *delivered;     /* the transfer whose callback runs */
        size_t n_active, n_standing; /* among the active transfers */
        HttpLanes lanes;
        sd_event_source *watch; /* timer that looks for stalled transfers */
        bool watching;
        bool broken; /* the loop must be replaced */
};

static void free_secret(void *secret)
{
        secret_free(secret);
}

/* Makes curl use memory for secrets, because it copies requests and answers with passwords and
 * tokens. */
static void init_curl(void)
{
        curl_global_init_mem(CURL_GLOBAL_DEFAULT, secret_alloc, free_secret, secret_resize,
                             secret_copy, secret_alloc_array);
}

/* Frees a transfer. Keeps its handle for another one after an answer of any status, unless the
 * callback freed the client or the handle has the options of an earlier endpoint. */
static HttpTransfer *transfer_free(HttpTransfer *transfer)
{
        bool is_kept;

        if (!transfer)
                return NULL;
        is_kept = transfer->client && transfer->state == TRANSFER_ENDED &&
                  transfer->code == CURLE_OK &&
                  transfer->endpoint_number == transfer->client->endpoint_number;
        http_exchange_done(&transfer->exchange, is_kept ? &transfer->client->handles : NULL);
        http_endpoint_done(&transfer->replaced);
        free(transfer);
        return NULL;
}
DEFINE_CLEANUP(HttpTransfer *, transfer_free);

/* Moves the transfer to the list of those whose callback is due. */
static void transfer_end(HttpTransfer *transfer, CURLcode code)
{
        HttpClient *client = transfer->client;

        transfer->code = code;
        transfer->state = TRANSFER_ENDED;
        TAILQ_INSERT_TAIL(&client->ended, transfer, link);
        sd_event_source_set_enabled(client->deferred, SD_EVENT_ONESHOT);
}

static uint64_t now_usec(const HttpClient *client)
{
        return event_now_usec(client->event, CLOCK_MONOTONIC);
}

/* Starts the timer for stalled transfers, unless it runs. */
static void watch(HttpClient *client)
{
        uint64_t usec = now_usec(client) + http_lanes_get_patience_usec(&client->lanes, false);

        if (client->watching)
                return;
        (void)sd_event_source_set_time(client->watch, usec);
        client->watching = sd_event_source_set_enabled(client->watch, SD_EVENT_ONESHOT) >= 0;
}

/* Moves a transfer that curl has accepted to the active ones. */
static void transfer_activate(HttpTransfer *transfer)
{
        HttpClient *client = transfer->client;

        transfer->state = TRANSFER_ACTIVE;
        transfer->started_usec = now_usec(client);
        TAILQ_INSERT_TAIL(&client->active, transfer, link);
        client->n_active++;
        watch(client);
}

/* Returns the queued transfer to start next: the first one that the lanes permit, so a read can
 * precede writes that must wait, or a write reads. NULL: none can start. */
static HttpTransfer *next_queued(const HttpClient *client)
{
        HttpTransfer *transfer;

        TAILQ_FOREACH(transfer, &client->queued, link)
                if (http_lanes_may_start(&client->lanes, client->n_active, transfer->writes))
                        return transfer;
        return NULL;
}

/* Starts queued transfers up to the limits of the lanes. One that curl does not accept ends at
 * once; its callback runs from the loop. */
static void start_queued(HttpClient *client)
{
        HttpTransfer *transfer;

        while ((transfer = next_queued(client))) {
                TAILQ_REMOVE(&client->queued, transfer, link);
                transfer->endpoint_number = client->endpoint_number;
                if (!client->broken &&
                    http_exchange_begin(&transfer->exchange, &client->handles, &client->config,
                                        &client->endpoint, transfer) >= 0 &&
                    http_loop_add(client->loop, transfer->exchange.easy) >= 0)
                        transfer_activate(transfer);
                else
                        transfer_end(transfer, CURLE_OUT_OF_MEMORY);
        }
}

/* Removes the transfer from the active ones. Curl has already released it, unless the loop is
 * broken. */
static void transfer_deactivate(HttpTransfer *transfer)
{
        HttpClient *client = transfer->client;

        TAILQ_REMOVE(&client->active, transfer, link);
        client->n_active--;
        client->n_standing -= transfer->stands;
        transfer->stands = false;
}

/* Checks whether a transfer has waited long for its first byte on a connection that was made for
 * it. */
static bool is_stalled(const HttpTransfer *transfer, uint64_t now)
{
        const HttpLanes *lanes = &transfer->client->lanes;
        curl_off_t first_byte_usec = 0;
        long n_connects = 0;

        if (now - transfer->started_usec < http_lanes_get_patience_usec(lanes, transfer->writes))
                return false;
        curl_easy_getinfo(transfer->exchange.easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte_usec);
        curl_easy_getinfo(transfer->exchange.easy, CURLINFO_NUM_CONNECTS, &n_connects);
        return first_byte_usec == 0 && n_connects > 0;
}

/* Looks for stalled transfers at regular times while transfers are active. If there are some while
 * other connections are served or idle, shrinks the lanes and closes the idle connections. */
static int on_watch(sd_event_source *source, uint64_t usec, void *userdata)
{
        HttpClient *client = userdata;
        uint64_t now = now_usec(client);
        size_t n_standing = 0, n_served;
        HttpTransfer *transfer;

        client->watching = false;
        TAILQ_FOREACH(transfer, &client->active, link)
                n_standing += is_stalled(transfer, now);
        /* If no other connection is served or idle, the server is slow or away. */
        n_served = client->n_active - n_standing + http_loop_count_idle(client->loop);
        if (n_standing > 0 && n_served > 0) {
                client->n_standing = 0;
                TAILQ_FOREACH(transfer, &client->active, link)
                        client->n_standing += transfer->stands = is_stalled(transfer, now);
                http_lanes_note_crowd(&client->lanes, n_served, now);
                http_loop_close_idle(client->loop);
        }
        if (client->n_active > 0)
                watch(client);
        return 0;
}

/* Reports the duration and the success of an answer to the lanes. */
static void note_answer(HttpTransfer *transfer)
{
        HttpClient *client = transfer->client;
        uint64_t now = now_usec(client);
        long status = 0;

        curl_easy_getinfo(transfer->exchange.easy, CURLINFO_RESPONSE_CODE, &status);
        http_lanes_note_answer(&client->lanes, transfer->writes, status >= 500,
                               now - transfer->started_usec, client->n_active, now);
}

static void active_ended(HttpTransfer *transfer, CURLcode code)
{
        if (code == CURLE_OK)
                note_answer(transfer);
        transfer_deactivate(transfer);
        transfer_end(transfer, code);
}

/* Receives the end of one transfer from the loop. With easy NULL the loop is broken, and all active
 * transfers end. start_queued() ends those that are queued, unless a request replaces the loop
 * first. */
static void on_ended(CURL *easy, CURLcode code, void *userdata)
{
        HttpClient *client = userdata;
        HttpTransfer *transfer = NULL;

        if (easy) {
                curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&transfer);
                active_ended(transfer, code);
        } else {
                client->broken = true;
                while ((transfer = TAILQ_FIRST(&client->active)))
                        active_ended(transfer, code);
        }
}

/* Runs the callback of a transfer that ended. Returns false if the callback freed the client. */
static bool deliver(HttpClient *client, HttpTransfer *transfer)
{
        HttpResponse response;
        Error error = ERROR_NULL;
        int r;

        if (!transfer->done)
                return true;
        client->delivered = transfer;
        r = http_exchange_judge(&transfer->exchange, transfer->code, &client->config,
                                transfer->replaced.text ? &transfer->replaced : &client->endpoint,
                                &response, &error);
        transfer->done(r, r == HTTP_DONE ? &response : NULL, r == HTTP_DONE ? NULL : &error,
                       transfer->userdata);
        if (!transfer->client)
                return false;
        client->delivered = NULL;
        return true;
}

/* Runs one callback. Queued transfers start after the callback, because it can still take them
 * back. */
static int on_deferred(sd_event_source *source, void *userdata)
{
        _cleanup_(transfer_freep) HttpTransfer *transfer = NULL;
        HttpClient *client = userdata;

        transfer = TAILQ_FIRST(&client->ended);
        if (transfer) {
                TAILQ_REMOVE(&client->ended, transfer, link);
                if (!TAILQ_EMPTY(&client->ended))
                        sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                if (!deliver(client, transfer))
                        return 0;
        }
        start_queued(client);
        return 0;
}

/* Runs last at each wake-up of HttpLoop in which curl was called. Closes the idle connections if a
 * transfer stalls. Then runs the callback of the first ended transfer, without another turn of the
 * main loop. */
static void on_settled(void *userdata)
{
        HttpClient *client = userdata;

        if (client->n_standing > 0)
                http_loop_close_idle(client->loop);
        if (TAILQ_EMPTY(&client->ended))
                return;
        sd_event_source_set_enabled(client->deferred, SD_EVENT_OFF);
        on_deferred(client->deferred, client);
}

/* Makes a loop, also in place of a broken one, whose connections are lost. */
static int make_loop(HttpClient *client)
{
        HttpLoop *loop;
        int r = http_loop_new(&loop, client->event, client->config.max_connections, on_ended,
                              on_settled, client);

        if (r < 0)
                return r;
        http_loop_free(client->loop);
        client->loop = loop;
        client->broken = false;
        return 0;
}

static int make_sources(HttpClient *client)
{
        int r = event_add_deferred(client->event, &client->deferred, on_deferred, client);

        if (r >= 0)
                r = sd_event_add_time(client->event, &client->watch, CLOCK_MONOTONIC, 0,
                                      10 * USEC_PER_MSEC, on_watch, client);
        return r < 0 ? r : sd_event_source_set_enabled(client->watch, SD_EVENT_OFF);
}

static int check_config(const HttpConfig *config, Error *reterr)
{
        if (config->max_connections < 1 || config->max_connections > HTTP_MAX_CONNECTIONS_LIMIT)
                return error_setf(reterr, EINVAL, "max_connections must be 1 to %d",
                                  HTTP_MAX_CONNECTIONS_LIMIT);
        if (config->connect_timeout_usec < USEC_PER_MSEC || config->timeout_usec < USEC_PER_MSEC)
                return error_setf(reterr, EINVAL, "A time-out must be at least 1 ms");
        if (config->keyfile && !config->certfile)
                return error_setf(reterr, EINVAL, "keyfile requires certfile");
        return 0;
}

static void restart_lanes(HttpClient *client)
{
        client->lanes = (HttpLanes){ .max = client->config.max_connections,
                                     .reads.limit = 1,
                                     .writes.limit = 1 };
}

int http_client_new(HttpClient **ret, sd_event *event, const HttpConfig *config, Error *reterr)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        _cleanup_(http_client_freep) HttpClient *client = NULL;
        int r = check_config(config, reterr);

        if (r < 0)
                return r;
        pthread_once(&once, init_curl);
        client = calloc(1, sizeof(HttpClient));
        if (!client)
                return error_oom(reterr);
        client->config = *config;
        if (client->config.max_body_bytes == 0)
                client->config.max_body_bytes = HTTP_MAX_BODY_BYTES_DEFAULT;
        restart_lanes(client);
        TAILQ_INIT(&client->queued);
        TAILQ_INIT(&client->active);
        TAILQ_INIT(&client->ended);
        if (!client->config.service)
                client->config.service = "Placement";
        client->event = sd_event_ref(event);
        r = config->endpoint ? http_client_set_endpoint(client, config->endpoint, reterr) : 0;
        if (r < 0)
                return r;
        r = make_sources(client);
        if (r >= 0)
                r = make_loop(client);
        if (r < 0)
                return error_setf(reterr, r, "Cannot set up HTTP: %s", strerror(-r));
        *ret = TAKE_PTR(client);
        return 0;
}

/* Copies the endpoint, before it is replaced, to the transfers of the list that began with it
 * (HttpTransfer.replaced). Their errors name it. */
static int keep_endpoint(const HttpClient *client, const TransferList *list)
{
        HttpTransfer *transfer;

        TAILQ_FOREACH(transfer, list, link)
                if (!transfer->replaced.text &&
                    http_endpoint_parse(client->endpoint.text, &transfer->replaced, NULL) < 0)
                        return -ENOMEM;
        return 0;
}

/* Sets the endpoint. Drops the idle handles and restarts the lanes, because both belong to the old
 * endpoint. */
int http_client_set_endpoint(HttpClient *client, const char *endpoint, Error *reterr)
{
        int r;

        if (client->endpoint.text && strcmp(client->endpoint.text, endpoint) == 0)
                return 0;
        if (keep_endpoint(client, &client->active) < 0 || keep_endpoint(client, &client->ended) < 0)
                return error_oom(reterr);
        r = http_endpoint_parse(endpoint, &client->endpoint, reterr);
        if (r < 0)
                return r;
        client->endpoint_number++;
        http_handles_done(&client->handles);
        restart_lanes(client);
        return 0;
}

static void cancel_all(TransferList *list)
{
        HttpTransfer *transfer;

        while ((transfer = TAILQ_FIRST(list)))
                http_transfer_cancel(transfer);
}

HttpClient *http_client_free(HttpClient *client)
{
        if (!client)
                return NULL;
        if (client->delivered)
                client->delivered->client = NULL;
        cancel_all(&client->queued);
        cancel_all(&client->active);
        cancel_all(&client->ended);
        http_handles_done(&client->handles);
        http_loop_free(client->loop);
        sd_event_source_disable_unref(client->deferred);
        sd_event_source_disable_unref(client->watch);
        sd_event_unref(client->event);
        http_endpoint_done(&client->endpoint);
        free(client);
        return NULL;
}

/* Cancels a transfer in each state: takes it out of the list of that state and frees it. The next
 * queued transfer starts from the loop. */
HttpTransfer *http_transfer_cancel(HttpTransfer *transfer)
{
        HttpClient *client;

        if (!transfer)
                return NULL;
        client = transfer->client;
        switch (transfer->state) {
        case TRANSFER_QUEUED:
                TAILQ_REMOVE(&client->queued, transfer, link);
                break;
        case TRANSFER_ACTIVE:
                http_loop_remove(client->loop, transfer->exchange.easy);
                transfer_deactivate(transfer);
                break;
        case TRANSFER_ENDED:
                TAILQ_REMOVE(&client->ended, transfer, link);
                break;
        }
        if (!TAILQ_EMPTY(&client->queued))
                sd_event_source_set_enabled(client->deferred, SD_EVENT_ONESHOT);
        return transfer_free(transfer);
}

bool http_transfer_take_back(HttpTransfer *transfer)
{
        if (transfer->state != TRANSFER_QUEUED)
                return false;
        http_transfer_cancel(transfer);
        return true;
}

/* Rejects a path or a header that could change the request: curl sends both unchanged. */
static int check_request(const HttpRequest *request, Error *reterr)
{
        for (const char *c = request->path; *c; c++)
                if (*c <= ' ' || *c >= 0x7f)
                        return error_setf(reterr, EINVAL, "A path is not quoted: %s",
                                          request->path);
        if (request->path[0] != '/')
                return error_setf(reterr, EINVAL, "A path does not begin with a slash: %s",
                                  request->path);
        for (size_t i = 0; request->headers && request->headers[i]; i++)
                if (request->headers[i][strcspn(request->headers[i], "\r\n")] != '\0')
                        return error_setf(reterr, EINVAL, "A header contains a line break");
        return 0;
}

/* Queues a transfer, and starts it if the lanes permit. Replaces a broken loop first, because the
 * callback that reported it must not free the loop. */
int http_client_send(HttpClient *client, const HttpRequest *request,
                     void (*done)(int result, const HttpResponse *response, const Error *error,
                                  void *userdata),
                     void *userdata, HttpTransfer **ret_transfer, Error *reterr)
{
        _cleanup_(transfer_freep) HttpTransfer *transfer = NULL;
        int r;

        assert(client->endpoint.text);
        r = check_request(request, reterr);
        if (r < 0)
                return r;
        if (client->broken && make_loop(client) < 0)
                return error_oom(reterr);
        transfer = calloc(1, sizeof(HttpTransfer));
        if (!transfer)
                return error_oom(reterr);
        transfer->client = client;
        transfer->done = done;
        transfer->userdata = userdata;
        transfer->writes = strcmp(request->method, "GET") != 0;
        if (http_exchange_init(&transfer->exchange, request) < 0)
                return error_oom(reterr);
        transfer->state = TRANSFER_QUEUED;
        TAILQ_INSERT_TAIL(&client->queued, transfer, link);
        if (ret_transfer)
                *ret_transfer = transfer;
        transfer = NULL;
        start_queued(client);
        return 0;
}
