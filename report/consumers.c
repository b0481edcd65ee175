/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads, writes and moves consumers in Placement, and reads the capacity that is left. One
 * ConsumersCall is one request of the session, or two: if Placement does not know the microversion
 * of the first, the fallback is sent with an older one. The call fails if Placement does not know
 * that one either. A request without types and mappings has no fallback. A call that was started
 * and is not cancelled ends in end_call(), which frees it before the callback runs. So the callback
 * can free the session or start a new call. A body of another form ends a read in
 * REPORT_E_UNAVAILABLE; the body of the answer to a write is checked only by the session. */

#include "report/consumers.h"

#include <string.h>

struct ConsumersCall {
        Session *session;
        SessionCall *call;
        PlacementRequest fallback; /* uses the older microversion; path NULL: none */
        ConsumersDone done;
        void *userdata;
        Uuid uuid; /* the consumer to read; only consumers_read() sets it */
        int (*read)(const ConsumersCall *call, const json_t *body, ConsumersAnswer *answer,
                    Error *reterr); /* parses the body of the answer into *answer; NULL: for a
                                       write */
};

ConsumersCall *consumers_cancel(ConsumersCall *call)
{
        if (!call)
                return NULL;
        session_call_cancel(call->call);
        placement_request_done(&call->fallback);
        free(call);
        return NULL;
}

/* Frees the call and runs the callback. A consumer that the callback did not take is freed
 * afterwards. */
static void end_call(ConsumersCall *call, int result, ConsumersAnswer *answer, const Error *error)
{
        ConsumersDone done = call->done;
        void *userdata = call->userdata;

        consumers_cancel(call);
        done(result, answer, error, userdata);
        consumer_free(answer->consumer);
}

/* Receives the answer to either request. Sends the fallback if the first one needs a newer
 * microversion than this service has; else parses the body and ends the call. */
static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        ConsumersCall *call = userdata;
        ConsumersAnswer mine = { .status = answer->status };
        Error words = *error;

        call->call = NULL;
        if (result == REPORT_E_TOO_OLD && call->fallback.path) {
                PlacementRequest request = call->fallback;

                call->fallback = PLACEMENT_REQUEST_INIT;
                result = session_send(call->session, request, on_answer, call, &call->call, &words);
                if (result >= 0)
                        return;
        }
        if (result == REPORT_DONE && call->read)
                result = call->read(call, answer->body, &mine, &words);
        if (mine.consumer)
                mine.consumer->modified_sec = answer->modified_sec;
        if (result == -EBADMSG) {
                error_prefixf(&words, result, "Placement's answer about consumers");
                result = REPORT_E_UNAVAILABLE;
        }
        end_call(call, result, &mine, &words);
}

/* Starts a call with the callback, the userdata, the uuid and the parser of "like". Takes ownership
 * of request and fallback, also on failure. */
static int start(ConsumersCall **ret, Session *session, const ConsumersCall *like,
                 PlacementRequest request, PlacementRequest fallback, Error *reterr)
{
        _cleanup_(placement_request_done) PlacementRequest second = fallback;
        _cleanup_(consumers_cancelp) ConsumersCall *call = calloc(1, sizeof(ConsumersCall));
        int r;

        if (!call) {
                placement_request_done(&request);
                return error_oom(reterr);
        }
        *call = *like;
        call->session = session;
        if (second.path && strcmp(second.microversion, request.microversion) != 0) {
                call->fallback = TAKE_STRUCT(second);
        }
        r = session_send(session, request, on_answer, call, &call->call, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(call);
        return 0;
}

static int take_consumer(const ConsumersCall *call, const json_t *body, ConsumersAnswer *answer,
                         Error *reterr)
{
        return placement_read_whole(body, &call->uuid, &answer->consumer, reterr);
}

/* Requests the consumer with its type, which needs microversion 1.38. The fallback requests it
 * without the type. */
int consumers_read(ConsumersCall **ret, Session *session, const Uuid *uuid, ConsumersDone done,
                   void *userdata, Error *reterr)
{
        const ConsumersCall call = {
                .done = done, .userdata = userdata, .uuid = *uuid, .read = take_consumer
        };

        return start(ret, session, &call, placement_get_consumer(uuid, true),
                     placement_get_consumer(uuid, false), reterr);
}

int consumers_write(ConsumersCall **ret, Session *session, const Consumer *consumer,
                    const RequestMappings *mappings, ConsumersDone done, void *userdata,
                    Error *reterr)
{
        const ConsumersCall call = { .done = done, .userdata = userdata };
        const Allocations alone = { .consumers = (Consumer *[]){ (Consumer *)consumer },
                                    .n_consumers = 1 };
        int r = placement_check_consumers(&alone, reterr);

        return r < 0 ? r
                     : start(ret, session, &call, placement_put_consumer(consumer, mappings, false),
                             placement_put_consumer(consumer, NULL, true), reterr);
}

int consumers_move(ConsumersCall **ret, Session *session, const Allocations *consumers,
                   ConsumersDone done, void *userdata, Error *reterr)
{
        const ConsumersCall call = { .done = done, .userdata = userdata };
        int r = placement_check_consumers(consumers, reterr);

        return r < 0 ? r
                     : start(ret, session, &call, placement_post_consumers(consumers, false),
                             placement_post_consumers(consumers, true), reterr);
}

static int take_capacity(const ConsumersCall *call, const json_t *body, ConsumersAnswer *answer,
                         Error *reterr)
{
        return placement_read_capacity(body, &answer->consumer, reterr);
}

int capacity_read(ConsumersCall **ret, Session *session, const Uuid *root,
                  const char *resource_class, uint64_t amount, ConsumersDone done, void *userdata,
                  Error *reterr)
{
        const ConsumersCall call = { .done = done, .userdata = userdata, .read = take_capacity };

        return start(ret, session, &call, placement_get_capacity(root, resource_class, amount),
                     PLACEMENT_REQUEST_INIT, reterr);
}
