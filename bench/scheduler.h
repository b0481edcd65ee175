/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The requests of a scheduler to Placement: it writes allocations. Blocks: it runs the event loop
 * until the answers arrive. */

#include <jansson.h>
#include <systemd/sd-event.h>

#include "base/error.h"

typedef struct Scheduler Scheduler;

int scheduler_new(Scheduler **ret, sd_event *event, const char *endpoint, Error *reterr);
Scheduler *scheduler_free(Scheduler *scheduler);
DEFINE_CLEANUP(Scheduler *, scheduler_free);

/* Writes the first allocations of a consumer: {"uuid", "project_id", "user_id", "allocations":
 * {provider: {class: n}}}. read_first: reads its allocations before, as Nova's scheduler does. */
int scheduler_claim(Scheduler *scheduler, const json_t *consumer, bool read_first, Error *reterr);

/* Reads the allocations of a consumer: {provider: {"resources": {class: n}}}. The caller owns the
 * reference. */
int scheduler_read_consumer(Scheduler *scheduler, const char *consumer, json_t **ret,
                            Error *reterr);

/* Returns the number of all requests so far. */
uint64_t scheduler_get_requests(const Scheduler *scheduler);
