/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counts the free resources of each host cell, and compares one guest cell with one host cell. The
 * search over all cells is in numa.c. A class is counted by cell if at least one cell's provider
 * has it and is not withheld. Otherwise numa.c fits it for the whole host, and a cell is only
 * limited by its own CPUs and memory in HostFacts, with the root's allocation ratio. A dedicated
 * CPU is free if no claim holds it, it is in no definition of a running guest, and it is not
 * withheld. Memory and shared CPUs count as used only by claims whose host cells are known, but
 * the inventory of a cell's provider counts all of its claims. A comparison stops at the first term
 * that fails, and fail() writes the verdict. CPUs are chosen only after the search, by
 * numa_host_lay_out().
 *
 * Tests: tests/unit/claims/fit/test-numa.c tests/unit/claims/fit/test-numa-search.c */

#include "claims/fit/numa-host.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "claims/fit/problem.h"
#include "claims/fit/taken.h"

#define CELL_TRAIT "HW_NUMA_ROOT"

const char *const numa_class_names[_NUMA_CLASS_MAX] = {
        [NUMA_CLASS_VCPU] = "VCPU",
        [NUMA_CLASS_PCPU] = "PCPU",
        [NUMA_CLASS_MEMORY_MB] = "MEMORY_MB",
};

void numa_host_done(NumaHost *host)
{
        for (size_t i = 0; i < host->n_capacities; i++)
                cpu_set_done(&host->capacities[i].free);
        free(host->capacities);
        free(host->device_cells);
        *host = (NumaHost){ 0 };
}

/* Returns the provider of a host cell, "<root>_NUMA<cell>" with the trait of cells; SIZE_MAX if
 * there is none, or if it is withheld. */
static size_t find_provider(const NumaHost *host, unsigned cell)
{
        const ProviderTree *tree = host->view->tree;
        char name[2 * PROVIDER_NAME_MAX];
        const Provider *provider;
        size_t index;

        snprintf(name, sizeof(name), "%s_NUMA%u", tree->providers[host->root]->name, cell);
        provider = provider_tree_find_name(tree, name);
        if (!provider || !string_set_contains(&provider->traits, CELL_TRAIT) ||
            !host_view_find(host->view, &provider->uuid, &index) ||
            host->view->providers[index].withheld)
                return SIZE_MAX;
        return index;
}

static const Inventory *find_inventory(const NumaHost *host, size_t provider,
                                       const char *resource_class)
{
        return provider == SIZE_MAX ? NULL
                                    : provider_find_inventory(host->view->tree->providers[provider],
                                                              resource_class);
}

/* Returns an amount of the cell times the allocation ratio of the class, which is 1 without an
 * inventory. */
static uint64_t overcommitted(const NumaHost *host, const NumaCapacity *capacity, NumaClass class,
                              uint64_t amount)
{
        const Inventory *inventory =
                find_inventory(host, host->by_cell[class] ? capacity->provider : host->root,
                               numa_class_names[class]);
        double product = inventory ? (double)amount * inventory->allocation_ratio : (double)amount;

        return product >= (double)INVENTORY_MAX_AMOUNT ? INVENTORY_MAX_AMOUNT : (uint64_t)product;
}

/* Returns true for a dedicated CPU that is not withheld and that neither claims nor guests use. */
static bool is_free(const NumaHost *host, const HostCpu *cpu)
{
        return cpu->dedicated && !cpu->withheld && !cpu_set_contains(&host->view->held, cpu->id) &&
               !cpu_set_contains(&host->facts->guest_cpus, cpu->id);
}

/* Counts the threads of a core in this cell. Stores in *ret_n how many of them guests can use.
 * Stores in *ret_free how many are dedicated and not used by a claim or guest yet (is_free()). */
static void count_threads(const NumaHost *host, const HostCell *cell, unsigned core, size_t *ret_n,
                          size_t *ret_free)
{
        *ret_n = *ret_free = 0;
        for (size_t i = 0; i < cell->n_cpus; i++)
                if (cell->cpus[i].core == core) {
                        *ret_n += cell->cpus[i].shared || cell->cpus[i].dedicated;
                        *ret_free += is_free(host, &cell->cpus[i]);
                }
}

/* Counts the CPUs of a cell for each thread policy. With isolate, a core counts once, by its lowest
 * thread. */
static int count_cpus(const NumaHost *host, NumaCapacity *capacity)
{
        for (size_t i = 0; i < capacity->cell->n_cpus; i++) {
                const HostCpu *cpu = &capacity->cell->cpus[i];
                size_t n, n_free;

                capacity->n_cpus += cpu->shared;
                if (is_free(host, cpu) && cpu_set_add(&capacity->free, cpu->id) < 0)
                        return -ENOMEM;
                count_threads(host, capacity->cell, cpu->core, &n, &n_free);
                capacity->n_free += is_free(host, cpu);
                capacity->n_free_require += is_free(host, cpu) && n_free >= 2;
                capacity->n_free_isolate += n_free > 0 && n_free == n && cpu->core == cpu->id;
        }
        capacity->n_limit = overcommitted(host, capacity, NUMA_CLASS_VCPU, capacity->n_cpus);
        return 0;
}

static uint64_t subtract(uint64_t from, uint64_t amount)
{
        return from > amount ? from - amount : 0;
}

/* Returns the MiB that are not in large pages. */
static uint64_t count_small(const HostCell *cell)
{
        uint64_t memory_mb = cell->memory_mb;

        for (size_t i = 0; i < cell->n_pages; i++)
                memory_mb =
                        subtract(memory_mb, cell->pages[i].total * cell->pages[i].size_kib / 1024);
        return memory_mb;
}

/* Counts the usage and the limits of one host cell. Requires device_cells and by_cell of the
 * host. */
static int fill_capacity(const NumaHost *host, NumaCapacity *capacity)
{
        const HostView *view = host->view;

        for (size_t i = 0; i < view->n_cell_usages; i++) {
                if (view->cell_usages[i].host_cell != capacity->cell->id)
                        continue;
                capacity->n_shared += view->cell_usages[i].n_shared;
                capacity->memory_used_mb += view->cell_usages[i].memory_mb;
                if (view->cell_usages[i].page_kib == 0)
                        capacity->small_used_mb += view->cell_usages[i].memory_mb;
        }
        capacity->memory_limit_mb =
                overcommitted(host, capacity, NUMA_CLASS_MEMORY_MB, capacity->cell->memory_mb);
        capacity->small_mb = count_small(capacity->cell);
        capacity->small_limit_mb =
                overcommitted(host, capacity, NUMA_CLASS_MEMORY_MB, capacity->small_mb);
        for (size_t i = 0; i < view->n_providers; i++)
                capacity->n_devices += host->device_cells[i] >= 0 &&
                                       (unsigned)host->device_cells[i] == capacity->cell->id;
        return count_cpus(host, capacity);
}

/* Returns the NUMA cell of the devices that the provider counts, or HOST_CELL_NONE. The name of the
 * provider and the classes of its inventories identify the devices. Returns NUMA_HOST_NO_DEVICE if
 * it counts none. */
static int find_device_cell(const DeviceCapacity *devices, size_t n_devices, const char *node,
                            const Provider *provider)
{
        for (size_t i = 0; i < provider->n_inventories; i++) {
                const DeviceCapacity *device =
                        device_capacities_find(devices, n_devices, node, provider->name,
                                               provider->inventories[i].resource_class);

                if (device)
                        return device->cell;
        }
        return NUMA_HOST_NO_DEVICE;
}

/* Makes the capacities of the cells. The loop that fills them comes last, because their limits
 * depend on by_cell. */
static int collect(NumaHost *host, const char *node)
{
        _cleanup_free_ DeviceCapacity *devices = NULL;
        const Taken nothing = { 0 };
        const HostView *view = host->view;
        size_t n_devices;

        host->capacities = calloc(host->facts->n_cells + 1, sizeof(NumaCapacity));
        host->device_cells = calloc(view->n_providers + 1, sizeof(int));
        if (!host->capacities || !host->device_cells ||
            device_capacities_make(&devices, &n_devices, host->facts, &nothing) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < view->n_providers; i++)
                host->device_cells[i] =
                        find_device_cell(devices, n_devices, node, view->tree->providers[i]);
        for (size_t i = 0; i < host->facts->n_cells; i++) {
                NumaCapacity *capacity = &host->capacities[host->n_capacities++];

                capacity->cell = &host->facts->cells[i];
                capacity->provider = find_provider(host, capacity->cell->id);
                for (size_t j = 0; j < _NUMA_CLASS_MAX; j++)
                        host->by_cell[j] =
                                host->by_cell[j] ||
                                find_inventory(host, capacity->provider, numa_class_names[j]);
        }
        for (size_t i = 0; i < host->n_capacities; i++)
                if (fill_capacity(host, &host->capacities[i]) < 0)
                        return -ENOMEM;
        return 0;
}

uint64_t numa_host_placed(const NumaHost *host, size_t provider, const char *resource_class)
{
        return host->placed
                       ? consumer_get(host->placed, &host->view->tree->providers[provider]->uuid,
                                      resource_class)
                       : UINT64_MAX;
}

int numa_host_make(NumaHost *ret, const HostView *view, const HostFacts *facts, const char *node,
                   const Consumer *placed)
{
        _cleanup_(numa_host_done)
                NumaHost host = { .view = view, .facts = facts, .placed = placed };

        if (host_view_root(view, node, &host.root) && collect(&host, node) < 0)
                return -ENOMEM;
        *ret = TAKE_STRUCT(host);
        return 0;
}

static bool fail(NumaVerdict *verdict, const char *term, const char *resource_class, uint64_t asked,
                 uint64_t free_amount, const char *format, ...) _printf_(6, 7);

/* Fills the verdict. Returns false, so that the caller can return the result. */
static bool fail(NumaVerdict *verdict, const char *term, const char *resource_class, uint64_t asked,
                 uint64_t free_amount, const char *format, ...)
{
        va_list ap;

        verdict->term = term;
        verdict->resource_class = resource_class;
        verdict->asked = asked;
        verdict->free_amount = free_amount;
        va_start(ap, format);
        vsnprintf(verdict->text, sizeof(verdict->text), format, ap);
        va_end(ap);
        return false;
}

/* Checks the terms "cpus", "vcpus", "pcpus" and "threads", in this order. */
static bool fit_cpus(const NumaCapacity *capacity, NumaThreads threads, uint64_t n_shared,
                     uint64_t n_dedicated, NumaVerdict *ret)
{
        uint64_t n_left =
                capacity->n_limit > capacity->n_shared ? capacity->n_limit - capacity->n_shared : 0;
        uint64_t n_usable = threads == NUMA_THREADS_ISOLATE   ? capacity->n_free_isolate
                            : threads == NUMA_THREADS_REQUIRE ? capacity->n_free_require
                                                              : capacity->n_free;

        if (n_shared > capacity->n_cpus)
                return fail(ret, "cpus", "VCPU", n_shared, capacity->n_cpus,
                            "%" PRIu64 " shared CPUs requested, but it has %" PRIu64, n_shared,
                            capacity->n_cpus);
        if (n_shared > n_left)
                return fail(ret, "vcpus", "VCPU", n_shared, n_left,
                            "%" PRIu64 " of its shared CPUs requested, but %" PRIu64 " of %" PRIu64
                            " are free",
                            n_shared, n_left, capacity->n_limit);
        if (n_dedicated > capacity->n_free)
                return fail(ret, "pcpus", "PCPU", n_dedicated, capacity->n_free,
                            "%" PRIu64 " dedicated CPUs requested, but %" PRIu64 " are free",
                            n_dedicated, capacity->n_free);
        if (n_dedicated > n_usable)
                return fail(
                        ret, "threads", "PCPU", n_dedicated, n_usable,
                        threads == NUMA_THREADS_ISOLATE
                                ? "%" PRIu64 " cores requested (isolate), but %" PRIu64 " are free"
                                : "%" PRIu64
                                  " CPUs on cores with two free threads requested (require), but %" PRIu64
                                  " are free",
                        n_dedicated, n_usable);
        return true;
}

/* Returns the MiB that claims use in pages of that size; 0: small pages. */
static uint64_t count_used(const NumaHost *host, unsigned cell, uint64_t page_kib)
{
        uint64_t used = 0;

        for (size_t i = 0; i < host->view->n_cell_usages; i++)
                if (host->view->cell_usages[i].host_cell == cell &&
                    host->view->cell_usages[i].page_kib == page_kib)
                        used += host->view->cell_usages[i].memory_mb;
        return used;
}

/* Returns the MiB in free pages of that size, without reserved pages. */
static uint64_t count_large(const NumaHost *host, const HostCell *cell, const HostPages *pages)
{
        uint64_t n = subtract(pages->total, pages->reserved);

        return subtract(n * pages->size_kib / 1024, count_used(host, cell->id, pages->size_kib));
}

static bool divides(uint64_t page_kib, uint64_t memory_mb)
{
        return memory_mb * 1024 % page_kib == 0;
}

/* Compares the pages of the verdict's size with the inventory of the cell's provider. */
static bool fit_page_provider(const NumaHost *host, const NumaCapacity *capacity,
                              uint64_t memory_mb, NumaVerdict *ret);

/* Returns true if Placement has allocated pages of the cell's provider to the guest, but none of
 * the class. */
static bool has_other_pages(const NumaHost *host, const NumaCapacity *capacity,
                            const char *resource_class)
{
        bool has_some = false;

        if (capacity->provider == SIZE_MAX)
                return false;
        for (size_t i = 0; i < capacity->cell->n_pages; i++)
                has_some =
                        has_some || numa_host_placed(host, capacity->provider,
                                                     capacity->cell->pages[i].resource_class) > 0;
        return has_some && numa_host_placed(host, capacity->provider, resource_class) == 0;
}

/* Finds the largest page size with enough free pages, also by its inventory, that the memory fills
 * completely. If Placement has allocated pages, only their sizes count. Returns false if there is
 * none. Then ret->page_kib (0 before) is the largest size of which only the inventory has too few
 * pages, or 0. Also then, *ret_most (0 before) is the largest free amount of one size in MiB, among
 * the sizes that divide the memory. */
static bool find_large(const NumaHost *host, const NumaCapacity *capacity, uint64_t memory_mb,
                       NumaVerdict *ret, uint64_t *ret_most)
{
        const HostCell *cell = capacity->cell;

        for (size_t i = cell->n_pages; i > 0; i--) {
                const HostPages *pages = &cell->pages[i - 1];
                uint64_t left;

                if (!divides(pages->size_kib, memory_mb) ||
                    has_other_pages(host, capacity, pages->resource_class))
                        continue;
                left = count_large(host, cell, pages);
                if (left >= memory_mb) {
                        NumaVerdict verdict = { .page_kib = pages->size_kib };
                        bool fits = fit_page_provider(host, capacity, memory_mb, &verdict);

                        if (fits || ret->page_kib == 0)
                                ret->page_kib = pages->size_kib;
                        if (fits)
                                return true;
                }
                *ret_most = MAX(*ret_most, left);
        }
        return false;
}

static bool fail_pages(const char *which, uint64_t memory_mb, uint64_t left, NumaVerdict *ret)
{
        return fail(ret, "pages", "MEMORY_MB", memory_mb, left,
                    "%" PRIu64 " MiB in %s pages requested, but %" PRIu64 " are free", memory_mb,
                    which, left);
}

/* Checks the pages of one size. The cell has no free pages of a size that it does not list. */
static bool fit_size(const NumaHost *host, const HostCell *cell, uint64_t page_kib,
                     uint64_t memory_mb, NumaVerdict *ret)
{
        char which[32];

        snprintf(which, sizeof(which), "%" PRIu64 " KiB", page_kib);
        for (size_t i = 0; i < cell->n_pages; i++) {
                uint64_t left;

                if (cell->pages[i].size_kib != page_kib)
                        continue;
                left = count_large(host, cell, &cell->pages[i]);
                ret->page_kib = page_kib;
                return left >= memory_mb || fail_pages(which, memory_mb, left, ret);
        }
        return fail_pages(which, memory_mb, 0, ret);
}

static bool fit_small(const NumaCapacity *capacity, uint64_t memory_mb, NumaVerdict *ret)
{
        uint64_t left = subtract(capacity->small_mb, capacity->small_used_mb);

        return left >= memory_mb || fail_pages("small", memory_mb, left, ret);
}

/* Checks whether the memory fits into free pages of the requested kind: small, large, any, or one
 * size. Returns true without a kind (NUMA_PAGES_DEFAULT): fit_memory() checks its amount. Returns
 * true also if only the inventory has too few large pages, because fit_page_provider() checks
 * it. */
static bool fit_pages(const NumaHost *host, const NumaCapacity *capacity, const NumaRequest *numa,
                      uint64_t memory_mb, NumaVerdict *ret)
{
        uint64_t most = 0;

        switch (numa->pages) {
        case NUMA_PAGES_SMALL:
                return fit_small(capacity, memory_mb, ret);
        case NUMA_PAGES_LARGE:
                return find_large(host, capacity, memory_mb, ret, &most) || ret->page_kib > 0 ||
                       fail_pages("large", memory_mb, most, ret);
        case NUMA_PAGES_ANY:
                if (find_large(host, capacity, memory_mb, ret, &most))
                        return true;
                ret->page_kib = 0;
                return fit_small(capacity, memory_mb, ret);
        case NUMA_PAGES_SIZE:
                return numa->page_kib == host->facts->small_page_kib
                               ? fit_small(capacity, memory_mb, ret)
                               : fit_size(host, capacity->cell, numa->page_kib, memory_mb, ret);
        default:
                return true;
        }
}

/* Returns the limit of memory by the guest cell's CPUs. A guest cell with only dedicated CPUs
 * cannot overcommit memory, and a mixed one has the smaller limit. */
static uint64_t choose_limit(uint64_t limit, uint64_t total, uint64_t n_shared,
                             uint64_t n_dedicated)
{
        return n_dedicated == 0 ? limit : n_shared == 0 ? total : MIN(limit, total);
}

/* Checks the free pages of the requested kind, and the memory of all guests in the cell. A request
 * without a kind (NUMA_PAGES_DEFAULT) must also fit into the small pages. */
static bool fit_memory(const NumaHost *host, const NumaCapacity *capacity, const NumaRequest *numa,
                       uint64_t memory_mb, uint64_t n_shared, uint64_t n_dedicated,
                       NumaVerdict *ret)
{
        uint64_t limit = choose_limit(capacity->memory_limit_mb, capacity->cell->memory_mb,
                                      n_shared, n_dedicated),
                 small_limit = choose_limit(capacity->small_limit_mb, capacity->small_mb, n_shared,
                                            n_dedicated),
                 left = subtract(limit, capacity->memory_used_mb);

        if (memory_mb == 0)
                return true;
        if (!fit_pages(host, capacity, numa, memory_mb, ret))
                return false;
        if (numa->pages == NUMA_PAGES_DEFAULT) {
                left = MIN(left, subtract(small_limit, capacity->small_used_mb));
                left = MIN(left, capacity->small_mb);
        }
        if (memory_mb <= left)
                return true;
        return fail(ret, "memory", "MEMORY_MB", memory_mb, left,
                    "%" PRIu64 " MiB requested, but %" PRIu64 " of %" PRIu64 " are free", memory_mb,
                    left, numa->pages == NUMA_PAGES_DEFAULT ? small_limit : limit);
}

/* Compares an amount of one class with the inventory of the cell's provider. If Placement already
 * has allocations of the guest, also compares it with the amount that is allocated there. */
static bool fit_inventory(const NumaHost *host, const NumaCapacity *capacity,
                          const char *resource_class, uint64_t amount, NumaVerdict *ret)
{
        const Inventory *inventory = find_inventory(host, capacity->provider, resource_class);
        uint64_t used, placed;
        InventoryFit fit;
        char text[128];

        if (!inventory)
                return fail(ret, "class", resource_class, amount, 0, "does not have %s",
                            resource_class);
        used = resources_get(&host->view->providers[capacity->provider].used, resource_class);
        fit = inventory_fit(inventory, used, amount);
        placed = numa_host_placed(host, capacity->provider, resource_class);
        if (fit == INVENTORY_FITS && amount <= placed)
                return true;
        if (fit == INVENTORY_FITS)
                return fail(ret, "capacity", resource_class, amount, placed,
                            "%" PRIu64 " requested, but %" PRIu64 " of it was placed there", amount,
                            placed);
        return fail(ret, inventory_fit_term(fit), resource_class, amount,
                    subtract(inventory_capacity(inventory), used), "%s",
                    inventory_fit_explain(fit, inventory, used, amount, text, sizeof(text)));
}

static const RequestGroup *find_group(const ResourceRequest *request)
{
        return request->n_groups > 0 && request->groups[0].suffix[0] == '\0' ? &request->groups[0]
                                                                             : NULL;
}

/* Checks the classes that cells' providers count. This cell's provider must have the amounts in its
 * inventories, be in the tree that the group requests (fit_tree_allows()), and have no forbidden
 * trait. */
static bool fit_provider(const NumaHost *host, const NumaCapacity *capacity,
                         const ResourceRequest *request,
                         const uint64_t amounts[static _NUMA_CLASS_MAX], NumaVerdict *ret)
{
        const RequestGroup *group = find_group(request);
        const ProviderTree *tree = host->view->tree;
        const char *trait;

        for (size_t i = 0; i < _NUMA_CLASS_MAX; i++) {
                if (!host->by_cell[i] || amounts[i] == 0)
                        continue;
                if (!fit_inventory(host, capacity, numa_class_names[i], amounts[i], ret))
                        return false;
                if (!fit_tree_allows(tree, group, tree->providers[capacity->provider]))
                        return fail(ret, "host", numa_class_names[i], amounts[i], 0,
                                    "is not in the requested tree");
                trait = fit_bad_trait(tree->providers[capacity->provider], group, false, NULL);
                if (trait)
                        return fail(ret, "trait", numa_class_names[i], amounts[i], 0,
                                    "has the forbidden trait %.100s", trait);
        }
        return true;
}

/* Compares the number of pages with the inventory that the cell's provider has for pages of this
 * size. Returns true if there is no such inventory, or if Placement has allocated none of its pages
 * to the guest. */
static bool fit_page_provider(const NumaHost *host, const NumaCapacity *capacity,
                              uint64_t memory_mb, NumaVerdict *ret)
{
        for (size_t i = 0; i < capacity->cell->n_pages; i++) {
                const HostPages *pages = &capacity->cell->pages[i];

                if (pages->size_kib == ret->page_kib &&
                    find_inventory(host, capacity->provider, pages->resource_class) &&
                    numa_host_placed(host, capacity->provider, pages->resource_class) > 0)
                        return fit_inventory(host, capacity, pages->resource_class,
                                             memory_mb * 1024 / pages->size_kib, ret);
        }
        return true;
}

void numa_host_fit(const NumaHost *host, const ResourceRequest *request, size_t guest_cell,
                   size_t capacity_index, NumaVerdict *ret)
{
        const NumaRequest *numa = &request->numa;
        const NumaRequestCell *cell = &numa->cells[guest_cell];
        const NumaCapacity *capacity = &host->capacities[capacity_index];
        uint64_t n_dedicated = cpu_set_count_common(&cell->vcpus, &numa->dedicated);
        uint64_t n_shared = cpu_set_count(&cell->vcpus) - n_dedicated;
        const uint64_t amounts[_NUMA_CLASS_MAX] = { [NUMA_CLASS_VCPU] = n_shared,
                                                    [NUMA_CLASS_PCPU] = n_dedicated,
                                                    [NUMA_CLASS_MEMORY_MB] = cell->memory_mb };

        *ret = (NumaVerdict){ .resource_class = n_dedicated > 0 ? "PCPU" : "VCPU",
                              .asked = n_dedicated > 0 ? n_dedicated : n_shared,
                              .free_amount = n_dedicated > 0 ? capacity->n_free
                                                             : subtract(capacity->n_limit,
                                                                        capacity->n_shared) };
        if (fit_cpus(capacity, numa->threads, n_shared, n_dedicated, ret) &&
            fit_memory(host, capacity, numa, cell->memory_mb, n_shared, n_dedicated, ret) &&
            fit_provider(host, capacity, request, amounts, ret))
                (void)fit_page_provider(host, capacity, cell->memory_mb, ret);
}

typedef struct Core {
        unsigned id;
        size_t n, n_free;
} Core;

static int order_most_free(const void *a, const void *b)
{
        const Core *x = a, *y = b;

        if (x->n_free != y->n_free)
                return x->n_free > y->n_free ? -1 : 1;
        return x->id < y->id ? -1 : x->id > y->id;
}

/* Lists the cores that the policy can use, in the order in which they are filled. */
static int list_cores(const NumaHost *host, const NumaCapacity *capacity, NumaThreads threads,
                      Core **ret, size_t *ret_n)
{
        Core *cores = calloc(capacity->cell->n_cpus + 1, sizeof(Core));
        size_t n = 0;

        if (!cores)
                return -ENOMEM;
        for (size_t i = 0; i < capacity->cell->n_cpus; i++) {
                Core *core = &cores[n];

                core->id = capacity->cell->cpus[i].core;
                if (core->id != capacity->cell->cpus[i].id)
                        continue;
                count_threads(host, capacity->cell, core->id, &core->n, &core->n_free);
                n += threads == NUMA_THREADS_ISOLATE   ? core->n_free > 0 && core->n_free == core->n
                     : threads == NUMA_THREADS_REQUIRE ? core->n_free >= 2
                                                       : core->n_free >= 1;
        }
        if (threads != NUMA_THREADS_ISOLATE)
                qsort(cores, n, sizeof(Core), order_most_free);
        *ret = cores;
        *ret_n = n;
        return 0;
}

/* Chooses host CPUs for n guest CPUs, which must be free, in their order. Adds them to held, with
 * the other threads that isolate holds. */
static int choose_cpus(const NumaHost *host, const NumaCapacity *capacity, NumaThreads threads,
                       size_t n, unsigned *ret, CpuSet *held)
{
        _cleanup_free_ Core *cores = NULL;
        size_t n_cores, n_chosen = 0;

        if (list_cores(host, capacity, threads, &cores, &n_cores) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < n_cores && n_chosen < n; i++) {
                size_t n_of_core = 0;

                for (size_t j = 0; j < capacity->cell->n_cpus; j++) {
                        const HostCpu *cpu = &capacity->cell->cpus[j];
                        bool isolate = threads == NUMA_THREADS_ISOLATE;

                        if (cpu->core != cores[i].id || !is_free(host, cpu))
                                continue;
                        if (n_chosen < n && (!isolate || n_of_core == 0))
                                ret[n_chosen++] = cpu->id;
                        else if (!isolate)
                                break;
                        n_of_core++;
                        if (cpu_set_add(held, cpu->id) < 0)
                                return -ENOMEM;
                }
        }
        return 0;
}

/* Adds all shared CPUs of the cell: a guest CPU without one of its own can run on each of them. */
static int add_shared(const HostCell *cell, CpuSet *ret)
{
        for (size_t i = 0; i < cell->n_cpus; i++)
                if (cell->cpus[i].shared && cpu_set_add(ret, cell->cpus[i].id) < 0)
                        return -ENOMEM;
        return 0;
}

int numa_host_lay_out(const NumaHost *host, const ResourceRequest *request, size_t guest_cell,
                      size_t capacity_index, uint64_t page_kib, Layout *layout)
{
        const NumaRequest *numa = &request->numa;
        const NumaRequestCell *asked = &numa->cells[guest_cell];
        const NumaCapacity *capacity = &host->capacities[capacity_index];
        uint64_t n = cpu_set_count_common(&asked->vcpus, &numa->dedicated), next = 0;
        _cleanup_free_ unsigned *chosen = calloc(n + 1, sizeof(unsigned));
        LayoutCell *cell = &layout->cells[layout->n_cells++];

        cell->cell = (unsigned)guest_cell;
        cell->host_cell = capacity->cell->id;
        cell->memory_mb = asked->memory_mb;
        cell->page_kib = page_kib;
        cell->n_shared = cpu_set_count(&asked->vcpus) - n;
        if (!chosen || cpu_set_copy(&cell->vcpus, &asked->vcpus) < 0 ||
            choose_cpus(host, capacity, numa->threads, n, chosen, &layout->held) < 0)
                return -ENOMEM;
        CPU_SET_FOREACH(vcpu, &asked->vcpus) {
                LayoutCpu *cpu = &layout->cpus[layout->n_cpus++];

                cpu->vcpu = vcpu;
                cpu->dedicated = cpu_set_contains(&numa->dedicated, vcpu);
                if (cpu->dedicated ? cpu_set_add(&cpu->cpus, chosen[next++]) < 0
                                   : add_shared(capacity->cell, &cpu->cpus) < 0)
                        return -ENOMEM;
        }
        return 0;
}
