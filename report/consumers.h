/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Single requests about consumers, sent over a session that others use, too: so tokens, connections
 * and counters are shared. Each ends in one callback with what the answer says. Nothing is tried
 * again but with an older microversion, and nothing is remembered: the caller decides.
 *
 * As with report/session/session.h: one thread, nothing blocks, no callback from inside the call
 * that took it, and everything is allowed in a callback. Calls must be cancelled before the session
 * is freed.
 */

#include "report/placement/request.h"
#include "report/session/session.h"

typedef struct ConsumersCall ConsumersCall; /* a request under way */

typedef struct ConsumersAnswer {
        int status;         /* 0: there was no answer, what became of a write is not known */
        Consumer *consumer; /* of a read that went well; of room that was read: what is left */
} ConsumersAnswer;

/* result: REPORT_DONE, a ReportOutcome or a negative errno; error has words unless it is 0. What
 * the answer points to may be taken with TAKE_PTR; the rest is freed afterwards. The handle of the
 * call is void already.
 *
 * What became of a write, report_outcome_of_write() says of result and status. */
typedef void (*ConsumersDone)(int result, ConsumersAnswer *answer, const Error *error,
                              void *userdata);

/* GET /allocations/{uuid}: the consumer whole, with its parts on other hosts, its generation, when
 * it was written (facts E1: last-modified) and its type where Placement sends it. One that holds
 * nothing has generation -1. -ENOMEM. */
int consumers_read(ConsumersCall **ret, Session *session, const Uuid *uuid, ConsumersDone done,
                   void *userdata, Error *reterr);

/* PUT /allocations/{consumer}: from now on it holds this, and nothing else anywhere. Its generation
 * (-1: it is new) must still be that of Placement. mappings (NULL: none) go along where the service
 * takes them. -EINVAL without project or user, -ENOMEM. */
int consumers_write(ConsumersCall **ret, Session *session, const Consumer *consumer,
                    const RequestMappings *mappings, ConsumersDone done, void *userdata,
                    Error *reterr);

/* POST /allocations: the same for several consumers, all of them or none. */
int consumers_move(ConsumersCall **ret, Session *session, const Allocations *consumers,
                   ConsumersDone done, void *userdata, Error *reterr);

/* What nobody holds of the tree that root is of, one request whatever its size: the answer's
 * consumer "holds" it. Nothing when no provider of the tree can give that much of the class. A
 * provider of another tree, which shares, is not listed. -ENOMEM. */
int room_read(ConsumersCall **ret, Session *session, const Uuid *root, const char *resource_class,
              uint64_t amount, ConsumersDone done, void *userdata, Error *reterr);

/* Its callback is not called. NULL is allowed; returns NULL. */
ConsumersCall *consumers_cancel(ConsumersCall *call);
DEFINE_CLEANUP(ConsumersCall *, consumers_cancel);
