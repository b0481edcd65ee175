/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <unistd.h>

#include "base/clock.h"
#include "claims/fit/numa.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define GPUS                                                              \
        "host VCPU=8/0/1/8/1/2 MEMORY_MB=1024/24 DISK_GB=100/0/10/50/10;" \
        "gpu_a<host VGPU=8 +NVIDIA_A; gpu_b<host VGPU=4 +NVIDIA_B +FAST; gpu_c<host VGPU=8 +FAST"

typedef struct Case {
        const char *host;
        const char *used; /* "gpu_a VGPU=3": provider, class, amount; NULL: no usage */
        const char *request;
        int r;
        const char *text; /* the fit, or the error text */
} Case;

/* Runs a case. in_tree: of the first group; withheld: a provider; NULL: none. */
static void run_case(const Case *c, const char *in_tree, const char *withheld)
{
        _cleanup_(host_view_freep) HostView *view = make_view(c->host);
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        _cleanup_free_ char *text = NULL;
        Error error = ERROR_NULL;
        int r;

        if (c->used)
                use_text(view, c->used);
        for (size_t i = 0; withheld && i < view->n_providers; i++)
                view->providers[i].withheld = strcmp(view->tree->providers[i]->name, withheld) == 0;
        make_request(&request, c->request);
        if (in_tree)
                request.groups[0].in_tree = make_uuid(in_tree);
        r = fit_freely(view, &request, &fit, &error);
        text = r == CLAIM_DONE ? format_fit(view, &request, &fit) : strdup(error.text);
        if (r != c->r || strcmp(text, c->text) != 0)
                fail_msg("\"%s\" (used: %s)\n  yields    %d %s\n  expected  %d %s", c->request,
                         c->used ? c->used : "nothing", r, text, c->r, c->text);
        assert_int_equal(fit.pieces != NULL, r == CLAIM_DONE);
}

static void run_cases(const Case *cases, size_t n)
{
        for (size_t i = 0; i < n; i++)
                run_case(&cases[i], NULL, NULL);
}

static void test_unsuffixed(void **state)
{
        static const Case cases[] = {
                { GPUS, NULL, "VCPU=2,MEMORY_MB=1000", CLAIM_DONE,
                  "MEMORY_MB=1000 on host, VCPU=2 on host" },
                { GPUS, NULL, "VGPU=1", CLAIM_DONE, "VGPU=1 on gpu_a" },
                { GPUS, "gpu_a VGPU=1", "VGPU=1", CLAIM_DONE, "VGPU=1 on gpu_c" },
                { GPUS, "gpu_a VGPU=1", "VGPU=8", CLAIM_DONE, "VGPU=8 on gpu_c" },
                /* an amount is not split over providers */
                { GPUS, NULL, "VGPU=9", CLAIM_E_NO_CAPACITY,
                  "VGPU: 9 requested, but 8 of 8 are free on gpu_a" },
                { GPUS, "host VCPU=15", "VCPU=1", CLAIM_DONE, "VCPU=1 on host" },
                { GPUS, "host VCPU=15", "VCPU=2", CLAIM_E_NO_CAPACITY,
                  "VCPU: 2 requested, but 1 of 16 are free on host" },
                { GPUS, NULL, "VCPU=9", CLAIM_E_NO_CAPACITY,
                  "VCPU: 9 is more than max_unit 8 on host" },
                { GPUS, NULL, "DISK_GB=15", CLAIM_E_NO_CAPACITY,
                  "DISK_GB: 15 is not a multiple of step_size 10 on host" },
                { GPUS, NULL, "DISK_GB=5", CLAIM_E_NO_CAPACITY,
                  "DISK_GB: 5 is less than min_unit 10 on host" },
                { GPUS, NULL, "CUSTOM_X=1", CLAIM_E_UNKNOWN_CLASS,
                  "No provider of this host has resource class CUSTOM_X" },
                { "", NULL, "VCPU=1", CLAIM_E_UNKNOWN_CLASS,
                  "The host has not been polled yet, so its resources are unknown. \"computectl status\" shows the reason" },
                /* the root is preferred to others with more capacity */
                { "host VCPU=2; cell<host VCPU=8", NULL, "VCPU=2", CLAIM_DONE, "VCPU=2 on host" },
                { "host VCPU=2; cell<host VCPU=8", NULL, "VCPU=3", CLAIM_DONE, "VCPU=3 on cell" },
                /* usage above the capacity */
                { "host VCPU=2", "host VCPU=5", "VCPU=1", CLAIM_E_NO_CAPACITY,
                  "VCPU: 1 requested, but 0 of 2 are free on host" },
        };

        run_cases(cases, ARRAY_SIZE(cases));
}

static void test_traits(void **state)
{
        static const Case cases[] = {
                { GPUS, NULL, "_G:VGPU=1:FAST", CLAIM_DONE, "_G VGPU=1 on gpu_c" },
                { GPUS, NULL, "_G:VGPU=1:FAST,NVIDIA_B", CLAIM_DONE, "_G VGPU=1 on gpu_b" },
                { GPUS, NULL, "_G:VGPU=1:!FAST", CLAIM_DONE, "_G VGPU=1 on gpu_a" },
                { GPUS, NULL, "_G:VGPU=1:NONE", CLAIM_E_NO_CAPACITY,
                  "Group \"_G\": VGPU: gpu_a lacks the required trait NONE" },
                { "host VGPU=1 +X", NULL, "_G:VGPU=1:!X", CLAIM_E_NO_CAPACITY,
                  "Group \"_G\": VGPU: host has the forbidden trait X" },
                /* all providers of the unsuffixed group together have its traits */
                { "host VCPU=4 +A; gpu<host VGPU=1 +B", NULL, "VCPU=1,VGPU=1:A,B", CLAIM_DONE,
                  "VCPU=1 on host, VGPU=1 on gpu" },
                { GPUS, NULL, "VCPU=1,VGPU=1:NVIDIA_B", CLAIM_DONE,
                  "VCPU=1 on host, VGPU=1 on gpu_b" },
                { GPUS, NULL, "VCPU=1,VGPU=1:NVIDIA_A,NVIDIA_B", CLAIM_E_NO_CAPACITY,
                  "Each part of the request fits alone, but not all of them together" },
                { GPUS, NULL, "VCPU=1:NVIDIA_A", CLAIM_E_NO_CAPACITY,
                  "No provider with capacity for the request has the required trait NVIDIA_A" },
                { GPUS, NULL, "VCPU=1,VGPU=1:!FAST", CLAIM_DONE,
                  "VCPU=1 on host, VGPU=1 on gpu_a" },
                { "host VCPU=4 +X", NULL, "VCPU=1:!X", CLAIM_E_NO_CAPACITY,
                  "VCPU: host has the forbidden trait X" },
        };

        run_cases(cases, ARRAY_SIZE(cases));
}

static void test_groups(void **state)
{
        static const Case cases[] = {
                { GPUS, NULL, "VCPU=1 _A:VGPU=1 _B:VGPU=1 isolate", CLAIM_DONE,
                  "VCPU=1 on host, _A VGPU=1 on gpu_a, _B VGPU=1 on gpu_c" },
                /* most free capacity: after the first group, gpu_a has less */
                { GPUS, NULL, "_A:VGPU=1 _B:VGPU=1", CLAIM_DONE,
                  "_A VGPU=1 on gpu_a, _B VGPU=1 on gpu_c" },
                { GPUS, NULL, "_A:VGPU=1 _B:VGPU=1 _C:VGPU=1 _D:VGPU=1 isolate",
                  CLAIM_E_NO_CAPACITY,
                  "4 groups ask for VGPU=1 each on providers of their own (isolate), but there is capacity for 3" },
                { GPUS, NULL, "_A:VGPU=8 _B:VGPU=8 _C:VGPU=8", CLAIM_E_NO_CAPACITY,
                  "3 groups ask for VGPU=8 each, but there is capacity for 2" },
                { GPUS, NULL, "_A:VGPU=8 _B:VGPU=7 _C:VGPU=6", CLAIM_E_NO_CAPACITY,
                  "VGPU: all groups together ask for 21, but one request can get 16" },
                { GPUS, NULL, "_A:VGPU=6 _B:VGPU=5 _C:VGPU=5", CLAIM_E_NO_CAPACITY,
                  "Each part of the request fits alone, but not all of them together" },
                /* _A fits on three providers, but _B needs the one that _A prefers */
                { "host VCPU=1; a<host VGPU=2; b<host VGPU=4", NULL, "_A:VGPU=2 _B:VGPU=4",
                  CLAIM_DONE, "_A VGPU=2 on a, _B VGPU=4 on b" },
                { "host VCPU=1; a<host VGPU=1 +T; b<host VGPU=1", NULL, "_A:VGPU=1 _B:VGPU=1:T",
                  CLAIM_DONE, "_A VGPU=1 on b, _B VGPU=1 on a" },
                /* a group comes whole from one provider */
                { GPUS, NULL, "_A:VCPU=1,VGPU=1", CLAIM_E_NO_CAPACITY,
                  "Group \"_A\": no single provider has all of its classes" },
                { "host; n0<host VCPU=4 MEMORY_MB=10; n1<host VCPU=2 MEMORY_MB=100", NULL,
                  "_N:VCPU=2,MEMORY_MB=50", CLAIM_DONE, "_N MEMORY_MB=50 on n1, _N VCPU=2 on n1" },
                /* max_unit limits the sum of one request on a provider */
                { "host VCPU=8/0/1/2", NULL, "VCPU=1 _A:VCPU=1", CLAIM_DONE,
                  "VCPU=1 on host, _A VCPU=1 on host" },
                { "host VCPU=8/0/1/2", NULL, "VCPU=1 _A:VCPU=2", CLAIM_E_NO_CAPACITY,
                  "VCPU: all groups together ask for 3, but one request can get 2" },
                /* isolate does not concern the unsuffixed group */
                { "host VGPU=2", NULL, "VGPU=1 _A:VGPU=1 isolate", CLAIM_DONE,
                  "VGPU=1 on host, _A VGPU=1 on host" },
        };

        run_cases(cases, ARRAY_SIZE(cases));
}

static void test_trees(void **state)
{
        static const Case cases[] = {
                /* another root that shares nothing is another host */
                { "host VCPU=1; other VCPU=8", NULL, "VCPU=2", CLAIM_E_NO_CAPACITY,
                  "VCPU: 2 requested, but 1 of 1 are free on host" },
                { "host VCPU=1; other DISK_GB=8", NULL, "DISK_GB=2", CLAIM_E_NO_CAPACITY,
                  "DISK_GB: other is not part of this node" },
                { "host VCPU=1 @A; pool DISK_GB=8 +MISC_SHARES_VIA_AGGREGATE @A", NULL,
                  "VCPU=1,DISK_GB=2", CLAIM_DONE, "DISK_GB=2 on pool, VCPU=1 on host" },
                { "host VCPU=1 @B; pool DISK_GB=8 +MISC_SHARES_VIA_AGGREGATE @A", NULL, "DISK_GB=2",
                  CLAIM_E_NO_CAPACITY, "DISK_GB: pool is not part of this node" },
                /* the pool comes first in the tree, but is not the host */
                { "pool DISK_GB=8 +MISC_SHARES_VIA_AGGREGATE @A; renamed VCPU=1 @A", NULL,
                  "VCPU=1,DISK_GB=2", CLAIM_DONE, "DISK_GB=2 on pool, VCPU=1 on renamed" },
        };

        run_cases(cases, ARRAY_SIZE(cases));
}

static void test_withheld(void **state)
{
        static const Case c = {
                "host VCPU=1; gpu<host VGPU=4", NULL, "VGPU=1", CLAIM_E_NO_CAPACITY,
                "VGPU: gpu is withheld, because nothing on this host has its name"
        };

        run_case(&c, NULL, "gpu");
}

/* Many equal devices, and one group too many for them: the search needs more than one pass. */
static void test_many_devices(void **state)
{
        _cleanup_free_ char *host = NULL;
        _cleanup_(host_view_freep) HostView *view = NULL;

        append_text(&host, "host VCPU=64");
        for (int i = 0; i < 63; i++)
                append_text(&host, "; vf_%02d<host SRIOV_NET_VF=1 +PHYSNET%d", i, i % 2);
        view = make_view(host);
        for (int n = 62; n <= 64; n++) {
                _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
                _cleanup_(fit_done) Fit fit = FIT_NULL;
                _cleanup_free_ char *words = NULL;
                FitEffort effort = fit_effort_begin(0);
                int r;

                append_text(&words, "VCPU=1");
                for (int i = 0; i < n; i++)
                        append_text(&words, " _P%d:SRIOV_NET_VF=1%s", i,
                                    i % 8 == 0 ? ":PHYSNET1" : "");
                make_request(&request, words);
                r = fit_groups(view, "host", &request, NULL, &effort, &fit, NULL);
                assert_int_equal(r, n <= 63 ? CLAIM_DONE : CLAIM_E_NO_CAPACITY);
                assert_true(effort.work < 200000);
        }
}

/* Packings that no shortcut decides end at the bound. */
static void test_bound(void **state)
{
        _cleanup_free_ char *host = NULL, *words = NULL;
        _cleanup_(host_view_freep) HostView *view = NULL;
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        FitEffort effort = fit_effort_begin(0);
        Error error = ERROR_NULL;
        int r;

        /* Three parts of more than a third and less than a half never fill a bin. In total there is
         * enough capacity, yet 40 bins take 80 of the 81 parts. */
        append_text(&host, "host VCPU=1");
        for (int i = 0; i < 40; i++)
                append_text(&host, "; bin_%d<host MEMORY_MB=%d", i, 1000 + i);
        view = make_view(host);
        for (int i = 0; i < 81; i++)
                append_text(&words, "%s_P%d:MEMORY_MB=%d", i ? " " : "", i, 350 + i);
        make_request(&request, words);
        r = fit_groups(view, "host", &request, NULL, &effort, &fit, &error);
        assert_int_equal(r, CLAIM_E_TOO_HARD);
        assert_string_equal(
                error.text,
                "Too hard: no placement of the 81 groups was found within 3000000 steps");
        assert_true(effort.work > FIT_WORK_MAX && effort.work < FIT_WORK_MAX * 2);
}

static void check_pieces(const Fit *fit, const char *expected)
{
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < fit->n_pieces; i++)
                append_text(&text, "%s%s=%llu on %zu", i ? ", " : "", fit->pieces[i].resource_class,
                            (unsigned long long)fit->pieces[i].amount, fit->pieces[i].provider);
        assert_string_equal(text, expected);
}

/* Returns the CPU time of this thread. */
static double cpu_seconds(void)
{
        return (double)clock_usec(CLOCK_THREAD_CPUTIME_ID) / 1e6;
}

/* Makes many groups of one subtree, one too many for any provider, on providers that are siblings.
 * Only the last placed group shows that no provider is above all others, for each way to place the
 * rest. */
static void make_hard_subtree(ResourceRequest *request)
{
        _cleanup_(string_set_done) StringSet suffixes = STRING_SET_INIT;
        _cleanup_free_ char *words = NULL;

        for (int i = 0; i < 256; i++) {
                char suffix[16];

                snprintf(suffix, sizeof(suffix), "_%03d", i);
                assert_true(string_set_add(&suffixes, suffix) >= 0);
                append_text(&words, "%s%s:VGPU=1", i ? " " : "", suffix);
        }
        make_request(request, words);
        assert_int_equal(resource_request_add_subtree(request, &suffixes, NULL), 0);
}

#define SIX_GPUS                                                                     \
        "host VCPU=1; a<host VGPU=6000/0/1/255 +T_0; b<host VGPU=5000/0/1/255 +T_1;" \
        "c<host VGPU=4000/0/1/255 +T_2; d<host VGPU=3000/0/1/255 +T_3;"              \
        "e<host VGPU=2000/0/1/255 +T_4; f<host VGPU=1000/0/1/255 +T_5"

/* Checks of subtrees count as work. Without that, this request took minutes. */
static void test_bound_of_subtrees(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(SIX_GPUS);
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        FitEffort effort = fit_effort_begin(0);
        double begin = cpu_seconds();

        make_hard_subtree(&request);
        assert_int_equal(fit_groups(view, "host", &request, NULL, &effort, &fit, NULL),
                         CLAIM_E_TOO_HARD);
        assert_true(effort.work > FIT_WORK_MAX && effort.work < FIT_WORK_MAX * 2);
        assert_true(cpu_seconds() - begin < 5);
}

/* The time ends the effort before the work does, during the search and before it. */
static void test_bound_in_time(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(SIX_GPUS);
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        FitEffort effort = fit_effort_begin(2 * USEC_PER_MSEC);
        FitVerdicts verdicts = { 0 };
        Error error = ERROR_NULL;

        make_hard_subtree(&request);
        assert_int_equal(fit_groups(view, "host", &request, NULL, &effort, &fit, &error),
                         CLAIM_E_TOO_HARD);
        assert_string_equal(error.text,
                            "Too hard: no placement of the 256 groups was found within 2 ms");
        assert_true(effort.work > 0 && effort.work < FIT_WORK_MAX);
        assert_int_equal(fit_explain_request(view, "host", &request, &effort, &verdicts, &error),
                         CLAIM_E_TOO_HARD);
        assert_int_equal(verdicts.n_items, 0);
}

/* The number of verdicts is bounded, and omitted ones are counted. */
static void test_many_verdicts(void **state)
{
        _cleanup_free_ char *host = NULL, *words = NULL;
        _cleanup_(host_view_freep) HostView *view = NULL;
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_verdicts_done) FitVerdicts verdicts = { 0 };
        FitEffort effort = fit_effort_begin(0);

        append_text(&host, "host VCPU=1");
        for (int i = 0; i < 100; i++)
                append_text(&host, "; vf_%02d<host VF=1", i);
        view = make_view(host);
        for (int i = 0; i < 60; i++)
                append_text(&words, "%s_%d:VF=1", i ? " " : "", i);
        make_request(&request, words);
        assert_int_equal(fit_explain_request(view, "host", &request, &effort, &verdicts, NULL),
                         CLAIM_DONE);
        assert_int_equal(verdicts.n_items, FIT_VERDICTS_MAX);
        assert_int_equal(verdicts.n_omitted, 6000 - FIT_VERDICTS_MAX);
}

static void test_force(void **state)
{
        _cleanup_(host_view_freep) HostView *view =
                make_view("host DISK_GB=1; n0<host VCPU=4 MEMORY_MB=8; n1<host VCPU=4 MEMORY_MB=9");
        _cleanup_(resources_done) Resources resources = RESOURCES_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;

        use_some(view, "n0", "VCPU", 1);
        assert_int_equal(
                resources_parse("DISK_GB=10,MEMORY_MB=99,VCPU=2,CUSTOM_X=1", &resources, NULL), 0);
        assert_int_equal(fit_force_numa(view, NULL, "host", &resources, &(Layout){ 0 }, &fit), 0);
        check_pieces(&fit, "DISK_GB=10 on 0, MEMORY_MB=91 on 2, MEMORY_MB=8 on 1, VCPU=2 on 2");
        fit_done(&fit);
        /* over several cells if none has enough, and the excess on the first of two full ones */
        use_some(view, "n0", "MEMORY_MB", 8);
        use_some(view, "n1", "MEMORY_MB", 9);
        assert_int_equal(resources_set(&resources, "VCPU", 5), 0);
        assert_int_equal(fit_force_numa(view, NULL, "host", &resources, &(Layout){ 0 }, &fit), 0);
        check_pieces(&fit, "DISK_GB=10 on 0, MEMORY_MB=99 on 1, VCPU=4 on 2, VCPU=1 on 1");
}

/* Every provider that has the class yields the first term that fails, and the missing amount. */
static void test_explain(void **state)
{
        static const struct {
                const char *used, *request;
                int r;
                const char *verdicts; /* "group class on provider: term missing; …" */
        } rows[] = {
                { NULL, "VCPU=2", CLAIM_DONE, " VCPU on host: fits 0" },
                { "host VCPU=15", "VCPU=4", CLAIM_E_NO_CAPACITY, " VCPU on host: capacity 3" },
                { NULL, "VCPU=10", CLAIM_E_NO_CAPACITY, " VCPU on host: max_unit 2" },
                { NULL, "DISK_GB=5", CLAIM_E_NO_CAPACITY, " DISK_GB on host: min_unit 5" },
                { NULL, "DISK_GB=13", CLAIM_E_NO_CAPACITY, " DISK_GB on host: step_size 7" },
                { NULL, "CUSTOM_X=1", CLAIM_E_UNKNOWN_CLASS, "" },
                { "gpu_b VGPU=3", "VCPU=1 _G:VGPU=2:FAST", CLAIM_DONE,
                  " VCPU on host: fits 0; _G VGPU on gpu_a: trait 0; _G VGPU on gpu_b: capacity 1; _G VGPU on gpu_c: fits 0" },
                { NULL, "VCPU=1:NVIDIA_A _G:VGPU=1", CLAIM_E_NO_CAPACITY,
                  " VCPU on host: trait 0; _G VGPU on gpu_a: fits 0; _G VGPU on gpu_b: fits 0; _G VGPU on gpu_c: fits 0" },
                { NULL, "_G:VGPU=1,VCPU=1", CLAIM_E_NO_CAPACITY,
                  "_G VGPU on host: class 1; _G VCPU on gpu_a: class 1; _G VCPU on gpu_b: class 1; _G VCPU on gpu_c: class 1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(host_view_freep) HostView *view = make_view(GPUS);
                _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
                _cleanup_(fit_verdicts_done) FitVerdicts verdicts = { 0 };
                FitEffort effort = fit_effort_begin(0);
                char text[512] = "";
                size_t n = 0;
                int r;

                if (rows[i].used)
                        use_text(view, rows[i].used);
                make_request(&request, rows[i].request);
                r = fit_explain_request(view, "host", &request, &effort, &verdicts, NULL);
                for (size_t j = 0; j < verdicts.n_items; j++) {
                        const FitVerdict *verdict = &verdicts.items[j];

                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %s on %s: %s %u",
                                              j > 0 ? "; " : "", verdict->suffix,
                                              verdict->resource_class, verdict->provider_name,
                                              verdict->term, (unsigned)verdict->missing);
                        if ((strcmp(verdict->term, "fits") == 0) != (verdict->text[0] == '\0'))
                                fail_msg("%s: %s", verdict->term, verdict->text);
                }
                if (r != rows[i].r || strcmp(text, rows[i].verdicts) != 0)
                        fail_msg("%s: %d\n  yields    %s\n  expected  %s", rows[i].request, r, text,
                                 rows[i].verdicts);
        }
}

/* Other load on the machine does not use up the time of a fit. */
static void test_the_time_is_the_thread_s_own(void **state)
{
        FitEffort waits = fit_effort_begin(20 * USEC_PER_MSEC), runs = fit_effort_begin(1);

        usleep(60 * USEC_PER_MSEC);
        assert_true(fit_effort_spend(&waits, 2000));
        while (fit_effort_spend(&runs, 2000))
                assert_true(runs.work < FIT_WORK_MAX);
        assert_true(runs.late);
}

/* E8: in_tree allows the providers of the tree of the named provider, which can be any of its
 * members. */
static void test_in_tree(void **state)
{
#define SHARE                                 \
        "host DISK_GB=8 @X; gpu<host VGPU=1;" \
        "share DISK_GB=9 +MISC_SHARES_VIA_AGGREGATE @X"
        static const Case cases[] = {
                { SHARE, NULL, "_G:DISK_GB=1", CLAIM_DONE, "_G DISK_GB=1 on host" },
                { SHARE, NULL, "_G:DISK_GB=1", CLAIM_DONE, "_G DISK_GB=1 on share" },
                { SHARE, NULL, "_G:DISK_GB=1", CLAIM_E_NO_CAPACITY,
                  "Group \"_G\": DISK_GB: host is not in the requested tree" },
        };
#undef SHARE

        run_case(&cases[0], "gpu", NULL);
        run_case(&cases[1], "share", NULL);
        run_case(&cases[2], "nobody", NULL);
}

/* E8: a group without resources selects by its traits; the cell with both is found. */
static void test_same_subtree(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(
                "host; n0<host VCPU=8 +CELL; n1<host VCPU=4 +CELL +FAST; g0<n0 VGPU=1; g1<n1 VGPU=1");
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(string_set_done) StringSet suffixes = STRING_SET_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        _cleanup_free_ char *text = NULL;
        RequestGroup *group;

        make_request(&request, "_C:VCPU=2 _G:VGPU=1");
        assert_int_equal(resource_request_group(&request, "_N", &group, NULL), 0);
        assert_true(string_set_add(&group->required, "FAST") >= 0);
        for (size_t i = 0; i < request.n_groups; i++)
                assert_true(string_set_add(&suffixes, request.groups[i].suffix) >= 0);
        assert_int_equal(resource_request_add_subtree(&request, &suffixes, NULL), 0);
        assert_int_equal(fit_freely(view, &request, &fit, NULL), CLAIM_DONE);
        text = format_fit(view, &request, &fit);
        assert_string_equal(text, "_C VCPU=2 on n1, _G VGPU=1 on g1");
        fit_done(&fit);
        use_some(view, "g1", "VGPU", 1);
        assert_int_equal(fit_freely(view, &request, &fit, NULL), CLAIM_E_NO_CAPACITY);
}

TEST_MAIN(test_in_tree, test_same_subtree, test_unsuffixed, test_traits, test_groups, test_trees,
          test_withheld, test_many_devices, test_bound, test_bound_of_subtrees, test_bound_in_time,
          test_many_verdicts, test_force, test_explain, test_the_time_is_the_thread_s_own)
