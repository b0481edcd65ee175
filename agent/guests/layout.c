/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes the layout of a guest from its domain: the host cells of its CPUs and memory, its pins, and
 * the dedicated host CPUs that it holds. Each cell of the guest becomes one part for each host cell
 * that it is in. The first part has the number of the guest's cell. Further parts get numbers above
 * those of all cells.
 *
 * The layout is allocated once for the largest possible number of parts, so that pointers to parts
 * stay valid. Limit: memory that is not bound to a single host cell is divided in proportion to the
 * CPUs of the parts. */

#include "agent/guests/layout.h"

/* The inputs and the unfinished layout of one guest. */
typedef struct Guest {
        const SnapshotDomain *domain;
        const HostFacts *facts;
        const HostCell *cell_of_all; /* cell with all of domain->cpus, for guest CPUs without a pin;
                                        NULL: none */
        unsigned next_number; /* number for the next part that is not the first one of its cell */
        Layout layout;
} Guest;

/* Returns the host CPU with that id, and its cell. NULL: the host does not have it. */
static const HostCpu *find_cpu(const HostFacts *facts, unsigned id, unsigned *ret_cell)
{
        for (size_t i = 0; i < facts->n_cells; i++)
                for (size_t j = 0; j < facts->cells[i].n_cpus; j++)
                        if (facts->cells[i].cpus[j].id == id) {
                                *ret_cell = facts->cells[i].id;
                                return &facts->cells[i].cpus[j];
                        }
        return NULL;
}

static bool is_dedicated(const HostFacts *facts, unsigned cpu)
{
        unsigned cell;
        const HostCpu *found = find_cpu(facts, cpu, &cell);

        return found && found->dedicated;
}

/* Returns the host CPUs on which a guest's CPU can run, or NULL if it can run on any. */
static const CpuSet *find_pin(const SnapshotDomain *domain, unsigned vcpu)
{
        for (size_t i = 0; i < domain->n_pins; i++)
                if (domain->pins[i].vcpu == vcpu && cpu_set_count(&domain->pins[i].cpus) > 0)
                        return &domain->pins[i].cpus;
        return cpu_set_count(&domain->cpus) > 0 ? &domain->cpus : NULL;
}

/* Returns the cell that has all CPUs of the set, or NULL if there is none. */
static const HostCell *find_cell_of_cpus(const HostFacts *facts, const CpuSet *cpus)
{
        const HostCell *cell;
        unsigned id, n = 0;

        if (!find_cpu(facts, cpu_set_next(cpus, 0), &id))
                return NULL;
        cell = host_facts_find_cell(facts, id);
        for (size_t i = 0; i < cell->n_cpus; i++)
                n += cpu_set_contains(cpus, cell->cpus[i].id);
        return n == cpu_set_count(cpus) ? cell : NULL;
}

/* Returns the one host cell that the memory is bound to, or NULL. */
static const HostCell *find_home(const Guest *guest, const DomainCell *from)
{
        const CpuSet *cells = cpu_set_count(&from->host_cells) > 0 ? &from->host_cells
                                                                   : &guest->domain->memory_cells;

        return cpu_set_count(cells) == 1
                       ? host_facts_find_cell(guest->facts, cpu_set_next(cells, 0))
                       : NULL;
}

/* Returns the part of the guest's cell in the host cell. first is the index of the first part of
 * the guest's cell. Creates the part if there is none. */
static LayoutCell *get_part(Guest *guest, const DomainCell *from, size_t first,
                            const HostCell *host_cell)
{
        Layout *layout = &guest->layout;
        LayoutCell *part;

        for (size_t i = first; i < layout->n_cells; i++)
                if (layout->cells[i].host_cell == host_cell->id)
                        return &layout->cells[i];
        part = &layout->cells[layout->n_cells++];
        part->cell = layout->n_cells - 1 == first ? from->id : guest->next_number++;
        part->host_cell = host_cell->id;
        part->page_kib = from->page_kib;
        return part;
}

/* Adds a guest CPU with its pin. It is dedicated if it is pinned to a single dedicated CPU, which
 * the guest then holds. */
static int add_cpu(Guest *guest, unsigned vcpu, const CpuSet *pin, LayoutCell *part)
{
        LayoutCpu *cpu = &guest->layout.cpus[guest->layout.n_cpus++];
        const HostCpu *only = NULL;
        unsigned host_cell;

        if (cpu_set_count(pin) == 1)
                only = find_cpu(guest->facts, cpu_set_next(pin, 0), &host_cell);
        cpu->vcpu = vcpu;
        cpu->dedicated = only && only->dedicated;
        if (part && cpu->dedicated)
                part->n_shared--;
        if (cpu->dedicated && cpu_set_add(&guest->layout.held, only->id) < 0)
                return -ENOMEM;
        return cpu_set_copy(&cpu->cpus, pin);
}

/* Adds the CPUs of a guest's cell to the parts in which they are. A CPU whose pins are not all in
 * one host cell is added to the part in home, the host cell of the memory. It gets no part if home
 * is NULL, because the memory is not bound to one cell. */
static int add_cpus(Guest *guest, const DomainCell *from, const HostCell *home, size_t first)
{
        CPU_SET_FOREACH(vcpu, &from->vcpus) {
                const CpuSet *pin = find_pin(guest->domain, vcpu);
                const HostCell *cell = pin == &guest->domain->cpus ? guest->cell_of_all
                                       : pin ? find_cell_of_cpus(guest->facts, pin)
                                             : NULL;
                LayoutCell *part =
                        cell || home ? get_part(guest, from, first, cell ? cell : home) : NULL;

                if (part && cpu_set_add(&part->vcpus, vcpu) < 0)
                        return -ENOMEM;
                if (part)
                        part->n_shared++;
                if (pin && add_cpu(guest, vcpu, pin, part) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Adds the parts of a cell of the guest. Its memory is rounded up to MiB. */
static int add_cell(Guest *guest, const DomainCell *from)
{
        uint64_t memory_mb = from->memory_kib / 1024 + (from->memory_kib % 1024 > 0);
        const HostCell *home = find_home(guest, from);
        size_t first = guest->layout.n_cells;

        if (home)
                get_part(guest, from, first, home)->memory_mb = memory_mb;
        if (add_cpus(guest, from, home, first) < 0)
                return -ENOMEM;
        for (size_t i = first; !home && i < guest->layout.n_cells; i++) {
                LayoutCell *part = &guest->layout.cells[i];

                part->memory_mb =
                        memory_mb * cpu_set_count(&part->vcpus) / cpu_set_count(&from->vcpus);
        }
        return 0;
}

static size_t count_cpus(const DomainCell *cells, size_t n_cells)
{
        size_t n = 0;

        for (size_t i = 0; i < n_cells; i++)
                n += cpu_set_count(&cells[i].vcpus);
        return n;
}

/* Adds the dedicated CPUs of the set to those that the guest holds. */
static int hold_dedicated(Guest *guest, const CpuSet *cpus)
{
        CPU_SET_FOREACH(cpu, cpus)
                if (is_dedicated(guest->facts, cpu) && cpu_set_add(&guest->layout.held, cpu) < 0)
                        return -ENOMEM;
        return 0;
}

/* Makes the layout of a guest with these cells. Sets ret only on success. */
static int make(const SnapshotDomain *domain, const HostFacts *facts, const DomainCell *cells,
                size_t n_cells, Layout *ret)
{
        Guest guest = { .domain = domain, .facts = facts, .layout = LAYOUT_INIT };
        int r = layout_reserve(&guest.layout, n_cells * (facts->n_cells + 1),
                               count_cpus(cells, n_cells));

        guest.cell_of_all = find_cell_of_cpus(facts, &domain->cpus);
        for (size_t i = 0; i < n_cells; i++)
                guest.next_number = MAX(guest.next_number, cells[i].id + 1);
        for (size_t i = 0; r == 0 && i < n_cells; i++)
                r = add_cell(&guest, &cells[i]);
        if (r == 0 && guest.layout.n_cells == 0)
                layout_done(&guest.layout);
        if (r == 0)
                r = hold_dedicated(&guest, &domain->emulator_cpus);
        if (r == 0)
                r = hold_dedicated(&guest, &domain->iothread_cpus);
        /* The next start of the guest needs the CPUs of its persistent definition. */
        if (r == 0)
                r = hold_dedicated(&guest, &domain->config_cpus);
        if (r < 0) {
                layout_done(&guest.layout);
                return r;
        }
        layout_sort_cpus(&guest.layout);
        *ret = guest.layout;
        return 0;
}

int claim_layout_make(const SnapshotDomain *domain, const HostFacts *facts, Layout *ret)
{
        DomainCell whole = { .memory_kib = domain->memory_kib, .page_kib = domain->page_kib };
        int r = 0;

        if (domain->n_cells > 0)
                return make(domain, facts, domain->cells, domain->n_cells, ret);
        for (unsigned i = 0; r == 0 && i < MIN(domain->vcpus, (uint64_t)CPU_SET_MAX); i++)
                r = cpu_set_add(&whole.vcpus, i);
        if (r == 0)
                r = make(domain, facts, &whole, 1, ret);
        cpu_set_done(&whole.vcpus);
        return r;
}
