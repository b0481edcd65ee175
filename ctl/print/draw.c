/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The layout knows no more than boxes that flow from left to right: CPUs in a core, cores and
 * devices in a cell, cells in rows. Each function draws at a place and returns the height that it
 * took. Since the height of the whole is known last and stands first, the pieces are drawn into
 * memory.
 *
 * LIMITATIONS: a guest that floats over CPUs holds none of them, and is in the legend alone. */

#include "ctl/print/draw.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "ctl/print/holders.h"
#include "ctl/print/json.h"
#include "ctl/print/svg.h"
#include "ctl/print/text.h"

#define MARGIN        16
#define GAP           6
#define CELL_WIDTH    396
#define CELL_INNER    (CELL_WIDTH - 2 * GAP)
#define CPU_WIDTH     25
#define CPU_HEIGHT    20
#define SLOT          14
#define SLOTS_MAX     256 /* of one device */
#define DEVICE_WIDTH  ((CELL_INNER - GAP) / 2)
#define DEVICE_HEIGHT 54 /* with one row of slots */
#define SLOTS_OF_ROW  ((DEVICE_WIDTH - 2 * GAP) / SLOT)
#define LINE          15
#define COLUMNS_MAX   4
#define BAR_WIDTH     160

typedef struct Drawing {
        CtlPage page;
        const Snapshot *snapshot;
        const json_t *tree;
        Holders holders;
} Drawing;

static const char *holder_name(const Holder *holder)
{
        return holder ? holder->name : "free";
}

/* CPUs. */

static void draw_cpu(Drawing *drawing, unsigned cpu, int x, int y)
{
        bool online = cpu_set_contains(&drawing->snapshot->online_cpus, cpu);
        const Holder *holder = holders_find_cpu(&drawing->holders, cpu);
        _cleanup_free_ char *tooltip =
                text_format("CPU %u: %s", cpu, online ? holder_name(holder) : "offline");

        if (!tooltip) {
                drawing->page.failed = true;
                return;
        }
        ctl_svg_group_begin(&drawing->page, tooltip);
        if (online)
                ctl_svg_box(&drawing->page, "cpu", holder ? holder->colour : "#ffffff", x, y,
                            CPU_WIDTH, CPU_HEIGHT);
        else
                ctl_svg_box(&drawing->page, "off", NULL, x, y, CPU_WIDTH, CPU_HEIGHT);
        ctl_svg_text(&drawing->page, "mid", x + CPU_WIDTH / 2, y + 14, 8, "%u", cpu);
        ctl_svg_group_end(&drawing->page);
}

/* Whether the CPU is the first of its core: there the core is drawn. */
static bool leads_core(const SnapshotCell *cell, size_t index)
{
        for (size_t i = 0; i < index; i++)
                if (cpu_set_contains(&cell->cpus[index].siblings, cell->cpus[i].id))
                        return false;
        return true;
}

static bool same_core(const SnapshotCell *cell, size_t leader, size_t index)
{
        return index == leader ||
               cpu_set_contains(&cell->cpus[leader].siblings, cell->cpus[index].id);
}

static int core_width(const SnapshotCell *cell, size_t leader)
{
        int n = 0;

        for (size_t i = leader; i < cell->n_cpus; i++)
                n += same_core(cell, leader, i);
        return n * (CPU_WIDTH + 2) + 4;
}

static int draw_cpus(Drawing *drawing, const SnapshotCell *cell, int left, int top)
{
        int x = left, y = top;

        for (size_t i = 0; i < cell->n_cpus; i++) {
                int width, at;

                if (!leads_core(cell, i))
                        continue;
                width = core_width(cell, i);
                if (x > left && x + width > left + CELL_INNER) {
                        x = left;
                        y += CPU_HEIGHT + 6 + GAP;
                }
                ctl_svg_box(&drawing->page, "core", NULL, x, y, width, CPU_HEIGHT + 6);
                at = x + 3;
                for (size_t j = i; j < cell->n_cpus; j++)
                        if (same_core(cell, i, j)) {
                                draw_cpu(drawing, cell->cpus[j].id, at, y + 3);
                                at += CPU_WIDTH + 2;
                        }
                x += width + GAP;
        }
        return cell->n_cpus > 0 ? y + CPU_HEIGHT + 6 + GAP - top : 0;
}

/* Memory. */

static void draw_memory_parts(Drawing *drawing, const SnapshotCell *cell, int left, int top)
{
        int x = left, end = left + CELL_INNER;

        for (size_t i = 0; i < drawing->holders.n_items; i++) {
                const Holder *holder = &drawing->holders.items[i];
                uint64_t kib = holder_memory_kib(holder, cell->id);
                int width;

                if (kib == 0)
                        continue;
                width = (int)((double)CELL_INNER * ((double)kib / (double)cell->memory_kib)) + 1;
                width = MIN(width, end - x);
                if (width <= 0)
                        break;
                ctl_svg_group_begin(&drawing->page, holder->name);
                ctl_svg_box(&drawing->page, "part", holder->colour, x, top, width, 12);
                ctl_svg_group_end(&drawing->page);
                x += width;
        }
}

static int draw_memory(Drawing *drawing, const SnapshotCell *cell, int left, int top)
{
        char size[CTL_TEXT_MAX], pages[CTL_TEXT_MAX] = "", page[CTL_TEXT_MAX];
        size_t n = 0;

        if (cell->memory_kib == 0)
                return 0;
        for (size_t i = 0; i < cell->n_pages; i++)
                if (i > 0 && cell->pages[i].count > 0 && n < sizeof(pages))
                        n += (size_t)snprintf(pages + n, sizeof(pages) - n, ", %" PRIu64 " × %s",
                                              cell->pages[i].count,
                                              ctl_text_kib(page, cell->pages[i].size_kib));
        ctl_svg_text(&drawing->page, "small", left, top + 9, CELL_INNER / CTL_SVG_CHARACTER,
                     "Memory %s%s", ctl_text_kib(size, cell->memory_kib), pages);
        ctl_svg_box(&drawing->page, "bar", NULL, left, top + 14, CELL_INNER, 12);
        draw_memory_parts(drawing, cell, left, top + 14);
        return 14 + 12 + 2 * GAP;
}

/* Devices. */

typedef struct Slots {
        Drawing *drawing; /* NULL: only count */
        int left, top;
        size_t n;
} Slots;

static void add_slot(Slots *slots, const char *what, const Holder *holder, bool exists)
{
        _cleanup_free_ char *tooltip = NULL;
        int x = slots->left + (int)(slots->n % SLOTS_OF_ROW) * SLOT,
            y = slots->top + (int)(slots->n / SLOTS_OF_ROW) * SLOT;
        CtlPage *page;

        if (slots->n >= SLOTS_MAX)
                return;
        slots->n++;
        if (!slots->drawing)
                return;
        page = &slots->drawing->page;
        tooltip = text_format("%s: %s", what, holder_name(holder));
        if (!tooltip) {
                page->failed = true;
                return;
        }
        ctl_svg_group_begin(page, tooltip);
        ctl_svg_box(page, exists ? "slot" : "free", holder ? holder->colour : "#ffffff", x, y,
                    SLOT - 2, SLOT - 2);
        ctl_svg_group_end(page);
}

/* The most mdevs of any one type that could still be made. */
static uint64_t count_available(const SnapshotDevice *device)
{
        uint64_t most = 0;

        for (size_t i = 0; i < device->n_mdev_types; i++)
                most = MAX(most, device->mdev_types[i].available_instances);
        return most;
}

/* mdevs that live in the device, those that are promised, and the room for more, or its virtual
 * functions. */
static void add_slots(const Drawing *drawing, const SnapshotDevice *device, Slots *slots)
{
        const Snapshot *snapshot = drawing->snapshot;
        const Holder *holder;
        size_t n_promised = 0;

        for (size_t i = 0; i < snapshot->n_mdevs; i++)
                if (strcmp(snapshot->mdevs[i].parent, device->name) == 0)
                        add_slot(slots, snapshot->mdevs[i].type,
                                 holders_find_mdev(&drawing->holders, &snapshot->mdevs[i].uuid),
                                 true);
        while ((holder = holders_find_promised(&drawing->holders, device->name, n_promised))) {
                add_slot(slots, "an mdev to be made", holder, false);
                n_promised++;
        }
        for (uint64_t i = n_promised; i < MIN(count_available(device), (uint64_t)SLOTS_MAX); i++)
                add_slot(slots, "room for an mdev", NULL, false);
        for (size_t i = 0; device->is_physical_function && i < snapshot->n_devices; i++) {
                const SnapshotDevice *vf = &snapshot->devices[i];

                if (vf->address[0] && strcmp(vf->physical_function, device->address) == 0)
                        add_slot(slots, vf->address,
                                 holders_find_pci(&drawing->holders, vf->address), true);
        }
}

static int device_height(const Drawing *drawing, const SnapshotDevice *device)
{
        Slots slots = { 0 };

        add_slots(drawing, device, &slots);
        return DEVICE_HEIGHT + (slots.n > 0 ? (int)((slots.n - 1) / SLOTS_OF_ROW) * SLOT : 0);
}

static const char *device_kind(const SnapshotDevice *device)
{
        if (device->n_mdev_types > 0)
                return "mdev parent";
        if (device->is_physical_function)
                return "physical function";
        switch (device->class_code >> 16) {
        case 0x01:
                return "storage";
        case 0x02:
                return "network";
        case 0x03:
                return "display";
        case 0x0b:
        case 0x12:
                return "accelerator";
        default:
                return NULL;
        }
}

/* Of a host's many functions those that guests get, or that a person looks for. Virtual functions
 * are slots of the one that they belong to. */
static bool is_shown(const Drawing *drawing, const SnapshotDevice *device)
{
        if (device->physical_function[0])
                return false;
        return device_kind(device) || holders_find_pci(&drawing->holders, device->address);
}

static void draw_device(Drawing *drawing, const SnapshotDevice *device, int x, int y)
{
        const Holder *holder = holders_find_pci(&drawing->holders, device->address);
        const char *kind = device_kind(device);
        Slots slots = { drawing, x + GAP, y + 36, 0 };
        size_t n = DEVICE_WIDTH / CTL_SVG_CHARACTER;
        CtlPage *page = &drawing->page;
        char ids[32];

        snprintf(ids, sizeof(ids), "%04" PRIx32 ":%04" PRIx32, device->vendor_id,
                 device->product_id);
        ctl_svg_group_begin(page, device->name);
        ctl_svg_box(page, "device", holder ? holder->colour : "#eef6ea", x, y, DEVICE_WIDTH,
                    device_height(drawing, device));
        ctl_svg_text(page, "mono", x + GAP, y + 13, n, "%s  %s",
                     device->address[0] ? device->address : device->name,
                     device->address[0] ? ids : "");
        ctl_svg_text(page, "dim", x + GAP, y + 27, n, "%s",
                     device->product[0]         ? device->product
                     : device->n_mdev_types > 0 ? device->mdev_types[0].name
                     : kind                     ? kind
                                                : "");
        ctl_svg_group_end(page);
        add_slots(drawing, device, &slots);
        if (slots.n == 0 && holder)
                ctl_svg_text(page, "small", x + GAP, y + 45, n, "%s", holder->name);
}

/* Those of one cell; numa_node NUMA_NODE_NONE: those of none, or of a cell that is not there. */
static int draw_devices(Drawing *drawing, int numa_node, int left, int top)
{
        const Snapshot *snapshot = drawing->snapshot;
        int column = 0, y = top, highest = 0;

        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];
                int node = NUMA_NODE_NONE;

                for (size_t j = 0; j < snapshot->n_cells; j++)
                        if ((int)snapshot->cells[j].id == device->numa_node)
                                node = device->numa_node;
                if (node != numa_node || !is_shown(drawing, device))
                        continue;
                if (column == 2) {
                        y += highest + GAP;
                        column = highest = 0;
                }
                highest = MAX(highest, device_height(drawing, device));
                draw_device(drawing, device, left + column++ * (DEVICE_WIDTH + GAP), y);
        }
        return column > 0 ? y + highest + GAP - top : 0;
}

/* Cells. */

static int draw_cell_inside(Drawing *drawing, const SnapshotCell *cell, int left, int top)
{
        int y = top;

        ctl_svg_text(&drawing->page, "head", left, y + 17, 40, "NUMA cell %u", cell->id);
        y += 26;
        y += draw_memory(drawing, cell, left, y);
        y += draw_cpus(drawing, cell, left, y);
        y += draw_devices(drawing, (int)cell->id, left, y);
        return y - top;
}

static size_t choose_columns(size_t n)
{
        size_t columns = 1;

        while (columns * columns < n && columns < COLUMNS_MAX)
                columns++;
        return columns;
}

/* The frames stand behind what is in them, whose height they need: that is drawn into memory. */
static int draw_row(Drawing *drawing, const SnapshotCell *cells, size_t n, int top)
{
        _cleanup_free_ char *insides = NULL;
        Drawing inside = *drawing;
        int highest = 0;
        size_t size;

        inside.page.output = open_memstream(&insides, &size);
        if (!inside.page.output) {
                drawing->page.failed = true;
                return 0;
        }
        for (size_t i = 0; i < n; i++) {
                int left = MARGIN + (int)i * (CELL_WIDTH + MARGIN);

                highest = MAX(highest, draw_cell_inside(&inside, &cells[i], left + GAP, top) + GAP);
        }
        for (size_t i = 0; i < n; i++)
                ctl_svg_box(&drawing->page, "cell", NULL, MARGIN + (int)i * (CELL_WIDTH + MARGIN),
                            top, CELL_WIDTH, highest);
        drawing->page.failed |= fclose(inside.page.output) != 0 || inside.page.failed;
        fputs(insides ? insides : "", drawing->page.output);
        return highest;
}

static int draw_cells(Drawing *drawing, size_t n_columns, int top)
{
        const Snapshot *snapshot = drawing->snapshot;
        int y = top;

        for (size_t i = 0; i < snapshot->n_cells; i += n_columns)
                y += MARGIN + draw_row(drawing, &snapshot->cells[i],
                                       MIN(n_columns, snapshot->n_cells - i), y);
        return y - top;
}

/* Below the cells: devices of none, usage, guests. */

static int draw_other_devices(Drawing *drawing, int top)
{
        int height = draw_devices(drawing, NUMA_NODE_NONE, MARGIN, top + 22);

        if (height == 0)
                return 0;
        ctl_svg_text(&drawing->page, "head", MARGIN, top + 12, 40, "Devices of no cell");
        return height + 22 + GAP;
}

static void draw_inventory(Drawing *drawing, const char *provider, const char *resource_class,
                           const json_t *inventory, int y)
{
        uint64_t used = ctl_json_u64(inventory, "used"),
                 capacity = ctl_json_u64(inventory, "capacity");
        double share = used >= capacity ? 1.0 : (double)used / (double)capacity;
        CtlPage *page = &drawing->page;

        ctl_svg_text(page, "small", MARGIN, y + 10, 24, "%s", provider);
        ctl_svg_text(page, "small", MARGIN + 160, y + 10, 26, "%s", resource_class);
        ctl_svg_box(page, "bar", NULL, MARGIN + 330, y, BAR_WIDTH, 12);
        if (used > 0)
                ctl_svg_box(page, "part",
                            share >= 1 && capacity > 0 ? "#d9534f"
                            : share >= 0.9             ? "#f0ad4e"
                                                       : "#5cb85c",
                            MARGIN + 331, y + 1, (int)(share * (BAR_WIDTH - 4)) + 2, 10);
        if (capacity == 0 && used > 0)
                ctl_svg_text(page, "small", MARGIN + 330 + BAR_WIDTH + GAP, y + 10, 44,
                             "%" PRIu64 " in use, none free", used);
        else
                ctl_svg_text(page, "small", MARGIN + 330 + BAR_WIDTH + GAP, y + 10, 44,
                             "%" PRIu64 " of %" PRIu64, used, capacity);
}

static int draw_usage(Drawing *drawing, int top)
{
        const json_t *provider;
        int y = top + 22;
        size_t i;

        ctl_svg_text(&drawing->page, "head", MARGIN, top + 12, 40, "Usage");
        json_array_foreach(json_object_get(drawing->tree, "providers"), i, provider) {
                const char *name = ctl_json_text(provider, "name"), *resource_class;
                json_t *inventory;

                json_object_foreach(json_object_get(provider, "inventories"), resource_class,
                                    inventory) {
                        draw_inventory(drawing, name, resource_class, inventory, y);
                        name = "";
                        y += LINE + 2;
                }
        }
        return y + GAP - top;
}

static void draw_guest(Drawing *drawing, const Holder *holder, int y)
{
        _cleanup_json_ json_t *sums = holders_sum_claims(&drawing->holders, holder);
        _cleanup_free_ char *resources = sums ? ctl_json_format_resources(sums) : NULL;
        const char *state =
                holder->domain ? domain_state_to_text(holder->domain->state) : "claimed, not there";

        if (!resources) {
                drawing->page.failed = true;
                return;
        }
        ctl_svg_box(&drawing->page, "slot", holder->colour, MARGIN, y, SLOT - 2, SLOT - 2);
        ctl_svg_text(&drawing->page, "small", MARGIN + 20, y + 10, 130, "%s  (%s%s)  %s",
                     holder->name, state,
                     holder->domain && holder->domain->n_pins == 0 ? ", floats" : "", resources);
}

static int draw_guests(Drawing *drawing, int top)
{
        int y = top + 22;

        if (drawing->holders.n_items == 0)
                return 0;
        ctl_svg_text(&drawing->page, "head", MARGIN, top + 12, 40, "Guests");
        for (size_t i = 0; i < drawing->holders.n_items; i++, y += LINE + 2)
                draw_guest(drawing, &drawing->holders.items[i], y);
        return y + GAP - top;
}

static int draw_title(Drawing *drawing, size_t n_columns)
{
        const Snapshot *snapshot = drawing->snapshot;
        char memory[CTL_TEXT_MAX];
        size_t n = n_columns * CELL_WIDTH / CTL_SVG_CHARACTER;

        ctl_svg_text(&drawing->page, "title", MARGIN, MARGIN + 14, n / 2, "%s", snapshot->nodename);
        ctl_svg_text(&drawing->page, "dim", MARGIN, MARGIN + 32, n,
                     "%s %s; %u CPUs, %s; %s; sync state: %s", snapshot->arch, snapshot->cpu_model,
                     cpu_set_count(&snapshot->online_cpus),
                     ctl_text_kib(memory, snapshot->memory_kib), snapshot->hypervisor,
                     ctl_json_text(drawing->tree, "sync_state"));
        return MARGIN + 44;
}

/* Returns the height. */
static int draw_all(Drawing *drawing, size_t n_columns)
{
        int y = draw_title(drawing, n_columns);

        y += draw_cells(drawing, n_columns, y);
        y += draw_other_devices(drawing, y);
        y += draw_usage(drawing, y);
        return y + draw_guests(drawing, y);
}

static int draw_to_memory(Drawing *drawing, size_t n_columns, char **ret)
{
        size_t size;
        int height;

        drawing->page.output = open_memstream(ret, &size);
        if (!drawing->page.output) {
                drawing->page.failed = true;
                return 0;
        }
        height = draw_all(drawing, n_columns) + MARGIN;
        drawing->page.failed |= fclose(drawing->page.output) != 0;
        return height;
}

void ctl_draw(const Snapshot *snapshot, const json_t *tree, const json_t *claims, CtlPage *page)
{
        Drawing drawing = { .snapshot = snapshot, .tree = tree };
        size_t n_columns = MAX(choose_columns(snapshot->n_cells), (size_t)2);
        _cleanup_free_ char *pieces = NULL;
        int height = 0;

        if (holders_init(&drawing.holders, snapshot, claims) == 0)
                height = draw_to_memory(&drawing, n_columns, &pieces);
        page->failed |= !pieces || drawing.page.failed;
        if (!page->failed) {
                ctl_svg_begin(page, MARGIN + (int)n_columns * (CELL_WIDTH + MARGIN), height,
                              snapshot->nodename);
                fputs(pieces, page->output);
                ctl_svg_end(page);
        }
        holders_done(&drawing.holders);
}
