/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Drives curl's multi interface from sd-event. Curl decides which sockets to watch and when to wake
 * up. The loop (HttpLoop) passes events to curl, and then reads curl's messages and reports the
 * handles that ended. Most of the cost is in the event loop and not in curl, so there are few calls
 * to it:
 *
 * Work that curl wants done now is done now, not in another turn of the event loop, except after
 * the removal of a handle by the caller.
 *
 * A timer that fires early enough is not set again. Curl sets its timer several times for each
 * request, mostly to a time-out that never happens.
 *
 * A connection that curl keeps for the next request keeps its event source until curl closes it.
 * Any event while no request uses the connection counts as its end. The handler then switches the
 * source off, and curl notices the end when it uses the connection next. Other sockets belong to
 * the resolver, or to connections that were never complete. Curl does not report when it closes
 * them. So their source is freed when curl stops watching them, before another file has the same
 * number.
 *
 * sd-event switches off a handler that returns a negative value, so each handler here returns 0. A
 * failure of the callback for sockets or of that for the timer breaks the whole multi handle. Then
 * ended runs once, with easy NULL, for all handles that are left, and http_loop_add() returns -EIO.
 *
 * Tests: tests/unit/report/http/test-http.c tests/unit/report/http/test-queue.c */

#include "report/http/loop.h"

#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report/http/event.h"

typedef struct HttpSocket {
        TAILQ_ENTRY(HttpSocket) link;
        HttpLoop *loop;
        curl_socket_t fd;
        bool watched; /* curl waits for events of the socket; else the connection is idle */
        bool ended; /* the connection was closed or had an event while the socket was not watched */
        sd_event_source *source;
} HttpSocket;

struct HttpLoop {
        sd_event *event;
        CURLM *multi;
        sd_event_source *timer, *soon;
        uint64_t armed_usec;    /* time of the timer; UINT64_MAX: off */
        uint64_t deadline_usec; /* time of the next call that curl wants; UINT64_MAX: none */
        bool due;               /* curl wants a call now */
        bool acting;            /* act() runs and makes the call that is due */
        int n_handles;
        TAILQ_HEAD(, HttpSocket) sockets;
        void (*ended)(CURL *easy, CURLcode code, void *userdata);
        void (*settled)(void *userdata);
        void *userdata;
        bool broken;
};

/* Reports each handle that ended, after its removal. */
static void read_messages(HttpLoop *loop)
{
        CURLMsg *message;
        int left;

        while ((message = curl_multi_info_read(loop->multi, &left))) {
                CURL *easy = message->easy_handle;
                CURLcode code = message->data.result;

                if (message->msg != CURLMSG_DONE)
                        continue;
                http_loop_remove(loop, easy);
                loop->ended(easy, code, loop->userdata);
        }
}

/* Reports the end of all transfers after a failure of curl's multi handle. */
static void break_down(HttpLoop *loop)
{
        loop->broken = true;
        sd_event_source_set_enabled(loop->timer, SD_EVENT_OFF);
        sd_event_source_set_enabled(loop->soon, SD_EVENT_OFF);
        loop->ended(NULL, CURLE_OUT_OF_MEMORY, loop->userdata);
}

/* Passes events to curl. Calls it again while its timer callback wants a call now (due). */
static CURLMcode call_curl(HttpLoop *loop, curl_socket_t fd, int events, int *ret_running)
{
        CURLMcode code;

        do {
                loop->due = false;
                code = curl_multi_socket_action(loop->multi, fd, events, ret_running);
                fd = CURL_SOCKET_TIMEOUT;
                events = 0;
        } while (code == CURLM_OK && loop->due);
        return code;
}

/* Handles an event and reports the handles that ended. The caller's callback settled (loop.h) can
 * free the loop, so it comes last. */
static void act(HttpLoop *loop, curl_socket_t fd, int events)
{
        int running;

        if (loop->broken)
                return;
        loop->acting = true;
        do {
                if (call_curl(loop, fd, events, &running) != CURLM_OK) {
                        break_down(loop);
                        break;
                }
                read_messages(loop);
                fd = CURL_SOCKET_TIMEOUT;
                events = 0;
        } while (loop->due);
        loop->acting = false;
        loop->settled(loop->userdata);
}

/* Passes the events of a socket to curl. Any event of an idle connection counts as its end. */
static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        HttpSocket *sock = userdata;
        int events = 0;

        if (!sock->watched) {
                sock->ended = true;
                sd_event_source_set_enabled(source, SD_EVENT_OFF);
                return 0;
        }
        if (revents & (EPOLLIN | EPOLLHUP))
                events |= CURL_CSELECT_IN;
        if (revents & EPOLLOUT)
                events |= CURL_CSELECT_OUT;
        if (revents & EPOLLERR)
                events |= CURL_CSELECT_ERR;
        act(sock->loop, fd, events);
        return 0;
}

/* Sets the timer to the deadline, unless it fires earlier anyway. */
static int arm_timer(HttpLoop *loop)
{
        if (loop->armed_usec <= loop->deadline_usec)
                return 0;
        loop->armed_usec = loop->deadline_usec;
        if (sd_event_source_set_time(loop->timer, loop->deadline_usec) < 0)
                return -1;
        return sd_event_source_set_enabled(loop->timer, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

/* Calls curl if the deadline has come. The timer can be early, because the deadline moved after it
 * was set. */
static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        HttpLoop *loop = userdata;

        loop->armed_usec = UINT64_MAX;
        if (event_now_usec(loop->event, CLOCK_MONOTONIC) < loop->deadline_usec) {
                arm_timer(loop);
                return 0;
        }
        loop->deadline_usec = UINT64_MAX;
        act(loop, CURL_SOCKET_TIMEOUT, 0);
        return 0;
}

static int on_soon(sd_event_source *source, void *userdata)
{
        act(userdata, CURL_SOCKET_TIMEOUT, 0);
        return 0;
}

/* Sockets. */

static HttpSocket *socket_find(HttpLoop *loop, curl_socket_t fd)
{
        HttpSocket *sock;

        TAILQ_FOREACH(sock, &loop->sockets, link)
                if (sock->fd == fd)
                        return sock;
        return NULL;
}

static HttpSocket *socket_add(HttpLoop *loop, curl_socket_t fd)
{
        HttpSocket *sock = calloc(1, sizeof(HttpSocket));

        if (!sock)
                return NULL;
        *sock = (HttpSocket){ .loop = loop, .fd = fd };
        TAILQ_INSERT_TAIL(&loop->sockets, sock, link);
        return sock;
}

static void socket_forget(HttpSocket *sock)
{
        TAILQ_REMOVE(&sock->loop->sockets, sock, link);
        sd_event_source_disable_unref(sock->source);
        free(sock);
}

static int socket_watch(HttpSocket *sock, uint32_t events)
{
        int r;

        if (!sock->source)
                return sd_event_add_io(sock->loop->event, &sock->source, sock->fd, events, on_io,
                                       sock);
        r = sd_event_source_set_io_events(sock->source, events);
        return r < 0 ? r : sd_event_source_set_enabled(sock->source, SD_EVENT_ON);
}

/* Checks whether curl keeps the connection of this socket after the request of this handle. */
static bool is_kept(CURL *easy, curl_socket_t fd)
{
        curl_socket_t last = CURL_SOCKET_BAD;

        return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &last) == CURLE_OK && last == fd;
}

/* Receives each socket that curl closes, and closes it. */
static int on_close(void *userdata, curl_socket_t fd)
{
        HttpSocket *sock = socket_find(userdata, fd);

        if (sock)
                socket_forget(sock);
        return close(fd);
}

/* Receives from curl the events to watch on a socket. -1 breaks the multi handle. */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *assigned)
{
        HttpLoop *loop = userdata;
        HttpSocket *sock = socket_find(loop, fd);
        uint32_t events = 0;

        if (what == CURL_POLL_REMOVE) {
                if (sock && is_kept(easy, fd))
                        sock->watched = false;
                else if (sock)
                        socket_forget(sock);
                return 0;
        }
        if (!sock)
                sock = socket_add(loop, fd);
        if (!sock)
                return -1;
        if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
                events |= EPOLLIN;
        if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
                events |= EPOLLOUT;
        sock->watched = true;
        sock->ended = false;
        return socket_watch(sock, events) < 0 ? -1 : 0;
}

/* Receives from curl the time of the next call: 0 means now, -1 never. */
static int on_curl_timer(CURLM *multi, long timeout_ms, void *userdata)
{
        HttpLoop *loop = userdata;

        loop->due = timeout_ms == 0;
        loop->deadline_usec = UINT64_MAX;
        if (timeout_ms > 0)
                loop->deadline_usec = event_now_usec(loop->event, CLOCK_MONOTONIC) +
                                      (uint64_t)timeout_ms * USEC_PER_MSEC;
        return arm_timer(loop);
}

static int set_up_multi(HttpLoop *loop, uint64_t max_connections)
{
        loop->multi = curl_multi_init();
        if (!loop->multi)
                return -ENOMEM;
        /* One request at a time on a connection, also with HTTP/2. The limits of lanes.h are
         * numbers of connections. A server that closes a connection after an answer would also
         * break all other requests on it. */
        if (curl_multi_setopt(loop->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) !=
                    CURLM_OK ||
            curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket) != CURLM_OK ||
            curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop) != CURLM_OK ||
            curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer) != CURLM_OK ||
            curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop) != CURLM_OK ||
            curl_multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, (long)max_connections) != CURLM_OK)
                return -ENOMEM;
        return 0;
}

int http_loop_new(HttpLoop **ret, sd_event *event, uint64_t max_connections,
                  void (*ended)(CURL *easy, CURLcode code, void *userdata),
                  void (*settled)(void *userdata), void *userdata)
{
        _cleanup_(http_loop_freep) HttpLoop *loop = calloc(1, sizeof(HttpLoop));
        int r;

        if (!loop)
                return -ENOMEM;
        TAILQ_INIT(&loop->sockets);
        loop->event = sd_event_ref(event);
        loop->ended = ended;
        loop->settled = settled;
        loop->userdata = userdata;
        loop->armed_usec = UINT64_MAX;
        loop->deadline_usec = UINT64_MAX;
        r = sd_event_add_time(event, &loop->timer, CLOCK_MONOTONIC, 0, USEC_PER_MSEC, on_time,
                              loop);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(loop->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = event_add_deferred(event, &loop->soon, on_soon, loop);
        if (r < 0)
                return r;
        r = set_up_multi(loop, max_connections);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(loop);
        return 0;
}

HttpLoop *http_loop_free(HttpLoop *loop)
{
        HttpSocket *sock;

        if (!loop)
                return NULL;
        /* Closes the idle connections and calls on_close() for each. */
        if (loop->multi)
                curl_multi_cleanup(loop->multi);
        while ((sock = TAILQ_FIRST(&loop->sockets)))
                socket_forget(sock);
        sd_event_source_disable_unref(loop->timer);
        sd_event_source_disable_unref(loop->soon);
        sd_event_unref(loop->event);
        free(loop);
        return NULL;
}

/* Begins the work that curl wants done now. A handle that ends thereby, or a failure, is reported
 * later, from the loop (on_soon()). */
static void begin(HttpLoop *loop)
{
        int running = loop->n_handles;

        if (call_curl(loop, CURL_SOCKET_TIMEOUT, 0, &running) != CURLM_OK ||
            running < loop->n_handles)
                sd_event_source_set_enabled(loop->soon, SD_EVENT_ONESHOT);
}

int http_loop_add(HttpLoop *loop, CURL *easy)
{
        if (loop->broken)
                return -EIO;
        if (curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close) != CURLE_OK ||
            curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, loop) != CURLE_OK ||
            curl_multi_add_handle(loop->multi, easy) != CURLM_OK)
                return -ENOMEM;
        loop->n_handles++;
        if (!loop->acting)
                begin(loop);
        return 0;
}

void http_loop_remove(HttpLoop *loop, CURL *easy)
{
        if (curl_multi_remove_handle(loop->multi, easy) == CURLM_OK)
                loop->n_handles--;
        if (loop->due && !loop->acting)
                sd_event_source_set_enabled(loop->soon, SD_EVENT_ONESHOT);
}

size_t http_loop_count_idle(const HttpLoop *loop)
{
        const HttpSocket *sock;
        size_t n = 0;

        TAILQ_FOREACH(sock, &loop->sockets, link)
                n += !sock->watched && !sock->ended;
        return n;
}

/* Shuts down the socket of each idle connection, because curl has no call that closes one. Curl
 * notices the end when it uses the connection next. */
void http_loop_close_idle(HttpLoop *loop)
{
        HttpSocket *sock;

        TAILQ_FOREACH(sock, &loop->sockets, link)
                if (!sock->watched && !sock->ended) {
                        sock->ended = true;
                        (void)shutdown(sock->fd, SHUT_RDWR);
                }
}
