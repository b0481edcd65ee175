/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Requests whose providers a scheduler chose: the provider of each group, and the fit that can
 * choose no other one (claims/fit/placed.h). */

#include "base/clock.h"
#include "claims/fit/placed.h"

#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

/* Parses "_1=eth0 _2=eth1". Returns false for NULL: no mappings. */
static bool make_mappings(const char *text, RequestMappings *ret)
{
        _cleanup_free_ char *copy = text ? strdup(text) : NULL;
        char *save = NULL;

        for (char *word = copy ? strtok_r(copy, " ", &save) : NULL; word;
             word = strtok_r(NULL, " ", &save)) {
                char *equals = strchr(word, '=');
                Uuid provider = make_uuid(equals + 1);

                *equals = '\0';
                assert_int_equal(request_mappings_add(ret, word, &provider), 0);
        }
        return text;
}

#define NICS                                                                       \
        "host VCPU=8 MEMORY_MB=1024; eth0<host EGR=2000 IGR=2000 +NET_1;"          \
        " eth1<host EGR=2000 IGR=2000 +NET_1; eth2<host EGR=4000 IGR=4000 +NET_2;" \
        " eth3<host EGR=4000 IGR=4000 +NET_2"

typedef struct Case {
        const char *host, *used, *request, *holding, *mappings;
        int r;
        const char *text; /* the fit, or a part of the error text */
        bool ambiguous;
} Case;

static void run_case(size_t i, const Case *c)
{
        _cleanup_(host_view_freep) HostView *view = make_view(c->host);
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(request_mappings_done) RequestMappings mappings = REQUEST_MAPPINGS_INIT;
        _cleanup_(consumer_freep) Consumer *holding = make_holding("consumer", c->holding);
        _cleanup_(resource_request_done) ResourceRequest bound = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        _cleanup_free_ char *text = NULL;
        bool told = make_mappings(c->mappings, &mappings);
        FitEffort effort = fit_effort_begin(0);
        Error error = ERROR_NULL;
        bool ambiguous = false;
        int r;

        if (c->used)
                use_text(view, c->used);
        make_request(&request, c->request);
        r = placed_make(view, "host", &request, holding, told ? &mappings : NULL, &bound, &error);
        if (r == 0) {
                r = fit_groups(view, "host", &bound, holding, &effort, &fit, &error);
                r = r > 0 ? 10 + r : r;
        }
        if (r == 0)
                r = placed_check(view, &bound, holding, &fit, &ambiguous, &error);
        text = r == 0 ? format_fit(view, &bound, &fit) : strdup(error.text);
        ambiguous = r == 0 && ambiguous;
        if (r != c->r || !strstr(text, c->text) || (r == 0 && strcmp(text, c->text) != 0) ||
            ambiguous != c->ambiguous)
                fail_msg("case %zu: \"%s\" of \"%s\"\n  yields    %d %s%s\n  expected  %d %s", i,
                         c->request, c->holding, r, text, ambiguous ? " (ambiguous)" : "", c->r,
                         c->text);
}

static void run_cases(const Case *cases, size_t n)
{
        for (size_t i = 0; i < n; i++)
                run_case(i, &cases[i]);
}

#define GPUS        "host VCPU=8 MEMORY_MB=1024 DISK_GB=100; gpu_a<host VGPU=4 +A; gpu_b<host VGPU=4 +B"
#define NO_CAPACITY (CLAIM_E_NO_CAPACITY)
#define OTHER       (CLAIM_E_OTHER)
#define NO_FIT      (10 + CLAIM_E_NO_CAPACITY)

static void test_placed(void **state)
{
        static const Case cases[] = {
                { GPUS, NULL, "VCPU=2,MEMORY_MB=64", "host VCPU=2,MEMORY_MB=64", NULL, 0,
                  "MEMORY_MB=64 on host, VCPU=2 on host", false },
                /* A free fit would choose gpu_a. */
                { GPUS, NULL, "VGPU=1", "gpu_b VGPU=1", NULL, 0, "VGPU=1 on gpu_b", false },
                { GPUS, NULL, "_G:VGPU=1", "gpu_b VGPU=1", "_G=gpu_b", 0, "_G VGPU=1 on gpu_b",
                  false },
                { GPUS, NULL, "_G:VGPU=1", "gpu_b VGPU=1", NULL, 0, "_G VGPU=1 on gpu_b", false },
                /* Existing claims of this host count, whatever Placement has. */
                { GPUS, "gpu_b VGPU=4", "VGPU=1", "gpu_b VGPU=1", NULL, NO_CAPACITY,
                  "VGPU: Placement allocated 1 of gpu_b to this consumer, but claims of this host have 4 of 4",
                  false },
                { GPUS, NULL, "VGPU=1", "host VGPU=1", NULL, NO_CAPACITY,
                  "VGPU: host has no inventory of it", false },
                { GPUS, NULL, "VGPU=1", "gpu_b VGPU=2", NULL, OTHER,
                  "has 2 of VGPU allocated here, but the request asks for 1", false },
                { GPUS, NULL, "VGPU=1,VCPU=1", "gpu_b VGPU=1", NULL, OTHER,
                  "has 0 of VCPU allocated here", false },
                { GPUS, NULL, "VCPU=1", "host VCPU=1,DISK_GB=5", NULL, OTHER,
                  "has 5 of DISK_GB allocated here, but the request asks for 0", false },
                /* The disk is on a provider of another host. */
                { GPUS, NULL, "VCPU=1,DISK_GB=5", "host VCPU=1; shared DISK_GB=5", NULL, 0,
                  "VCPU=1 on host", false },
                { GPUS, NULL, "VCPU=1 _G:VGPU=1 _H:VGPU=1", "host VCPU=1; gpu_a VGPU=1; x VGPU=1",
                  "_G=x _H=gpu_a", 0, "VCPU=1 on host, _H VGPU=1 on gpu_a", false },
                /* A consumer that moves has all of it twice. */
                { GPUS, NULL, "VCPU=1", "host VCPU=1; other VCPU=1", NULL, 0, "VCPU=1 on host",
                  false },
                { GPUS, NULL, "VCPU=1", "other VCPU=1", NULL, OTHER,
                  "has no allocations on this host", false },
                /* The traits of the provider are checked here, too. */
                { GPUS, NULL, "_G:VGPU=1:A", "gpu_b VGPU=1", "_G=gpu_b", NO_FIT, "", false },
        };

        run_cases(cases, ARRAY_SIZE(cases));
}

/* Specification 5: the providers of ports are found by their amounts. */
static void test_mappings(void **state)
{
        static const Case cases[] = {
                /* Example 2: one of two assignments fits. */
                { NICS, NULL, "_1:EGR=1000,IGR=1000 _2:EGR=1000,IGR=2000 isolate",
                  "eth0 EGR=1000,IGR=1000; eth1 EGR=1000,IGR=2000", NULL, 0,
                  "_1 EGR=1000 on eth0, _1 IGR=1000 on eth0, _2 EGR=1000 on eth1, _2 IGR=2000 on eth1",
                  false },
                { NICS, NULL, "_1:EGR=1000,IGR=1000 _2:EGR=1000,IGR=2000 isolate",
                  "eth1 EGR=1000,IGR=1000; eth0 EGR=1000,IGR=2000", NULL, 0,
                  "_1 EGR=1000 on eth1, _1 IGR=1000 on eth1, _2 EGR=1000 on eth0, _2 IGR=2000 on eth0",
                  false },
                /* Four ports on four providers. */
                { NICS, NULL, "_1:EGR=100 _2:EGR=200 _3:EGR=300:NET_2 _4:EGR=300:NET_1 isolate",
                  "eth0 EGR=200; eth1 EGR=300; eth2 EGR=300; eth3 EGR=100", NULL, 0,
                  "_1 EGR=100 on eth3, _2 EGR=200 on eth0, _3 EGR=300 on eth2, _4 EGR=300 on eth1",
                  false },
                /* Equal ports: only the mappings distinguish them. */
                { NICS, NULL, "_1:EGR=100 _2:EGR=100 isolate", "eth0 EGR=100; eth1 EGR=100", NULL,
                  0, "_1 EGR=100 on eth0, _2 EGR=100 on eth1", true },
                { NICS, NULL, "_1:EGR=100 _2:EGR=100 isolate", "eth0 EGR=100; eth1 EGR=100",
                  "_1=eth1 _2=eth0", 0, "_1 EGR=100 on eth1, _2 EGR=100 on eth0", false },
                /* One is mapped: the other one gets the remaining provider. */
                { NICS, NULL, "_1:EGR=100 _2:EGR=100 isolate", "eth0 EGR=100; eth1 EGR=100",
                  "_1=eth0", 0, "_1 EGR=100 on eth0, _2 EGR=100 on eth1", false },
                { NICS, NULL, "_1:EGR=100 _2:EGR=100 _3:EGR=100", "eth0 EGR=200; eth1 EGR=100",
                  "_1=eth1", 0, "_1 EGR=100 on eth1, _2 EGR=100 on eth0, _3 EGR=100 on eth0",
                  false },
                /* Groups that share a provider. */
                { NICS, NULL, "_1:EGR=100 _2:EGR=100 _3:EGR=100", "eth0 EGR=200; eth1 EGR=100",
                  NULL, 0, "_1 EGR=100 on eth0, _2 EGR=100 on eth0, _3 EGR=100 on eth1", true },
                { NICS, NULL, "_1:EGR=100 _2:EGR=100 isolate", "eth0 EGR=200", NULL, NO_FIT, "",
                  false },
                /* Groups of different sizes. */
                { NICS, NULL, "_1:EGR=100 _2:EGR=200 _3:EGR=300", "eth0 EGR=300; eth1 EGR=300",
                  NULL, 0, "_1 EGR=100 on eth1, _2 EGR=200 on eth1, _3 EGR=300 on eth0", false },
                /* The group without a suffix has some of the class, too. */
                { NICS, NULL, "EGR=50 _1:EGR=100", "eth0 EGR=100; eth1 EGR=50", NULL, 0,
                  "EGR=50 on eth1, _1 EGR=100 on eth0", false },
                /* Equal amounts, but only one of the two groups fits on the provider of the
                 * other. */
                { NICS, NULL, "_1:EGR=100 _2:EGR=100:NET_1 isolate", "eth0 EGR=100; eth2 EGR=100",
                  NULL, 0, "_1 EGR=100 on eth2, _2 EGR=100 on eth0", false },
                { NICS, NULL, "VCPU=1 _1:EGR=100", "host VCPU=1; eth1 EGR=100", NULL, 0,
                  "VCPU=1 on host, _1 EGR=100 on eth1", false },
        };

        run_cases(cases, ARRAY_SIZE(cases));
}

/* Finds the providers by the amounts alone, within the effort, and takes all of the allocations. */
static void assert_found(const char *host, const char *request, const char *holding)
{
        _cleanup_(resource_request_done) ResourceRequest wanted = RESOURCE_REQUEST_INIT,
                                                         bound = RESOURCE_REQUEST_INIT;
        _cleanup_(host_view_freep) HostView *view = make_view(host);
        _cleanup_(consumer_freep) Consumer *held = make_holding("consumer", holding);
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        FitEffort effort = fit_effort_begin(0);
        Error error = ERROR_NULL;

        make_request(&wanted, request);
        if (placed_make(view, "host", &wanted, held, NULL, &bound, &error) != CLAIM_DONE ||
            fit_groups(view, "host", &bound, held, &effort, &fit, &error) != CLAIM_DONE ||
            placed_check(view, &bound, held, &fit, NULL, &error) != CLAIM_DONE)
                fail_msg("%s of %s: %s", request, holding, error.text);
        assert_true(effort.work < FIT_WORK_MAX / 10);
}

/* 64 ports with different amounts, in the reverse order. */
static void test_64_ports(void **state)
{
        _cleanup_free_ char *host = strdup("host VCPU=8"), *request = strdup("VCPU=1 isolate"),
                            *holding = strdup("host VCPU=1");

        for (int i = 0; i < 64; i++) {
                append_text(&host, "; eth%d<host EGR=100000", i);
                append_text(&holding, "; eth%d EGR=%d", i, (64 - i) * 100);
                append_text(&request, " _P%d:EGR=%d", i, (i + 1) * 100);
        }
        assert_found(host, request, holding);
}

/* Up to 16 groups of one or two classes, some with a trait, on up to 12 providers. With or without
 * isolate, and with an amount of the group without a suffix. */
static void test_random(void **state)
{
        srandom(17);
        for (int run = 0; run < 800; run++) {
                _cleanup_free_ char *host = strdup("host VCPU=8"), *request = NULL,
                                    *holding = strdup("host VCPU=1");
                unsigned egr[12] = { 0 }, igr[12] = { 0 }, traits[12];
                unsigned n_providers = 1 + (unsigned)random() % 12, n_amounts = 1 + run % 6;
                bool isolate = run % 2, two = run % 3 == 0;
                unsigned n_groups = 1 + (unsigned)random() % (isolate ? n_providers : 16);
                unsigned plain = run % 4 == 0 ? 1 + (unsigned)random() % 5 : 0;
                unsigned first = (unsigned)random();

                for (unsigned i = 0; i < n_providers; i++)
                        traits[i] = (unsigned)random() % 3;
                egr[first % n_providers] = plain;
                append_text(&request, "VCPU=1%s%.0u%s", plain ? ",EGR=" : "", plain,
                            isolate ? " isolate" : "");
                for (unsigned i = 0; i < n_groups; i++) {
                        unsigned at = isolate ? (first + i * 7) % n_providers
                                              : (unsigned)random() % n_providers;
                        unsigned amount = 1 + (unsigned)random() % n_amounts,
                                 more = two ? 1 + (unsigned)random() % 2 : 0;

                        at = isolate && n_providers == 7 ? i : at; /* 7 is its own divisor */
                        egr[at] += amount;
                        igr[at] += more;
                        append_text(&request, " _%u:EGR=%u%s%.0u%s%.0u", i, amount,
                                    more ? ",IGR=" : "", more, traits[at] && i % 3 == 0 ? ":T" : "",
                                    i % 3 == 0 ? traits[at] : 0);
                }
                for (unsigned i = 0; i < n_providers; i++) {
                        append_text(&host, "; eth%u<host EGR=1000 IGR=1000 +T%u", i, traits[i]);
                        if (egr[i])
                                append_text(&holding, "; eth%u EGR=%u%s%.0u", i, egr[i],
                                            igr[i] ? ",IGR=" : "", igr[i]);
                }
                assert_found(host, request, holding);
        }
}

/* The fit of allocations costs about as much as a free choice: the host is not copied. */
static void test_4096_providers(void **state)
{
        static char host[200000] = "host VCPU=8";
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(consumer_freep) Consumer *holding =
                make_holding("consumer", "host VCPU=1; eth4000 EGR=1");
        double best_free = 1e12, best_placed = 1e12;
        _cleanup_(host_view_freep) HostView *view = NULL;
        size_t n = strlen(host);

        for (int i = 0; i < 4095; i++)
                n += (size_t)snprintf(host + n, sizeof(host) - n, "; eth%d<host EGR=9", i);
        view = make_view(host);
        make_request(&request, "VCPU=1 _1:EGR=1");
        for (int i = 0; i < 20; i++) {
                _cleanup_(resource_request_done) ResourceRequest bound = RESOURCE_REQUEST_INIT;
                _cleanup_(fit_done) Fit freely = FIT_NULL, fit = FIT_NULL;
                FitEffort effort = fit_effort_begin(0);
                double start = (double)clock_usec(CLOCK_THREAD_CPUTIME_ID), middle;

                assert_int_equal(fit_freely(view, &request, &freely, NULL), CLAIM_DONE);
                middle = (double)clock_usec(CLOCK_THREAD_CPUTIME_ID);
                assert_int_equal(placed_make(view, "host", &request, holding, NULL, &bound, NULL),
                                 CLAIM_DONE);
                assert_int_equal(fit_groups(view, "host", &bound, holding, &effort, &fit, NULL),
                                 CLAIM_DONE);
                assert_int_equal(placed_check(view, &bound, holding, &fit, NULL, NULL), CLAIM_DONE);
                best_placed =
                        MIN(best_placed, (double)clock_usec(CLOCK_THREAD_CPUTIME_ID) - middle);
                best_free = MIN(best_free, middle - start);
        }
        print_message("free %.0f us, placed %.0f us\n", best_free, best_placed);
        assert_true(best_placed < 3 * best_free);
}

TEST_MAIN(test_placed, test_mappings, test_64_ports, test_random, test_4096_providers)
