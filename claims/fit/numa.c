/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Searches host cells for a guest with a layout. Sets of host cells are tried in the order of their
 * ranks, with backtracking. A set is extended only as long as each of its host cells can have a
 * guest cell of its own. That is a matching, grown by augmenting paths. Such sets are a matroid:
 * among some host cells, all sets that cannot be extended have the same size. So the first descent
 * from each set ends at a complete set, or no descent from it does. The matching in the order of
 * ranks is made only for the set that fits. Each complete set is tried with fit_trial_run(), which
 * places the classes that are not counted by cell. The same trial runs once before the search,
 * without a set. If it finds no capacity, the search continues only if the group without a suffix
 * requires traits, because the cells' providers can add traits. The words of a search replace those
 * of the trial. After another failure there is no search. The function fit_force_numa() counts
 * resources that are used already, without a search. The function fit_explain_numa() lists the
 * verdict of each host cell for each guest cell.
 *
 * Tests: tests/unit/claims/fit/test-numa.c tests/unit/claims/fit/test-numa-search.c
 *   tests/unit/claims/fit/test-fit.c */

#include "claims/fit/numa.h"

#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "claims/fit/numa-host.h"
#include "claims/fit/problem.h"

#define NO_CELL SIZE_MAX

/* The provider of a device, and its host cell. */
typedef struct NumaDevice {
        size_t provider;
        size_t capacity;   /* index of its host cell in the capacities; SIZE_MAX: the cell is
                            * unknown or does not exist */
        bool cell_unknown; /* the device has no known cell */
} NumaDevice;

typedef struct NumaSearch {
        const NumaHost *host;
        const ResourceRequest *request;
        const char *node;
        ResourceRequest rest;                       /* request without classes counted by cell */
        NumaVerdict *verdicts;                      /* guest cell * n_capacities + capacity */
        size_t *order;                              /* capacities by rank */
        bool *chosen;                               /* by capacity: in the current set */
        size_t capacity_of[NUMA_REQUEST_CELLS_MAX]; /* by guest cell; SIZE_MAX: none */
        FitTrial *trial;                            /* fits rest */
        NumaDevice *devices;
        size_t n_devices;
        bool *near;            /* by capacity: the affinity allows devices there */
        bool *barred;          /* by provider: devices that are not near */
        NumaAffinity affinity; /* affinity of this pass */
        bool asks_devices;
        FitEffort *effort;
        uint64_t n_sets;
        Fit fit;
        Error words; /* words about the first set that was tried */
} NumaSearch;

static void search_done(NumaSearch *search)
{
        resource_request_done(&search->rest);
        free(search->verdicts);
        free(search->order);
        free(search->chosen);
        fit_trial_free(search->trial);
        free(search->devices);
        free(search->near);
        free(search->barred);
        fit_done(&search->fit);
}

static uint64_t count_missing(const NumaVerdict *verdict)
{
        return verdict->asked > verdict->free_amount ? verdict->asked - verdict->free_amount : 0;
}

static const NumaVerdict *verdict_at(const NumaSearch *search, size_t guest, size_t capacity)
{
        return &search->verdicts[guest * search->host->n_capacities + capacity];
}

static const NumaCapacity *capacity_of_cell(const NumaHost *host, int cell, size_t *ret)
{
        for (size_t i = 0; i < host->n_capacities; i++)
                if (cell >= 0 && host->capacities[i].cell->id == (unsigned)cell) {
                        *ret = i;
                        return &host->capacities[i];
                }
        return NULL;
}

/* Returns true if the provider has a class of the group, or all traits of a group without
 * resources. */
static bool is_asked(const RequestGroup *group, const Provider *provider)
{
        for (size_t i = 0; i < group->resources.n_items; i++)
                if (provider_find_inventory(provider, group->resources.items[i].resource_class))
                        return true;
        return group->resources.n_items == 0 && !fit_bad_trait(provider, group, true, NULL);
}

/* Returns true if a group of the request asks for a device's provider. */
static bool asks_devices(const NumaSearch *search)
{
        const ResourceRequest *request = search->request;

        for (size_t i = 0; i < search->n_devices; i++)
                for (size_t j = 0; j < request->n_groups; j++)
                        if (is_asked(&request->groups[j],
                                     search->host->view->tree
                                             ->providers[search->devices[i].provider]))
                                return true;
        return false;
}

/* Order of ranks; see the header. */

static int order_amounts(uint64_t a, uint64_t b, bool most_first)
{
        if (a == b)
                return 0;
        return (a > b) == most_first ? -1 : 1;
}

/* Orders cells by free memory, without the allocation ratio. Compares sums, because the difference
 * is negative for a cell with overcommitted memory. */
static int order_memory(const NumaCapacity *x, const NumaCapacity *y, bool pack)
{
        return order_amounts(x->cell->memory_mb + y->memory_used_mb,
                             y->cell->memory_mb + x->memory_used_mb, !pack);
}

static int order_capacities(const void *a, const void *b, void *context)
{
        const NumaSearch *search = context;
        size_t i = *(const size_t *)a, j = *(const size_t *)b;
        const NumaCapacity *x = &search->host->capacities[i], *y = &search->host->capacities[j];
        bool pack = search->request->numa.pack,
             dedicates = cpu_set_count(&search->request->numa.dedicated) > 0;
        int order = order_amounts(x->n_devices, y->n_devices, search->asks_devices);

        if (order == 0)
                order = dedicates ? order_amounts(x->n_free, y->n_free, !pack)
                                  : order_amounts(x->n_shared, y->n_shared, pack);
        if (order == 0)
                order = order_memory(x, y, pack);
        return order ? order : order_amounts(x->cell->id, y->cell->id, false);
}

/* Unless the request has default or small pages, removes the classes of cells' hugepages from it.
 * These pages come with the guest cells, even if the request has them as a class. */
static int leave_out_pages(const NumaHost *host, const NumaRequest *numa, Resources *resources)
{
        if (numa->pages == NUMA_PAGES_DEFAULT || numa->pages == NUMA_PAGES_SMALL)
                return 0;
        for (size_t i = 0; i < host->n_capacities; i++) {
                const NumaCapacity *capacity = &host->capacities[i];

                for (size_t j = 0; j < capacity->cell->n_pages && capacity->provider != SIZE_MAX;
                     j++)
                        if (resources_set(resources, capacity->cell->pages[j].resource_class, 0) <
                            0)
                                return -ENOMEM;
        }
        return 0;
}

/* Makes the request without the classes that cells' providers count. */
static int make_rest(NumaSearch *search)
{
        RequestGroup *group;

        if (resource_request_copy(&search->rest, search->request) < 0)
                return -ENOMEM;
        group = &search->rest.groups[0];
        for (size_t i = 0; i < _NUMA_CLASS_MAX; i++)
                if (search->host->by_cell[i] &&
                    resources_set(&group->resources, numa_class_names[i], 0) < 0)
                        return -ENOMEM;
        return leave_out_pages(search->host, &search->request->numa, &group->resources);
}

static int list_devices(NumaSearch *search)
{
        const NumaHost *host = search->host;

        search->devices = calloc(host->view->n_providers + 1, sizeof(NumaDevice));
        if (!search->devices)
                return -ENOMEM;
        for (size_t i = 0; host->device_cells && i < host->view->n_providers; i++) {
                int cell = host->device_cells[i];
                NumaDevice *device = &search->devices[search->n_devices];

                if (cell == NUMA_HOST_NO_DEVICE)
                        continue;
                *device = (NumaDevice){ .provider = i,
                                        .capacity = NO_CELL,
                                        .cell_unknown = cell == HOST_CELL_NONE };
                (void)capacity_of_cell(host, cell, &device->capacity);
                search->n_devices++;
        }
        return 0;
}

static int search_init(NumaSearch *search)
{
        size_t n = search->host->n_capacities, n_cells = search->request->numa.n_cells;

        search->verdicts = calloc(n * n_cells + 1, sizeof(NumaVerdict));
        search->order = calloc(n + 1, sizeof(size_t));
        search->chosen = calloc(n + 1, sizeof(bool));
        search->near = calloc(n + 1, sizeof(bool));
        search->barred = calloc(search->host->view->n_providers + 1, sizeof(bool));
        if (!search->verdicts || !search->order || !search->chosen || !search->near ||
            !search->barred || list_devices(search) < 0 || make_rest(search) < 0 ||
            fit_trial_new(&search->trial, search->host->view, search->node, &search->rest,
                          search->host->placed, search->effort) < 0)
                return -ENOMEM;
        search->asks_devices = asks_devices(search);
        for (size_t i = 0; i < n_cells; i++)
                for (size_t j = 0; j < n; j++) {
                        (void)fit_effort_spend(search->effort,
                                               1 + search->host->capacities[j].cell->n_cpus / 4);
                        numa_host_fit(search->host, search->request, i, j,
                                      &search->verdicts[i * n + j]);
                }
        for (size_t i = 0; i < n; i++)
                search->order[i] = i;
        qsort_r(search->order, n, sizeof(size_t), order_capacities, search);
        return 0;
}

/* Assigns the capacity to a guest cell, and moves other assignments if needed. fixed: number of
 * guest cells, from the first, whose assignments stay. seen: bits of the guest cells that were
 * visited. Returns false if there is no such assignment. */
static bool augment(NumaSearch *search, size_t capacity, size_t fixed, uint64_t *seen)
{
        for (size_t i = fixed; i < search->request->numa.n_cells; i++) {
                (void)fit_effort_spend(search->effort, 1);
                if ((*seen >> i & 1) || verdict_at(search, i, capacity)->term)
                        continue;
                *seen |= UINT64_C(1) << i;
                if (search->capacity_of[i] == NO_CELL ||
                    augment(search, search->capacity_of[i], fixed, seen)) {
                        search->capacity_of[i] = capacity;
                        return true;
                }
        }
        return false;
}

/* Assigns the chosen capacities that are still free to the guest cells from fixed on; the guest
 * cells before it keep theirs. Returns false if that is impossible. */
static bool match_others(NumaSearch *search, size_t fixed)
{
        for (size_t i = fixed; i < search->request->numa.n_cells; i++)
                search->capacity_of[i] = NO_CELL;
        for (size_t capacity = 0; capacity < search->host->n_capacities; capacity++) {
                bool taken = !search->chosen[capacity];
                uint64_t seen = 0;

                for (size_t i = 0; i < fixed && !taken; i++)
                        taken = search->capacity_of[i] == capacity;
                if (!taken && !augment(search, capacity, fixed, &seen))
                        return false;
        }
        return true;
}

/* Assigns the chosen capacities in the order of ranks: the first possible matching. The set must
 * have one. */
static void match_in_order(NumaSearch *search)
{
        for (size_t guest = 0; guest < search->request->numa.n_cells; guest++)
                for (size_t i = 0; i < search->host->n_capacities; i++) {
                        size_t capacity = search->order[i];
                        bool taken = !search->chosen[capacity] ||
                                     verdict_at(search, guest, capacity)->term;

                        for (size_t j = 0; j < guest && !taken; j++)
                                taken = search->capacity_of[j] == capacity;
                        if (taken)
                                continue;
                        search->capacity_of[guest] = capacity;
                        if (match_others(search, guest + 1))
                                break;
                }
}

/* Marks the chosen capacities or, with the affinity "socket", all those in their sockets. */
static void mark_near(NumaSearch *search)
{
        const NumaCapacity *capacities = search->host->capacities;
        size_t n = search->host->n_capacities;

        memcpy(search->near, search->chosen, n * sizeof(bool));
        for (size_t i = 0; search->affinity == NUMA_AFFINITY_SOCKET && i < n; i++)
                for (size_t j = 0; j < n && !search->near[i]; j++)
                        search->near[i] = search->chosen[j] && capacities[j].cell->socket >= 0 &&
                                          capacities[j].cell->socket == capacities[i].cell->socket;
}

/* Bars the devices that the affinity excludes. The second pass of "preferred" bars none. */
static void bar_devices(NumaSearch *search)
{
        bool cell_unknown_fits = search->affinity == NUMA_AFFINITY_LEGACY,
             all_do = search->affinity == NUMA_AFFINITY_PREFERRED;

        mark_near(search);
        for (size_t i = 0; i < search->n_devices; i++) {
                const NumaDevice *device = &search->devices[i];
                bool is_near = device->capacity == NO_CELL
                                       ? device->cell_unknown && cell_unknown_fits
                                       : search->near[device->capacity];

                search->barred[device->provider] = !all_do && !is_near;
        }
}

static bool gives_by_cell(const NumaSearch *search)
{
        for (size_t i = 0; i < _NUMA_CLASS_MAX; i++)
                if (search->host->by_cell[i])
                        return true;
        return false;
}

/* Returns true if another set of host cells could fit after this one failed. */
static bool set_matters(const NumaSearch *search)
{
        return (search->asks_devices && search->affinity != NUMA_AFFINITY_PREFERRED) ||
               (gives_by_cell(search) && search->rest.groups[0].required.n_items > 0);
}

typedef enum SetOutcome {
        SET_FITS = 0,
        SET_E_TRY_NEXT = 1,
        SET_E_STOP, /* no other set can fit, or the effort is spent */
} SetOutcome;

/* Tries the chosen set of host cells, with words only for the first set. Returns a SetOutcome, or
 * -ENOMEM. */
static int try_set(NumaSearch *search)
{
        size_t providers[NUMA_REQUEST_CELLS_MAX];
        FitGiven given = { .barred = search->barred, .providers = providers };
        int r;

        bar_devices(search);
        for (size_t i = 0; i < search->host->n_capacities && gives_by_cell(search); i++)
                if (search->chosen[i] && search->host->capacities[i].provider != SIZE_MAX)
                        providers[given.n_providers++] = search->host->capacities[i].provider;
        fit_done(&search->fit);
        r = fit_trial_run(search->trial, &given, &search->fit,
                          search->n_sets == 0 ? &search->words : NULL);
        search->n_sets++;
        (void)fit_effort_spend(search->effort, search->n_devices + search->host->n_capacities);
        if (r == 0)
                match_in_order(search);
        if (r <= 0)
                return r;
        return set_matters(search) ? SET_E_TRY_NEXT : SET_E_STOP;
}

/* Chooses more host cells from rank first on, and tries each complete set. Returns a SetOutcome, or
 * -ENOMEM. */
static int search_sets(NumaSearch *search, size_t first, size_t n_chosen)
{
        size_t n_cells = search->request->numa.n_cells, saved[NUMA_REQUEST_CELLS_MAX];

        if (n_chosen == n_cells)
                return try_set(search);
        for (size_t i = first; i + (n_cells - n_chosen) <= search->host->n_capacities; i++) {
                size_t capacity = search->order[i];
                uint64_t seen = 0, n_sets = search->n_sets;
                int r;

                if (fit_effort_is_spent(search->effort))
                        return SET_E_STOP;
                memcpy(saved, search->capacity_of, sizeof(saved));
                if (augment(search, capacity, 0, &seen)) {
                        search->chosen[capacity] = true;
                        r = search_sets(search, i + 1, n_chosen + 1);
                        if (r != SET_E_TRY_NEXT)
                                return r;
                        search->chosen[capacity] = false;
                        if (search->n_sets == n_sets)
                                return SET_E_TRY_NEXT; /* no descent from here is complete */
                }
                memcpy(search->capacity_of, saved, sizeof(saved));
        }
        return SET_E_TRY_NEXT;
}

/* Searches the sets with one affinity, until one fits. */
static int search_pass(NumaSearch *search, NumaAffinity affinity)
{
        search->affinity = affinity;
        for (size_t i = 0; i < NUMA_REQUEST_CELLS_MAX; i++)
                search->capacity_of[i] = NO_CELL;
        for (size_t i = 0; i < search->host->n_capacities; i++)
                search->chosen[i] = false;
        return search_sets(search, 0, 0);
}

/* Result of a search. */

/* Returns the name of the class as resources owns it; NULL if resources lacks the class. */
static const char *borrow_class(const Resources *resources, const char *resource_class)
{
        for (size_t i = 0; i < resources->n_items; i++)
                if (strcmp(resources->items[i].resource_class, resource_class) == 0)
                        return resources->items[i].resource_class;
        return NULL;
}

static int add_piece(Fit *fit, size_t provider, const char *resource_class, uint64_t amount)
{
        return amount > 0 && resource_class ? fit_add(fit, provider, resource_class, amount) : 0;
}

/* Adds the resources of a guest cell that its host cell's provider counts. */
static int add_cell_pieces(const NumaHost *host, const NumaCapacity *capacity,
                           const LayoutCell *cell, const Resources *resources, Fit *fit)
{
        const uint64_t amounts[_NUMA_CLASS_MAX] = {
                [NUMA_CLASS_VCPU] = cell->n_shared,
                [NUMA_CLASS_PCPU] = cpu_set_count(&cell->vcpus) - cell->n_shared,
                [NUMA_CLASS_MEMORY_MB] = cell->memory_mb,
        };

        for (size_t i = 0; i < _NUMA_CLASS_MAX; i++)
                if (host->by_cell[i] && capacity->provider != SIZE_MAX &&
                    provider_find_inventory(host->view->tree->providers[capacity->provider],
                                            numa_class_names[i]) &&
                    add_piece(fit, capacity->provider, borrow_class(resources, numa_class_names[i]),
                              amounts[i]) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < capacity->cell->n_pages && capacity->provider != SIZE_MAX; i++) {
                const HostPages *pages = &capacity->cell->pages[i];

                if (pages->size_kib == cell->page_kib &&
                    provider_find_inventory(host->view->tree->providers[capacity->provider],
                                            pages->resource_class) &&
                    numa_host_placed(host, capacity->provider, pages->resource_class) > 0 &&
                    add_piece(fit, capacity->provider, pages->resource_class,
                              cell->memory_mb * 1024 / pages->size_kib) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Makes the pieces of fit_trial_run() borrow the names of their classes from the caller's request.
 * At first they borrow from search->rest, which is freed with the search. */
static void borrow_classes(const NumaSearch *search, Fit *fit)
{
        for (size_t i = 0; i < fit->n_pieces; i++) {
                FitPiece *piece = &fit->pieces[i];

                piece->resource_class = borrow_class(
                        &search->request->groups[piece->group].resources, piece->resource_class);
        }
}

static int order_pieces(const void *a, const void *b)
{
        const FitPiece *x = a, *y = b;
        int order;

        if (x->group != y->group)
                return x->group < y->group ? -1 : 1;
        order = strcmp(x->resource_class, y->resource_class);
        return order ? order : x->provider < y->provider ? -1 : x->provider > y->provider;
}

/* Writes the layout and the pieces of the set that fits. */
static int write_fit(NumaSearch *search, Fit *ret)
{
        const NumaRequest *numa = &search->request->numa;
        Fit *fit = &search->fit;
        size_t n_cpus = 0;

        borrow_classes(search, fit);
        for (size_t i = 0; i < numa->n_cells; i++)
                n_cpus += cpu_set_count(&numa->cells[i].vcpus);
        if (layout_reserve(&fit->layout, numa->n_cells, n_cpus) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < numa->n_cells; i++) {
                size_t capacity = search->capacity_of[i];

                if (numa_host_lay_out(search->host, search->request, i, capacity,
                                      verdict_at(search, i, capacity)->page_kib,
                                      &fit->layout) < 0 ||
                    add_cell_pieces(search->host, &search->host->capacities[capacity],
                                    &fit->layout.cells[i], &search->request->groups[0].resources,
                                    fit) < 0)
                        return -ENOMEM;
        }
        layout_sort_cpus(&fit->layout);
        qsort(fit->pieces, fit->n_pieces, sizeof(FitPiece), order_pieces);
        *ret = *fit;
        *fit = FIT_NULL;
        return 0;
}

/* Messages. */

/* Returns how far a guest cell got: CPUs are checked first, then memory, then the provider. */
static int stage_of(const char *term)
{
        static const char *const cpus[] = { "cpus", "vcpus", "pcpus", "threads" };

        for (size_t i = 0; i < ARRAY_SIZE(cpus); i++)
                if (strcmp(term, cpus[i]) == 0)
                        return 0;
        return strcmp(term, "memory") == 0 || strcmp(term, "pages") == 0 ? 1 : 2;
}

/* Returns the host cell in which the guest cell got furthest, and of several the one that misses
 * least. SIZE_MAX if one fits or there is none. */
static size_t find_nearest(const NumaSearch *search, size_t guest)
{
        size_t nearest = NO_CELL;
        uint64_t least = UINT64_MAX;
        int furthest = 0;

        for (size_t i = 0; i < search->host->n_capacities; i++) {
                const NumaVerdict *verdict = verdict_at(search, guest, search->order[i]);
                uint64_t missing = count_missing(verdict);

                if (!verdict->term)
                        return NO_CELL;
                if (nearest == NO_CELL || stage_of(verdict->term) > furthest ||
                    (stage_of(verdict->term) == furthest && missing < least)) {
                        nearest = search->order[i];
                        least = missing;
                        furthest = stage_of(verdict->term);
                }
        }
        return nearest;
}

/* Explains why no set of host cells was complete: the first guest cell that fits nowhere, else too
 * few cells, or cells that fit only on the same host cells. */
static void explain_cells(const NumaSearch *search, Error *reterr)
{
        size_t n_cells = search->request->numa.n_cells, n_capacities = search->host->n_capacities;

        if (n_capacities == 0) {
                error_setf(reterr, ENOSPC, "The hypervisor reports no NUMA cells");
                return;
        }
        for (size_t i = 0; i < n_cells; i++) {
                size_t capacity = find_nearest(search, i);

                if (capacity == NO_CELL)
                        continue;
                error_setf(reterr, ENOSPC, "Guest cell %zu (%s) on host cell %u: %s", i,
                           verdict_at(search, i, capacity)->resource_class,
                           search->host->capacities[capacity].cell->id,
                           verdict_at(search, i, capacity)->text);
                return;
        }
        if (n_cells > n_capacities)
                error_setf(reterr, ENOSPC, "The guest has %zu cells, but the host has %zu", n_cells,
                           n_capacities);
        else
                error_setf(reterr, ENOSPC,
                           "Every guest NUMA cell fits, but not all on different host cells");
}

static int explain(const NumaSearch *search, Error *reterr)
{
        char bound[FIT_EFFORT_TEXT_SIZE];

        if (fit_effort_is_spent(search->effort)) {
                error_setf(reterr, E2BIG,
                           "Too hard: no placement of the %zu cells was found within %s",
                           search->request->numa.n_cells, fit_effort_format(search->effort, bound));
                return CLAIM_E_TOO_HARD;
        }
        if (search->n_sets == 0)
                explain_cells(search, reterr);
        else
                error_setf(reterr, ENOSPC, "%s", search->words.text);
        return CLAIM_E_NO_CAPACITY;
}

/* Searches with the affinity. "preferred" needs two passes: as "required", then without a
 * restriction. */
static int search_all(NumaSearch *search, Fit *ret, Error *reterr)
{
        NumaAffinity affinity = search->request->numa.affinity;
        int r = search_pass(search, affinity == NUMA_AFFINITY_PREFERRED ? NUMA_AFFINITY_REQUIRED
                                                                        : affinity);

        if (r > 0 && affinity == NUMA_AFFINITY_PREFERRED && !fit_effort_is_spent(search->effort))
                r = search_pass(search, affinity);
        if (r < 0)
                return error_oom(reterr);
        if (r > 0)
                return explain(search, reterr);
        return write_fit(search, ret) < 0 ? error_oom(reterr) : CLAIM_DONE;
}

static bool is_ready(const HostFacts *facts, Error *reterr)
{
        if (facts)
                return true;
        error_setf(reterr, EAGAIN, "CPUs cannot be chosen before the first poll");
        return false;
}

int fit_request_numa(const HostView *view, const HostFacts *facts, const char *node,
                     const ResourceRequest *request, const Consumer *placed, FitEffort *effort,
                     Fit *ret, Error *reterr)
{
        _cleanup_(numa_host_done) NumaHost host = { 0 };
        _cleanup_(search_done) NumaSearch search = {
                .host = &host, .request = request, .node = node, .effort = effort
        };
        Fit plain = FIT_NULL;
        Error words = ERROR_NULL;
        int r;

        if (request->numa.n_cells == 0)
                return fit_groups(view, node, request, placed, effort, ret, reterr);
        if (!is_ready(facts, reterr))
                return CLAIM_E_NO_CAPACITY;
        if (numa_host_make(&host, view, facts, node, placed) < 0 || search_init(&search) < 0)
                return error_oom(reterr);
        /* Amounts that fit nowhere are explained without cells, unless a search follows. */
        r = fit_trial_run(search.trial, NULL, &plain, reterr ? reterr : &words);
        fit_done(&plain);
        if (r == 0 || (r == CLAIM_E_NO_CAPACITY && search.rest.groups[0].required.n_items > 0))
                r = search_all(&search, ret, reterr);
        return r;
}

static int add_verdict(const NumaSearch *search, size_t guest, size_t index, FitVerdicts *verdicts)
{
        const NumaHost *host = search->host;
        const NumaVerdict *from = verdict_at(search, guest, index);
        const NumaCapacity *capacity = &host->capacities[index];
        const Provider *provider =
                host->view->tree->providers[capacity->provider == SIZE_MAX ? host->root
                                                                           : capacity->provider];
        FitVerdict *verdict;

        if (array_grow(&verdicts->items, sizeof(FitVerdict), verdicts->n_items,
                       &verdicts->n_allocated) < 0)
                return -ENOMEM;
        verdict = &verdicts->items[verdicts->n_items++];
        *verdict = (FitVerdict){
                .suffix = text_format("cell %zu", guest),
                .provider = provider->uuid,
                .provider_name =
                        text_format("%s, cell %u", host->view->tree->providers[host->root]->name,
                                    capacity->cell->id),
                .resource_class = strdup(from->resource_class),
                .term = from->term ? from->term : "fits",
                .asked = from->asked,
                .free_amount = from->free_amount,
                .missing = from->term ? count_missing(from) : 0,
                .text = strdup(from->text),
        };
        return verdict->suffix && verdict->provider_name && verdict->resource_class && verdict->text
                       ? 0
                       : -ENOMEM;
}

int fit_explain_numa(const HostView *view, const HostFacts *facts, const char *node,
                     const ResourceRequest *request, FitEffort *effort, FitVerdicts *ret,
                     Error *reterr)
{
        _cleanup_(numa_host_done) NumaHost host = { 0 };
        _cleanup_(search_done) NumaSearch search = {
                .host = &host, .request = request, .node = node, .effort = effort
        };
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        int r;

        if (request->numa.n_cells == 0)
                return fit_explain_request(view, node, request, effort, ret, reterr);
        if (!is_ready(facts, reterr))
                return CLAIM_E_NO_CAPACITY;
        if (numa_host_make(&host, view, facts, node, NULL) < 0 || search_init(&search) < 0)
                return error_oom(reterr);
        r = fit_explain_request(view, node, &search.rest, effort, ret, NULL);
        if (r < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < request->numa.n_cells; i++)
                for (size_t j = 0; j < host.n_capacities; j++)
                        if (add_verdict(&search, i, j, ret) < 0) {
                                fit_verdicts_done(ret);
                                return error_oom(reterr);
                        }
        return fit_request_numa(view, facts, node, request, NULL, effort, &fit, reterr);
}

/* Resources that are used already. */

static uint64_t free_amount(const HostView *view, size_t provider, const char *resource_class)
{
        const Inventory *inventory =
                provider_find_inventory(view->tree->providers[provider], resource_class);
        uint64_t capacity = inventory_capacity(inventory),
                 used = resources_get(&view->providers[provider].used, resource_class);

        return capacity > used ? capacity - used : 0;
}

typedef struct Force {
        const HostView *view;
        bool *usable; /* index: provider; false if it must not be used, or already has a piece of
                         the current class */
        size_t root;
        Fit fit;
} Force;

static void force_done(Force *force)
{
        free(force->usable);
        fit_done(&force->fit);
}

/* Chooses the next provider for the class. Returns false if no provider that is left has it. */
static bool choose(const Force *force, const char *resource_class, size_t *ret_provider)
{
        const HostView *view = force->view;
        uint64_t most = 0;
        bool found = false;

        for (size_t i = 0; i < view->n_providers; i++) {
                uint64_t amount;

                if (!force->usable[i] ||
                    !provider_find_inventory(view->tree->providers[i], resource_class))
                        continue;
                if (i == force->root) {
                        *ret_provider = i;
                        return true;
                }
                amount = free_amount(view, i, resource_class);
                if (found &&
                    (amount < most ||
                     (amount == most && strcmp(view->tree->providers[i]->name,
                                               view->tree->providers[*ret_provider]->name) > 0)))
                        continue;
                *ret_provider = i;
                most = amount;
                found = true;
        }
        return found;
}

/* Places one class. If the root has the class, all of it goes there, even more than is free.
 * Otherwise the provider with most free capacity comes first, and an excess goes to the next one.
 * The part that fits nowhere is added to the first provider. */
static int place(Force *force, const ResourceAmount *asked)
{
        const char *resource_class = asked->resource_class;
        size_t first = force->fit.n_pieces, provider;
        uint64_t left = asked->amount;
        int r = 0;

        while (r == 0 && left > 0 && choose(force, resource_class, &provider)) {
                uint64_t capacity = provider == force->root
                                            ? left
                                            : free_amount(force->view, provider, resource_class);

                if (capacity == 0)
                        break;
                r = fit_add(&force->fit, provider, resource_class, MIN(capacity, left));
                left -= MIN(capacity, left);
                force->usable[provider] = false;
        }
        if (r == 0 && left > 0 && force->fit.n_pieces > first)
                force->fit.pieces[first].amount += left;
        else if (r == 0 && left > 0 && choose(force, resource_class, &provider))
                r = fit_add(&force->fit, provider, resource_class, left);
        for (size_t i = first; i < force->fit.n_pieces; i++)
                force->usable[force->fit.pieces[i].provider] = true;
        return r;
}

/* Places the classes, each on its own, as fit_force_numa() does without cells. If free capacities
 * are equal, the lowest name counts. Withheld providers get nothing, and neither limits of devices
 * nor units and steps are checked. */
static int force_classes(const HostView *view, const char *node, const Resources *resources,
                         Fit *ret)
{
        _cleanup_(force_done) Force force = { .view = view, .root = SIZE_MAX };
        size_t root;

        force.usable = calloc(view->n_providers + 1, sizeof(bool));
        if (!force.usable)
                return -ENOMEM;
        host_view_usable(view, node, force.usable);
        if (host_view_root(view, node, &root))
                force.root = root;
        for (size_t i = 0; i < resources->n_items; i++)
                if (place(&force, &resources->items[i]) < 0)
                        return -ENOMEM;
        *ret = TAKE_STRUCT(force.fit);
        return 0;
}

/* Adds the pieces of each guest cell, on the host cell of its layout. Unknown host cells are
 * skipped. */
static int force_cells(const NumaHost *host, const Resources *resources, const Layout *layout,
                       Fit *fit)
{
        for (size_t i = 0; i < layout->n_cells; i++) {
                size_t index;
                const NumaCapacity *capacity =
                        capacity_of_cell(host, (int)layout->cells[i].host_cell, &index);

                if (capacity &&
                    add_cell_pieces(host, capacity, &layout->cells[i], resources, fit) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Subtracts the pieces from the rest. */
static int take_out(const Fit *fit, Resources *rest)
{
        for (size_t i = 0; i < fit->n_pieces; i++) {
                const FitPiece *piece = &fit->pieces[i];
                uint64_t left = resources_get(rest, piece->resource_class);

                if (resources_set(rest, piece->resource_class, left - MIN(left, piece->amount)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int add_pieces(Fit *fit, const Fit *more, const Resources *resources)
{
        for (size_t i = 0; i < more->n_pieces; i++)
                if (add_piece(fit, more->pieces[i].provider,
                              borrow_class(resources, more->pieces[i].resource_class),
                              more->pieces[i].amount) < 0)
                        return -ENOMEM;
        return 0;
}

int fit_force_numa(const HostView *view, const HostFacts *facts, const char *node,
                   const Resources *resources, const Layout *layout, Fit *ret)
{
        _cleanup_(numa_host_done) NumaHost host = { 0 };
        _cleanup_(resources_done) Resources rest = RESOURCES_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL, floating = FIT_NULL;

        if (layout->n_cells == 0)
                return force_classes(view, node, resources, ret);
        if (numa_host_make(&host, view, facts, node, NULL) < 0 ||
            resources_copy(&rest, resources) < 0 ||
            force_cells(&host, resources, layout, &fit) < 0 || take_out(&fit, &rest) < 0 ||
            force_classes(view, node, &rest, &floating) < 0 ||
            add_pieces(&fit, &floating, resources) < 0)
                return -ENOMEM;
        if (fit.n_pieces > 0)
                qsort(fit.pieces, fit.n_pieces, sizeof(FitPiece), order_pieces);
        *ret = TAKE_STRUCT(fit);
        return 0;
}
