/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/numa-request.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

static const char *const threads_texts[_NUMA_THREADS_MAX] = {
        [NUMA_THREADS_PREFER] = "prefer",
        [NUMA_THREADS_ISOLATE] = "isolate",
        [NUMA_THREADS_REQUIRE] = "require",
};

static const char *const affinity_texts[_NUMA_AFFINITY_MAX] = {
        [NUMA_AFFINITY_LEGACY] = "legacy",
        [NUMA_AFFINITY_REQUIRED] = "required",
        [NUMA_AFFINITY_PREFERRED] = "preferred",
        [NUMA_AFFINITY_SOCKET] = "socket",
};

static const char *const pages_texts[_NUMA_PAGES_MAX] = {
        [NUMA_PAGES_DEFAULT] = "default", [NUMA_PAGES_SMALL] = "small",
        [NUMA_PAGES_LARGE] = "large",     [NUMA_PAGES_ANY] = "any",
        [NUMA_PAGES_SIZE] = "size",
};

/* NULL: the first, which is what nobody has to say. */
static int find_text(const char *const texts[], size_t n, const char *text)
{
        for (size_t i = 0; text && i < n; i++)
                if (strcmp(texts[i], text) == 0)
                        return (int)i;
        return text ? -EINVAL : 0;
}

void numa_request_done(NumaRequest *request)
{
        for (size_t i = 0; i < request->n_cells; i++)
                cpu_set_done(&request->cells[i].vcpus);
        free(request->cells);
        cpu_set_done(&request->dedicated);
        *request = NUMA_REQUEST_INIT;
}

static int make_cells(NumaRequest *request, size_t n)
{
        request->cells = calloc(n + 1, sizeof(NumaRequestCell));
        if (!request->cells)
                return -ENOMEM;
        request->n_cells = n;
        return 0;
}

int numa_request_copy(NumaRequest *ret, const NumaRequest *request)
{
        _cleanup_(numa_request_done) NumaRequest copy = *request;

        copy.cells = NULL;
        copy.n_cells = 0;
        copy.dedicated = CPU_SET_INIT;
        if (cpu_set_copy(&copy.dedicated, &request->dedicated) < 0 ||
            make_cells(&copy, request->n_cells) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < request->n_cells; i++) {
                copy.cells[i].memory_mb = request->cells[i].memory_mb;
                if (cpu_set_copy(&copy.cells[i].vcpus, &request->cells[i].vcpus) < 0)
                        return -ENOMEM;
        }
        numa_request_done(ret);
        *ret = TAKE_STRUCT(copy);
        return 0;
}

bool numa_options_given(const NumaOptions *options)
{
        return options->nodes > 0 || options->cpu_policy || options->dedicated_mask ||
               options->thread_policy || options->page_size || options->affinity ||
               options->strategy || options->n_cpus > 0 || options->n_memory > 0;
}

/* What is to be made of the words. */
typedef struct Maker {
        const NumaOptions *options;
        uint64_t vcpus, shared, dedicated, memory_mb;
        NumaRequest request;
} Maker;

static int add_range(CpuSet *set, uint64_t first, uint64_t n)
{
        for (uint64_t i = first; i < first + n; i++)
                if (cpu_set_add(set, (unsigned)i) < 0)
                        return -ENOMEM;
        return 0;
}

static int parse_set(const char *option, const char *text, CpuSet *ret, Error *reterr)
{
        int r = cpu_set_parse(text, ret, reterr);

        return r < 0 ? error_prefixf(reterr, r, "%s", option) : 0;
}

/* "^0-1" names those that are not dedicated. */
static int parse_mask(Maker *maker, Error *reterr)
{
        const char *mask = maker->options->dedicated_mask;
        _cleanup_(cpu_set_done) CpuSet all = CPU_SET_INIT;
        _cleanup_free_ char *whole = NULL;
        int r;

        if (add_range(&all, 0, maker->vcpus) < 0)
                return error_oom(reterr);
        if (mask[0] == '^') {
                whole = text_format("0-%" PRIu64 ",%s", maker->vcpus - 1, mask);
                if (!whole)
                        return error_oom(reterr);
        }
        r = parse_set("cpu-dedicated-mask", whole ? whole : mask, &maker->request.dedicated,
                      reterr);
        if (r < 0)
                return r;
        maker->dedicated = cpu_set_count(&maker->request.dedicated);
        if (!cpu_set_is_subset(&maker->request.dedicated, &all))
                return error_setf(
                        reterr, EINVAL,
                        "cpu-dedicated-mask \"%.40s\" names a CPU that the guest does not have: they are 0 to %" PRIu64,
                        mask, maker->vcpus - 1);
        if (maker->dedicated == 0 || maker->dedicated == maker->vcpus)
                return error_setf(
                        reterr, EINVAL,
                        "cpu-dedicated-mask \"%.40s\" means %s of the %" PRIu64
                        " CPUs: with the policy \"mixed\" some are dedicated, some shared",
                        mask, maker->dedicated ? "all" : "none", maker->vcpus);
        maker->shared = maker->vcpus - maker->dedicated;
        return 0;
}

/* Which guest CPUs are dedicated. */
static int read_policy(Maker *maker, Error *reterr)
{
        const char *policy = maker->options->cpu_policy;
        bool mixed = policy ? strcmp(policy, "mixed") == 0 : maker->shared && maker->dedicated;

        if (policy && strcmp(policy, "dedicated") == 0)
                maker->shared = 0;
        else if (policy && strcmp(policy, "shared") == 0)
                maker->shared = maker->vcpus;
        else if (policy && !mixed)
                return error_setf(reterr, EINVAL,
                                  "cpu-policy is dedicated, shared or mixed, not \"%.40s\"",
                                  policy);
        if (maker->options->dedicated_mask && policy && !mixed)
                return error_setf(reterr, EINVAL,
                                  "cpu-dedicated-mask goes with the policy \"mixed\" alone");
        if (maker->options->dedicated_mask)
                return parse_mask(maker, reterr);
        if (mixed && (maker->shared == 0 || maker->shared == maker->vcpus))
                return error_setf(
                        reterr, EINVAL,
                        "cpu-policy mixed: give cpu-dedicated-mask, or VCPU for those that are shared and PCPU for the others");
        maker->dedicated = maker->vcpus - maker->shared;
        return add_range(&maker->request.dedicated, maker->shared, maker->dedicated) < 0
                       ? error_oom(reterr)
                       : 0;
}

static int read_cell_cpus(Maker *maker, CpuSet *seen, size_t i, Error *reterr)
{
        CpuSet *vcpus = &maker->request.cells[i].vcpus;
        int r = parse_set("numa-cpus", maker->options->cpus[i], vcpus, reterr);

        if (r < 0)
                return r;
        if (cpu_set_count(vcpus) == 0)
                return error_setf(reterr, EINVAL, "numa-cpus: cell %zu has no CPU", i);
        CPU_SET_FOREACH(cpu, vcpus) {
                if (cpu >= maker->vcpus || cpu_set_contains(seen, cpu))
                        return error_setf(
                                reterr, EINVAL,
                                cpu >= maker->vcpus
                                        ? "numa-cpus: cell %zu has CPU %u, which the guest does not have"
                                        : "numa-cpus: cell %zu has CPU %u, which another cell has",
                                i, cpu);
                if (cpu_set_add(seen, cpu) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

static int share_cpus(Maker *maker, Error *reterr)
{
        _cleanup_(cpu_set_done) CpuSet seen = CPU_SET_INIT;
        size_t n = maker->request.n_cells;

        for (size_t i = 0; i < n && maker->options->n_cpus > 0; i++) {
                int r = read_cell_cpus(maker, &seen, i, reterr);

                if (r < 0)
                        return r;
        }
        if (maker->options->n_cpus > 0)
                return cpu_set_count(&seen) == maker->vcpus
                               ? 0
                               : error_setf(reterr, EINVAL,
                                            "numa-cpus gives a cell to %u of %" PRIu64 " CPUs",
                                            cpu_set_count(&seen), maker->vcpus);
        if (maker->vcpus % n)
                return error_setf(reterr, EINVAL,
                                  "%" PRIu64 " CPUs are not %zu equal parts: give numa-cpus",
                                  maker->vcpus, n);
        for (size_t i = 0; i < n; i++)
                if (add_range(&maker->request.cells[i].vcpus, i * (maker->vcpus / n),
                              maker->vcpus / n) < 0)
                        return error_oom(reterr);
        return 0;
}

static int share_memory(Maker *maker, Error *reterr)
{
        size_t n = maker->request.n_cells;
        uint64_t sum = 0;

        if (maker->options->n_memory == 0 && maker->memory_mb % n)
                return error_setf(reterr, EINVAL,
                                  "%" PRIu64 " MiB are not %zu equal parts: give numa-mem",
                                  maker->memory_mb, n);
        for (size_t i = 0; i < n; i++) {
                uint64_t *memory_mb = &maker->request.cells[i].memory_mb;

                *memory_mb = maker->options->n_memory > 0 ? maker->options->memory_mb[i]
                                                          : maker->memory_mb / n;
                if (*memory_mb == 0 && maker->memory_mb > 0)
                        return error_setf(reterr, EINVAL, "numa-mem: cell %zu has no memory", i);
                if (u64_add_overflow(sum, *memory_mb, &sum))
                        sum = UINT64_MAX;
        }
        return sum == maker->memory_mb
                       ? 0
                       : error_setf(reterr, EINVAL,
                                    "numa-mem: the cells have %" PRIu64 " MiB, the guest %" PRIu64,
                                    sum, maker->memory_mb);
}

static int read_cells(Maker *maker, Error *reterr)
{
        const NumaOptions *options = maker->options;
        uint64_t n = options->nodes      ? options->nodes
                     : options->n_cpus   ? options->n_cpus
                     : options->n_memory ? options->n_memory
                                         : 1;
        int r;

        if (n > NUMA_REQUEST_CELLS_MAX || n > maker->vcpus)
                return error_setf(reterr, EINVAL,
                                  "%" PRIu64 " NUMA cells for %" PRIu64
                                  " CPUs: each has one at least, and there are at most %d",
                                  n, maker->vcpus, NUMA_REQUEST_CELLS_MAX);
        if ((options->n_cpus > 0 && options->n_cpus != n) ||
            (options->n_memory > 0 && options->n_memory != n))
                return error_setf(reterr, EINVAL,
                                  "numa-cpus and numa-mem are given for every one of %" PRIu64
                                  " cells, or not at all",
                                  n);
        if (make_cells(&maker->request, n) < 0)
                return error_oom(reterr);
        r = share_cpus(maker, reterr);
        return r < 0 ? r : share_memory(maker, reterr);
}

/* "2048", "2M", "1GB", in KiB. */
static int parse_page_kib(const char *text, uint64_t *ret)
{
        static const struct {
                const char *unit;
                uint64_t kib;
        } units[] = { { "", 1 },      { "K", 1 },           { "KB", 1 },          { "M", 1024 },
                      { "MB", 1024 }, { "G", 1024 * 1024 }, { "GB", 1024 * 1024 } };
        char *end;

        if (text[0] < '1' || text[0] > '9' || strnlen(text, 16) > 15)
                return -EINVAL;
        *ret = strtoull(text, &end, 10);
        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (strcmp(end, units[i].unit) == 0) {
                        *ret *= units[i].kib;
                        return *ret <= INT32_MAX ? 0 : -EINVAL;
                }
        return -EINVAL;
}

static int read_pages(Maker *maker, Error *reterr)
{
        const char *text = maker->options->page_size;
        NumaRequest *request = &maker->request;

        if (!text)
                return 0;
        request->pages = find_text(pages_texts, NUMA_PAGES_SIZE, text);
        if (request->pages > 0)
                return 0;
        request->pages = NUMA_PAGES_SIZE;
        if (parse_page_kib(text, &request->page_kib) < 0)
                return error_setf(
                        reterr, EINVAL,
                        "mem-page-size is small, large, any or a size like 2048 (KiB) or 2M, not \"%.40s\"",
                        text);
        for (size_t i = 0; i < request->n_cells; i++)
                if (request->cells[i].memory_mb * 1024 % request->page_kib)
                        return error_setf(reterr, EINVAL,
                                          "Cell %zu: %" PRIu64
                                          " MiB are not a whole number of pages of %" PRIu64 " KiB",
                                          i, request->cells[i].memory_mb, request->page_kib);
        return 0;
}

static int read_words(Maker *maker, Error *reterr)
{
        const NumaOptions *options = maker->options;
        NumaRequest *request = &maker->request;
        int threads = find_text(threads_texts, ARRAY_SIZE(threads_texts), options->thread_policy);
        int affinity = find_text(affinity_texts, ARRAY_SIZE(affinity_texts), options->affinity);

        if (threads < 0)
                return error_setf(reterr, EINVAL,
                                  "cpu-thread-policy is prefer, isolate or require, not \"%.40s\"",
                                  options->thread_policy);
        if (options->thread_policy && maker->dedicated == 0)
                return error_setf(reterr, EINVAL,
                                  "cpu-thread-policy is of dedicated CPUs, and none is asked for");
        if (affinity < 0)
                return error_setf(
                        reterr, EINVAL,
                        "pci-numa-affinity-policy is required, preferred, legacy or socket, not \"%.40s\"",
                        options->affinity);
        if (options->strategy && strcmp(options->strategy, "pack") != 0 &&
            strcmp(options->strategy, "spread") != 0)
                return error_setf(reterr, EINVAL, "numa-strategy is spread or pack, not \"%.40s\"",
                                  options->strategy);
        request->threads = threads;
        request->affinity = affinity;
        request->pack = options->strategy && strcmp(options->strategy, "pack") == 0;
        return 0;
}

static int write_amounts(const Maker *maker, Resources *resources)
{
        _cleanup_(resources_done) Resources copy = RESOURCES_INIT;

        if (resources_copy(&copy, resources) < 0 ||
            resources_set(&copy, "VCPU", maker->shared) < 0 ||
            resources_set(&copy, "PCPU", maker->dedicated) < 0)
                return -ENOMEM;
        resources_done(resources);
        *resources = TAKE_STRUCT(copy);
        return 0;
}

int numa_request_make(const NumaOptions *options, Resources *resources, NumaRequest *ret,
                      Error *reterr)
{
        Maker maker = { .options = options,
                        .shared = resources_get(resources, "VCPU"),
                        .dedicated = resources_get(resources, "PCPU"),
                        .memory_mb = resources_get(resources, "MEMORY_MB") };
        int r;

        if (!numa_options_given(options) && maker.dedicated == 0)
                return 0;
        if (maker.shared > NUMA_REQUEST_CPUS_MAX || maker.dedicated > NUMA_REQUEST_CPUS_MAX ||
            (maker.vcpus = maker.shared + maker.dedicated) > NUMA_REQUEST_CPUS_MAX)
                return error_setf(reterr, EINVAL, "A guest with a layout has at most %d CPUs",
                                  NUMA_REQUEST_CPUS_MAX);
        if (maker.vcpus == 0)
                return error_setf(
                        reterr, EINVAL,
                        "A layout is asked for, but no CPUs (VCPU or PCPU) in the group without a suffix");
        if ((r = read_policy(&maker, reterr)) == 0 && (r = read_cells(&maker, reterr)) == 0 &&
            (r = read_pages(&maker, reterr)) == 0 && (r = read_words(&maker, reterr)) == 0)
                r = write_amounts(&maker, resources) < 0 ? error_oom(reterr) : 0;
        if (r < 0) {
                numa_request_done(&maker.request);
                return r;
        }
        *ret = maker.request;
        return 0;
}

int numa_request_write(const NumaRequest *request, FILE *file)
{
        _cleanup_free_ char *dedicated = cpu_set_format(&request->dedicated);

        if (!dedicated)
                return -ENOMEM;
        for (size_t i = 0; i < request->n_cells; i++) {
                _cleanup_free_ char *vcpus = cpu_set_format(&request->cells[i].vcpus);

                if (!vcpus)
                        return -ENOMEM;
                fprintf(file, "&numa%zu=%s:%" PRIu64, i, vcpus, request->cells[i].memory_mb);
        }
        if (request->n_cells == 0)
                return 0;
        if (dedicated[0])
                fprintf(file, "&dedicated=%s&threads=%s", dedicated,
                        threads_texts[request->threads]);
        if (request->pages == NUMA_PAGES_SIZE)
                fprintf(file, "&pages=%" PRIu64, request->page_kib);
        else if (request->pages != NUMA_PAGES_DEFAULT)
                fprintf(file, "&pages=%s", pages_texts[request->pages]);
        if (request->affinity != NUMA_AFFINITY_LEGACY)
                fprintf(file, "&affinity=%s", affinity_texts[request->affinity]);
        if (request->pack)
                fputs("&strategy=pack", file);
        return 0;
}
