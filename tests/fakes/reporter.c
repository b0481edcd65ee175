/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/fakes/reporter.h"

#include <string.h>

#include "report/publish/plan.h"
#include "tests/unit/test.h"

FakeReporter fake_reporter;

void fake_reporter_begin(void)
{
        fake_reporter = (FakeReporter){ 0 };
        assert_int_equal(sd_event_new(&fake_reporter.event), 0);
}

void fake_reporter_end(void)
{
        sd_event_source_unref(fake_reporter.source);
        sd_event_unref(fake_reporter.event);
        provider_tree_free(fake_reporter.mirror);
        provider_tree_free(fake_reporter.sharing);
        allocations_free(fake_reporter.consumers);
}

void fake_reporter_note(char what)
{
        size_t n = strlen(fake_reporter.did);

        assert_true(n + 1 < sizeof(fake_reporter.did));
        fake_reporter.did[n] = what;
}

static int take_answer(FakeAnswers *answers)
{
        assert_true(answers->n < ARRAY_SIZE(answers->results));
        return answers->results[answers->n++];
}

int reporter_new(Reporter **ret, sd_event *event, const ReporterConfig *config, const Uuid *root,
                 const char *root_name, void (*deleted)(const Uuid *provider, const char *name),
                 Error *reterr)
{
        *ret = (Reporter *)&fake_reporter;
        return 0;
}

Reporter *reporter_free(Reporter *reporter)
{
        return NULL;
}

static int call_done(sd_event_source *source, void *userdata)
{
        Error error = ERROR_NULL;
        ReporterDone done = fake_reporter.done;

        fake_reporter.done = NULL;
        if (fake_reporter.result)
                error_setf(&error, EIO, "outcome %d", fake_reporter.result);
        done((Reporter *)&fake_reporter, fake_reporter.result, &error, fake_reporter.userdata);
        return 0;
}

static int answer_later(int result, ReporterDone done, void *userdata)
{
        assert_null(fake_reporter.done);
        fake_reporter.done = done;
        fake_reporter.userdata = userdata;
        fake_reporter.result = result;
        fake_reporter.source = sd_event_source_unref(fake_reporter.source);
        return sd_event_add_defer(fake_reporter.event, &fake_reporter.source, call_done, NULL);
}

int reporter_refresh(Reporter *reporter, ReporterDone done, void *userdata)
{
        int result = take_answer(&fake_reporter.refreshes);

        fake_reporter_note('R');
        if (result == 0 && !fake_reporter.mirror)
                assert_int_equal(provider_tree_new(&fake_reporter.mirror), 0);
        return answer_later(result, done, userdata);
}

json_t *reporter_save(const Reporter *reporter)
{
        return json_object();
}

int reporter_restore(Reporter *reporter, const json_t *json, Error *reterr)
{
        fake_reporter_note('S');
        return 0;
}

void reporter_forget(Reporter *reporter)
{
        assert_null(fake_reporter.done);
        fake_reporter_note('F');
}

int reporter_gather(Reporter *reporter, const StringSet *classes, const ProviderTree *ahead,
                    ReporterDone done, void *userdata)
{
        fake_reporter_note('H');
        return answer_later(take_answer(&fake_reporter.gathers), done, userdata);
}

int reporter_read_holders(Reporter *reporter, const Uuid *providers, size_t n_providers,
                          ReporterDone done, void *userdata)
{
        fake_reporter_note('I');
        return answer_later(take_answer(&fake_reporter.gathers), done, userdata);
}

void reporter_take_gathered(Reporter *reporter, Allocations **ret_consumers,
                            Allocations **ret_others)
{
        *ret_others = NULL;
        if (fake_reporter.consumers)
                assert_int_equal(allocations_copy(ret_consumers, fake_reporter.consumers), 0);
        else
                assert_int_equal(allocations_new(ret_consumers), 0);
}

const ProviderTree *reporter_tree(Reporter *reporter)
{
        return fake_reporter.mirror;
}

bool reporter_is_current(const Reporter *reporter)
{
        return fake_reporter.mirror;
}

int reporter_publish(Reporter *reporter, const ProviderTree *desired,
                     const Allocations *allocations, ReporterDone done, void *userdata)
{
        int result = take_answer(&fake_reporter.publishes);

        fake_reporter_note(allocations ? 'S' : 'W');
        if (result == 0 || fake_reporter.refuses_a_later_step) {
                fake_reporter.n_reshapes += allocations != NULL;
                provider_tree_free(fake_reporter.mirror);
                fake_reporter.mirror = provider_tree_ref(desired);
        }
        return answer_later(result, done, userdata);
}

int reporter_prepare(Reporter *reporter, const ProviderTree *desired, ReporterDone done,
                     void *userdata)
{
        fake_reporter_note('p');
        return answer_later(0, done, userdata);
}

int reporter_plan(Reporter *reporter, const ProviderTree *desired, const Allocations *allocations,
                  Plan **ret, Error *reterr)
{
        *ret = calloc(1, sizeof(Plan));
        assert_non_null(*ret);
        return 0;
}

int64_t reporter_get_generation(const Reporter *reporter, const Uuid *provider)
{
        return 0;
}

bool reporter_knows_root(const Reporter *reporter)
{
        return true;
}

Session *reporter_get_session(Reporter *reporter)
{
        return NULL;
}

void reporter_ask_at_once(Reporter *reporter)
{
}

const ReporterStatistics *reporter_get_statistics(Reporter *reporter)
{
        fake_reporter.statistics.reshaper = fake_reporter.access;
        fake_reporter.statistics.is_restored = true;
        return &fake_reporter.statistics;
}

void reporter_get_progress(const Reporter *reporter, Progress *ret)
{
        *ret = (Progress){ .phase = "publishing", .n_done = 1, .n_total = 2 };
}

const Sharing *reporter_get_sharing(const Reporter *reporter)
{
        return NULL;
}

bool sharing_is_known(const Sharing *sharing)
{
        return true;
}

const ProviderTree *sharing_get(const Sharing *sharing)
{
        return fake_reporter.sharing;
}

bool sharing_get_disk_use(const Sharing *sharing, uint64_t *ret)
{
        return false;
}
