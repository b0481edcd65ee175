/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Curl's multi interface on an sd-event loop: sockets become IO sources, curl's timer a time
 * source. It owns the connections; the easy handles belong to whoever adds them. */

#include <curl/curl.h>
#include <systemd/sd-event.h>

#include "base/error.h"

typedef struct HttpLoop HttpLoop;

/* A handle ended; it is removed already. easy NULL: the multi handle itself broke, every handle has
 * failed with code and the loop is of no more use. Must not free the loop. */
typedef void (*HttpLoopEnded)(CURL *easy, CURLcode code, void *userdata);

/* Each wake-up of the loop ends with this, after those that ended by it. May free the loop. */
typedef void (*HttpLoopSettled)(void *userdata);

int http_loop_new(HttpLoop **ret, sd_event *event, uint64_t max_connections, HttpLoopEnded ended,
                  HttpLoopSettled settled, void *userdata);
HttpLoop *http_loop_free(HttpLoop *loop);
DEFINE_CLEANUP(HttpLoop *, http_loop_free);

/* Begins at once, but ended is never called from inside. -ENOMEM, -EIO. */
int http_loop_add(HttpLoop *loop, CURL *easy);
void http_loop_remove(HttpLoop *loop, CURL *easy);

/* How many connections are open that no request uses; and their end, as soon as the server reads
 * it. A request that began to use one meanwhile is sent again by curl. */
size_t http_loop_count_idle(const HttpLoop *loop);
void http_loop_close_idle(HttpLoop *loop);
