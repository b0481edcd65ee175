/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Converts polls to the facts that claims need: devices, PCI functions, vGPU cards, mdevs, NUMA
 * cells, guests, and the folders of Nova. It does so because drivers/ and claims/ do not include
 * each other's headers. Each list of the facts is allocated once, with space for all possible
 * items. Cells come before domains, because the layout of a domain needs them. PCI functions come
 * before devices, because a device gets the identity of its function. Words and sets of the
 * configuration are copied, because a reload frees it. The facts also own the identities of PCI
 * functions, the vGPU cards, and the layouts of guests. Other texts with a pointer are borrowed
 * from the snapshots. Devices that claims cannot have are left out: functions of a physical
 * network, the devices of sets that contradict another option, and all of [pci] without
 * report_in_placement. A virtual function for vGPUs that has no type is left out of [pci], but its
 * card can offer it as a vGPU. The only failure is a lack of memory, after which there are no new
 * facts. */

#include "agent/guests/facts.h"

#include <string.h>

#include "drivers/host/clean.h"
#include "drivers/tree/cpu-plan.h"
#include "drivers/tree/huge-pages.h"
#include "drivers/tree/mdev-plan.h"
#include "drivers/tree/shape-providers.h"

_Static_assert(HOST_ADDRESS_SIZE == PCI_ADDRESS_SIZE, "PCI addresses have one size");
_Static_assert(HOST_PAGES_CLASS_SIZE == HUGE_PAGES_CLASS_SIZE, "classes of pages have one size");
_Static_assert(HOST_CELL_NONE == NUMA_NODE_NONE, "\"no cell\" has one value");

/* Returns the facts' own copy of a word of the configuration, or NULL if memory is short. Equal
 * words share a copy. */
static const char *keep(HostFacts *facts, const char *word)
{
        StringSet *words = &facts->configured;

        if (string_set_add(words, word) < 0)
                return NULL;
        for (size_t i = 0; i < words->n_items; i++)
                if (strcmp(words->items[i], word) == 0)
                        return words->items[i];
        return NULL;
}

/* Adds the devices that have or can create mdevs. Each gets the number of mdevs that it can still
 * create, by the hardware and by its part of max_instances. */
static int add_devices(const MdevPlan *plan, HostFacts *facts)
{
        for (size_t i = 0; i < plan->n_offers; i++) {
                const MdevOffer *offer = &plan->offers[i];
                const char *type, *resource_class;

                if (offer->card)
                        continue;
                type = keep(facts, offer->type->type);
                resource_class = keep(facts, offer->type->mdev_class);
                if (!type || !resource_class)
                        return -ENOMEM;
                facts->devices[facts->n_devices++] = (HostDevice){
                        .name = offer->device->name,
                        .address = offer->device->address,
                        .identity = host_facts_identity(facts, offer->device->address),
                        .mdev_type = type,
                        .resource_class = resource_class,
                        .available = offer->total - offer->existing,
                        .cell = offer->device->numa_node,
                };
        }
        return 0;
}

/* Adds the PCI devices of the [pci] section, with their resource classes, if they are reported in
 * Placement. Devices of a physical network are left out. So are virtual functions that can become a
 * vGPU, but have no type of vGPU now. */
static void add_pci(const HostConfig *config, const Snapshot *snapshot, HostFacts *facts)
{
        for (size_t i = 0; config->report_in_placement && i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];
                const PciSpec *spec = pci_specs_find(&config->pci_specs, device);
                HostPci *pci = &facts->pci[facts->n_pci];

                if (!spec || spec->physical_network ||
                    (device->is_vgpu_function && !snapshot_vgpu_type(device)))
                        continue;
                *pci = (HostPci){ .name = device->name,
                                  .address = device->address,
                                  .identity = host_facts_identity(facts, device->address),
                                  .provider = device->physical_function[0]
                                                      ? device->physical_function
                                                      : device->address,
                                  .cell = device->numa_node,
                                  .managed = spec->managed,
                                  .must_be_cleaned = host_clean_find(config, device) };
                pci_spec_resource_class(spec, device, pci->resource_class);
                facts->n_pci++;
        }
}

/* Returns the largest possible number of pairs of a function and a type, on all cards. */
static size_t count_vgpus(const MdevPlan *plan)
{
        size_t n = 0;

        for (size_t i = 0; i < plan->n_cards; i++)
                n += plan->cards[i].n_functions * plan->cards[i].n_types;
        return n;
}

/* Adds a function for each type that it can be given as. */
static void add_function(const VgpuCard *card, size_t index, const VgpuFunction *function,
                         HostFacts *facts)
{
        for (size_t i = 0; i < card->n_types; i++) {
                if (!card->types[i].resource_class || !(function->allowed & UINT64_C(1) << i) ||
                    (function->type != VGPU_TYPE_NONE && function->type != (int)i))
                        continue;
                facts->pci[facts->n_pci] = (HostPci){
                        .name = function->name,
                        .address = function->address,
                        .identity = host_facts_identity(facts, function->address),
                        .provider = card->name,
                        .vgpu_type = card->types[i].id,
                        .card = index,
                        .cell = card->numa_node,
                };
                snprintf(facts->pci[facts->n_pci].resource_class,
                         sizeof(facts->pci[facts->n_pci].resource_class), "%s",
                         card->types[i].resource_class);
                facts->n_pci++;
        }
}

/* Moves the vGPU cards that mdev_plan_make() found to the facts, and adds their functions. No
 * function is marked as taken: taken_mark_card() marks them by the claims, which can be newer than
 * the poll. */
static void add_vgpus(MdevPlan *plan, HostFacts *facts)
{
        facts->cards = TAKE_PTR(plan->cards);
        facts->n_cards = plan->n_cards;
        plan->n_cards = 0;
        for (size_t i = 0; i < facts->n_cards; i++) {
                VgpuCard *card = &facts->cards[i];

                for (size_t j = 0; j < card->n_functions; j++) {
                        card->functions[j].is_taken = false;
                        add_function(card, i, &card->functions[j], facts);
                }
        }
}

/* Adds a set and those of its devices that the host lists. A set that contradicts another option
 * has none, so no claim gets one. */
static int add_set(const HostConfig *config, const HostShapes *shapes, const Snapshot *snapshot,
                   const DeviceFacts *known, HostFacts *facts)
{
        char name[SHAPE_NAME_SIZE];
        DeviceSet *set = &facts->sets[facts->n_sets];
        const char *provider;

        shape_name(&shapes->set, name);
        provider = keep(facts, name);
        if (!provider || device_set_copy(&shapes->set, set) < 0)
                return -ENOMEM;
        facts->n_sets++;
        if (shape_check(config, snapshot, set, NULL) == -EINVAL)
                return 0;
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];
                HostPci *pci = &facts->pci[facts->n_pci];

                if (!device_set_members_of(set, device->address))
                        continue;
                *pci = (HostPci){ .name = device->name,
                                  .address = device->address,
                                  .identity = host_facts_identity(facts, device->address),
                                  .provider = provider,
                                  .cell = device->numa_node,
                                  .managed = shapes->managed,
                                  .set = set,
                                  .withheld = known && string_set_contains(&known->withheld,
                                                                           device->address) };
                snprintf(pci->resource_class, sizeof(pci->resource_class), "%s",
                         set->resource_class);
                facts->n_pci++;
        }
        return 0;
}

static int add_sets(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                    HostFacts *facts)
{
        for (size_t i = 0; i < config->n_shapes; i++)
                if (add_set(config, &config->shapes[i], snapshot, known, facts) < 0)
                        return -ENOMEM;
        return 0;
}

/* Returns the PCI address of a device by libvirt's name; "": not known. */
static const char *find_address(const Snapshot *snapshot, const char *name)
{
        const SnapshotDevice *device = snapshot_find_device(snapshot, name);

        return device ? device->address : "";
}

static void add_mdevs(const Snapshot *snapshot, HostFacts *facts)
{
        for (size_t i = 0; i < snapshot->n_mdevs; i++)
                facts->mdevs[facts->n_mdevs++] = (HostMdev){
                        .uuid = snapshot->mdevs[i].uuid,
                        .device = snapshot->mdevs[i].parent,
                        .type = snapshot->mdevs[i].type,
                        .address = find_address(snapshot, snapshot->mdevs[i].parent),
                };
}

static int order_functions(const void *a, const void *b)
{
        return strcmp(((const HostFunction *)a)->address, ((const HostFunction *)b)->address);
}

/* Adds the PCI functions with their identities, sorted by address. */
static void add_functions(const Snapshot *snapshot, HostFacts *facts)
{
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];
                HostFunction *function = &facts->functions[facts->n_functions];

                if (!device->is_pci)
                        continue;
                function->address = device->address;
                function->physical_function = device->physical_function;
                snapshot_device_identity(device, function->identity);
                facts->n_functions++;
        }
        qsort(facts->functions, facts->n_functions, sizeof(HostFunction), order_functions);
}

static int order_cpus(const void *a, const void *b)
{
        const HostCpu *x = a, *y = b;

        return x->id < y->id ? -1 : x->id > y->id;
}

/* Returns the lowest thread of the CPU's core that is in this cell. */
static unsigned find_core(const SnapshotCell *cell, const SnapshotCpu *cpu)
{
        unsigned core = cpu->id;

        for (size_t i = 0; i < cell->n_cpus; i++)
                if (cpu_set_contains(&cpu->siblings, cell->cpus[i].id))
                        core = MIN(core, cell->cpus[i].id);
        return core;
}

/* Returns the socket of the cell's CPUs, or -1 if there are several or none. Offline CPUs have no
 * socket and are ignored. */
static int find_socket(const SnapshotCell *cell)
{
        int socket = -1;

        for (size_t i = 0; i < cell->n_cpus; i++) {
                int other = cell->cpus[i].socket_id;

                if (socket >= 0 && other >= 0 && other != socket)
                        return -1;
                socket = MAX(socket, other);
        }
        return socket;
}

/* Adds the CPUs of a cell with their use. A dedicated CPU is withheld if it is offline, or if a
 * guest without pins can run on it. */
static int add_cpus(const SnapshotCell *from, const CpuPlan *plan, HostCell *cell)
{
        cell->cpus = calloc(from->n_cpus + 1, sizeof(HostCpu));
        if (!cell->cpus)
                return -ENOMEM;
        cell->socket = find_socket(from);
        for (size_t i = 0; i < from->n_cpus; i++) {
                const SnapshotCpu *cpu = &from->cpus[i];

                bool is_offline = cpu_set_contains(&plan->dedicated_offline, cpu->id);

                cell->cpus[cell->n_cpus++] = (HostCpu){
                        .id = cpu->id,
                        .core = find_core(from, cpu),
                        .shared = cpu_set_contains(&plan->shared, cpu->id),
                        .dedicated = is_offline || cpu_set_contains(&plan->dedicated, cpu->id),
                        .withheld = is_offline || cpu_set_contains(&plan->floated, cpu->id),
                };
        }
        qsort(cell->cpus, cell->n_cpus, sizeof(HostCpu), order_cpus);
        return 0;
}

static int order_pages(const void *a, const void *b)
{
        const HostPages *x = a, *y = b;

        return x->size_kib < y->size_kib ? -1 : x->size_kib > y->size_kib;
}

/* Adds the huge pages of a cell, sorted by size. Ordinary pages are memory, not pages. */
static int add_pages(const HostConfig *config, const SnapshotCell *from, uint64_t small_kib,
                     HostCell *cell)
{
        cell->pages = calloc(from->n_pages + 1, sizeof(HostPages));
        if (!cell->pages)
                return -ENOMEM;
        for (size_t i = 0; i < from->n_pages; i++) {
                HostPages *pages = &cell->pages[cell->n_pages];

                if (from->pages[i].size_kib == 0 || from->pages[i].size_kib == small_kib)
                        continue;
                pages->size_kib = from->pages[i].size_kib;
                pages->total = MIN(from->pages[i].count, INVENTORY_MAX_AMOUNT);
                pages->reserved = huge_pages_reserved(config, from->id, pages->size_kib);
                huge_pages_class(pages->size_kib, pages->resource_class);
                cell->n_pages++;
        }
        qsort(cell->pages, cell->n_pages, sizeof(HostPages), order_pages);
        return 0;
}

/* Adds the cells with their CPUs and huge pages. The snapshot "guests" shows the dedicated CPUs on
 * which guests without pins can run. */
static int add_cells(const HostConfig *config, const Snapshot *snapshot, const Snapshot *guests,
                     HostFacts *facts)
{
        CpuPlan plan = { 0 };
        int r;

        /* A configuration that does not fit the host is ignored here; provider_update() reports
         * it. */
        if (cpu_plan_make(config, snapshot, &plan, NULL, NULL) == -ENOMEM)
                return -ENOMEM;
        r = cpu_guests_find(guests, &plan, NULL);
        facts->small_page_kib = huge_pages_ordinary_size(snapshot);
        for (size_t i = 0; r == 0 && i < snapshot->n_cells; i++) {
                const SnapshotCell *from = &snapshot->cells[i];
                HostCell *cell = &facts->cells[facts->n_cells++];

                cell->id = from->id;
                cell->memory_mb = from->memory_kib / 1024;
                r = add_cpus(from, &plan, cell);
                if (r == 0)
                        r = add_pages(config, from, facts->small_page_kib, cell);
        }
        cpu_plan_done(&plan);
        return r;
}

/* The layout of a guest: the host cells of its CPUs and memory, its pins, and the dedicated host
 * CPUs that it holds. Each cell of the guest becomes one part for each host cell that it is in. The
 * first part has the number of the guest's cell. Further parts get numbers above those of all
 * cells. The layout is allocated once for the largest possible number of parts, so that pointers to
 * parts stay valid. Limit: memory that is not bound to a single host cell is divided in proportion
 * to the CPUs of the parts. */

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
static int add_vcpu(Guest *guest, unsigned vcpu, const CpuSet *pin, LayoutCell *part)
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

/* Adds the CPUs of a guest's cell to the parts in which they are. A CPU without pins, or whose pins
 * are not all in one host cell, is added to the part in home, the host cell of the memory. It gets
 * no part if home is NULL, because the memory is not bound to one cell. */
static int add_vcpus(Guest *guest, const DomainCell *from, const HostCell *home, size_t first)
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
                if (pin && add_vcpu(guest, vcpu, pin, part) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Adds the parts of a cell of the guest. Its memory is rounded up to MiB, but down in parts that
 * share it. */
static int add_guest_cell(Guest *guest, const DomainCell *from)
{
        uint64_t memory_mb = from->memory_kib / 1024 + (from->memory_kib % 1024 > 0);
        const HostCell *home = find_home(guest, from);
        size_t first = guest->layout.n_cells;

        if (home)
                get_part(guest, from, first, home)->memory_mb = memory_mb;
        if (add_vcpus(guest, from, home, first) < 0)
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
static int make_of_cells(const SnapshotDomain *domain, const HostFacts *facts,
                         const DomainCell *cells, size_t n_cells, Layout *ret)
{
        Guest guest = { .domain = domain, .facts = facts, .layout = LAYOUT_INIT };
        int r = layout_reserve(&guest.layout, n_cells * (facts->n_cells + 1),
                               count_cpus(cells, n_cells));

        guest.cell_of_all = find_cell_of_cpus(facts, &domain->cpus);
        for (size_t i = 0; i < n_cells; i++)
                guest.next_number = MAX(guest.next_number, cells[i].id + 1);
        for (size_t i = 0; r == 0 && i < n_cells; i++)
                r = add_guest_cell(&guest, &cells[i]);
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

/* Makes the layout of a guest. facts has the cells of the host.
 *
 * A guest's CPU is in the host cell that has all host CPUs on which it can run. Otherwise it is in
 * the single host cell that the memory of its guest cell is bound to. If there is no such cell
 * either, the CPU is in none, as in Nova. A guest's CPU that can run on any host CPU has no entry
 * in cpus. Memory is in the single cell that it is bound to, otherwise in the cells of its CPUs, in
 * proportion to their number, rounded down. Memory of CPUs that are in no cell is in none either. A
 * guest's cell that is spread over host cells therefore becomes one part for each of them. A guest
 * without cells counts as one cell. A CPU is dedicated if it is pinned to one host CPU, and that
 * one is dedicated. The layout of a guest that is in no cell has no cells and no CPUs.
 *
 * held has the host CPUs of dedicated guest CPUs. The set also has every dedicated host CPU that
 * <emulatorpin> or <iothreadpin> names, even for a guest that is in no cell. For a running guest,
 * it also has the dedicated host CPUs of the persistent definition (decision devices/definition).
 * ret must be LAYOUT_INIT; the caller frees it with layout_done(). Returns -ENOMEM on failure, with
 * ret unchanged. */
static int make_layout(const SnapshotDomain *domain, const HostFacts *facts, Layout *ret)
{
        DomainCell whole = { .memory_kib = domain->memory_kib, .page_kib = domain->page_kib };
        int r = 0;

        if (domain->n_cells > 0)
                return make_of_cells(domain, facts, domain->cells, domain->n_cells, ret);
        for (unsigned i = 0; r == 0 && i < MIN(domain->vcpus, (uint64_t)CPU_SET_MAX); i++)
                r = cpu_set_add(&whole.vcpus, i);
        if (r == 0)
                r = make_of_cells(domain, facts, &whole, 1, ret);
        cpu_set_done(&whole.vcpus);
        return r;
}

/* Domains */

int claim_facts_make_domain(const SnapshotDomain *domain, const HostFacts *facts, HostDomain *ret)
{
        *ret = (HostDomain){
                .uuid = domain->uuid,
                .name = domain->name,
                .running = domain->state != DOMAIN_SHUTOFF,
                .unread = domain->unread,
                .vcpus = domain->vcpus,
                .memory_mb = domain->memory_kib / 1024 + (domain->memory_kib % 1024 > 0),
                .mdevs = domain->mdevs,
                .n_mdevs = domain->n_mdevs,
                .pci = (const char(*)[HOST_ADDRESS_SIZE])domain->pci_addresses,
                .n_pci = domain->n_pci_addresses,
                .config_mdevs = domain->config_mdevs,
                .n_config_mdevs = domain->n_config_mdevs,
                .config_pci = (const char(*)[HOST_ADDRESS_SIZE])domain->config_pci_addresses,
                .n_config_pci = domain->n_config_pci_addresses,
        };
        return make_layout(domain, facts, &ret->layout);
}

/* Adds the dedicated host CPUs that a running guest holds. A guest that does not run has them only
 * by its claim, because several guests can be defined for the same CPUs. */
static int add_guest_cpus(const SnapshotDomain *domain, const Layout *layout, HostFacts *facts)
{
        if (domain->state == DOMAIN_SHUTOFF)
                return 0;
        CPU_SET_FOREACH(cpu, &layout->held)
                if (cpu_set_add(&facts->guest_cpus, cpu) < 0)
                        return -ENOMEM;
        return 0;
}

static int add_domains(const Snapshot *snapshot, HostFacts *facts)
{
        for (size_t i = 0; i < snapshot->n_domains; i++) {
                HostDomain *domain = &facts->domains[facts->n_domains++];

                if (claim_facts_make_domain(&snapshot->domains[i], facts, domain) < 0 ||
                    add_guest_cpus(&snapshot->domains[i], &domain->layout, facts) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int claim_facts_make(const HostConfig *config, const Snapshot *snapshot, const Snapshot *guests,
                     const DeviceFacts *known, HostFacts *ret)
{
        _cleanup_(mdev_plan_done) MdevPlan plan = { 0 };
        _cleanup_(claim_facts_done) HostFacts facts = { 0 };

        if (mdev_plan_make(config, snapshot, known, &plan) < 0)
                return -ENOMEM;
        facts.devices = calloc(plan.n_offers + 1, sizeof(HostDevice));
        facts.pci = calloc(snapshot->n_devices + count_vgpus(&plan) + 1, sizeof(HostPci));
        facts.mdevs = calloc(snapshot->n_mdevs + 1, sizeof(HostMdev));
        facts.functions = calloc(snapshot->n_devices + 1, sizeof(HostFunction));
        facts.cells = calloc(snapshot->n_cells + 1, sizeof(HostCell));
        facts.domains = calloc(guests->n_domains + 1, sizeof(HostDomain));
        facts.sets = calloc(config->n_shapes + 1, sizeof(DeviceSet));
        if (!facts.devices || !facts.pci || !facts.mdevs || !facts.functions || !facts.cells ||
            !facts.domains || !facts.sets)
                return -ENOMEM;
        facts.taken_usec = snapshot_begun_realtime_usec(snapshot);
        facts.folders = guests->instance_folders;
        facts.n_folders = guests->n_instance_folders;
        if (guests->folders_error.code)
                facts.folders_unknown = guests->folders_error.text;
        add_functions(snapshot, &facts);
        add_pci(config, snapshot, &facts);
        add_vgpus(&plan, &facts);
        add_mdevs(snapshot, &facts);
        if (add_sets(config, snapshot, known, &facts) < 0 || add_devices(&plan, &facts) < 0 ||
            add_cells(config, snapshot, guests, &facts) < 0 || add_domains(guests, &facts) < 0)
                return -ENOMEM;
        *ret = TAKE_STRUCT(facts);
        return 0;
}

void claim_facts_done(HostFacts *facts)
{
        for (size_t i = 0; i < facts->n_cells; i++) {
                free(facts->cells[i].cpus);
                free(facts->cells[i].pages);
        }
        for (size_t i = 0; i < facts->n_domains; i++)
                layout_done(&facts->domains[i].layout);
        for (size_t i = 0; i < facts->n_cards; i++)
                vgpu_card_done(&facts->cards[i]);
        free(facts->cards);
        for (size_t i = 0; i < facts->n_sets; i++)
                device_set_done(&facts->sets[i]);
        free(facts->sets);
        free(facts->devices);
        free(facts->pci);
        free(facts->mdevs);
        free(facts->functions);
        cpu_set_done(&facts->guest_cpus);
        free(facts->cells);
        free(facts->domains);
        string_set_done(&facts->configured);
        *facts = (HostFacts){ 0 };
}
