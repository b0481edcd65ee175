/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Measures the pure parts of claims by the size of the host, in CPU time, the best of 9 runs:
 *  - reconcile: compares claims and guests, one running guest for each claim;
 *  - fit: one CPU of the root and one device of any provider below it;
 *  - placed: the same request, bound to the allocations of a scheduler. */

#include <string.h>
#include <time.h>

#include "claims/fit/placed.h"
#include "claims/reconcile.h"

#define N_RUNS 9

static double thread_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static Uuid make_uuid(const char *what, size_t i)
{
        Uuid space = { "12345678-1234-1234-1234-123456789abc" };
        char name[32];

        snprintf(name, sizeof(name), "%s%zu", what, i);
        return uuid_make_child(&space, name);
}

/* Reconcile. */

static int make_claim(size_t i, Claim **ret)
{
        const Uuid host = make_uuid("host", 0);
        Claim *claim;

        if (claim_new(&claim) < 0)
                return -ENOMEM;
        claim->id = (int64_t)i + 1;
        claim->consumer = make_uuid("guest", i);
        claim->state = CLAIM_STATE_CONFIRMED;
        claim->was_read = true;
        *ret = claim;
        return claim_add(claim, &host, "host", "", "VCPU", 1);
}

/* Measures a comparison without any difference. A difference is an error of the benchmark. */
static int time_reconcile(size_t n, double *ret_usec)
{
        ClaimList list = { 0 };
        HostFacts facts = { .taken_usec = 1, .domains = calloc(n, sizeof(HostDomain)) };
        const ReconcileInput input = {
                .claims = &list, .facts = &facts, .node = "host", .boot_id = ""
        };
        int r = facts.domains ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < n; i++) {
                Claim *claim;

                facts.domains[facts.n_domains++] = (HostDomain){
                        .uuid = make_uuid("guest", i), .name = "guest", .running = true, .vcpus = 1
                };
                r = make_claim(i, &claim);
                if (r >= 0)
                        r = claim_list_add(&list, claim);
        }
        for (int i = 0; r >= 0 && i < N_RUNS; i++) {
                _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
                ReconcileMemory memory = { 0 };
                double begun = thread_usec();

                r = reconcile_make(&input, &memory, &reconcile);
                *ret_usec = MIN(*ret_usec, thread_usec() - begun);
                if (r >= 0 && reconcile.n_actions + reconcile.problems.n_items > 0)
                        r = -EINVAL;
                reconcile_memory_done(&memory);
        }
        claim_list_done(&list);
        free(facts.domains);
        return r;
}

/* Fit. */

/* Makes a host with n providers: a root with CPUs and n - 1 devices. */
static int make_view(size_t n, HostView **ret)
{
        const Inventory cpus = INVENTORY_DEFAULT(64), devices = INVENTORY_DEFAULT(4);
        const Uuid root = make_uuid("host", 0);
        ProviderTree *tree;
        Provider *provider;
        int r = provider_tree_new(&tree);

        if (r >= 0)
                r = provider_tree_add(tree, &root, "host", NULL, &provider, NULL);
        if (r >= 0)
                r = provider_set_inventory(provider, "VCPU", &cpus);
        for (size_t i = 1; r >= 0 && i < n; i++) {
                const Uuid uuid = make_uuid("device", i);
                char name[32];

                snprintf(name, sizeof(name), "host_device%zu", i);
                r = provider_tree_add(tree, &uuid, name, &root, &provider, NULL);
                if (r >= 0)
                        r = provider_set_inventory(provider, "VGPU", &devices);
        }
        return r < 0 ? r : host_view_new(ret, tree);
}

static int make_request(ResourceRequest *ret)
{
        RequestGroup *group;

        return resource_request_group(ret, "", &group, NULL) < 0 ||
                               resources_set(&group->resources, "VCPU", 1) < 0 ||
                               resource_request_group(ret, "_1", &group, NULL) < 0 ||
                               resources_set(&group->resources, "VGPU", 1) < 0
                       ? -ENOMEM
                       : 0;
}

static int fit_placed(const HostView *view, const ResourceRequest *request, const Consumer *holding)
{
        _cleanup_(resource_request_done) ResourceRequest placed = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        FitEffort effort = fit_effort_begin(0);
        int r = placed_make(view, "host", request, holding, NULL, &placed, NULL);

        if (r == 0)
                r = fit_groups(view, "host", &placed, holding, &effort, &fit, NULL);
        return r == 0 ? placed_check(view, &placed, holding, &fit, NULL, NULL) : r;
}

static int time_fits(size_t n, double *ret_free, double *ret_placed)
{
        _cleanup_(host_view_freep) HostView *view = NULL;
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(consumer_freep) Consumer *holding = NULL;
        const Uuid root = make_uuid("host", 0), device = make_uuid("device", n / 2),
                   vm = make_uuid("vm", 0);
        int r = make_view(n, &view);

        if (r < 0 || make_request(&request) < 0 || consumer_new(&holding, &vm) < 0 ||
            consumer_set(holding, &root, "VCPU", 1) < 0 ||
            consumer_set(holding, &device, "VGPU", 1) < 0)
                return -ENOMEM;
        for (int i = 0; r == 0 && i < N_RUNS; i++) {
                _cleanup_(fit_done) Fit fit = FIT_NULL;
                FitEffort effort = fit_effort_begin(0);
                double begun = thread_usec(), middle;

                r = fit_groups(view, "host", &request, NULL, &effort, &fit, NULL);
                middle = thread_usec();
                if (r == 0)
                        r = fit_placed(view, &request, holding);
                *ret_placed = MIN(*ret_placed, thread_usec() - middle);
                *ret_free = MIN(*ret_free, middle - begun);
        }
        return r;
}

int main(void)
{
        static const size_t n_claims[] = { 100, 1000, 10000 }, n_providers[] = { 64, 512, 4096 };

        printf("%10s %14s\n", "claims", "reconcile ms");
        for (size_t i = 0; i < ARRAY_SIZE(n_claims); i++) {
                double usec = 1e12;

                if (time_reconcile(n_claims[i], &usec) != 0)
                        return EXIT_FAILURE;
                printf("%10zu %14.3f\n", n_claims[i], usec / 1e3);
        }
        printf("%10s %14s %14s\n", "providers", "fit ms", "placed ms");
        for (size_t i = 0; i < ARRAY_SIZE(n_providers); i++) {
                double freely = 1e12, placed = 1e12;

                if (time_fits(n_providers[i], &freely, &placed) != 0)
                        return EXIT_FAILURE;
                printf("%10zu %14.3f %14.3f\n", n_providers[i], freely / 1e3, placed / 1e3);
        }
        return EXIT_SUCCESS;
}
