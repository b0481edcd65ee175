/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Single requests about consumers over a session that the rest of report/ also uses, so tokens,
 * connections and counters are shared. Each call that was started and is not cancelled ends in one
 * callback with the content of the answer. A request that needs a microversion only for types or
 * mappings is repeated without them if that is too new. The session itself repeats a request after
 * a 401 or for a busy server. The module stores no answer, and the caller decides about other
 * retries.
 *
 * The rules are those of report/session/session.h: one thread, nothing blocks, the callback never
 * runs from inside the function that received it, and a callback can call every function. Calls
 * must be cancelled before the session is freed. Each start can also return -EINVAL of
 * session_send(). */

#include "report/placement/request.h"
#include "report/session/session.h"

typedef struct ConsumersCall ConsumersCall; /* a request under way */

typedef struct ConsumersAnswer {
        int status;         /* 0: no answer; a write can have been done, or was not sent */
        Consumer *consumer; /* the consumer that was read, or the free amounts of capacity_read();
                               NULL: none */
} ConsumersAnswer;

/* Receives the end of a call. result is REPORT_DONE, a ReportOutcome or a negative errno; error has
 * words unless result is 0. The callback can take the consumer with TAKE_PTR; otherwise it is freed
 * afterwards. The handle of the call is already invalid.
 *
 * For a write, report_outcome_of_write() derives from result and status whether Placement stored
 * it. */
typedef void (*ConsumersDone)(int result, ConsumersAnswer *answer, const Error *error,
                              void *userdata);

/* Reads a consumer with GET /allocations/{uuid}: all its allocations, also on other hosts, its
 * generation, the time of its last write (facts E1: last-modified) and, if Placement sends it, its
 * type. A consumer without allocations has generation -1. -ENOMEM. */
int consumers_read(ConsumersCall **ret, Session *session, const Uuid *uuid, ConsumersDone done,
                   void *userdata, Error *reterr);

/* Replaces all allocations of a consumer with PUT /allocations/{consumer}. Its generation (-1: new)
 * must equal that in Placement. mappings (NULL: none) are sent only if the consumer has a valid
 * type and the service knows 1.38. -EINVAL without project or user, -ENOMEM. */
int consumers_write(ConsumersCall **ret, Session *session, const Consumer *consumer,
                    const RequestMappings *mappings, ConsumersDone done, void *userdata,
                    Error *reterr);

/* Replaces the allocations of several consumers with one POST /allocations: all of them or none.
 * Each generation must equal that in Placement. -EINVAL for a consumer without project or user,
 * -ENOMEM. */
int consumers_move(ConsumersCall **ret, Session *session, const Allocations *consumers,
                   ConsumersDone done, void *userdata, Error *reterr);

/* Reads the free amounts of the tree that root is in, in one request for a tree of any size. The
 * answer's consumer has them as if they were allocations. It is empty if no provider of the tree
 * can allocate that amount of the class. Sharing providers of other trees are not included.
 * -ENOMEM. */
int capacity_read(ConsumersCall **ret, Session *session, const Uuid *root,
                  const char *resource_class, uint64_t amount, ConsumersDone done, void *userdata,
                  Error *reterr);

/* Cancels a call without its callback. NULL is allowed. Returns NULL. */
ConsumersCall *consumers_cancel(ConsumersCall *call);
DEFINE_CLEANUP(ConsumersCall *, consumers_cancel);
