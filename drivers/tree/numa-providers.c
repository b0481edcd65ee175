/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Edits the providers of NUMA cells. Each cell gets its own amounts, and its part of the amounts
 * that are reserved for the host. Before that, collect_heir() copies the old inventories of the
 * cells, whose ratios the root can inherit.
 *
 * sum_up() adds up the weights (shared CPUs and memory) of all offered cells. The cells are then
 * updated in their order, each with the sum of the weights before it, so that the parts add up to
 * the whole (reshape_portion()). A part that is larger than its cell is cut (set_amount()). A cell
 * that is not offered has no weight, and all of its amounts are reserved.
 *
 * A provider is a cell of this host by its name, its trait and its place below the root. Cells that
 * are gone are removed in a second step, after the devices below them have moved. After an error
 * the tree is undefined.
 *
 * Tests: tests/unit/drivers/tree/test-numa-providers.c */

#include "drivers/tree/numa-providers.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "drivers/tree/huge-pages.h"

#define OPTION "[compute] numa_in_placement"

static const char cell_trait[] = "HW_NUMA_ROOT";
static const char infix[] = "_NUMA";

/* Writes the name of the provider of a cell. */
static void make_name(const char *nodename, unsigned cell, char ret[static CHILD_NAME_SIZE])
{
        snprintf(ret, CHILD_NAME_SIZE, "%s%s%u", nodename, infix, cell);
}

bool numa_is_cell(const ProviderTree *tree, const Provider *root, const Provider *provider,
                  unsigned *ret_cell)
{
        size_t n = strlen(root->name);
        char *end;
        unsigned long cell;

        if (uuid_equal(&provider->uuid, &root->uuid) ||
            strncmp(provider->name, root->name, n) != 0 ||
            strncmp(provider->name + n, infix, strlen(infix)) != 0)
                return false;
        n += strlen(infix);
        if (!isdigit((unsigned char)provider->name[n]))
                return false;
        errno = 0;
        cell = strtoul(provider->name + n, &end, 10);
        if (*end || errno || cell > UINT32_MAX)
                return false;
        *ret_cell = (unsigned)cell;
        return string_set_contains(&provider->traits, cell_trait) &&
               provider_tree_in_subtree(tree, provider, &root->uuid);
}

const Provider *numa_parent(const HostConfig *config, const ProviderTree *tree,
                            const Provider *root, int numa_node)
{
        const Provider *cell;
        char name[CHILD_NAME_SIZE];

        if (!config->numa_in_placement || numa_node < 0)
                return root;
        make_name(root->name, (unsigned)numa_node, name);
        cell = provider_tree_find_name(tree, name);
        if (!cell)
                cell = child_provider_find_renamed(tree, root, name);
        return cell && provider_tree_in_subtree(tree, cell, &root->uuid) ? cell : root;
}

bool numa_is_at_root(const HostConfig *config, const char *resource_class)
{
        if (config->numa_in_placement == HOST_NUMA_FLAT || strcmp(resource_class, "DISK_GB") == 0)
                return true;
        return config->numa_in_placement == HOST_NUMA_ROOT &&
               (strcmp(resource_class, "VCPU") == 0 || strcmp(resource_class, "MEMORY_MB") == 0);
}

/* Checks of the cells. numa_check() fails if there are none, or if two have the same CPU. The
 * other failed checks are problems that it lists, and the host is reported. */

static int add_cpus(const SnapshotCell *cell, CpuSet *ret)
{
        for (size_t i = 0; i < cell->n_cpus; i++) {
                int r = cpu_set_add(ret, cell->cpus[i].id);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Returns the first cell with the CPU. The caller knows that there is one. */
static const SnapshotCell *find_cell_of_cpu(const Snapshot *snapshot, unsigned cpu)
{
        for (size_t i = 0; i < snapshot->n_cells; i++)
                for (size_t j = 0; j < snapshot->cells[i].n_cpus; j++)
                        if (snapshot->cells[i].cpus[j].id == cpu)
                                return &snapshot->cells[i];
        return NULL;
}

/* Adds the CPUs of the cell to all. -EINVAL for a CPU that an earlier cell has. */
static int check_cell_cpus(const Snapshot *snapshot, const SnapshotCell *cell, CpuSet *all,
                           Error *reterr)
{
        for (size_t i = 0; i < cell->n_cpus; i++) {
                unsigned cpu = cell->cpus[i].id;

                if (cpu_set_contains(all, cpu))
                        return error_setf(
                                reterr, EINVAL,
                                OPTION
                                ": the hypervisor reports CPU %u in cell %u and in cell %u. Set it to false for this host",
                                cpu, find_cell_of_cpu(snapshot, cpu)->id, cell->id);
                if (cpu_set_add(all, cpu) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* Returns -EINVAL for a set with a CPU that is in no cell, which numa_check() lists as a problem.
 * Such a CPU is in no provider. */
static int check_covered(const char *kind, const CpuSet *set, const CpuSet *all, Error *reterr)
{
        if (cpu_set_is_subset(set, all))
                return 0;
        for (unsigned cpu = 0; cpu < CPU_SET_MAX; cpu++)
                if (cpu_set_contains(set, cpu) && !cpu_set_contains(all, cpu))
                        return error_setf(
                                reterr, EINVAL,
                                OPTION
                                ": CPU %u of the %s CPUs is in no cell. Remove it from [compute] cpu_%s_set, or set the option to false for this host",
                                cpu, kind, kind);
        return 0;
}

static int check_pages(const HostConfig *config, const SnapshotCell *cell, Error *reterr)
{
        for (size_t i = 0; i < cell->n_pages; i++) {
                const PageSize *pages = &cell->pages[i];
                uint64_t reserved = huge_pages_reserved(config, cell->id, pages->size_kib);

                if (reserved > pages->count)
                        return error_setf(
                                reterr, EINVAL,
                                "reserved_huge_pages reserves %llu pages of %llu KiB in cell %u, but the cell has only %llu",
                                (unsigned long long)reserved, (unsigned long long)pages->size_kib,
                                cell->id, (unsigned long long)pages->count);
        }
        return 0;
}

/* Returns -EINVAL if the host has memory but no cell has any, which numa_check() lists as a
 * problem. */
static int check_memory(const Snapshot *snapshot, Error *reterr)
{
        for (size_t i = 0; i < snapshot->n_cells; i++)
                if (snapshot->cells[i].memory_kib > 0)
                        return 0;
        if (snapshot->memory_kib == 0)
                return 0;
        return error_setf(
                reterr, EINVAL,
                OPTION
                ": the hypervisor reports the memory of no cell, so MEMORY_MB is not reported. Set it to root");
}

int numa_check(const HostConfig *config, const Snapshot *snapshot, const CpuPlan *cpus,
               Error *problem, Error *reterr)
{
        _cleanup_(cpu_set_done) CpuSet all = CPU_SET_INIT;
        Error memory = ERROR_NULL, shared = ERROR_NULL, dedicated = ERROR_NULL;
        int r;

        if (!config->numa_in_placement)
                return 0;
        if (snapshot->n_cells == 0)
                return error_setf(
                        reterr, EINVAL,
                        OPTION
                        ": the hypervisor reports no NUMA cells. Set it to false for this host");
        for (size_t i = 0; i < snapshot->n_cells; i++) {
                Error pages = ERROR_NULL;

                r = check_cell_cpus(snapshot, &snapshot->cells[i], &all, reterr);
                if (r < 0)
                        return r;
                (void)check_pages(config, &snapshot->cells[i], &pages);
                error_join(problem, &pages);
        }
        if (!numa_is_at_root(config, "MEMORY_MB"))
                (void)check_memory(snapshot, &memory);
        if (!numa_is_at_root(config, "VCPU"))
                (void)check_covered("shared", &cpus->shared, &all, &shared);
        (void)check_covered("dedicated", &cpus->dedicated, &all, &dedicated);
        error_join(problem, &memory);
        error_join(problem, &shared);
        error_join(problem, &dedicated);
        return 0;
}

/* Sharing amounts out over the cells */

/* Sums of the weights of offered cells. */
typedef struct Shares {
        const TreeUpdate *update;
        uint64_t cpus_before, cpus_all; /* shared CPUs of the cells before, and of all cells */
        uint64_t memory_before,
                memory_all; /* memory in KiB of the cells before, and of all cells */
} Shares;

/* A cell and its amounts. */
typedef struct CellShare {
        const SnapshotCell *cell;
        CpuSet cpus;
        bool is_offered; /* false: guests cannot use the cell, so all of it is reserved */
        HostAmounts amounts;
} CellShare;

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
        return u64_add_overflow(a, b, &a) ? UINT64_MAX : a;
}

static bool reports_memory(const Snapshot *snapshot)
{
        for (size_t i = 0; i < snapshot->n_cells; i++)
                if (snapshot->cells[i].memory_kib > 0)
                        return true;
        return false;
}

bool numa_lacks_memory(const Snapshot *snapshot, const SnapshotCell *cell)
{
        return cell->n_cpus > 0 && cell->memory_kib == 0 && reports_memory(snapshot);
}

/* Returns whether the cell has a CPU that is online or that guests can use, and any memory. If the
 * hypervisor reports the memory of no cell, the CPU is enough. A cell without CPUs is the memory of
 * a GPU or of a CXL device, or its CPUs are offline. */
static bool is_offered(const Shares *shares, const SnapshotCell *cell, const CpuSet *cpus)
{
        bool can_run = cpu_set_count_common(cpus, &shares->update->snapshot->online_cpus) > 0 ||
                       cpu_set_count_common(cpus, &shares->update->cpus.shared) > 0 ||
                       cpu_set_count_common(cpus, &shares->update->cpus.dedicated) > 0;

        return can_run && !numa_lacks_memory(shares->update->snapshot, cell);
}

/* Returns the memory of the cell, in MiB. Memory in files has no cell, so each cell gets a part
 * by its weight. */
static uint64_t cell_memory_mb(const Shares *shares, const SnapshotCell *cell)
{
        /* own memory of the cell; the remainder of the rounding goes to the next cell */
        if (shares->update->config->file_backed_memory == 0)
                return add_saturating(shares->memory_before, cell->memory_kib) / 1024 -
                       shares->memory_before / 1024;
        return reshape_portion(shares->update->amounts.memory.total, shares->memory_before,
                               cell->memory_kib, shares->memory_all);
}

/* Sets the inventory of a class, unless the amount is 0. Without a configured ratio, that of "from"
 * or heir stays (class_amount_record()). The reserved amount is limited to the total, because
 * Placement rejects an inventory that reserves more. Only the offered cells share the host's
 * reserved amount, so a part can exceed the total of its cell. */
static int set_amount(const ClassAmount *amount, const Provider *heir, Provider *from, Provider *to,
                      Error *reterr)
{
        Inventory record;
        int r;

        if (amount->total == 0)
                return 0;
        record = class_amount_record(amount, from, heir);
        record.reserved = MIN(record.reserved, record.total);
        r = provider_set_inventory(to, amount->resource_class, &record);
        return r < 0 ? error_prefixf(reterr, r, "Inventory %s of %s", amount->resource_class,
                                     to->name)
                     : 0;
}

/* Sets the inventories of hugepages. Ordinary pages have none. MEMORY_MB counts pages of all
 * sizes. */
static int set_pages(const HostConfig *config, const CellShare *share, uint64_t ordinary_kib,
                     Provider *to, Error *reterr)
{
        const SnapshotCell *cell = share->cell;

        for (size_t i = 0; i < cell->n_pages; i++) {
                const PageSize *pages = &cell->pages[i];
                char name[HUGE_PAGES_CLASS_SIZE];
                ClassAmount amount = {
                        .resource_class = huge_pages_class(MAX(pages->size_kib, 1), name),
                        .total = MIN(pages->count, INVENTORY_MAX_AMOUNT),
                        .reserved = share->is_offered
                                            ? huge_pages_reserved(config, cell->id, pages->size_kib)
                                            : pages->count,
                        .ratio = 1.0,
                };
                int r;

                /* the size 0 comes only from a malformed description of a host */
                if (pages->size_kib == 0 || pages->size_kib == ordinary_kib)
                        continue;
                r = set_amount(&amount, NULL, to, to, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Prepares the share of a cell. share_make() fills in the amounts. */
static int share_init(const Shares *shares, const SnapshotCell *cell, CellShare *ret)
{
        *ret = (CellShare){ .cell = cell, .amounts = shares->update->amounts };
        if (add_cpus(cell, &ret->cpus) < 0)
                return -ENOMEM;
        ret->is_offered = is_offered(shares, cell, &ret->cpus);
        return 0;
}

static void share_done(CellShare *share)
{
        cpu_set_done(&share->cpus);
}

/* Counts the CPUs of the cell. In a cell that is not offered all of them are reserved. */
static void count_cpus(const Shares *shares, CellShare *share)
{
        const CpuPlan *cpus = &shares->update->cpus;
        ClassAmount *vcpu = &share->amounts.vcpu, *pcpu = &share->amounts.pcpu;
        uint64_t n_shared = cpu_set_count_common(&cpus->shared, &share->cpus);

        vcpu->reserved = share->is_offered
                                 ? reshape_portion(shares->update->amounts.vcpu.reserved,
                                                   shares->cpus_before, n_shared, shares->cpus_all)
                                 : n_shared;
        pcpu->reserved = cpu_set_count_common(share->is_offered ? &cpus->floated : &cpus->dedicated,
                                              &share->cpus);
        class_amount_count_cpus(vcpu, n_shared,
                                cpu_set_count_common(&cpus->shared_offline, &share->cpus));
        class_amount_count_cpus(pcpu, cpu_set_count_common(&cpus->dedicated, &share->cpus),
                                cpu_set_count_common(&cpus->dedicated_offline, &share->cpus));
}

/* Counts the memory of the cell. Memory in files is offered by offered cells only. */
static void count_memory(const Shares *shares, CellShare *share)
{
        const SnapshotCell *cell = share->cell;
        ClassAmount *memory = &share->amounts.memory;

        if (!share->is_offered) {
                memory->total = shares->update->config->file_backed_memory > 0
                                        ? 0
                                        : MIN(cell->memory_kib / 1024, INVENTORY_MAX_AMOUNT);
                memory->reserved = memory->total;
                return;
        }
        memory->total = MIN(cell_memory_mb(shares, cell), INVENTORY_MAX_AMOUNT);
        memory->reserved =
                reshape_portion(shares->update->amounts.memory.reserved, shares->memory_before,
                                cell->memory_kib, shares->memory_all);
}

/* Fills in the amounts of the cell, and adds its weights to those before the next cell. */
static void share_make(Shares *shares, CellShare *share)
{
        count_cpus(shares, share);
        count_memory(shares, share);
        if (!share->is_offered)
                return;
        shares->cpus_before += cpu_set_count_common(&shares->update->cpus.shared, &share->cpus);
        shares->memory_before = add_saturating(shares->memory_before, share->cell->memory_kib);
}

/* Adds up the weights of all offered cells. */
static int sum_up(Shares *shares)
{
        for (size_t i = 0; i < shares->update->snapshot->n_cells; i++) {
                _cleanup_(share_done) CellShare share = { 0 };

                if (share_init(shares, &shares->update->snapshot->cells[i], &share) < 0)
                        return -ENOMEM;
                if (!share.is_offered)
                        continue;
                shares->cpus_all += cpu_set_count_common(&shares->update->cpus.shared, &share.cpus);
                shares->memory_all = add_saturating(shares->memory_all, share.cell->memory_kib);
        }
        return 0;
}

/* Replaces the inventories of the cell and sets its traits. */
static int update_cell(const TreeUpdate *update, const CellShare *share, Provider *provider,
                       Error *reterr)
{
        const ClassAmount *amounts[] = { &share->amounts.vcpu, &share->amounts.pcpu,
                                         &share->amounts.memory };
        Provider fresh = { .name = provider->name };
        int r = 0;

        /* in a second provider, because the ratios are read from the first one */
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(amounts); i++)
                if (!numa_is_at_root(update->config, amounts[i]->resource_class))
                        r = set_amount(amounts[i], update->root, provider, &fresh, reterr);
        if (r == 0)
                r = set_pages(update->config, share, huge_pages_ordinary_size(update->snapshot),
                              &fresh, reterr);
        if (r == 0 && provider_copy_inventories(provider, &fresh) < 0)
                r = error_oom(reterr);
        provider_clear_inventories(&fresh);
        free(fresh.inventories);
        if (r < 0)
                return r;
        if (string_set_add(&provider->traits, cell_trait) < 0 ||
            child_provider_own(update, provider) < 0)
                return error_oom(reterr);
        return 0;
}

/* Copies one inventory of each class, that of the last cell, from the tree to update->heir. */
static int collect_heir(TreeUpdate *update)
{
        unsigned cell;
        int r = 0;

        for (size_t i = 0; i < update->tree->n_providers; i++) {
                const Provider *provider = update->tree->providers[i];

                if (!numa_is_cell(update->tree, update->root, provider, &cell))
                        continue;
                /* provider_set_inventory() rejects invalid values (-EINVAL): skip them */
                for (size_t j = 0; r != -ENOMEM && j < provider->n_inventories; j++)
                        r = provider_set_inventory(&update->heir,
                                                   provider->inventories[j].resource_class,
                                                   &provider->inventories[j].inventory);
        }
        return r == -ENOMEM ? r : 0;
}

int numa_providers_update(TreeUpdate *update, Error *reterr)
{
        Shares shares = { .update = update };

        if (collect_heir(update) < 0)
                return error_oom(reterr);
        if (!update->config->numa_in_placement)
                return 0;
        if (sum_up(&shares) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < update->snapshot->n_cells; i++) {
                _cleanup_(share_done) CellShare share = { 0 };
                char name[CHILD_NAME_SIZE];
                Provider *provider;
                int r;

                if (share_init(&shares, &update->snapshot->cells[i], &share) < 0)
                        return error_oom(reterr);
                share_make(&shares, &share);
                make_name(update->root->name, share.cell->id, name);
                r = child_provider_ensure(update, update->root, name, &provider);
                if (r < 0)
                        return error_oom(reterr);
                if (!provider)
                        continue;
                r = update_cell(update, &share, provider, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool has_cell(const Snapshot *snapshot, unsigned id)
{
        for (size_t i = 0; i < snapshot->n_cells; i++)
                if (snapshot->cells[i].id == id)
                        return true;
        return false;
}

/* Returns whether another writer renamed the provider. Its name can look like that of another
 * cell, but it must stay. */
static bool is_renamed(const TreeUpdate *update, const Provider *provider)
{
        char name[CHILD_NAME_SIZE];

        for (size_t i = 0; i < update->snapshot->n_cells; i++) {
                make_name(update->root->name, update->snapshot->cells[i].id, name);
                if (child_provider_find_renamed(update->tree, update->root, name) == provider)
                        return true;
        }
        return false;
}

void numa_providers_remove_gone(const TreeUpdate *update)
{
        for (size_t i = update->tree->n_providers; i > 0; i--) {
                Provider *provider = update->tree->providers[i - 1];
                unsigned cell;

                if (!numa_is_cell(update->tree, update->root, provider, &cell) ||
                    (update->config->numa_in_placement &&
                     (has_cell(update->snapshot, cell) || is_renamed(update, provider))))
                        continue;
                if (!child_provider_remove(update, provider))
                        string_set_remove(&provider->traits, cell_trait);
        }
}
