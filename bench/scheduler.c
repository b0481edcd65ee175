/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A scheduler for benchmarks: writes and reads allocations in Placement with a client of its own,
 * so that its requests are counted separately. Each call blocks until its answer, by running the
 * event loop that the reporter uses too. Limit: it uses the token of an admin and no Keystone. */

#include "bench/scheduler.h"

#include <string.h>

#include "base/json.h"
#include "report/http/http.h"

struct Scheduler {
        sd_event *event;
        HttpClient *http;
        uint64_t n_requests;
};

/* The answer to the request for which the event loop runs. */
typedef struct Answer {
        bool ended;
        json_t *body; /* owned; NULL: the answer has no body, or one that is not JSON */
        Error error;
} Answer;

int scheduler_new(Scheduler **ret, sd_event *event, const char *endpoint, Error *reterr)
{
        _cleanup_(scheduler_freep) Scheduler *scheduler = calloc(1, sizeof(Scheduler));
        HttpConfig config = {
                .endpoint = endpoint,
                .max_connections = 4,
                .connect_timeout_usec = 5 * USEC_PER_SEC,
                .timeout_usec = 600 * USEC_PER_SEC,
                .user_agent = "compute-agent-bench",
        };
        int r;

        if (!scheduler)
                return error_oom(reterr);
        scheduler->event = sd_event_ref(event);
        r = http_client_new(&scheduler->http, event, &config, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(scheduler);
        return 0;
}

Scheduler *scheduler_free(Scheduler *scheduler)
{
        if (!scheduler)
                return NULL;
        http_client_free(scheduler->http);
        sd_event_unref(scheduler->event);
        free(scheduler);
        return NULL;
}

static void on_answer(int result, const HttpResponse *response, const Error *error, void *userdata)
{
        Answer *answer = userdata;

        answer->ended = true;
        if (result != HTTP_DONE)
                answer->error = *error;
        else if (response->status >= 300)
                error_setf(&answer->error, EREMOTEIO, "%d: %.200s", response->status,
                           response->body);
        else if (response->body_size > 0)
                (void)json_parse(response->body, response->body_size, &answer->body,
                                 &answer->error);
}

/* Sends a request and waits for its answer. The caller frees *ret, also after an error. */
static int ask(Scheduler *scheduler, const char *method, const char *path, const char *body,
               json_t **ret, Error *reterr)
{
        static const char *const headers[] = {
                "Accept: application/json",
                "OpenStack-API-Version: placement 1.36",
                "Content-Type: application/json",
                "X-Auth-Token: admin",
                NULL,
        };
        HttpRequest request = {
                .method = method,
                .path = path,
                .headers = headers,
                .body = body,
                .body_size = body ? strlen(body) : 0,
        };
        Answer answer = { 0 };
        int r = http_client_send(scheduler->http, &request, on_answer, &answer, NULL, reterr);

        if (r < 0)
                return r;
        scheduler->n_requests++;
        while (!answer.ended)
                if (sd_event_run(scheduler->event, UINT64_MAX) < 0)
                        return error_setf(reterr, EIO, "The event loop failed");
        *ret = answer.body;
        if (answer.error.code)
                *reterr = answer.error;
        return -answer.error.code;
}

static json_t *make_body(const json_t *consumer)
{
        _cleanup_json_ json_t *allocations = json_object();
        const char *provider;
        json_t *resources;

        json_object_foreach(json_object_get(consumer, "allocations"), provider, resources) {
                if (json_object_set_new(allocations, provider,
                                        json_pack("{sO}", "resources", resources)) < 0)
                        return NULL;
        }
        return json_pack("{sO ss ss sn}", "allocations", allocations, "project_id",
                         json_string_value(json_object_get(consumer, "project_id")), "user_id",
                         json_string_value(json_object_get(consumer, "user_id")),
                         "consumer_generation");
}

int scheduler_claim(Scheduler *scheduler, const json_t *consumer, bool read_first, Error *reterr)
{
        _cleanup_json_ json_t *body = make_body(consumer), *before = NULL, *after = NULL;
        _cleanup_free_ char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
        char path[80];
        int r = 0;

        if (!text)
                return error_setf(reterr, EINVAL, "A consumer of the workload is not one");
        snprintf(path, sizeof(path), "/allocations/%.36s",
                 json_string_value(json_object_get(consumer, "uuid")));
        if (read_first)
                r = ask(scheduler, "GET", path, NULL, &before, reterr);
        return r < 0 ? r : ask(scheduler, "PUT", path, text, &after, reterr);
}

int scheduler_read_consumer(Scheduler *scheduler, const char *consumer, json_t **ret, Error *reterr)
{
        _cleanup_json_ json_t *body = NULL;
        char path[80];
        int r;

        snprintf(path, sizeof(path), "/allocations/%.36s", consumer);
        r = ask(scheduler, "GET", path, NULL, &body, reterr);
        if (r < 0)
                return r;
        *ret = json_incref(json_object_get(body, "allocations"));
        return 0;
}

uint64_t scheduler_get_requests(const Scheduler *scheduler)
{
        return scheduler->n_requests;
}
