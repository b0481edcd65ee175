/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* computectl-helper ORDER … [FILE] runs the orders of computectl that need the libraries of the
 * agent. It prints one JSON document. The arguments of an order precede FILE, which is the
 * configuration. Default: the host's own.
 *
 * "discover DRIVER" polls the hypervisor once and prints the host (drivers/host/snapshot.h). DRIVER
 * is a name, or "" for the driver of the configuration.
 *
 * "verify" polls too, and prints the parts of the configuration that do not fit the host
 * (FINDINGS_FORMAT).
 *
 * "connect CLOUD" connects to Placement, over Keystone if its login uses that (CONNECT_FORMAT).
 * CLOUD is a cloud of clouds.yaml, or "" for the configuration.
 *
 * "identity ACTION FLAGS NAME CLOUD" compares this host with Placement (IDENTITY_FORMAT). ACTION is
 * "show", or the repair: "adopt" or "rename". FLAGS contain "force", "dry-run", both or neither;
 * other words are ignored. NAME is that of the host; "": not known. CLOUD is as for "connect". As
 * root, this order continues as the owner of the state directory.
 *
 * Each order returns its document to run(), which prints it. Wrong arguments, a failure of the
 * hypervisor, of the configuration or of clouds.yaml, and a compute_id that cannot be used end the
 * program with words and exit code 1. So do a session that cannot be made, a failed change of the
 * user, a failed output, and lack of memory. A failure of Keystone or Placement, or a repair that
 * is refused or fails, is a part of the document, with exit code 0. If Placement fails when
 * "connect" asks for the newest microversion, the document has "" in its place, without words. The
 * program ends after one order, so it waits for each answer (placement_probe_ask()).
 *
 * Tests: tests/integration/agent/test_identity.py tests/integration/agent/test_keystone.py */

#include <poll.h>
#include <string.h>

#include "agent/helper/clouds.h"
#include "agent/helper/identity-judge.h"
#include "agent/state/identity.h"
#include "agent/state/state-file.h"
#include "base/clock.h"
#include "base/folder-owner.h"
#include "base/json.h"
#include "config/config.h"
#include "drivers/driver.h"
#include "drivers/registry.h"
#include "drivers/verify.h"
#include "formats/format-names.h"
#include "report/reporter.h"
#include "report/session/session.h"

#define TIMEOUT_SEC 30 /* longest time of a poll */

static void print_warning(const char *text, void *userdata)
{
        fprintf(stderr, "computectl: %s\n", text);
}

/* Waits until the driver has an event. Returns 0, -ETIMEDOUT at the deadline (CLOCK_MONOTONIC), or
 * another negative errno. */
static int wait_for_driver(Driver *driver, uint64_t deadline_usec, Error *reterr)
{
        for (;;) {
                struct pollfd descriptor = { .fd = driver_get_fd(driver), .events = POLLIN };
                uint64_t now = clock_usec(CLOCK_MONOTONIC);
                int r;

                if (now >= deadline_usec)
                        return error_setf(reterr, ETIMEDOUT,
                                          "The hypervisor did not answer within %d s", TIMEOUT_SEC);
                r = poll(&descriptor, 1, (int)((deadline_usec - now) / USEC_PER_MSEC) + 1);
                if (r > 0)
                        return 0;
                if (r < 0 && errno != EINTR)
                        return error_setf(reterr, errno, "poll: %s", strerror(errno));
        }
}

/* Takes events until there is a snapshot. Returns 1 with the snapshot, 0 if there is none yet, or a
 * negative errno. A failed poll is an error with the driver's words. */
static int take(Driver *driver, Snapshot **ret, Error *reterr)
{
        for (;;) {
                DriverEvent event = { 0 };
                int r = driver_take(driver, &event);

                if (r < 0)
                        return error_setf(reterr, r, "Cannot read from the driver: %s",
                                          strerror(-r));
                if (event.type == DRIVER_EVENT_NONE)
                        return 0;
                if (event.type == DRIVER_EVENT_SNAPSHOT) {
                        *ret = event.snapshot;
                        return 1;
                }
                snapshot_unref(event.snapshot);
                if (event.type == DRIVER_EVENT_POLL_FAILED)
                        return error_setf(reterr, event.error.code ? event.error.code : EIO, "%s",
                                          error_text(&event.error, EIO));
        }
}

/* Polls everything once and returns the snapshot, owned by the caller. driver_name "": the driver
 * of the configuration. */
static int poll_once(const Config *config, const char *driver_name, Snapshot **ret, Error *reterr)
{
        _cleanup_(driver_freep) Driver *driver = NULL;
        uint64_t deadline_usec = clock_usec(CLOCK_MONOTONIC) + TIMEOUT_SEC * USEC_PER_SEC;
        int r = driver_new(&driver, driver_name[0] ? driver_name : config->compute_driver,
                           &config->driver, NULL, reterr);

        if (r < 0)
                return r;
        r = driver_poll(driver, DRIVER_POLL_ALL);
        if (r < 0)
                return error_setf(reterr, r, "Cannot start the poll: %s", strerror(-r));
        do {
                r = wait_for_driver(driver, deadline_usec, reterr);
                if (r >= 0)
                        r = take(driver, ret, reterr);
        } while (r == 0);
        return r < 0 ? r : 0;
}

/* A conversation with Placement */

/* The parts of an answer that the orders use. */
typedef struct ProbeAnswer {
        json_t *body;          /* NULL: there is none */
        uint64_t modified_sec; /* seconds since the epoch; 0: not known */
} ProbeAnswer;

/* A session with an event loop of its own. One request runs at a time. */
typedef struct PlacementProbe {
        sd_event *event;
        Session *session;
        bool answered;
        int result;
        ProbeAnswer *answer;
        Error error;
} PlacementProbe;

static void probe_answer_done(ProbeAnswer *answer)
{
        json_decref(answer->body);
        *answer = (ProbeAnswer){ 0 };
}

static PlacementProbe *placement_probe_free(PlacementProbe *probe)
{
        if (!probe)
                return NULL;
        session_free(probe->session);
        sd_event_unref(probe->event);
        free(probe);
        return NULL;
}
DEFINE_CLEANUP(PlacementProbe *, placement_probe_free);

static int placement_probe_new(PlacementProbe **ret, const ReporterConfig *config, Error *reterr)
{
        _cleanup_(placement_probe_freep) PlacementProbe *probe = calloc(1, sizeof(PlacementProbe));
        int r;

        if (!probe)
                return error_oom(reterr);
        r = sd_event_new(&probe->event);
        if (r < 0)
                return error_setf(reterr, r, "Cannot set up the event loop: %s", strerror(-r));
        r = session_new(&probe->session, probe->event, &config->http, &config->auth, config->nova,
                        reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(probe);
        return 0;
}

/* Stores the answer of the request that placement_probe_ask() waits for. */
static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        PlacementProbe *probe = userdata;

        probe->answered = true;
        probe->result = result;
        probe->error = *error;
        /* json_incref() changes only the number of references, so it is safe to remove const
         * here. */
        *probe->answer = (ProbeAnswer){
                .body = json_incref((json_t *)(uintptr_t)answer->body),
                .modified_sec = answer->modified_sec,
        };
}

/* Sends a request, which it takes, and waits for the answer. The time-outs of the session limit the
 * wait. Returns REPORT_DONE, a ReportOutcome with words, or a negative errno with words. *ret must
 * be initialised, and the caller frees it in each case. */
static int placement_probe_ask(PlacementProbe *probe, PlacementRequest request, ProbeAnswer *ret,
                               Error *reterr)
{
        int r;

        probe->answered = false;
        probe->answer = ret;
        r = session_send(probe->session, request, on_answer, probe, NULL, reterr);
        while (r >= 0 && !probe->answered) {
                r = sd_event_run(probe->event, UINT64_MAX);
                if (r < 0)
                        error_setf(reterr, r, "The event loop failed: %s", strerror(-r));
        }
        if (r < 0)
                return r;
        if (probe->result != REPORT_DONE && reterr)
                *reterr = probe->error;
        return probe->result;
}

/* The order "connect": one exchange with Keystone, if the configuration has one, and Placement */

/* The first request of "connect". Placement answers this request only to a user with the right to
 * read providers. The answer is short. */
#define PROBE_PATH "/resource_providers?uuid=00000000-0000-0000-0000-000000000000"

/* The requests of the order "connect", and their results. */
typedef struct Walk {
        const ReporterConfig *config;
        PlacementProbe *probe;
        int result;
        Error error;
        uint64_t asked_usec, answered_usec; /* CLOCK_REALTIME before and after the exchange */
        char microversion[16];              /* newest microversion of Placement; "": not known */
} Walk;

/* Sends the first request, before which the session gets its token. If Keystone is used, and the
 * session has no token afterwards, the failure is Keystone's. Fails only with a negative errno. */
static int walk_all(Walk *walk, Error *reterr)
{
        PlacementRequest request = placement_request("GET", PROBE_PATH, "");
        _cleanup_(probe_answer_done) ProbeAnswer answer = { 0 };

        request.microversion = "1.14";
        walk->asked_usec = clock_usec(CLOCK_REALTIME);
        walk->result = placement_probe_ask(walk->probe, request, &answer, &walk->error);
        walk->answered_usec = clock_usec(CLOCK_REALTIME);
        if (walk->result < 0 && reterr)
                *reterr = walk->error;
        return MIN(walk->result, 0);
}

/* Reads the newest microversion from this document of Placement: {"versions": [{"id": "v1.0",
 * "min_version": "1.0", "max_version": "1.39", …}]} */
static void read_version(Walk *walk, const json_t *body)
{
        const json_t *versions = json_object_get(body, "versions"),
                     *newest = json_object_get(json_array_get(versions, 0), "max_version");

        if (json_is_string(newest))
                snprintf(walk->microversion, sizeof(walk->microversion), "%s",
                         json_string_value(newest));
}

/* Reads the newest microversion. After a failure of Placement it stays unknown, without words.
 * Fails only with a negative errno. */
static int walk_version(Walk *walk, Error *reterr)
{
        PlacementRequest request = placement_request("GET", "/", "");
        _cleanup_(probe_answer_done) ProbeAnswer answer = { 0 };
        int r;

        request.microversion = "1.0";
        r = placement_probe_ask(walk->probe, request, &answer, reterr);
        if (r == REPORT_DONE)
                read_version(walk, answer.body);
        return MIN(r, 0);
}

/* Returns the seconds by which this host's clock is ahead of Keystone's; below 0: it is behind.
 * Keystone rounds down to whole seconds. Returns 0 if there is no token, or if the difference is
 * within the duration of the exchange. */
static int64_t clock_ahead_sec(const Walk *walk, uint64_t issued_usec)
{
        int64_t issued = (int64_t)(issued_usec / USEC_PER_SEC);
        int64_t asked = (int64_t)(walk->asked_usec / USEC_PER_SEC);
        int64_t answered = (int64_t)(walk->answered_usec / USEC_PER_SEC);

        if (issued_usec == 0 || (issued >= asked && issued <= answered))
                return 0;
        return issued < asked ? asked - issued : answered - issued;
}

/* Makes the document. If Keystone is used and there is no token, the failure is Keystone's, else it
 * is Placement's. */
static json_t *describe_walk(const Walk *walk)
{
        bool keystone = walk->config->auth.kind > REPORTER_AUTH_ADMIN_TOKEN;
        static const KeystoneToken none = { 0 };
        const char *words = walk->result != REPORT_DONE ? walk->error.text : "";
        const char *outcome = report_outcome_to_text(walk->result);
        const KeystoneToken *given_token = auth_get_token(session_get_auth(walk->probe->session));
        const KeystoneToken *token = given_token ? given_token : &none;
        bool given = given_token || !keystone;
        const char *endpoint = token->endpoint ? token->endpoint : walk->config->http.endpoint;

        return json_pack("{ss sb ss ss ss so ss sI ss ss ss}", "format", CONNECT_FORMAT, "keystone",
                         keystone, "error", given ? "" : words, "outcome",
                         given ? report_outcome_to_text(REPORT_DONE) : outcome, "scope",
                         token->scope, "roles", string_set_to_json(&token->roles), "endpoint",
                         endpoint ? endpoint : "", "clock_ahead_sec",
                         (json_int_t)clock_ahead_sec(walk, token->issued_usec), "placement_error",
                         given ? words : "", "placement_outcome", given ? outcome : "",
                         "microversion", walk->microversion);
}

static int examine(const Config *config, json_t **ret, Error *reterr)
{
        _cleanup_(placement_probe_freep) PlacementProbe *probe = NULL;
        Walk walk = { .config = &config->reporter };
        int r = placement_probe_new(&probe, &config->reporter, reterr);

        walk.probe = probe;
        if (r == 0)
                r = walk_all(&walk, reterr);
        if (r == 0 && walk.result == REPORT_DONE)
                r = walk_version(&walk, reterr);
        if (r == 0) {
                *ret = describe_walk(&walk);
                r = *ret ? 0 : error_oom(reterr);
        }
        return r;
}

/* The order "identity": gathers the facts for agent/helper/identity-judge.h from the files of this
 * host and from Placement, and makes the change that the operator ordered. */

typedef enum IdentityOrder {
        IDENTITY_SHOW,
        IDENTITY_ADOPT,
        IDENTITY_RENAME,
        _IDENTITY_ORDER_MAX,
        _IDENTITY_ORDER_INVALID = -EINVAL,
} IdentityOrder;

typedef struct IdentityTask {
        const Config *config;
        const char *name; /* name of this host; "": not known */
        IdentityOrder order;
        bool force, dry_run;
} IdentityTask;

/* The state of the order. The facts are gathered again after a change. */
typedef struct Work {
        const IdentityTask *task;
        PlacementProbe *probe; /* NULL: not made yet, or there is no Placement */
        IdentityFacts facts;
        PlacementProviders tree; /* the tree with this host's uuid */
        IdentityPlan plan;
        Error placement_error; /* code 0: Placement answered all requests */
        Error refused;         /* reason why the change was not made, or not completed */
        bool done;             /* the change was made */
} Work;

static void work_done(Work *work)
{
        placement_probe_free(work->probe);
        identity_facts_done(&work->facts);
        placement_providers_done(&work->tree);
        identity_plan_done(&work->plan);
}

static IdentityOrder identity_order_from_text(const char *text)
{
        static const char *const names[] = {
                [IDENTITY_SHOW] = "show",
                [IDENTITY_ADOPT] = "adopt",
                [IDENTITY_RENAME] = "rename",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(names[i], text) == 0)
                        return (IdentityOrder)i;
        return _IDENTITY_ORDER_INVALID;
}

/* Sends a request, which it takes. A failure of Placement gives -EIO with words, for the
 * document. */
static int ask(Work *work, PlacementRequest request, ProbeAnswer *ret, Error *reterr)
{
        int r = placement_probe_ask(work->probe, request, ret, reterr);

        return r > 0 ? -EIO : r;
}

/* Counts the consumers with allocations from the provider, for the advice. */
static int count_consumers(Work *work, NameHolder *who, Error *reterr)
{
        _cleanup_(probe_answer_done) ProbeAnswer answer = { 0 };
        int r = ask(work, placement_get_provider_allocations(&who->uuid), &answer, reterr);

        return r < 0 ? r : name_holder_count(who, answer.body, reterr);
}

/* Reads the time of the provider's last change. */
static int read_age(Work *work, NameHolder *who, Error *reterr)
{
        _cleanup_(probe_answer_done) ProbeAnswer answer = { 0 };
        int r = ask(work, placement_request("GET", "/resource_providers/{uuid}", who->uuid.text),
                    &answer, reterr);

        who->modified_sec = answer.modified_sec;
        return r;
}

/* Copies a provider of an answer, and reads its age and its consumers. */
static int take_provider(Work *work, const PlacementProvider *item, IdentityProvider *ret,
                         Error *reterr)
{
        int r;

        ret->name = strdup(item->name);
        if (!ret->name)
                return error_oom(reterr);
        ret->generation = item->generation;
        ret->who = name_holder_from(item, 0);
        r = read_age(work, &ret->who, reterr);
        if (r == 0)
                r = count_consumers(work, &ret->who, reterr);
        ret->found = r == 0;
        return r;
}

/* Reads the tree with this host's uuid, and the age and consumers of the provider with this uuid
 * (take_provider()). Without that provider, facts.own.found stays false. */
static int read_own(Work *work, Error *reterr)
{
        _cleanup_(probe_answer_done) ProbeAnswer answer = { 0 };
        const Uuid *uuid = &work->facts.uuid;
        int r = ask(work, placement_get_tree(uuid), &answer, reterr);

        if (r == 0)
                r = placement_read_tree(answer.body, &work->tree, reterr);
        for (size_t i = 0; r == 0 && i < work->tree.n_items; i++)
                if (uuid_equal(&work->tree.items[i].uuid, uuid))
                        r = take_provider(work, &work->tree.items[i], &work->facts.own, reterr);
        if (r == 0 && work->facts.own.found)
                work->facts.n_below = work->tree.n_items - 1;
        return r;
}

/* Reads the provider with this host's name. */
static int read_holder(Work *work, Error *reterr)
{
        _cleanup_(placement_providers_done) PlacementProviders found = PLACEMENT_PROVIDERS_INIT;
        _cleanup_(probe_answer_done) ProbeAnswer answer = { 0 };
        int r = ask(work, placement_get_provider_by_name(work->task->name), &answer, reterr);

        if (r == 0)
                r = placement_read_providers(answer.body, &found, reterr);
        if (r == 0 && found.n_items > 0)
                r = take_provider(work, &found.items[0], &work->facts.holder, reterr);
        return r;
}

/* Reads the providers with this host's uuid and with its name, if these are known. A failure of
 * Placement, or no [placement], becomes a part of the document. Fails only with -ENOMEM, or if no
 * session can be made from the configuration. */
static int ask_placement(Work *work, Error *reterr)
{
        Error error = ERROR_NULL;
        int r;

        if (!work->task->config->has_placement) {
                error_setf(&work->placement_error, ENODATA, "There is no [placement] section");
                return 0;
        }
        if (!work->probe) {
                r = placement_probe_new(&work->probe, &work->task->config->reporter, reterr);
                if (r < 0)
                        return r;
        }
        r = work->facts.file ? read_own(work, &error) : 0;
        if (r == 0 && work->task->name[0] != '\0')
                r = read_holder(work, &error);
        work->facts.asked = r == 0;
        if (r == -ENOMEM)
                return error_oom(reterr);
        if (r < 0)
                work->placement_error = error;
        return 0;
}

/* Reads the file of the identity, and asks Placement. The new facts replace those of an earlier
 * call. */
static int gather(Work *work, Error *reterr)
{
        int r;

        identity_facts_done(&work->facts);
        placement_providers_done(&work->tree);
        work->facts.name = work->task->name;
        r = identity_find(work->task->config, &work->facts.uuid, &work->facts.file, reterr);
        return r < 0 ? r : ask_placement(work, reterr);
}

/* Makes the uuid of the provider with this host's name the uuid of this host; a dry run only
 * checks. Fails while an agent runs, which a dry run does not notice (decision identity/one). */
static int adopt(Work *work, Error *reterr)
{
        const Config *config = work->task->config;
        _cleanup_close_ int lock_fd = -EBADF;
        int r = identity_may_adopt(&work->facts, work->task->force, reterr);

        if (r == 0)
                r = identity_replace(config, &work->facts.holder.who.uuid, true, reterr);
        if (r < 0 || work->task->dry_run)
                return r;
        /* A running agent uses the old uuid and has the lock. */
        r = state_lock_take(config->state_dir, &lock_fd, reterr);
        if (r < 0)
                return r;
        return identity_replace(config, &work->facts.holder.who.uuid, false, reterr);
}

static int rename_one(Work *work, const IdentityChange *change, Error *reterr)
{
        _cleanup_(probe_answer_done) ProbeAnswer answer = { 0 };
        int r = ask(work, placement_put_provider(&change->uuid, change->to, NULL), &answer, reterr);

        return r < 0 ? error_prefixf(reterr, r, "%s", change->from) : 0;
}

/* Finds out whether a consumer has allocations of the tree. Reads the providers one after another
 * up to the first one with a consumer. */
static int read_use(Work *work, Error *reterr)
{
        int r = 0;

        for (size_t i = 0; r == 0 && !work->facts.in_use && i < work->tree.n_items; i++) {
                NameHolder who = { .uuid = work->tree.items[i].uuid };

                r = count_consumers(work, &who, reterr);
                work->facts.in_use = !name_holder_is_empty(&who);
        }
        return r;
}

/* Plans new names for this host's providers in Placement, and applies them unless it is a dry run.
 * Stops at the first error; the next run of the order renames the rest. */
static int rename_tree(Work *work, Error *reterr)
{
        const char *why = nova_mode_refuses(work->task->config->reporter.nova, NOVA_ACTION_RENAME);
        int r = why ? error_setf(reterr, EPERM, "%s", why) : 0;

        if (r == 0 && identity_rename_needs_use(&work->facts, work->task->force))
                r = read_use(work, reterr);
        if (r == 0)
                r = identity_plan_rename(&work->facts, &work->tree, work->task->force, &work->plan,
                                         reterr);
        for (size_t i = 0; r == 0 && !work->task->dry_run && i < work->plan.n_items; i++)
                r = rename_one(work, &work->plan.items[i], reterr);
        return r;
}

/* Makes the ordered change, and gathers the facts again after a change that was completed. If the
 * file cannot be read then, or memory is short, the order fails although the change was made. A
 * failure of Placement then is a part of the document, beside "done". Stores the reason of a change
 * that is refused or fails in work->refused. */
static int carry_out(Work *work, Error *reterr)
{
        int r;

        if (work->task->order == IDENTITY_SHOW)
                return 0;
        if (work->placement_error.code) {
                work->refused = work->placement_error;
                return 0;
        }
        r = work->task->order == IDENTITY_ADOPT ? adopt(work, &work->refused)
                                                : rename_tree(work, &work->refused);
        if (r < 0 || work->task->dry_run)
                return r == -ENOMEM ? error_oom(reterr) : 0;
        work->done = true;
        return gather(work, reterr);
}

static json_t *provider_to_json(const IdentityProvider *provider)
{
        const NameHolder *who = &provider->who;

        if (!provider->found)
                return json_null();
        return json_pack("{ss ss sb sI sI sI}", "uuid", who->uuid.text, "name", provider->name,
                         "root", who->root, "generation", (json_int_t)provider->generation,
                         "consumers", who->counted ? (json_int_t)who->n_consumers : -1,
                         "modified_usec", (json_int_t)(who->modified_sec * USEC_PER_SEC));
}

static json_t *plan_to_array(const IdentityPlan *plan)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < plan->n_items; i++)
                if (json_array_append_new(
                            array, json_pack("{ss ss ss}", "uuid", plan->items[i].uuid.text, "from",
                                             plan->items[i].from, "to", plan->items[i].to)) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

static json_t *describe_work(const Work *work)
{
        const IdentityFacts *facts = &work->facts;
        IdentityVerdict verdict;

        identity_judge(facts, &verdict);
        text_sanitize(verdict.text, '?'); /* a limit can cut a character of a name */
        return json_pack("{ss ss ss ss ss ss ss ss so so sI so sb ss}", "format", IDENTITY_FORMAT,
                         "name", facts->name, "state", verdict.state, "text", verdict.text,
                         "advice", verdict.advice, "file", facts->file ? facts->file : "", "uuid",
                         facts->file ? facts->uuid.text : "", "placement_error",
                         work->placement_error.text, "own", provider_to_json(&facts->own), "holder",
                         provider_to_json(&facts->holder), "below", (json_int_t)facts->n_below,
                         "changes", plan_to_array(&work->plan), "done", work->done, "refused",
                         work->refused.text);
}

static int identity_work(const IdentityTask *task, json_t **ret, Error *reterr)
{
        _cleanup_(work_done) Work work = { .task = task };
        int r = gather(&work, reterr);

        if (r == 0)
                r = carry_out(&work, reterr);
        if (r < 0)
                return r;
        *ret = describe_work(&work);
        return *ret ? 0 : error_oom(reterr);
}

/* The orders; their arguments are those after the name of the order */

static int discover(Config *config, char *arguments[], json_t **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        int r = poll_once(config, arguments[0], &snapshot, reterr);

        if (r < 0)
                return r;
        *ret = snapshot_to_json(snapshot);
        return *ret ? 0 : error_oom(reterr);
}

static int verify(Config *config, char *arguments[], json_t **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *document = NULL;
        int r = poll_once(config, "", &snapshot, reterr);

        if (r < 0)
                return r;
        document = verify_host(&config->driver.host, snapshot);
        if (json_object_set_new(document, "format", json_string(FINDINGS_FORMAT)) < 0)
                return error_oom(reterr);
        *ret = TAKE_PTR(document);
        return 0;
}

static int walk(Config *config, char *arguments[], json_t **ret, Error *reterr)
{
        int r = arguments[0][0] ? clouds_apply(config, arguments[0], reterr) : 0;

        return r < 0 ? r : examine(config, ret, reterr);
}

static int identify(Config *config, char *arguments[], json_t **ret, Error *reterr)
{
        enum { ACTION, FLAGS, NAME, CLOUD };
        const IdentityTask task = {
                .config = config,
                .name = arguments[NAME],
                .order = identity_order_from_text(arguments[ACTION]),
                .force = strstr(arguments[FLAGS], "force"),
                .dry_run = strstr(arguments[FLAGS], "dry-run"),
        };
        int r;

        if ((int)task.order < 0)
                return error_setf(reterr, EINVAL, "Unknown action: %.20s", arguments[ACTION]);
        r = arguments[CLOUD][0] ? clouds_apply(config, arguments[CLOUD], reterr) : 0;
        if (r >= 0)
                r = folder_owner_become(config->state_dir, reterr);
        return r < 0 ? r : identity_work(&task, ret, reterr);
}

static const struct {
        const char *name;
        int n_arguments;
        bool warns; /* config_load() prints the warnings about the configuration */
        int (*run)(Config *config, char *arguments[], json_t **ret, Error *reterr);
} orders[] = {
        { "discover", 1, true, discover },
        { "verify", 0, true, verify },
        { "connect", 1, false, walk },
        { "identity", 4, false, identify },
};

static int run(int argc, char *argv[], Error *reterr)
{
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_json_ json_t *document = NULL;
        size_t i = 0;
        int r;

        while (i < ARRAY_SIZE(orders) && (argc < 2 || strcmp(orders[i].name, argv[1]) != 0))
                i++;
        if (i == ARRAY_SIZE(orders) || argc < 2 + orders[i].n_arguments)
                return error_setf(reterr, EINVAL, "ORDER … [FILE]");
        r = config_load(&config, argv[2 + orders[i].n_arguments],
                        orders[i].warns ? print_warning : NULL, NULL, reterr);
        if (r >= 0)
                r = orders[i].run(config, argv + 2, &document, reterr);
        if (r < 0)
                return r;
        if (json_dumpf(document, stdout, JSON_COMPACT) < 0 || fflush(stdout) != 0)
                return error_setf(reterr, EIO, "Cannot write the output");
        return 0;
}

int main(int argc, char *argv[])
{
        Error error = ERROR_NULL;
        int r = run(argc, argv, &error);

        if (r >= 0)
                return EXIT_SUCCESS;
        fprintf(stderr, "computectl: %s\n", error_text(&error, r));
        return EXIT_FAILURE;
}
