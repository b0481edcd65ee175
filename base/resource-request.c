/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes and edits requests, which have groups and the layout of a guest's CPUs and memory
 * (NumaRequest), and the mappings from groups to their providers. resource_request_format() writes
 * a request: its groups as the query of Placement's GET /allocation_candidates, and then its
 * layout. The groups and the mappings are sorted arrays (base/array.h), so the order of additions
 * does not change the text. Only the lists of same_subtree keep that order. A layout has at most
 * NUMA_REQUEST_CELLS_MAX cells and NUMA_REQUEST_CPUS_MAX guest CPUs. Options that contradict each
 * other or the amounts are errors (-EINVAL) with words. Names of classes and traits are not checked
 * here; claims/claim/claim-request.h checks whole requests. A public function that fails changes
 * nothing.
 *
 * Tests: tests/unit/base/test-resource-request.c tests/unit/base/test-numa-request.c */

#include "base/resource-request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
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
        /* The array needs an entry for each NUMA_PAGES_…, but no request has the words
         * "default" and "size": read_pages() rejects both. A page size of its own
         * (NUMA_PAGES_SIZE) is written as a number. */
        [NUMA_PAGES_DEFAULT] = "default", [NUMA_PAGES_SMALL] = "small",
        [NUMA_PAGES_LARGE] = "large",     [NUMA_PAGES_ANY] = "any",
        [NUMA_PAGES_SIZE] = "size",
};

/* Returns the index of a text, 0 (the default) for NULL, or -EINVAL for an unknown text. */
static int find_text(const char *const texts[], size_t n, const char *text)
{
        for (size_t i = 0; text && i < n; i++)
                if (strcmp(texts[i], text) == 0)
                        return (int)i;
        return text ? -EINVAL : 0;
}

/* Frees the layout and sets it to NUMA_REQUEST_INIT. */
static void numa_request_done(NumaRequest *request)
{
        for (size_t i = 0; i < request->n_cells; i++)
                cpu_set_done(&request->cells[i].vcpus);
        free(request->cells);
        cpu_set_done(&request->dedicated);
        *request = NUMA_REQUEST_INIT;
}

/* Allocates n cells. One more is allocated, because calloc(0) can return NULL. */
static int make_cells(NumaRequest *request, size_t n)
{
        request->cells = calloc(n + 1, sizeof(NumaRequestCell));
        if (!request->cells)
                return -ENOMEM;
        request->n_cells = n;
        return 0;
}

/* Replaces ret with a copy. -ENOMEM leaves ret as it was. */
static int numa_request_copy(NumaRequest *ret, const NumaRequest *request)
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

/* The layout under construction. vcpus is the sum of shared and dedicated guest CPUs. */
typedef struct Maker {
        const NumaOptions *options;
        uint64_t vcpus, shared, dedicated, memory_mb;
        NumaRequest request;
} Maker;

/* Adds n CPUs, of which the lowest has the number "first". The caller has checked that they are
 * below CPU_SET_MAX. */
static int add_range(CpuSet *set, uint64_t first, uint64_t n)
{
        return n > 0 ? cpu_set_add_range(set, (unsigned)first, (unsigned)(first + n - 1)) : 0;
}

/* Parses a set of CPUs, with the name of the option in front of an error. */
static int parse_set(const char *option, const char *text, CpuSet *ret, Error *reterr)
{
        int r = cpu_set_parse(text, ret, reterr);

        return r < 0 ? error_prefixf(reterr, r, "%s", option) : 0;
}

/* Parses the mask of dedicated CPUs; "^0-1" names the shared ones instead. A mask must leave CPUs
 * of both kinds. */
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
                        "cpu-dedicated-mask \"%.40s\" names a CPU that the guest does not have; its CPUs are 0 to %" PRIu64,
                        mask, maker->vcpus - 1);
        if (maker->dedicated == 0 || maker->dedicated == maker->vcpus)
                return error_setf(
                        reterr, EINVAL,
                        "cpu-dedicated-mask \"%.40s\" selects %s of the %" PRIu64
                        " CPUs. With the policy \"mixed\", some CPUs are dedicated and some are shared",
                        mask, maker->dedicated ? "all" : "none", maker->vcpus);
        maker->shared = maker->vcpus - maker->dedicated;
        return 0;
}

/* Splits the guest CPUs into shared and dedicated ones. A mask names the dedicated ones. Without a
 * mask the policy "dedicated" or "shared" decides, or else the amounts of VCPU and PCPU. The first
 * CPUs are then the shared ones. */
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
                                  "cpu-policy must be dedicated, shared or mixed, not \"%.40s\"",
                                  policy);
        if (maker->options->dedicated_mask && policy && !mixed)
                return error_setf(reterr, EINVAL,
                                  "cpu-dedicated-mask requires the policy \"mixed\"");
        if (maker->options->dedicated_mask)
                return parse_mask(maker, reterr);
        if (mixed && (maker->shared == 0 || maker->shared == maker->vcpus))
                return error_setf(
                        reterr, EINVAL,
                        "cpu-policy mixed requires cpu-dedicated-mask, or both VCPU and PCPU");
        maker->dedicated = maker->vcpus - maker->shared;
        return add_range(&maker->request.dedicated, maker->shared, maker->dedicated) < 0
                       ? error_oom(reterr)
                       : 0;
}

/* Reads the CPUs of one cell. seen collects the CPUs of all cells, because a CPU belongs to one
 * cell only. */
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
                                        : "numa-cpus: cell %zu has CPU %u, which another cell also has",
                                i, cpu);
                if (cpu_set_add(seen, cpu) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* Assigns each guest CPU to a cell: as numa-cpus says, else in equal parts. */
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
                                  "%" PRIu64
                                  " CPUs cannot be divided evenly into %zu cells. Give numa-cpus",
                                  maker->vcpus, n);
        for (size_t i = 0; i < n; i++)
                if (add_range(&maker->request.cells[i].vcpus, i * (maker->vcpus / n),
                              maker->vcpus / n) < 0)
                        return error_oom(reterr);
        return 0;
}

/* Assigns memory to each cell: as numa-mem says, else in equal parts. The sum must be the MEMORY_MB
 * of the request. */
static int share_memory(Maker *maker, Error *reterr)
{
        size_t n = maker->request.n_cells;
        uint64_t sum = 0;

        if (maker->options->n_memory == 0 && maker->memory_mb % n)
                return error_setf(reterr, EINVAL,
                                  "%" PRIu64
                                  " MiB cannot be divided evenly into %zu cells. Give numa-mem",
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
        return sum == maker->memory_mb ? 0
                                       : error_setf(reterr, EINVAL,
                                                    "numa-mem: the cells have %" PRIu64
                                                    " MiB, but the guest has %" PRIu64,
                                                    sum, maker->memory_mb);
}

/* Makes the cells. Their number is numa-nodes, else the number of values of numa-cpus or numa-mem,
 * else 1. */
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
                                  " CPUs: each cell needs a CPU, and at most %d cells are allowed",
                                  n, maker->vcpus, NUMA_REQUEST_CELLS_MAX);
        if ((options->n_cpus > 0 && options->n_cpus != n) ||
            (options->n_memory > 0 && options->n_memory != n))
                return error_setf(reterr, EINVAL,
                                  "numa-cpus and numa-mem must be given for all %" PRIu64
                                  " cells, or for none",
                                  n);
        if (make_cells(&maker->request, n) < 0)
                return error_oom(reterr);
        r = share_cpus(maker, reterr);
        return r < 0 ? r : share_memory(maker, reterr);
}

/* Parses a size such as "2048", "2M" or "1GB" into KiB. */
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
                        if (*ret > INT32_MAX / units[i].kib)
                                return -EINVAL;
                        *ret *= units[i].kib;
                        return 0;
                }
        return -EINVAL;
}

/* Reads the page size. Each cell must have a whole number of pages of an explicit size. */
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
                        "mem-page-size must be small, large, any or a size like 2048 (KiB) or 2M, not \"%.40s\"",
                        text);
        for (size_t i = 0; i < request->n_cells; i++)
                if (request->cells[i].memory_mb * 1024 % request->page_kib)
                        return error_setf(reterr, EINVAL,
                                          "Cell %zu: %" PRIu64
                                          " MiB are not a whole number of pages of %" PRIu64 " KiB",
                                          i, request->cells[i].memory_mb, request->page_kib);
        return 0;
}

/* Reads the thread policy, the affinity of devices and the strategy. */
static int read_words(Maker *maker, Error *reterr)
{
        const NumaOptions *options = maker->options;
        NumaRequest *request = &maker->request;
        int threads = find_text(threads_texts, ARRAY_SIZE(threads_texts), options->thread_policy);
        int affinity = find_text(affinity_texts, ARRAY_SIZE(affinity_texts), options->affinity);

        if (threads < 0)
                return error_setf(
                        reterr, EINVAL,
                        "cpu-thread-policy must be prefer, isolate or require, not \"%.40s\"",
                        options->thread_policy);
        if (options->thread_policy && maker->dedicated == 0)
                return error_setf(reterr, EINVAL, "cpu-thread-policy requires dedicated CPUs");
        if (affinity < 0)
                return error_setf(
                        reterr, EINVAL,
                        "pci-numa-affinity-policy must be required, preferred, legacy or socket, not \"%.40s\"",
                        options->affinity);
        if (options->strategy && strcmp(options->strategy, "pack") != 0 &&
            strcmp(options->strategy, "spread") != 0)
                return error_setf(reterr, EINVAL,
                                  "numa-strategy must be spread or pack, not \"%.40s\"",
                                  options->strategy);
        request->threads = threads;
        request->affinity = affinity;
        request->pack = options->strategy && strcmp(options->strategy, "pack") == 0;
        return 0;
}

/* Writes the split of the CPUs back to the amounts. -ENOMEM leaves them unchanged. */
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

/* Checks both numbers of CPUs before their sum, so the sum cannot overflow. Each step adds to
 * maker.request, and resources changes last, after all checks. */
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
                        "A layout requires CPUs (VCPU or PCPU) in the group without a suffix");
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

/* Appends the layout, for example "&numa0=0-1:512&dedicated=0-1&threads=isolate"; nothing without a
 * layout. Defaults of pages, affinity and strategy are omitted. The thread policy is written if any
 * CPU is dedicated. */
static int write_layout(const NumaRequest *request, FILE *file)
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

#define SUFFIX_MAX 64

static void group_done(RequestGroup *group)
{
        free(group->suffix);
        resources_done(&group->resources);
        string_set_done(&group->required);
        string_set_done(&group->forbidden);
}

void resource_request_done(ResourceRequest *request)
{
        for (size_t i = 0; i < request->n_groups; i++)
                group_done(&request->groups[i]);
        free(request->groups);
        for (size_t i = 0; i < request->n_subtrees; i++)
                string_set_done(&request->subtrees[i]);
        numa_request_done(&request->numa);
        *request = RESOURCE_REQUEST_INIT;
}

/* Checks for the characters and the length that Placement permits. The empty suffix is valid. */
static bool suffix_valid(const char *suffix)
{
        size_t n = strnlen(suffix, SUFFIX_MAX + 1);

        return n <= SUFFIX_MAX &&
               strspn(suffix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
                       n;
}

/* Sorts by suffix. The empty suffix is first, so the group without a suffix is groups[0] if it
 * exists. */
static int order_group(const void *key, const void *item)
{
        return strcmp(key, ((const RequestGroup *)item)->suffix);
}

int resource_request_group(ResourceRequest *request, const char *suffix, RequestGroup **ret,
                           Error *reterr)
{
        size_t position;
        bool found;
        char *copy;

        if (!suffix_valid(suffix))
                return error_setf(
                        reterr, EINVAL,
                        "\"%.70s\" is not a group suffix (letters, digits, _ and -, at most %d)",
                        suffix, SUFFIX_MAX);
        position = array_find(request->groups, sizeof(RequestGroup), request->n_groups, suffix,
                              order_group, &found);
        if (found) {
                *ret = &request->groups[position];
                return 0;
        }
        if (array_grow(&request->groups, sizeof(RequestGroup), request->n_groups,
                       &request->n_allocated) < 0)
                return error_oom(reterr);
        copy = strdup(suffix);
        if (!copy)
                return error_oom(reterr);
        array_open(request->groups, sizeof(RequestGroup), &request->n_groups, position);
        request->groups[position] = (RequestGroup){ .suffix = copy };
        *ret = &request->groups[position];
        return 0;
}

/* Frees the group and closes its gap in the array, so later groups get other indexes. */
void resource_request_remove(ResourceRequest *request, size_t group)
{
        group_done(&request->groups[group]);
        array_close(request->groups, sizeof(RequestGroup), &request->n_groups, group);
}

/* Rejects a list that Placement would reject (fewer than two suffixes, or an empty or invalid one),
 * and one above the limit. */
int resource_request_add_subtree(ResourceRequest *request, const StringSet *suffixes, Error *reterr)
{
        StringSet *subtree = &request->subtrees[request->n_subtrees];

        if (request->n_subtrees >= RESOURCE_REQUEST_SUBTREES_MAX)
                return error_setf(reterr, EINVAL, "More than %d lists of groups in one subtree",
                                  RESOURCE_REQUEST_SUBTREES_MAX);
        if (suffixes->n_items < 2)
                return error_setf(reterr, EINVAL, "A subtree needs at least two groups");
        for (size_t i = 0; i < suffixes->n_items; i++)
                if (!suffixes->items[i][0] || !suffix_valid(suffixes->items[i]))
                        return error_setf(reterr, EINVAL, "\"%.70s\" is not a group suffix",
                                          suffixes->items[i]);
        if (string_set_copy(subtree, suffixes) < 0)
                return error_oom(reterr);
        request->n_subtrees++;
        return 0;
}

bool resource_request_in_subtree(const ResourceRequest *request, const char *suffix)
{
        for (size_t i = 0; i < request->n_subtrees; i++)
                if (string_set_contains(&request->subtrees[i], suffix))
                        return true;
        return false;
}

int resource_request_copy(ResourceRequest *ret, const ResourceRequest *request)
{
        _cleanup_(resource_request_done) ResourceRequest copy = RESOURCE_REQUEST_INIT;

        copy.isolate = request->isolate;
        if (numa_request_copy(&copy.numa, &request->numa) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < request->n_subtrees; i++)
                if (string_set_copy(&copy.subtrees[copy.n_subtrees++], &request->subtrees[i]) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < request->n_groups; i++) {
                const RequestGroup *from = &request->groups[i];
                RequestGroup *to;

                if (resource_request_group(&copy, from->suffix, &to, NULL) < 0 ||
                    resources_copy(&to->resources, &from->resources) < 0 ||
                    string_set_copy(&to->required, &from->required) < 0 ||
                    string_set_copy(&to->forbidden, &from->forbidden) < 0)
                        return -ENOMEM;
                to->in_tree = from->in_tree;
                to->provider = from->provider;
        }
        resource_request_done(ret);
        *ret = TAKE_STRUCT(copy);
        return 0;
}

/* Replaces *ret only when the sum is complete, so an error leaves it unchanged. */
int resource_request_sum(const ResourceRequest *request, Resources *ret)
{
        _cleanup_(resources_done) Resources sum = RESOURCES_INIT;

        for (size_t i = 0; i < request->n_groups; i++) {
                const Resources *resources = &request->groups[i].resources;

                for (size_t j = 0; j < resources->n_items; j++) {
                        int r = resources_add(&sum, resources->items[j].resource_class,
                                              resources->items[j].amount);
                        if (r < 0)
                                return r;
                }
        }
        resources_done(ret);
        *ret = TAKE_STRUCT(sum);
        return 0;
}

/* Writes "resourcesSUFFIX=CLASS:AMOUNT,…" after begin, which is "" or "&". */
static void write_resources(FILE *file, const char *begin, const RequestGroup *group)
{
        const Resources *resources = &group->resources;

        fprintf(file, "%sresources%s=", begin, group->suffix);
        for (size_t i = 0; i < resources->n_items; i++)
                fprintf(file, "%s%s:%" PRIu64, i > 0 ? "," : "", resources->items[i].resource_class,
                        resources->items[i].amount);
}

/* Writes "requiredSUFFIX=TRAIT,!TRAIT,…"; nothing without traits. */
static void write_traits(FILE *file, const char *begin, const RequestGroup *group)
{
        const char *separator = "";

        if (group->required.n_items + group->forbidden.n_items == 0)
                return;
        fprintf(file, "%srequired%s=", begin, group->suffix);
        for (size_t i = 0; i < group->required.n_items; i++, separator = ",")
                fprintf(file, "%s%s", separator, group->required.items[i]);
        for (size_t i = 0; i < group->forbidden.n_items; i++, separator = ",")
                fprintf(file, "%s!%s", separator, group->forbidden.items[i]);
}

/* Writes "&same_subtree=A,B" for each list. */
static void write_subtrees(FILE *file, const ResourceRequest *request)
{
        for (size_t i = 0; i < request->n_subtrees; i++) {
                const StringSet *suffixes = &request->subtrees[i];

                for (size_t j = 0; j < suffixes->n_items; j++)
                        fprintf(file, "%s%s", j == 0 ? "&same_subtree=" : ",", suffixes->items[j]);
        }
}

static int write_request(const ResourceRequest *request, FILE *file)
{
        for (size_t i = 0; i < request->n_groups; i++) {
                const RequestGroup *group = &request->groups[i];
                bool asks = group->resources.n_items > 0;

                if (asks)
                        write_resources(file, i > 0 ? "&" : "", group);
                write_traits(file, i > 0 || asks ? "&" : "", group);
                if (!uuid_empty(&group->in_tree))
                        fprintf(file, "&in_tree%s=%s", group->suffix, group->in_tree.text);
        }
        write_subtrees(file, request);
        if (request->isolate)
                fputs("&group_policy=isolate", file);
        return write_layout(&request->numa, file);
}

char *resource_request_format(const ResourceRequest *request)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);
        bool failed;

        if (!file)
                return NULL;
        failed = write_request(request, file) < 0 || ferror(file);
        if (fclose(file) != 0 || failed)
                return NULL;
        return TAKE_PTR(text);
}

void request_mappings_done(RequestMappings *mappings)
{
        for (size_t i = 0; i < mappings->n_items; i++)
                free(mappings->items[i].suffix);
        free(mappings->items);
        *mappings = REQUEST_MAPPINGS_INIT;
}

/* Sorts by suffix, then by provider. */
static int order_mapping(const void *key, const void *item)
{
        const RequestMapping *a = key, *b = item;
        int order = strcmp(a->suffix, b->suffix);

        return order ? order : uuid_order(&a->provider, &b->provider);
}

int request_mappings_add(RequestMappings *mappings, const char *suffix, const Uuid *provider)
{
        const RequestMapping key = { .suffix = (char *)suffix, .provider = *provider };
        bool found;
        size_t position = array_find(mappings->items, sizeof(key), mappings->n_items, &key,
                                     order_mapping, &found);
        char *copy;

        if (found)
                return 0;
        if (array_grow(&mappings->items, sizeof(RequestMapping), mappings->n_items,
                       &mappings->n_allocated) < 0)
                return -ENOMEM;
        copy = strdup(suffix);
        if (!copy)
                return -ENOMEM;
        array_open(mappings->items, sizeof(RequestMapping), &mappings->n_items, position);
        mappings->items[position] = (RequestMapping){ .suffix = copy, .provider = *provider };
        return 0;
}
