/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An executor over a scripted HTTP and a mirror made up from one line, for its tests. */

#include "report/publish/executor.h"
#include "tests/fakes/http.h"
#include "tests/report-fixture.h"

#define FAULT(code) "{\"errors\":[{\"detail\":\"the detail\",\"code\":\"placement." code "\"}]}"
#define LOCKED      "{\"errors\":[{\"detail\":\"(sqlite3.OperationalError) database is locked\"}]}"

#define NAMES "host a b c d old older guest"

static const StringSet nothing = STRING_SET_INIT;
static const PlanKnowledge knows_nothing = {
        .known_classes = &nothing,
        .known_traits = &nothing,
        .missing_traits = &nothing,
};
typedef struct Run {
        sd_event *event;
        Session *session;
        Mirror *mirror;
        Plan *plan;
        ExecutorManners manners;
        Executor *executor;
        unsigned n_calls;
        int result;
        Error error;
} Run;

static inline void on_done(int result, const Error *error, void *userdata)
{
        Run *run = userdata;

        run->n_calls++;
        run->result = result;
        run->error = *error;
}

static inline Mirror *mirror_of(const char *text)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = fixture_tree(text);
        Mirror *mirror;

        assert_int_equal(mirror_new(&mirror), 0);
        for (size_t i = 0; i < tree->n_providers; i++) {
                assert_int_equal(mirror_add(mirror, tree->providers[i], 0), 0);
                for (int part = 0; part < _MIRROR_PART_MAX; part++)
                        assert_int_equal(
                                mirror_write(mirror, tree->providers[i], (MirrorPart)part, 10), 0);
        }
        return mirror;
}

static inline Allocations *guest_on(const char *name)
{
        Uuid guest = fixture_uuid("guest"), where = fixture_uuid(name);
        Allocations *allocations;
        Consumer *consumer;

        assert_int_equal(allocations_new(&allocations), 0);
        assert_int_equal(allocations_ensure(allocations, &guest, &consumer), 0);
        consumer->project_id = strdup("p");
        consumer->user_id = strdup("u");
        assert_int_equal(consumer_set(consumer, &where, "VGPU", 1), 0);
        return allocations;
}

/* holder: where the guest of a reshape ends; NULL: no reshape. */
static inline void run_begin_knowing(Run *run, const char *mirror, const char *desired,
                                     const char *holder, uint64_t max_connections,
                                     const PlanKnowledge *knowledge)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = fixture_tree(desired);
        _cleanup_(allocations_freep) Allocations *allocations = holder ? guest_on(holder) : NULL;
        HttpConfig config = { .max_connections = max_connections };
        Auth *auth;
        Error error;

        assert_true(sd_event_new(&run->event) >= 0);
        assert_int_equal(auth_new(&auth, NULL, &(AuthConfig){ 0 }, NULL, NULL), 0);
        assert_int_equal(session_new(&run->session, run->event, &config, auth, NULL), 0);
        run->mirror = mirror_of(mirror);
        if (plan_make(tree, mirror_get_tree(run->mirror), allocations, knowledge, &run->plan,
                      &error) < 0)
                fail_msg("%s", error.text);
        assert_int_equal(executor_new(&run->executor, run->event, run->session, run->mirror,
                                      run->plan, &run->manners, on_done, run, NULL),
                         0);
        assert_int_equal(run->n_calls, 0);
}

static inline void run_begin(Run *run, const char *mirror, const char *desired, const char *holder,
                             uint64_t max_connections)
{
        run_begin_knowing(run, mirror, desired, holder, max_connections, &knows_nothing);
}

static inline void run_end(Run *run)
{
        for (unsigned i = 0; i < 20000 && run->n_calls == 0; i++)
                assert_true(sd_event_run(run->event, 5 * USEC_PER_SEC) >= 0);
        assert_int_equal(run->n_calls, 1);
        if (run->result != REPORT_DONE)
                assert_true(run->error.text[0] != '\0');
}

static inline void run_done(Run *run)
{
        executor_free(run->executor);
        plan_free(run->plan);
        mirror_free(run->mirror);
        session_free(run->session);
        sd_event_unref(run->event);
        fake_http_begin(NULL, 0, "");
}

static inline int64_t generation_of(const Run *run, const char *name)
{
        Uuid uuid = fixture_uuid(name);

        return mirror_get_generation(run->mirror, &uuid);
}

static const Provider *mirrored(const Run *run, const char *name)
{
        Uuid uuid = fixture_uuid(name);

        return provider_tree_find(mirror_get_tree(run->mirror), &uuid);
}
