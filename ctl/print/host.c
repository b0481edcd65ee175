/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints a snapshot of the host for "computectl discover": a summary, then tables of NUMA cells,
 * devices, mediated devices and domains. Pure, except for the time zone.
 *
 * Each table has its own function and is left out if the snapshot has no such items. Most kinds of
 * devices are left out unless the style has "all". They are left out even if the configuration
 * gives them to guests, for example an NVMe disk. With a legend each table has a title, which
 * remains if no device is shown, and a line below the devices counts those that are left out. A
 * device with several mdev types has a line for each type. The first one shares the line of the
 * device, except for a physical function. */

#include "ctl/print/host.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "ctl/print/table.h"
#include "ctl/print/text.h"

#define CLASS_DISPLAY    0x03 /* PCI base class of GPUs; some accelerators have another class */
#define BASE_CLASS(code) ((code) >> 16)

/* Prints an empty line and, with a legend, the title of a table with its number of items. */
static void print_title(CtlPage *page, const char *title, size_t n)
{
        fputc('\n', page->output);
        if (page->style.legend)
                ctl_page_write(page, CTL_BOLD, "%s (%zu)", title, n);
        fputs(page->style.legend ? "\n" : "", page->output);
}

/* Writes a version from libvirt's number: 7002011 is 7.2.11. */
static void format_version(char buffer[static CTL_TEXT_MAX], uint64_t version)
{
        snprintf(buffer, CTL_TEXT_MAX, "%" PRIu64 ".%" PRIu64 ".%" PRIu64, version / 1000000,
                 version / 1000 % 1000, version % 1000);
}

/* Prints name, processor, hypervisor, sizes and the time of the poll. A disk whose size is unknown
 * is printed as "no disk", too. */
static void print_summary(const Snapshot *snapshot, CtlPage *page)
{
        char memory[CTL_TEXT_MAX], disk[CTL_TEXT_MAX] = "no", version[CTL_TEXT_MAX],
                                   time[CTL_TEXT_MAX], relative[CTL_TEXT_MAX];

        format_version(version, snapshot->hypervisor_version);
        if (snapshot->disk_total_bytes > 0)
                ctl_text_kib(disk, snapshot->disk_total_bytes / 1024);
        ctl_page_write(page, CTL_BOLD, "%s", snapshot->nodename);
        fputc('\n', page->output);
        ctl_page_write(page, CTL_PLAIN, "%s%s%s, %s %s, driver %s", snapshot->arch,
                       snapshot->cpu_model[0] ? " " : "", snapshot->cpu_model, snapshot->hypervisor,
                       version, snapshot->driver);
        fprintf(page->output, "\n%u CPUs, %s memory, %s disk\n",
                cpu_set_count(&snapshot->online_cpus), ctl_text_kib(memory, snapshot->memory_kib),
                disk);
        if (snapshot->taken_realtime_usec > 0)
                fprintf(page->output, "polled %s; %s\n",
                        ctl_text_time(time, snapshot->taken_realtime_usec),
                        ctl_text_relative(relative, snapshot->taken_realtime_usec,
                                          page->style.now_usec));
}

/* Formats the CPUs of a cell: "0-3,8-11". Returns NULL if memory ran out; the caller frees. */
static char *format_cell_cpus(const SnapshotCell *cell)
{
        _cleanup_(cpu_set_done) CpuSet set = { 0 };

        for (size_t i = 0; i < cell->n_cpus; i++)
                if (cpu_set_add(&set, cell->cpus[i].id) < 0)
                        return NULL;
        return cpu_set_format(&set);
}

/* Formats the huge pages: "1024 × 2 MiB, 4 × 1 GiB". Leaves out pages smaller than 1 MiB, and sizes
 * without a page. Returns NULL if memory ran out; the caller frees. */
static char *format_pages(const SnapshotCell *cell, bool utf8)
{
        _cleanup_free_ char *text = NULL;
        char page[CTL_TEXT_MAX];
        size_t size, n = 0;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        for (size_t i = 0; i < cell->n_pages; i++)
                if (cell->pages[i].size_kib >= 1024 && cell->pages[i].count > 0)
                        fprintf(stream, "%s%" PRIu64 " %s %s", n++ ? ", " : "",
                                cell->pages[i].count, utf8 ? "×" : "x",
                                ctl_text_kib(page, cell->pages[i].size_kib));
        if (fclose(stream) != 0)
                return NULL;
        return TAKE_PTR(text);
}

/* Prints a line for each cell; nothing if the host reports no cells. */
static void print_cells(const Snapshot *snapshot, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "CELL", CTL_COLUMN_RIGHT },      { "MEMORY", CTL_COLUMN_RIGHT },
                { "CPUS", CTL_COLUMN_RIGHT },      { "CPU LIST", CTL_COLUMN_WRAP },
                { "HUGE PAGES", CTL_COLUMN_LEFT },
        };
        CtlTable *table;
        char memory[CTL_TEXT_MAX];

        if (snapshot->n_cells == 0)
                return;
        table = ctl_table_new(page, columns, ARRAY_SIZE(columns));
        for (size_t i = 0; i < snapshot->n_cells; i++) {
                const SnapshotCell *cell = &snapshot->cells[i];

                ctl_table_line(table);
                ctl_table_cell(table, CTL_PLAIN, "%u", cell->id);
                ctl_table_cell(table, CTL_PLAIN, "%s", ctl_text_kib(memory, cell->memory_kib));
                ctl_table_cell(table, CTL_PLAIN, "%zu", cell->n_cpus);
                ctl_table_take(table, format_cell_cpus(cell), "");
                ctl_table_take(table, format_pages(cell, page->style.utf8), "");
        }
        print_title(page, "NUMA cells", snapshot->n_cells);
        ctl_table_print(table);
}

/* Checks whether the device is printed without "all": mdev types, a display, physical and virtual
 * functions, parents of vDPA devices. Plain network cards and disks are left out, also those that
 * [pci] device_spec lists. */
static bool device_is_interesting(const SnapshotDevice *device)
{
        return device->n_mdev_types > 0 || BASE_CLASS(device->class_code) == CLASS_DISPLAY ||
               device->is_physical_function || device->physical_function[0] ||
               device->is_vdpa_parent;
}

/* Adds the cells of a device up to its driver. A virtual function shows its physical function.
 * Another device shows its product, else its vendor, else the ids of both. */
static void add_device_line(CtlTable *table, const SnapshotDevice *device)
{
        ctl_table_line(table);
        ctl_table_cell(table, CTL_PLAIN, "%s", device->is_pci ? device->address : device->name);
        if (device->numa_node == NUMA_NODE_NONE)
                ctl_table_cell(table, CTL_PLAIN, "%s", "-");
        else
                ctl_table_cell(table, CTL_PLAIN, "%d", device->numa_node);
        if (device->physical_function[0])
                ctl_table_cell(table, CTL_PLAIN, "VF of %s", device->physical_function);
        else if (device->product[0] || device->vendor[0])
                ctl_table_cell(table, CTL_PLAIN, "%s",
                               device->product[0] ? device->product : device->vendor);
        else
                ctl_table_cell(table, CTL_PLAIN, "%04x:%04x", device->vendor_id,
                               device->product_id);
        ctl_table_text(table, device->driver);
}

/* Adds the cells of an mdev type. The number of free instances is dim if it is 0. */
static void add_type_cells(CtlTable *table, const MdevType *type)
{
        ctl_table_cell(table, CTL_PLAIN, "%s", type->id);
        ctl_table_cell(table, type->available_instances ? CTL_GREEN : CTL_DIM, "%" PRIu64,
                       type->available_instances);
        ctl_table_cell(table, CTL_PLAIN, "%s%s%s", type->name,
                       type->name[0] && type->created_instances > 0 ? " " : "",
                       type->created_instances > 0 ? "(created)" : "");
}

/* Adds the lines of a device. Its first mdev type shares the line of the device, or, for a physical
 * function, the number of possible virtual functions does. */
static void add_device(CtlTable *table, const SnapshotDevice *device)
{
        add_device_line(table, device);
        if (device->is_physical_function)
                ctl_table_cell(table, CTL_PLAIN, "up to %" PRIu64 " VFs",
                               device->max_virtual_functions);
        for (size_t i = 0; i < device->n_mdev_types; i++) {
                if (i > 0 || device->is_physical_function) {
                        ctl_table_line(table);
                        ctl_table_skip(table, 4);
                }
                add_type_cells(table, &device->mdev_types[i]);
        }
}

static void print_devices(const Snapshot *snapshot, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "DEVICE", CTL_COLUMN_LEFT },    { "CELL", CTL_COLUMN_RIGHT },
                { "PRODUCT", CTL_COLUMN_CUT },    { "DRIVER", CTL_COLUMN_LEFT },
                { "TYPE", CTL_COLUMN_LEFT },      { "AVAILABLE", CTL_COLUMN_RIGHT },
                { "TYPE NAME", CTL_COLUMN_LEFT },
        };
        CtlTable *table;
        size_t n_shown = 0, n_others;

        if (snapshot->n_devices == 0)
                return;
        table = ctl_table_new(page, columns, ARRAY_SIZE(columns));
        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (page->style.all || device_is_interesting(&snapshot->devices[i])) {
                        add_device(table, &snapshot->devices[i]);
                        n_shown++;
                }
        n_others = snapshot->n_devices - n_shown;
        print_title(page, "Devices", n_shown);
        ctl_table_print(table);
        if (n_others > 0 && page->style.legend)
                fprintf(page->output, "%zu other device%s: --all shows %s.\n", n_others,
                        text_plural(n_others), n_others == 1 ? "it" : "them");
}

/* Returns the domain that has the mdev; NULL: none. The definition of a running domain is the live
 * one. */
static const SnapshotDomain *find_holder(const Snapshot *snapshot, const Uuid *mdev)
{
        for (size_t i = 0; i < snapshot->n_domains; i++)
                for (size_t j = 0; j < snapshot->domains[i].n_mdevs; j++)
                        if (uuid_equal(&snapshot->domains[i].mdevs[j], mdev))
                                return &snapshot->domains[i];
        return NULL;
}

/* Prints the existing mdevs with the domain that has each. The domain can be shut off. */
static void print_mdevs(const Snapshot *snapshot, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "UUID", CTL_COLUMN_LEFT },
                { "TYPE", CTL_COLUMN_LEFT },
                { "PARENT", CTL_COLUMN_LEFT },
                { "DOMAIN", CTL_COLUMN_CUT },
        };
        CtlTable *table;

        if (snapshot->n_mdevs == 0)
                return;
        table = ctl_table_new(page, columns, ARRAY_SIZE(columns));
        for (size_t i = 0; i < snapshot->n_mdevs; i++) {
                const SnapshotMdev *mdev = &snapshot->mdevs[i];
                const SnapshotDevice *parent = snapshot_find_device(snapshot, mdev->parent);
                const SnapshotDomain *holder = find_holder(snapshot, &mdev->uuid);

                ctl_table_line(table);
                ctl_table_cell(table, CTL_PLAIN, "%s", mdev->uuid.text);
                ctl_table_cell(table, CTL_PLAIN, "%s", mdev->type);
                ctl_table_cell(table, CTL_PLAIN, "%s",
                               parent && parent->is_pci ? parent->address : mdev->parent);
                ctl_table_cell(table, CTL_PLAIN, "%s", holder ? holder->name : "-");
        }
        print_title(page, "Mediated devices", snapshot->n_mdevs);
        ctl_table_print(table);
}

static void print_domains(const Snapshot *snapshot, CtlPage *page)
{
        static const CtlColumn columns[] = {
                { "NAME", CTL_COLUMN_CUT },      { "STATE", CTL_COLUMN_LEFT },
                { "VCPUS", CTL_COLUMN_RIGHT },   { "MEMORY", CTL_COLUMN_RIGHT },
                { "DEVICES", CTL_COLUMN_RIGHT }, { "UUID", CTL_COLUMN_LEFT },
        };
        CtlTable *table;
        char memory[CTL_TEXT_MAX];

        if (snapshot->n_domains == 0)
                return;
        table = ctl_table_new(page, columns, ARRAY_SIZE(columns));
        for (size_t i = 0; i < snapshot->n_domains; i++) {
                const SnapshotDomain *domain = &snapshot->domains[i];

                ctl_table_line(table);
                ctl_table_cell(table, CTL_PLAIN, "%s", domain->name);
                ctl_table_cell(table, domain->state == DOMAIN_RUNNING ? CTL_GREEN : CTL_PLAIN, "%s",
                               domain_state_to_text(domain->state));
                ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, domain->vcpus);
                ctl_table_cell(table, CTL_PLAIN, "%s", ctl_text_kib(memory, domain->memory_kib));
                ctl_table_cell(table, CTL_PLAIN, "%zu", domain->n_mdevs + domain->n_pci_addresses);
                ctl_table_cell(table, CTL_PLAIN, "%s", domain->uuid.text);
        }
        print_title(page, "Domains", snapshot->n_domains);
        ctl_table_print(table);
}

void ctl_host_print(const Snapshot *snapshot, CtlPage *page)
{
        print_summary(snapshot, page);
        print_cells(snapshot, page);
        print_devices(snapshot, page);
        print_mdevs(snapshot, page);
        print_domains(snapshot, page);
}
