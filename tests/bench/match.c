/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How long it takes to find which provider each group got, from the amounts alone (specification 5:
 * "this backtrack makes 96 steps" for four ports). Prints one line for each number of ports: the
 * median of 101 runs, of ports whose amounts come in the worst order, and of ports that are all
 * equal. */

#include <string.h>
#include <time.h>

#include "claims/claim/host-view.h"
#include "claims/fit/group-match.h"

#define N_RUNS 101

static double now_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static Uuid port_uuid(int i)
{
        Uuid uuid = { "12345678-1234-1234-1234-123456789abc" };
        char name[16];

        snprintf(name, sizeof(name), "eth%d", i);
        return uuid_make_child(&uuid, name);
}

static int make_host(int n, HostView **ret)
{
        Uuid root = { "12345678-1234-1234-1234-123456789abc" };
        Inventory inventory = INVENTORY_DEFAULT(INVENTORY_MAX_AMOUNT);
        ProviderTree *tree;
        Provider *provider;
        int r = provider_tree_new(&tree);

        if (r >= 0)
                r = provider_tree_add(tree, &root, "host", NULL, &provider, NULL);
        for (int i = 0; r >= 0 && i < n; i++) {
                Uuid uuid = port_uuid(i);
                char name[16];

                snprintf(name, sizeof(name), "eth%d", i);
                r = provider_tree_add(tree, &uuid, name, &root, &provider, NULL);
                if (r >= 0)
                        r = provider_set_inventory(provider, "NET_BW_EGR_KILOBIT_PER_SEC",
                                                   &inventory);
        }
        return r < 0 ? r : host_view_new(ret, tree);
}

/* Port i asks for step * (i + 1) + 1000, which the provider at the other end has. */
static int make_ports(int n, uint64_t step, ResourceRequest *request, Consumer **ret)
{
        int r = consumer_new(ret, &UUID_NULL);

        request->isolate = true;
        for (int i = 0; r >= 0 && i < n; i++) {
                uint64_t amount = step * (uint64_t)(i + 1) + 1000;
                Uuid uuid = port_uuid(n - 1 - i);
                RequestGroup *group;
                char suffix[16];

                snprintf(suffix, sizeof(suffix), "_%d", i);
                if ((r = resource_request_group(request, suffix, &group, NULL)) >= 0 &&
                    (r = resources_set(&group->resources, "NET_BW_EGR_KILOBIT_PER_SEC", amount)) >=
                            0)
                        r = consumer_set(*ret, &uuid, "NET_BW_EGR_KILOBIT_PER_SEC", amount);
        }
        return r;
}

static int order(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

static double measure(int n, uint64_t step)
{
        _cleanup_(host_view_freep) HostView *view = NULL;
        double times[N_RUNS];

        if (make_host(n, &view) < 0)
                abort();
        for (int i = 0; i < N_RUNS; i++) {
                _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
                _cleanup_(consumer_freep) Consumer *holding = NULL;
                double begin;
                int r;

                if (make_ports(n, step, &request, &holding) < 0)
                        abort();
                begin = now_usec();
                r = group_match(view, holding, &request);
                times[i] = now_usec() - begin;
                if (r != (step > 0 || n == 1 ? GROUP_MATCH_DONE : GROUP_MATCH_AMBIGUOUS))
                        abort();
        }
        qsort(times, N_RUNS, sizeof(double), order);
        return times[N_RUNS / 2];
}

int main(void)
{
        for (int n = 1; n <= 256; n *= 4)
                printf("%3d ports: %8.1f us, all equal: %8.1f us\n", n, measure(n, 1),
                       measure(n, 0));
        return 0;
}
