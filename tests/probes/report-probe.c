/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Drives the reporter alone, for tests/integration: refresh, publish, and one line of JSON for each
 * round.
 *
 *   report-probe --endpoint URL --root UUID --name NAME --tree FILE
 *                [--token TOKEN] [--allocations FILE] [--rounds N] [--retries N] [--step]
 *                [--connections N] [--timeout-ms N]
 *                [--cafile FILE] [--certfile FILE] [--keyfile FILE] [--insecure]
 *
 * FILE: {"providers": [{"uuid", "name", "parent", "inventories", "traits", "aggregates"}],
 *        "remove": ["name"], "remove_traits": ["T"]}
 *
 * FILE is read again in each round. It changes the tree of Placement as a driver does: inventories
 * are replaced, traits and aggregates are added, and other providers are kept. --retries: number of
 * conflicts after which a further attempt is made. --step: prints "refreshed" between refresh and
 * publish, and waits for a line. */

#include <getopt.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "report/reporter.h"
#include "tests/fixtures/tree-file.h"

typedef struct Probe {
        sd_event *event;
        Reporter *reporter;
        ReporterConfig config;
        Uuid root;
        const char *name, *tree_path, *allocations_path;
        unsigned n_rounds, n_retries;
        bool step;

        unsigned round, n_retried;
        uint64_t begin_wall_usec, begin_cpu_usec;
        uint64_t begin_requests, begin_writes;
        ProviderTree *desired;
        Allocations *allocations;
} Probe;

static void start_round(Probe *probe);

static void print_json(json_t *json)
{
        json_dumpf(json, stdout, JSON_COMPACT);
        json_decref(json);
        putchar('\n');
        fflush(stdout);
}

static void end_round(Probe *probe, int result, const Error *error)
{
        const ReporterStatistics *statistics = reporter_get_statistics(probe->reporter);

        print_json(json_pack(
                "{sI ss ss sI sI sI sI sf sf}", "result", (json_int_t)result, "outcome",
                report_outcome_to_text(result), "error",
                result != 0 ? error_text(error, result) : "", "requests",
                (json_int_t)(statistics->n_requests - probe->begin_requests), "writes",
                (json_int_t)(statistics->n_writes - probe->begin_writes), "conflicts",
                (json_int_t)statistics->n_conflicts, "retry_after_s",
                (json_int_t)(statistics->retry_after_usec / USEC_PER_SEC), "wall_ms",
                (double)(clock_usec(CLOCK_MONOTONIC) - probe->begin_wall_usec) / 1000, "cpu_ms",
                (double)(clock_usec(CLOCK_PROCESS_CPUTIME_ID) - probe->begin_cpu_usec) / 1000));
        if (++probe->round >= probe->n_rounds)
                sd_event_exit(probe->event, 0);
        else
                start_round(probe);
}

static void start_attempt(Probe *probe);

static bool retry(Probe *probe, int result)
{
        if (result != REPORT_E_CONFLICT || probe->n_retried >= probe->n_retries)
                return false;
        probe->n_retried++;
        start_attempt(probe);
        return true;
}

static void on_published(Reporter *reporter, int result, const Error *error, void *userdata)
{
        if (!retry(userdata, result))
                end_round(userdata, result, error);
}

static int prepare(Probe *probe, Error *reterr)
{
        _cleanup_json_ json_t *tree = NULL, *allocations = NULL;
        int r;

        probe->desired = provider_tree_free(probe->desired);
        probe->allocations = allocations_free(probe->allocations);
        r = provider_tree_copy(&probe->desired, reporter_tree(probe->reporter));
        if (r >= 0)
                r = tree_file_read(probe->tree_path, &tree, reterr);
        if (r >= 0)
                r = tree_file_lay(tree, probe->desired, reterr);
        if (r >= 0 && probe->allocations_path)
                r = tree_file_read(probe->allocations_path, &allocations, reterr);
        if (r >= 0 && allocations)
                r = tree_file_read_allocations(allocations, &probe->allocations, reterr);
        return r;
}

static void wait_for_line(void)
{
        int c;

        print_json(json_pack("{ss}", "event", "refreshed"));
        while ((c = getchar()) != EOF && c != '\n')
                continue;
}

static void on_refreshed(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Probe *probe = userdata;
        Error words = *error;

        if (retry(probe, result))
                return;
        if (result != 0) {
                end_round(probe, result, error);
                return;
        }
        if (probe->step)
                wait_for_line();
        result = prepare(probe, &words);
        if (result >= 0)
                result = reporter_publish(reporter, probe->desired, probe->allocations,
                                          on_published, probe);
        if (result < 0)
                end_round(probe, result, &words);
}

static void start_attempt(Probe *probe)
{
        int r = reporter_refresh(probe->reporter, on_refreshed, probe);

        if (r < 0)
                end_round(probe, r, NULL);
}

static void start_round(Probe *probe)
{
        const ReporterStatistics *statistics = reporter_get_statistics(probe->reporter);

        probe->begin_wall_usec = clock_usec(CLOCK_MONOTONIC);
        probe->begin_cpu_usec = clock_usec(CLOCK_PROCESS_CPUTIME_ID);
        probe->begin_requests = statistics->n_requests;
        probe->begin_writes = statistics->n_writes;
        probe->n_retried = 0;
        start_attempt(probe);
}

static uint64_t number(const char *text)
{
        return strtoull(text, NULL, 10);
}

static int parse_options(Probe *probe, int argc, char *argv[])
{
        static const struct option options[] = {
                { "endpoint", required_argument, NULL, 'e' },
                { "root", required_argument, NULL, 'u' },
                { "name", required_argument, NULL, 'n' },
                { "tree", required_argument, NULL, 't' },
                { "token", required_argument, NULL, 'k' },
                { "allocations", required_argument, NULL, 'a' },
                { "rounds", required_argument, NULL, 'r' },
                { "retries", required_argument, NULL, 'y' },
                { "step", no_argument, NULL, 's' },
                { "connections", required_argument, NULL, 'c' },
                { "timeout-ms", required_argument, NULL, 'T' },
                { "cafile", required_argument, NULL, 'A' },
                { "certfile", required_argument, NULL, 'C' },
                { "keyfile", required_argument, NULL, 'K' },
                { "insecure", no_argument, NULL, 'I' },
                { 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
                switch (c) {
                case 'e':
                        probe->config.http.endpoint = optarg;
                        break;
                case 'u':
                        if (uuid_from_text(optarg, &probe->root) < 0)
                                return -EINVAL;
                        break;
                case 'n':
                        probe->name = optarg;
                        break;
                case 't':
                        probe->tree_path = optarg;
                        break;
                case 'k':
                        probe->config.auth.kind = REPORTER_AUTH_ADMIN_TOKEN;
                        probe->config.auth.token = optarg;
                        break;
                case 'a':
                        probe->allocations_path = optarg;
                        break;
                case 'r':
                        probe->n_rounds = (unsigned)number(optarg);
                        break;
                case 'y':
                        probe->n_retries = (unsigned)number(optarg);
                        break;
                case 's':
                        probe->step = true;
                        break;
                case 'c':
                        probe->config.http.max_connections = number(optarg);
                        break;
                case 'T':
                        probe->config.http.timeout_usec = number(optarg) * USEC_PER_MSEC;
                        break;
                case 'A':
                        probe->config.http.cafile = optarg;
                        break;
                case 'C':
                        probe->config.http.certfile = optarg;
                        break;
                case 'K':
                        probe->config.http.keyfile = optarg;
                        break;
                case 'I':
                        probe->config.http.insecure = true;
                        break;
                default:
                        return -EINVAL;
                }
        return probe->name && probe->tree_path && !uuid_empty(&probe->root) ? 0 : -EINVAL;
}

int main(int argc, char *argv[])
{
        Probe probe = {
                .config.http = {
                        .max_connections = 4,
                        .connect_timeout_usec = 5 * USEC_PER_SEC,
                        .timeout_usec = 30 * USEC_PER_SEC,
                        .user_agent = "report-probe",
                },
                .n_rounds = 1,
        };
        Error error = ERROR_NULL;
        int r;

        if (parse_options(&probe, argc, argv) < 0) {
                fprintf(stderr, "usage: see the head of tests/probes/report-probe.c\n");
                return 2;
        }
        r = sd_event_new(&probe.event);
        if (r >= 0)
                r = reporter_new(&probe.reporter, probe.event, &probe.config, &probe.root,
                                 probe.name, NULL, &error);
        if (r < 0) {
                fprintf(stderr, "%s\n", error_text(&error, r));
                return 1;
        }
        start_round(&probe);
        r = sd_event_loop(probe.event);
        reporter_free(probe.reporter);
        provider_tree_free(probe.desired);
        allocations_free(probe.allocations);
        sd_event_unref(probe.event);
        return r < 0;
}
