/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a scheduler does with Placement: it writes allocations. Blocks: it runs the event loop until
 * the answers are there. */

#include <jansson.h>
#include <systemd/sd-event.h>

#include "base/error.h"

typedef struct Scheduler Scheduler;

int scheduler_new(Scheduler **ret, sd_event *event, const char *endpoint, Error *reterr);
Scheduler *scheduler_free(Scheduler *scheduler);
DEFINE_CLEANUP(Scheduler *, scheduler_free);

/* Writes the first allocations of {"uuid", "project_id", "user_id", "allocations": {provider:
 * {class: n}}}. read_first: asks for what it has before, as Nova's scheduler does. */
int scheduler_claim(Scheduler *scheduler, const json_t *consumer, bool read_first, Error *reterr);

/* What one consumer holds: {provider: {"resources": {class: n}}}. The caller unrefs. */
int scheduler_read_consumer(Scheduler *scheduler, const char *consumer, json_t **ret,
                            Error *reterr);

/* All requests until now. */
uint64_t scheduler_get_requests(const Scheduler *scheduler);
