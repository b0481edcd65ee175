/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Curl's multi interface on an sd-event loop: sockets become IO sources, and curl's timer becomes a
 * time source. The loop owns the connections; the caller owns the easy handles. */

#include <curl/curl.h>
#include <systemd/sd-event.h>

#include "base/error.h"

typedef struct HttpLoop HttpLoop;

/* Makes a loop. max_connections limits only the connections that curl keeps for later handles: the
 * caller limits the handles. ended reports a handle that ended and was removed. With easy NULL the
 * multi handle itself broke. Then every handle that was not reported yet has failed with code, and
 * the loop must be replaced. ended must not free the loop. The other callback, settled, runs last
 * at each wake-up of the loop in which curl was called, after ended. settled can free the loop.
 * Returns -ENOMEM or the errno of sd-event. */
int http_loop_new(HttpLoop **ret, sd_event *event, uint64_t max_connections,
                  void (*ended)(CURL *easy, CURLcode code, void *userdata),
                  void (*settled)(void *userdata), void *userdata);
HttpLoop *http_loop_free(HttpLoop *loop);
DEFINE_CLEANUP(HttpLoop *, http_loop_free);

/* Starts a handle at once or, from inside ended, after it. Never calls ended from inside. -ENOMEM,
 * or -EIO if the multi handle is broken. */
int http_loop_add(HttpLoop *loop, CURL *easy);
void http_loop_remove(HttpLoop *loop, CURL *easy);

/* Counts the open connections that no request uses; http_loop_close_idle() shuts them down. The
 * server notices the end when it reads. If a request has just begun to use such a connection, curl
 * sends the request again. */
size_t http_loop_count_idle(const HttpLoop *loop);
void http_loop_close_idle(HttpLoop *loop);
