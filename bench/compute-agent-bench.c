/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The benchmark of the report client: drives the reporter through a workload against a real
 * Placement, and prints one JSON object in a line for each measured step.
 *
 *   compute-agent-bench --workload FILE --endpoint URL [--server-pid PID]… [--connections N]
 *                       [--rep N] [--floor]
 *
 * FILE has the form "rt-workload/1": "root", "states" {name: {"providers", "allocations"}},
 * "consumers", and "steps", whose "op" is one of these:
 *   - publish: from an empty Placement to a state, by a client without a mirror.
 *   - cycle: the same state n times. The option "refresh" has no effect: each cycle notices
 * changes.
 *   - toggle: n cycles through states.
 *   - claim: the writes of a scheduler. This client writes allocations only in a reshape.
 *   - reshape: as after a start. The consumers of moved classes are read, then inventories and
 *     allocations move together. With --floor libcurl alone reads these consumers once more. That
 *     line has the label "LABEL, libcurl alone".
 *   - preload, rt_claim: no request of this client, since a claim is a transaction in the host's
 * own
 *     database. A line says so.
 *
 * Lines: {"workload", "mode": "compute-agent", "rep", "label", "k", "wall_ms", "client_cpu_ms",
 * "server_cpu_ms", "requests"}. Claims have also {"label": "<label>:latency", "n", "median_ms",
 * "p99_ms"}. The last line is {"label": "verify", "providers", "expected", "mismatches"} from the
 * data that a new client reads. */

#include <getopt.h>
#include <string.h>

#include "base/json.h"
#include "bench/floor.h"
#include "bench/meter.h"
#include "bench/scheduler.h"
#include "report/reporter.h"
#include "tests/fixtures/tree-file.h"

#define N_SERVERS_MAX   16
#define N_CONFLICTS_MAX 8

typedef struct Bench {
        sd_event *event;
        ReporterConfig config;
        Reporter *reporter;
        Scheduler *scheduler;
        Meter meter;
        pid_t servers[N_SERVERS_MAX];
        const char *path;
        json_t *workload;
        const char *name, *root_name;
        Uuid root;
        int rep;
        bool with_floor;
        const json_t *state; /* the last one */
        bool moved;          /* the consumers have the allocations of the state */

        /* The attempt of the reporter. */
        bool done;
        int result;
        Error error;
} Bench;

static void print_json(json_t *json)
{
        json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        json_decref(json);
        putchar('\n');
        fflush(stdout);
}

static json_t *line_of(const Bench *bench, const char *label, json_int_t k)
{
        return json_pack("{ss ss si ss sI}", "workload", bench->name, "mode", "compute-agent",
                         "rep", bench->rep, "label", label, "k", k);
}

/* Prints a line with these details. Takes ownership of details. */
static void print_line(const Bench *bench, const char *label, json_int_t k, json_t *details)
{
        json_t *line = line_of(bench, label, k);

        json_object_update(line, details);
        json_decref(details);
        print_json(line);
}

static uint64_t count_requests(const Bench *bench)
{
        return reporter_get_statistics(bench->reporter)->n_requests +
               scheduler_get_requests(bench->scheduler);
}

static void print_meter(const Bench *bench, const char *label, json_int_t k, uint64_t n_requests)
{
        print_line(bench, label, k,
                   json_pack("{sf sf sf sI}", "wall_ms", bench->meter.wall_ms, "client_cpu_ms",
                             bench->meter.client_cpu_ms, "server_cpu_ms",
                             bench->meter.server_cpu_ms, "requests", (json_int_t)n_requests));
}

/* The reporter, one attempt at a time. */

static void on_done(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Bench *bench = userdata;

        bench->done = true;
        bench->result = result;
        if (result != 0)
                bench->error = *error;
}

/* Runs the loop until the attempt ends. r: the result of its start. */
static int wait_done(Bench *bench, int r, Error *reterr)
{
        while (r >= 0 && !bench->done) {
                r = sd_event_run(bench->event, UINT64_MAX);
                if (r < 0)
                        return error_setf(reterr, r, "The event loop failed");
        }
        bench->done = false;
        if (r < 0)
                return error_setf(reterr, r, "The reporter: %s", strerror(-r));
        if (bench->result < 0)
                *reterr = bench->error;
        return bench->result;
}

static int refresh(Bench *bench, Error *reterr)
{
        int r = wait_done(bench, reporter_refresh(bench->reporter, on_done, bench), reterr);

        if (r > 0)
                return error_setf(reterr, EREMOTEIO, "The refresh: %.200s", bench->error.text);
        return r;
}

/* Publishes a tree. Returns REPORT_E_CONFLICT to the caller, who tries again. */
static int publish(Bench *bench, const ProviderTree *tree, const Allocations *allocations,
                   Error *reterr)
{
        int r = reporter_publish(bench->reporter, tree, allocations, on_done, bench);

        r = wait_done(bench, r, reterr);
        if (r > 0 && r != REPORT_E_CONFLICT)
                return error_setf(reterr, EREMOTEIO, "The publication: %.200s", bench->error.text);
        return r;
}

static int new_reporter(Bench *bench, Error *reterr)
{
        bench->reporter = reporter_free(bench->reporter);
        return reporter_new(&bench->reporter, bench->event, &bench->config, &bench->root,
                            bench->root_name, NULL, reterr);
}

static int make_tree(const Bench *bench, ProviderTree **ret, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        int r;

        if (provider_tree_new(&tree) < 0)
                return error_oom(reterr);
        r = tree_file_lay(bench->state, tree, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(tree);
        return 0;
}

/* Runs a cycle of the agent with this tree. A conflict starts it again. */
static int cycle(Bench *bench, const ProviderTree *tree, Error *reterr)
{
        int r = REPORT_E_CONFLICT;

        for (unsigned i = 0; r == REPORT_E_CONFLICT && i < N_CONFLICTS_MAX; i++) {
                r = refresh(bench, reterr);
                if (r >= 0)
                        r = publish(bench, tree, NULL, reterr);
        }
        return r == REPORT_E_CONFLICT ? error_setf(reterr, ESTALE, "Conflicts without end") : r;
}

/* Measures a cycle without the making of the tree, which is the work of the driver. */
static int measure_cycle(Bench *bench, const char *label, json_int_t k, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        uint64_t before = count_requests(bench);
        int r = make_tree(bench, &tree, reterr);

        if (r < 0)
                return r;
        meter_begin(&bench->meter);
        r = cycle(bench, tree, reterr);
        meter_end(&bench->meter);
        if (r >= 0)
                print_meter(bench, label, k, count_requests(bench) - before);
        return r;
}

/* The steps. */

static int set_state(Bench *bench, const json_t *name, Error *reterr)
{
        const char *text = json_string_value(name);
        const json_t *states = json_object_get(bench->workload, "states");

        bench->state = text ? json_object_get(states, text) : NULL;
        return bench->state ? 0 : error_setf(reterr, EBADMSG, "No state %s", text ? text : "");
}

static int step_cycle(Bench *bench, const json_t *step, const char *label, Error *reterr)
{
        const json_t *states = json_object_get(step, "states");
        const json_t *times = json_object_get(step, "n");
        json_int_t n = times ? json_integer_value(times) : 1;
        int r = 0;

        for (json_int_t k = 0; r >= 0 && k < n; k++) {
                size_t n_states = MAX(json_array_size(states), (size_t)1);
                const json_t *name = states ? json_array_get(states, (size_t)k % n_states)
                                            : json_object_get(step, "state");

                r = set_state(bench, name, reterr);
                if (r >= 0)
                        r = measure_cycle(bench, label, k, reterr);
        }
        return r;
}

static int compare_ms(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

static void print_latency(const Bench *bench, const char *label, double *ms, size_t n)
{
        char text[120];

        qsort(ms, n, sizeof(double), compare_ms);
        snprintf(text, sizeof(text), "%s:latency", label);
        print_line(bench, text, 0,
                   json_pack("{sI sf sf}", "n", (json_int_t)n, "median_ms", ms[n / 2], "p99_ms",
                             ms[n * 99 / 100]));
}

/* Measures the claims of all consumers, one after another. */
static int step_claim(Bench *bench, const json_t *step, const char *label, Error *reterr)
{
        const json_t *consumers = json_object_get(bench->workload, "consumers");
        const char *how = json_string_value(json_object_get(step, "how"));
        size_t n = json_array_size(consumers);
        _cleanup_free_ double *ms = calloc(n + 1, sizeof(double));
        uint64_t before = count_requests(bench);
        bool read_first = how && strcmp(how, "claim") == 0;
        int r = 0;

        if (!ms)
                return error_oom(reterr);
        meter_begin(&bench->meter);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                double begin = meter_now_ms();

                r = scheduler_claim(bench->scheduler, json_array_get(consumers, i), read_first,
                                    reterr);
                ms[i] = meter_now_ms() - begin;
        }
        meter_end(&bench->meter);
        if (r < 0 || n == 0)
                return r;
        print_meter(bench, label, 0, count_requests(bench) - before);
        print_latency(bench, label, ms, n);
        return 0;
}

/* Moves the allocations of the consumers as a driver does. then: their new allocations, {consumer:
 * {provider: {class: n}}}. */
static int move(Allocations *consumers, const json_t *then, Error *reterr)
{
        for (size_t i = 0; i < consumers->n_consumers; i++) {
                Consumer *consumer = consumers->consumers[i];
                const char *provider, *resource_class;
                json_t *resources, *amount;
                Uuid uuid;

                consumer_clear(consumer);
                json_object_foreach(json_object_get(then, consumer->uuid.text), provider, resources)
                        json_object_foreach(resources, resource_class, amount) {
                                if (uuid_from_text(provider, &uuid) < 0 ||
                                    consumer_set(consumer, &uuid, resource_class,
                                                 (uint64_t)json_integer_value(amount)) < 0)
                                        return error_setf(reterr, EBADMSG, "Not an allocation: %s",
                                                          provider);
                        }
        }
        return 0;
}

/* Reads the consumers of each class that leaves a provider. */
static int gather(Bench *bench, const ProviderTree *to, Allocations **ret, Error *reterr)
{
        _cleanup_(string_set_done) StringSet classes = STRING_SET_INIT;
        _cleanup_(allocations_freep) Allocations *others = NULL;
        const ProviderTree *tree = reporter_tree(bench->reporter);
        int r;

        for (size_t i = 0; i < tree->n_providers; i++) {
                const Provider *now = tree->providers[i];
                const Provider *then = provider_tree_find(to, &now->uuid);

                for (size_t j = 0; j < now->n_inventories; j++) {
                        const char *name = now->inventories[j].resource_class;

                        if ((!then || !provider_find_inventory(then, name)) &&
                            string_set_add(&classes, name) < 0)
                                return error_oom(reterr);
                }
        }
        r = wait_done(bench, reporter_gather(bench->reporter, &classes, to, on_done, bench),
                      reterr);
        if (r > 0)
                return error_setf(reterr, EREMOTEIO, "The gathering: %.200s", bench->error.text);
        if (r == 0)
                reporter_take_gathered(bench->reporter, ret, &others);
        return r;
}

static int reshape(Bench *bench, Error *reterr)
{
        _cleanup_(allocations_freep) Allocations *consumers = NULL;
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        int r;

        r = refresh(bench, reterr);
        if (r >= 0)
                r = make_tree(bench, &tree, reterr);
        if (r >= 0)
                r = gather(bench, tree, &consumers, reterr);
        if (r >= 0)
                r = move(consumers, json_object_get(bench->state, "allocations"), reterr);
        if (r >= 0)
                r = publish(bench, tree, consumers, reterr);
        return r > 0 ? error_setf(reterr, ESTALE, "The reshape: %.200s", bench->error.text) : r;
}

/* Measures the same reads with libcurl alone, as the lowest possible cost. */
static int measure_floor(Bench *bench, const char *of, Error *reterr)
{
        const json_t *consumers = json_object_get(bench->workload, "consumers");
        char label[100];
        int r;

        meter_begin(&bench->meter);
        r = floor_read(bench->config.http.endpoint, consumers, reterr);
        meter_end(&bench->meter);
        snprintf(label, sizeof(label), "%s, libcurl alone", of);
        if (r >= 0)
                print_meter(bench, label, 0, json_array_size(consumers));
        return r;
}

static int step_reshape(Bench *bench, const json_t *step, const char *label, Error *reterr)
{
        uint64_t before;
        int r;

        r = set_state(bench, json_object_get(step, "state"), reterr);
        if (r >= 0)
                r = new_reporter(bench, reterr);
        if (r < 0)
                return r;
        before = count_requests(bench);
        meter_begin(&bench->meter);
        r = reshape(bench, reterr);
        meter_end(&bench->meter);
        if (r < 0)
                return r;
        bench->moved = true;
        print_meter(bench, label, 0, count_requests(bench) - before);
        return bench->with_floor ? measure_floor(bench, label, reterr) : 0;
}

static int run_step(Bench *bench, const json_t *step, Error *reterr)
{
        const char *op = json_string_value(json_object_get(step, "op"));
        const char *label = json_string_value(json_object_get(step, "label"));

        op = op ? op : "";
        label = label ? label : op;
        if (strcmp(op, "publish") == 0 || strcmp(op, "cycle") == 0 || strcmp(op, "toggle") == 0)
                return step_cycle(bench, step, label, reterr);
        if (strcmp(op, "claim") == 0)
                return step_claim(bench, step, label, reterr);
        if (strcmp(op, "reshape") == 0)
                return step_reshape(bench, step, label, reterr);
        print_line(bench, label, 0, json_pack("{ss}", "skipped", "no request of this client"));
        return 0;
}

/* Comparison of Placement with the last state. */

static bool provider_matches(const ProviderTree *remote, const Provider *provider)
{
        const Provider *found = provider_tree_find(remote, &provider->uuid);

        return found && strcmp(found->name, provider->name) == 0 &&
               uuid_equal(&found->parent, &provider->parent) &&
               provider_inventories_equal(found, provider) &&
               string_set_equal(&found->traits, &provider->traits) &&
               string_set_equal(&found->aggregates, &provider->aggregates);
}

static int verify_consumers(Bench *bench, json_t *mismatches, Error *reterr)
{
        const char *consumer, *provider;
        json_t *expected, *resources;

        json_object_foreach(json_object_get(bench->state, "allocations"), consumer, expected) {
                _cleanup_json_ json_t *found = NULL;
                bool same;
                int r = scheduler_read_consumer(bench->scheduler, consumer, &found, reterr);

                if (r < 0)
                        return r;
                same = json_object_size(found) == json_object_size(expected);
                json_object_foreach(expected, provider, resources)
                        same = same && json_equal(resources,
                                                  json_object_get(json_object_get(found, provider),
                                                                  "resources"));
                if (!same)
                        json_array_append_new(mismatches, json_string(consumer));
        }
        return 0;
}

/* Reads Placement with a new reporter and prints the differences. */
static int verify(Bench *bench, bool *ret_equal, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        _cleanup_json_ json_t *mismatches = json_array();
        const ProviderTree *remote;
        int r;

        r = new_reporter(bench, reterr);
        if (r >= 0)
                r = refresh(bench, reterr);
        if (r >= 0)
                r = make_tree(bench, &tree, reterr);
        if (r < 0)
                return r;
        remote = reporter_tree(bench->reporter);
        for (size_t i = 0; i < tree->n_providers; i++)
                if (!provider_matches(remote, tree->providers[i]))
                        json_array_append_new(mismatches, json_string(tree->providers[i]->name));
        if (bench->moved)
                r = verify_consumers(bench, mismatches, reterr);
        if (r < 0)
                return r;
        *ret_equal = remote->n_providers == tree->n_providers && json_array_size(mismatches) == 0;
        print_line(bench, "verify", 0,
                   json_pack("{sI sI sO}", "providers", (json_int_t)remote->n_providers, "expected",
                             (json_int_t)tree->n_providers, "mismatches", mismatches));
        return 0;
}

/* Start and end. */

static int load(Bench *bench, Error *reterr)
{
        const json_t *states, *provider;
        const char *format;
        int r;

        r = tree_file_read(bench->path, &bench->workload, reterr);
        if (r < 0)
                return r;
        format = json_string_value(json_object_get(bench->workload, "format"));
        if (!format || strcmp(format, "rt-workload/1") != 0)
                return error_setf(reterr, EBADMSG, "%s is no workload", bench->path);
        bench->name = json_string_value(json_object_get(bench->workload, "name"));
        states = json_object_get(bench->workload, "states");
        provider = json_array_get(
                json_object_get(json_object_iter_value(json_object_iter((json_t *)states)),
                                "providers"),
                0);
        bench->root_name = json_string_value(json_object_get(provider, "name"));
        if (!bench->name || !bench->root_name)
                return error_setf(reterr, EBADMSG, "%s: no name, or no state", bench->path);
        return json_read_uuid(bench->workload, "root", &bench->root, reterr);
}

static int run(Bench *bench, bool *ret_equal, Error *reterr)
{
        const json_t *step;
        size_t i;
        int r;

        r = load(bench, reterr);
        if (r >= 0 && sd_event_new(&bench->event) < 0)
                r = error_oom(reterr);
        if (r >= 0)
                r = scheduler_new(&bench->scheduler, bench->event, bench->config.http.endpoint,
                                  reterr);
        if (r >= 0)
                r = new_reporter(bench, reterr);
        if (r < 0)
                return r;
        json_array_foreach(json_object_get(bench->workload, "steps"), i, step) {
                r = run_step(bench, step, reterr);
                if (r < 0)
                        return r;
        }
        return bench->state ? verify(bench, ret_equal, reterr) : 0;
}

static void bench_done(Bench *bench)
{
        reporter_free(bench->reporter);
        scheduler_free(bench->scheduler);
        json_decref(bench->workload);
        sd_event_unref(bench->event);
}

static int parse_options(Bench *bench, int argc, char *argv[])
{
        static const struct option options[] = {
                { "workload", required_argument, NULL, 'w' },
                { "endpoint", required_argument, NULL, 'e' },
                { "server-pid", required_argument, NULL, 'p' },
                { "connections", required_argument, NULL, 'c' },
                { "rep", required_argument, NULL, 'r' },
                { "floor", no_argument, NULL, 'f' },
                { 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
                switch (c) {
                case 'w':
                        bench->path = optarg;
                        break;
                case 'e':
                        bench->config.http.endpoint = optarg;
                        break;
                case 'p':
                        if (bench->meter.n_servers >= N_SERVERS_MAX)
                                return -EINVAL;
                        bench->servers[bench->meter.n_servers++] = atoi(optarg);
                        break;
                case 'c':
                        bench->config.http.max_connections = strtoull(optarg, NULL, 10);
                        break;
                case 'r':
                        bench->rep = atoi(optarg);
                        break;
                case 'f':
                        bench->with_floor = true;
                        break;
                default:
                        return -EINVAL;
                }
        return bench->path && bench->config.http.endpoint && optind == argc ? 0 : -EINVAL;
}

int main(int argc, char *argv[])
{
        Bench bench = {
                .config.auth = { .kind = REPORTER_AUTH_ADMIN_TOKEN, .token = "admin" },
                .config.http = {
                        .max_connections = 4,
                        .connect_timeout_usec = 5 * USEC_PER_SEC,
                        .timeout_usec = 600 * USEC_PER_SEC,
                        .user_agent = "compute-agent-bench",
                },
        };
        Error error = ERROR_NULL;
        bool equal = true;
        int r;

        if (parse_options(&bench, argc, argv) < 0) {
                fprintf(stderr, "usage: compute-agent-bench --workload FILE --endpoint URL "
                                "[--server-pid PID]... [--connections N] [--rep N] [--floor]\n");
                return 2;
        }
        bench.meter.servers = bench.servers;
        r = run(&bench, &equal, &error);
        if (r < 0)
                fprintf(stderr, "compute-agent-bench: %s\n", error_text(&error, r));
        bench_done(&bench);
        return r < 0 || !equal;
}
