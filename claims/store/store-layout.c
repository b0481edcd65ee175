/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where claims are on the host: cells, CPUs, and the CPUs that are held. */

#include <string.h>

#include "base/array.h"

#include "claims/store/store-internal.h"

#define MEMORY_MAX INT64_C(0x7fffffffff) /* MiB; more is damage */

static int damaged(const Claims *claims, Error *reterr)
{
        return sqlite_damaged(claims->sqlite, "a layout", reterr);
}

/* A number from 0 to max. */
static int column_number(const Claims *claims, sqlite3_stmt *statement, int column, int64_t max,
                         uint64_t *ret, Error *reterr)
{
        int64_t number = sqlite3_column_int64(statement, column);

        if (number < 0 || number > max)
                return damaged(claims, reterr);
        *ret = (uint64_t)number;
        return 0;
}

static int column_set(const Claims *claims, sqlite3_stmt *statement, int column, CpuSet *ret,
                      Error *reterr)
{
        const char *text;
        int r = sqlite_column(claims->sqlite, statement, column, &text, reterr);

        if (r == 0)
                r = cpu_set_parse(text, ret, NULL);
        return r == -EINVAL ? damaged(claims, reterr) : r < 0 ? error_oom(reterr) : 0;
}

static int write_cell(Claims *claims, int64_t id, const LayoutCell *cell, Error *reterr)
{
        _cleanup_free_ char *vcpus = cpu_set_format(&cell->vcpus);

        if (!vcpus)
                return error_oom(reterr);
        return store_run(claims, STATEMENT_INSERT_CELL, reterr, "iiiiisi", id, (int64_t)cell->cell,
                         (int64_t)cell->host_cell, (int64_t)cell->memory_mb,
                         (int64_t)cell->page_kib, vcpus, (int64_t)cell->n_shared);
}

static int write_cpu(Claims *claims, int64_t id, const LayoutCpu *cpu, Error *reterr)
{
        _cleanup_free_ char *cpus = cpu_set_format(&cpu->cpus);

        if (!cpus)
                return error_oom(reterr);
        return store_run(claims, STATEMENT_INSERT_CPU, reterr, "iiis", id, (int64_t)cpu->vcpu,
                         (int64_t)cpu->dedicated, cpus);
}

int store_write_layout(Claims *claims, int64_t id, const Layout *layout, Error *reterr)
{
        int r;

        for (size_t i = 0; i < layout->n_cells; i++)
                if ((r = write_cell(claims, id, &layout->cells[i], reterr)) < 0)
                        return r;
        for (size_t i = 0; i < layout->n_cpus; i++)
                if ((r = write_cpu(claims, id, &layout->cpus[i], reterr)) < 0)
                        return r;
        CPU_SET_FOREACH(cpu, &layout->held) {
                r = store_run(claims, STATEMENT_INSERT_PIN, reterr, "ii", (int64_t)cpu, id);
                if (r < 0)
                        return r == -EEXIST ? CLAIM_E_CONFLICT : r;
        }
        return 0;
}

int store_has_layout(Claims *claims, int64_t id, bool *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_get_row(claims, STATEMENT_HAS_CELLS, &statement, reterr, "i", id);

        if (r < 0)
                return r;
        *ret = r == SQLITE_STEP_ROW;
        return 0;
}

static int read_cell(Claims *claims, Claim *claim, sqlite3_stmt *statement, Error *reterr)
{
        Layout *layout = &claim->layout;
        LayoutCell cell = { 0 };
        uint64_t number, host_cell;
        int r;

        if (array_grow(&layout->cells, sizeof(LayoutCell), layout->n_cells,
                       &claim->n_cells_allocated) < 0)
                return error_oom(reterr);
        if ((r = column_number(claims, statement, 0, UINT32_MAX, &number, reterr)) < 0 ||
            (r = column_number(claims, statement, 1, UINT32_MAX, &host_cell, reterr)) < 0 ||
            (r = column_number(claims, statement, 2, MEMORY_MAX, &cell.memory_mb, reterr)) < 0 ||
            (r = column_number(claims, statement, 3, MEMORY_MAX, &cell.page_kib, reterr)) < 0 ||
            (r = column_number(claims, statement, 5, CPU_SET_MAX, &cell.n_shared, reterr)) < 0 ||
            (r = column_set(claims, statement, 4, &cell.vcpus, reterr)) < 0)
                return r;
        cell.cell = (unsigned)number;
        cell.host_cell = (unsigned)host_cell;
        layout->cells[layout->n_cells++] = cell;
        return 0;
}

static int read_cpu(Claims *claims, Claim *claim, sqlite3_stmt *statement, Error *reterr)
{
        Layout *layout = &claim->layout;
        LayoutCpu cpu = { .dedicated = sqlite3_column_int64(statement, 1) != 0 };
        uint64_t vcpu;
        int r;

        if (array_grow(&layout->cpus, sizeof(LayoutCpu), layout->n_cpus, &claim->n_cpus_allocated) <
            0)
                return error_oom(reterr);
        if ((r = column_number(claims, statement, 0, CPU_SET_MAX, &vcpu, reterr)) < 0 ||
            (r = column_set(claims, statement, 2, &cpu.cpus, reterr)) < 0)
                return r;
        cpu.vcpu = (unsigned)vcpu;
        layout->cpus[layout->n_cpus++] = cpu;
        return 0;
}

static int add_cpu(Claims *claims, sqlite3_stmt *statement, CpuSet *set, Error *reterr)
{
        uint64_t cpu;
        int r = column_number(claims, statement, 0, CPU_SET_MAX - 1, &cpu, reterr);

        if (r < 0)
                return r;
        return cpu_set_add(set, (unsigned)cpu) < 0 ? error_oom(reterr) : 0;
}

static int read_pin(Claims *claims, Claim *claim, sqlite3_stmt *statement, Error *reterr)
{
        return add_cpu(claims, statement, &claim->layout.held, reterr);
}

int store_read_layout(Claims *claims, SqliteParts *parts, Claim *claim, Error *reterr)
{
        bool ended = claim->state == CLAIM_STATE_RELEASED;
        int r = store_read_part(claims, &parts->cells,
                                ended ? STATEMENT_READ_ENDED_CELLS : STATEMENT_READ_CELLS, claim,
                                read_cell, reterr);

        /* A claim without cells has no guest CPUs, but can have host CPUs of other threads. */
        if (r == 0 && claim->layout.n_cells > 0)
                r = store_read_part(claims, &parts->cpus,
                                    ended ? STATEMENT_READ_ENDED_CPUS : STATEMENT_READ_CPUS, claim,
                                    read_cpu, reterr);
        return r < 0 || ended ? r
                              : store_read_part(claims, &parts->pins, STATEMENT_READ_PINS, claim,
                                                read_pin, reterr);
}

static int read_cell_usage(Claims *claims, sqlite3_stmt *statement, void *context, Error *reterr)
{
        HostView *view = context;
        HostCellUsage usage = { 0 };
        uint64_t host_cell;
        int r;

        if (array_grow(&view->cell_usages, sizeof(HostCellUsage), view->n_cell_usages,
                       &view->n_cell_usages_allocated) < 0)
                return error_oom(reterr);
        if ((r = column_number(claims, statement, 0, UINT32_MAX, &host_cell, reterr)) < 0 ||
            (r = column_number(claims, statement, 1, MEMORY_MAX, &usage.page_kib, reterr)) < 0 ||
            (r = column_number(claims, statement, 2, INT64_MAX, &usage.memory_mb, reterr)) < 0 ||
            (r = column_number(claims, statement, 3, INT64_MAX, &usage.n_shared, reterr)) < 0)
                return r;
        usage.host_cell = (unsigned)host_cell;
        view->cell_usages[view->n_cell_usages++] = usage;
        return 0;
}

static int read_held(Claims *claims, sqlite3_stmt *statement, void *context, Error *reterr)
{
        return add_cpu(claims, statement, &((HostView *)context)->held, reterr);
}

int store_read_cell_usages(Claims *claims, HostView *view, Error *reterr)
{
        int r;

        view->n_cell_usages = 0;
        cpu_set_done(&view->held);
        r = store_each(claims, STATEMENT_READ_CELL_USAGES, read_cell_usage, view, reterr, "");
        if (r < 0)
                return r;
        return store_each(claims, STATEMENT_READ_ALL_PINS, read_held, view, reterr, "");
}
