/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sends one request about consumers, for tests/integration:
 *
 *   consumers-probe ENDPOINT read UUID
 *   consumers-probe ENDPOINT write DOCUMENT      {"uuid", "allocations", "project_id", …}
 *   consumers-probe ENDPOINT move DOCUMENT…      several consumers
 *   consumers-probe ENDPOINT room ROOT CLASS N
 *
 * Prints a line of JSON: outcome, status, error, and the consumer. */

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "report/consumers.h"
#include "report/reporter.h"

typedef struct Probe {
        sd_event *event;
        Session *session;
        ConsumersCall *call;
        Error error;
} Probe;

static json_t *held_to_json(const Consumer *consumer)
{
        json_t *held = json_object();

        for (size_t i = 0; i < consumer->n_allocations; i++)
                json_object_set_new(held, consumer->allocations[i].provider.text,
                                    resources_to_json(&consumer->allocations[i].resources));
        return held;
}

static void on_done(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        json_t *line = json_pack("{ss si ss}", "outcome", report_outcome_to_text(result), "status",
                                 answer->status, "error", error->text);
        Probe *probe = userdata;

        probe->call = NULL;
        if (answer->consumer) {
                const Consumer *consumer = answer->consumer;

                json_object_set_new(line, "generation", json_integer(consumer->generation));
                json_object_set_new(line, "n_allocations",
                                    json_integer((json_int_t)consumer->n_allocations));
                json_object_set_new(line, "held", held_to_json(consumer));
                json_object_set_new(line, "type",
                                    consumer->type ? json_string(consumer->type) : json_null());
        }
        json_dumpf(line, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(line);
        sd_event_exit(probe->event, 0);
}

static int read_document(const char *text, Consumer **ret, Error *reterr)
{
        _cleanup_json_ json_t *body = NULL;
        Consumer *consumer;
        Uuid uuid;
        int r;

        if ((r = json_parse(text, strlen(text), &body, reterr)) < 0 ||
            (r = json_read_uuid(body, "uuid", &uuid, reterr)) < 0 ||
            (r = placement_read_whole(body, &uuid, &consumer, reterr)) < 0)
                return r;
        /* A document without allocations has no owner, but the write needs one. */
        if (!consumer->project_id) {
                consumer->project_id = strdup("project");
                consumer->user_id = strdup("user");
                json_read_i64(body, "consumer_generation", &consumer->generation, NULL);
        }
        if (!consumer->type)
                consumer->type = strdup("INSTANCE");
        *ret = consumer;
        return 0;
}

static int write_one(Probe *probe, const char *text)
{
        _cleanup_(consumer_freep) Consumer *consumer = NULL;
        int r = read_document(text, &consumer, &probe->error);

        return r < 0 ? r
                     : consumers_write(&probe->call, probe->session, consumer, NULL, on_done, probe,
                                       &probe->error);
}

static int move(Probe *probe, char *const *texts)
{
        _cleanup_(allocations_freep) Allocations *consumers = NULL;
        int r = allocations_new(&consumers);

        for (; r >= 0 && *texts; texts++) {
                _cleanup_(consumer_freep) Consumer *consumer = NULL;

                r = read_document(*texts, &consumer, &probe->error);
                if (r >= 0)
                        r = allocations_add(consumers, consumer);
                if (r >= 0)
                        consumer = NULL;
        }
        return r < 0 ? r
                     : consumers_move(&probe->call, probe->session, consumers, on_done, probe,
                                      &probe->error);
}

static int start(Probe *probe, char *const *argv)
{
        Session *session = probe->session;
        Uuid uuid;

        if (strcmp(argv[2], "read") == 0)
                return uuid_from_text(argv[3], &uuid) < 0
                               ? -EINVAL
                               : consumers_read(&probe->call, session, &uuid, on_done, probe,
                                                &probe->error);
        if (strcmp(argv[2], "write") == 0)
                return write_one(probe, argv[3]);
        if (strcmp(argv[2], "move") == 0)
                return move(probe, argv + 3);
        if (strcmp(argv[2], "room") == 0 && argv[4] && argv[5])
                return uuid_from_text(argv[3], &uuid) < 0
                               ? -EINVAL
                               : capacity_read(&probe->call, session, &uuid, argv[4],
                                               strtoull(argv[5], NULL, 10), on_done, probe,
                                               &probe->error);
        return -EINVAL;
}

int main(int argc, char *argv[])
{
        const ReporterConfig config = {
                .auth = { .kind = REPORTER_AUTH_ADMIN_TOKEN, .token = "admin" },
                .http = { .endpoint = argc > 1 ? argv[1] : NULL,
                          .max_connections = 4,
                          .connect_timeout_usec = 5 * USEC_PER_SEC,
                          .timeout_usec = 30 * USEC_PER_SEC,
                          .user_agent = "consumers-probe" },
        };
        Probe probe = { 0 };
        int r;

        if (argc < 4) {
                fprintf(stderr, "usage: see the head of tests/probes/consumers-probe.c\n");
                return 2;
        }
        r = sd_event_new(&probe.event);
        if (r >= 0)
                r = session_new(&probe.session, probe.event, &config.http, &config.auth,
                                config.nova, &probe.error);
        if (r >= 0)
                r = start(&probe, argv);
        if (r >= 0)
                r = sd_event_loop(probe.event);
        if (r < 0)
                fprintf(stderr, "%s\n", error_text(&probe.error, r));
        consumers_cancel(probe.call);
        session_free(probe.session);
        sd_event_unref(probe.event);
        return r < 0;
}
