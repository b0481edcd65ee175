/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Curl's multi interface on an sd-event loop: sockets become IO sources, curl's timer a time
 * source. It owns the connections; the easy handles belong to the caller. */

#include <curl/curl.h>
#include <systemd/sd-event.h>

#include "base/error.h"

typedef struct HttpLoop HttpLoop;

/* ended: a handle ended, and is removed already; easy NULL: the multi handle itself broke, every
 * handle has failed with code and the loop must be replaced. It must not free the loop. settled:
 * called last at each wake-up of the loop, after ended; it may free the loop. -ENOMEM, or the errno
 * of sd-event. */
int http_loop_new(HttpLoop **ret, sd_event *event, uint64_t max_connections,
                  void (*ended)(CURL *easy, CURLcode code, void *userdata),
                  void (*settled)(void *userdata), void *userdata);
HttpLoop *http_loop_free(HttpLoop *loop);
DEFINE_CLEANUP(HttpLoop *, http_loop_free);

/* Begins at once, but ended is never called from inside. -ENOMEM, -EIO. */
int http_loop_add(HttpLoop *loop, CURL *easy);
void http_loop_remove(HttpLoop *loop, CURL *easy);

/* How many connections are open that no request uses; and their end, as soon as the server reads
 * it. A request that began to use one meanwhile is sent again by curl. */
size_t http_loop_count_idle(const HttpLoop *loop);
void http_loop_close_idle(HttpLoop *loop);
