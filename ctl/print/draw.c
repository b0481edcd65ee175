/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Draws the host as an SVG picture. The layout consists of boxes that flow from left to right: CPUs
 * in a core, cores and devices in a cell, cells in rows. A function that draws a part of variable
 * height returns the height that it used.
 *
 * The main structure is Drawing, with the documents and the holders. A holder is a guest with a
 * colour: first those with a domain, then consumers of claims without one. A claim that a migration
 * took over belongs to the domain that migrates. Frames and the picture begin with their height, so
 * everything is drawn at least twice. A Drawing with "measures" set writes nothing to the page and
 * only returns heights. Invariant: all runs return the same heights.
 *
 * LIMITATIONS: CPUs and memory are coloured by the pins and the memory binding of domains. Those of
 * a claim without a domain look free. A domain without <vcpupin>, or that could not be read,
 * colours no CPU, and the legend marks it as not pinned. A CPU shows only the first guest that is
 * pinned to it. The slot of a virtual function shows the guest of its first mdev that has one. A
 * virtual function without its physical function is not drawn. At most 256 slots of a device are
 * drawn. */

#include "ctl/print/draw.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "ctl/print/json.h"
#include "ctl/print/text.h"

#define MARGIN        16
#define GAP           6
#define CELL_WIDTH    396
#define CELL_INNER    (CELL_WIDTH - 2 * GAP)
#define CPU_WIDTH     25
#define CPU_HEIGHT    20
#define SLOT          14
#define SLOTS_MAX     256 /* slots of one device */
#define DEVICE_WIDTH  ((CELL_INNER - GAP) / 2)
#define DEVICE_HEIGHT 54 /* with one row of slots */
#define SLOTS_OF_ROW  ((DEVICE_WIDTH - 2 * GAP) / SLOT)
#define LINE          15
#define HEAD          22 /* title of a part below the cells */
#define COLUMNS_MAX   4
#define BAR_WIDTH     160
#define CHARACTER     7 /* largest width of a character of the classes "small" and "mono" */
#define FREE          "#ffffff"

#define STYLE                                                                                  \
        "text{font-family:'DejaVu Sans',Verdana,Arial,sans-serif;font-size:11px;fill:#222}"    \
        ".title{font-size:18px;font-weight:bold}.head{font-size:13px;font-weight:bold}"        \
        ".small{font-size:10px}.dim{font-size:10px;fill:#666}"                                 \
        ".mono{font-family:'DejaVu Sans Mono',monospace;font-size:10px}"                       \
        ".mid{font-size:9px;text-anchor:middle}"                                               \
        ".page{fill:#fff}.cell{fill:#f4f6f8;stroke:#8696a7}.core{fill:#dde3ea;stroke:#a9b5c2}" \
        ".cpu,.slot{stroke:#5a6b7d}.free{stroke:#8696a7;stroke-dasharray:2 2}"                 \
        ".off{fill:#bbb;stroke:#888}.device{stroke:#7da06a}"                                   \
        ".bar{fill:#fff;stroke:#8696a7}.part{stroke:none}"

typedef struct Holder {
        const char *consumer;         /* uuid of the domain or the claim */
        const char *name;             /* name of the domain, else the uuid */
        const SnapshotDomain *domain; /* NULL: only claims */
        char colour[8];               /* "#rrggbb" */
} Holder;

typedef struct Drawing {
        CtlPage *page;
        bool measures; /* nothing is written */
        const Snapshot *snapshot;
        const json_t *tree;
        const json_t *claims; /* array of claims, or NULL */
        Holder *holders;
        size_t n_holders;
} Drawing;

/* Pieces of SVG. Texts can come from guests, so they are escaped, and characters that XML forbids
 * are replaced. All sizes and positions are pixels. */

/* Checks for U+FFFE and U+FFFF, which XML forbids. */
static bool is_noncharacter(const char *text)
{
        return strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0;
}

/* Writes a text for an element or attribute, cut to n characters. First the text is escaped for a
 * terminal, because an SVG can be printed on one. Noncharacters, which XML forbids, become "?". */
static void write_escaped(CtlPage *page, const char *foreign, size_t n)
{
        _cleanup_free_ char *harmless = ctl_text_escape(foreign, true),
                            *text = harmless ? ctl_text_cut(harmless, n, true) : NULL;

        page->failed |= !text;
        for (const char *c = text; c && *c; c++) {
                const char *entity = *c == '&'   ? "&amp;"
                                     : *c == '<' ? "&lt;"
                                     : *c == '>' ? "&gt;"
                                     : *c == '"' ? "&quot;"
                                                 : NULL;

                if (is_noncharacter(c)) {
                        fputc('?', page->output);
                        c += 2;
                } else if (entity) {
                        fputs(entity, page->output);
                } else {
                        fputc(*c, page->output);
                }
        }
}

/* Draws a rectangle of a CSS class. fill: its colour; NULL: that of the class. The classes "page"
 * and "part" have no round corners. */
static void draw_box(Drawing *drawing, const char *class, const char *fill, int x, int y, int width,
                     int height)
{
        bool sharp = strcmp(class, "page") == 0 || strcmp(class, "part") == 0;

        if (!drawing->measures)
                fprintf(drawing->page->output,
                        "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"%s%s%s%s/>\n",
                        class, x, y, width, height, sharp ? "" : " rx=\"3\"",
                        fill ? " fill=\"" : "", fill ? fill : "", fill ? "\"" : "");
}

/* Begins a group with a title that a browser shows as a tooltip: "WHAT", or "WHAT: WHO" if who is
 * not NULL. */
static void begin_group(Drawing *drawing, const char *what, const char *who)
{
        if (drawing->measures)
                return;
        fputs("<g><title>", drawing->page->output);
        write_escaped(drawing->page, what, SIZE_MAX);
        fputs(who ? ": " : "", drawing->page->output);
        write_escaped(drawing->page, who ? who : "", SIZE_MAX);
        fputs("</title>\n", drawing->page->output);
}

static void end_group(Drawing *drawing)
{
        if (!drawing->measures)
                fputs("</g>\n", drawing->page->output);
}

/* Writes a text that is cut to n characters. x is its left end, or its middle for the class
 * "mid". */
static _printf_(6, 7) void draw_text(Drawing *drawing, const char *class, int x, int y, size_t n,
                                     const char *format, ...)
{
        _cleanup_free_ char *text = NULL;
        va_list ap;

        if (drawing->measures)
                return;
        va_start(ap, format);
        text = text_vformat(format, ap);
        va_end(ap);
        drawing->page->failed |= !text;
        fprintf(drawing->page->output, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
        write_escaped(drawing->page, text ? text : "", n);
        fputs("</text>\n", drawing->page->output);
}

/* Holders. */

/* Chooses a hue by the golden angle, so that neighbours differ, and one of three levels of
 * saturation. */
static void choose_colour(char colour[static 8], size_t index)
{
        static const unsigned lows[] = { 105, 150, 75 };
        unsigned hue = (unsigned)(index * 137 % 360), low = lows[index / 3 % ARRAY_SIZE(lows)],
                 high = 225, sector = hue / 60, rising = low + (high - low) * (hue % 60) / 60,
                 falling = high - (rising - low);
        const unsigned rgb[6][3] = {
                { high, rising, low },  { falling, high, low }, { low, high, rising },
                { low, falling, high }, { rising, low, high },  { high, low, falling },
        };

        snprintf(colour, 8, "#%02x%02x%02x", rgb[sector][0], rgb[sector][1], rgb[sector][2]);
}

/* Checks whether the claim belongs to the holder. The claim of a migration has the migration as its
 * consumer; its "guest" is the name of the domain that migrates. */
static bool has_claim(const Holder *holder, const json_t *claim)
{
        return strcmp(holder->consumer, ctl_json_text(claim, "consumer")) == 0 ||
               (holder->domain && strcmp(holder->name, ctl_json_text(claim, "guest")) == 0);
}

static const Holder *find_holder(const Drawing *drawing, const json_t *claim)
{
        for (size_t i = 0; i < drawing->n_holders; i++)
                if (has_claim(&drawing->holders[i], claim))
                        return &drawing->holders[i];
        return NULL;
}

static void add_holder(Drawing *drawing, const char *consumer, const char *name,
                       const SnapshotDomain *domain)
{
        Holder *holder = &drawing->holders[drawing->n_holders];

        *holder = (Holder){ consumer, name[0] ? name : consumer, domain, "" };
        choose_colour(holder->colour, drawing->n_holders++);
}

/* Makes the list of holders: domains first, then claims whose guest is no domain. The claims of one
 * consumer have one holder. */
static int add_holders(Drawing *drawing)
{
        const Snapshot *snapshot = drawing->snapshot;
        const json_t *claim;
        size_t i;

        drawing->holders =
                calloc(snapshot->n_domains + json_array_size(drawing->claims) + 1, sizeof(Holder));
        if (!drawing->holders)
                return -ENOMEM;
        for (i = 0; i < snapshot->n_domains; i++)
                add_holder(drawing, snapshot->domains[i].uuid.text, snapshot->domains[i].name,
                           &snapshot->domains[i]);
        json_array_foreach((json_t *)drawing->claims, i, claim)
                if (!find_holder(drawing, claim))
                        add_holder(drawing, ctl_json_text(claim, "consumer"), "", NULL);
        return 0;
}

/* Returns the first guest that is pinned to the CPU; NULL: none. */
static const Holder *find_cpu_holder(const Drawing *drawing, unsigned cpu)
{
        for (size_t i = 0; i < drawing->n_holders; i++) {
                const SnapshotDomain *domain = drawing->holders[i].domain;

                for (size_t j = 0; domain && j < domain->n_pins; j++)
                        if (cpu_set_contains(&domain->pins[j].cpus, cpu))
                                return &drawing->holders[i];
        }
        return NULL;
}

/* Checks whether the live or the persistent definition of the domain has the device: an mdev's uuid
 * or a PCI address. */
static bool has_device(const SnapshotDomain *domain, const char *device)
{
        const struct {
                const Uuid *mdevs;
                size_t n_mdevs;
                char (*addresses)[PCI_ADDRESS_SIZE];
                size_t n_addresses;
        } definitions[] = {
                { domain->mdevs, domain->n_mdevs, domain->pci_addresses, domain->n_pci_addresses },
                { domain->config_mdevs, domain->n_config_mdevs, domain->config_pci_addresses,
                  domain->n_config_pci_addresses },
        };

        for (size_t i = 0; i < ARRAY_SIZE(definitions); i++) {
                for (size_t j = 0; j < definitions[i].n_mdevs; j++)
                        if (strcmp(definitions[i].mdevs[j].text, device) == 0)
                                return true;
                for (size_t j = 0; j < definitions[i].n_addresses; j++)
                        if (strcmp(definitions[i].addresses[j], device) == 0)
                                return true;
        }
        return false;
}

/* Finds the guest of an mdev (key "mdev") or of a whole PCI device ("address"). Domains are
 * searched first, then claims. */
static const Holder *find_device_holder(const Drawing *drawing, const char *key, const char *value)
{
        const json_t *claim, *device;
        size_t i, j;

        if (!value[0])
                return NULL;
        for (i = 0; i < drawing->n_holders; i++)
                if (drawing->holders[i].domain && has_device(drawing->holders[i].domain, value))
                        return &drawing->holders[i];
        json_array_foreach((json_t *)drawing->claims, i, claim)
                json_array_foreach(json_object_get(claim, "devices"), j, device)
                        if (strcmp(ctl_json_text(device, key), value) == 0 &&
                            (strcmp(key, "mdev") == 0 || !ctl_json_text(device, "mdev")[0]))
                                return find_holder(drawing, claim);
        return NULL;
}

/* Finds the guest of the mdev with that number, from 0, among the claimed mdevs of a device that do
 * not exist yet. NULL: there are fewer. */
static const Holder *find_promised(const Drawing *drawing, const char *device, size_t number)
{
        const json_t *claim, *part;
        size_t i, j;

        json_array_foreach((json_t *)drawing->claims, i, claim)
                json_array_foreach(json_object_get(claim, "devices"), j, part)
                        if (strcmp(ctl_json_text(part, "device"), device) == 0 &&
                            ctl_json_text(part, "mdev")[0] &&
                            !json_is_true(json_object_get(part, "exists")) && number-- == 0)
                                return find_holder(drawing, claim);
        return NULL;
}

/* Finds the guest of a virtual function, else of its first mdev that has one, else of its first
 * claimed mdev that does not exist yet. */
static const Holder *find_function_holder(const Drawing *drawing, const SnapshotDevice *function)
{
        const Holder *holder = find_device_holder(drawing, "address", function->address);
        size_t n;
        const SnapshotMdev *mdevs = snapshot_mdevs_of(drawing->snapshot, function->name, &n);

        for (size_t i = 0; !holder && i < n; i++)
                holder = find_device_holder(drawing, "mdev", mdevs[i].uuid.text);
        return holder ? holder : find_promised(drawing, function->name, 0);
}

/* Returns the memory of a guest in a host cell, in KiB, according to its domain. Memory that is
 * bound to several cells is divided equally. */
static uint64_t find_memory_kib(const Holder *holder, unsigned cell)
{
        const SnapshotDomain *domain = holder->domain;
        uint64_t sum = 0;

        for (size_t i = 0; domain && i < domain->n_cells; i++) {
                const DomainCell *guest_cell = &domain->cells[i];

                if (cpu_set_contains(&guest_cell->host_cells, cell) &&
                    u64_add_overflow(
                            sum, guest_cell->memory_kib / cpu_set_count(&guest_cell->host_cells),
                            &sum))
                        return UINT64_MAX;
        }
        if (domain && sum == 0 && cpu_set_contains(&domain->memory_cells, cell))
                sum = domain->memory_kib / cpu_set_count(&domain->memory_cells);
        return sum;
}

/* CPUs. */

static void draw_cpu(Drawing *drawing, unsigned cpu, int x, int y)
{
        bool online = cpu_set_contains(&drawing->snapshot->online_cpus, cpu);
        const Holder *holder = find_cpu_holder(drawing, cpu);
        char name[24];

        snprintf(name, sizeof(name), "CPU %u", cpu);
        begin_group(drawing, name, !online ? "offline" : holder ? holder->name : "free");
        draw_box(drawing, online ? "cpu" : "off",
                 !online  ? NULL
                 : holder ? holder->colour
                          : FREE,
                 x, y, CPU_WIDTH, CPU_HEIGHT);
        draw_text(drawing, "mid", x + CPU_WIDTH / 2, y + 14, 8, "%u", cpu);
        end_group(drawing);
}

static bool same_core(const SnapshotCell *cell, size_t a, size_t b)
{
        return a == b || cpu_set_contains(&cell->cpus[a].siblings, cell->cpus[b].id);
}

/* Checks whether the CPU is the first of its core. The core is drawn at this CPU. */
static bool leads_core(const SnapshotCell *cell, size_t index)
{
        for (size_t i = 0; i < index; i++)
                if (same_core(cell, index, i))
                        return false;
        return true;
}

/* Returns the width of a core with all its CPUs. */
static int core_width(const SnapshotCell *cell, size_t leader)
{
        int n = 0;

        for (size_t i = leader; i < cell->n_cpus; i++)
                n += same_core(cell, leader, i);
        return n * (CPU_WIDTH + 2) + 4;
}

/* Draws the cores of a cell, each with its CPUs side by side. CPUs of a core need not be adjacent
 * in the list. */
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
                draw_box(drawing, "core", NULL, x, y, width, CPU_HEIGHT + 6);
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

/* Draws the memory of a cell: its size, its huge pages, and a bar with a part for each guest whose
 * memory is bound to the cell. Guests for which the bar has no space left get no part. The first
 * item of the list of page sizes counts as the ordinary size and is left out. */
static int draw_memory(Drawing *drawing, const SnapshotCell *cell, int left, int top)
{
        char size[CTL_TEXT_MAX], pages[CTL_TEXT_MAX] = "", page[CTL_TEXT_MAX];
        int x = left, end = left + CELL_INNER;
        size_t n = 0;

        if (cell->memory_kib == 0)
                return 0;
        for (size_t i = 1; i < cell->n_pages && n < sizeof(pages); i++)
                if (cell->pages[i].count > 0)
                        n += (size_t)snprintf(pages + n, sizeof(pages) - n, ", %" PRIu64 " × %s",
                                              cell->pages[i].count,
                                              ctl_text_kib(page, cell->pages[i].size_kib));
        draw_text(drawing, "small", left, top + 9, CELL_INNER / CHARACTER, "Memory %s%s",
                  ctl_text_kib(size, cell->memory_kib), pages);
        draw_box(drawing, "bar", NULL, left, top + 14, CELL_INNER, 12);
        for (size_t i = 0; i < drawing->n_holders && x < end; i++) {
                const Holder *holder = &drawing->holders[i];
                uint64_t kib = find_memory_kib(holder, cell->id);
                double share = (double)kib / (double)cell->memory_kib;
                int width = (int)MIN(CELL_INNER * share + 1, (double)(end - x));

                if (kib == 0)
                        continue;
                begin_group(drawing, holder->name, NULL);
                draw_box(drawing, "part", holder->colour, x, top + 14, width, 12);
                end_group(drawing);
                x += width;
        }
        return 14 + 12 + 2 * GAP;
}

/* Devices. */

/* The slots of one device, which fill rows from left to right. */
typedef struct Slots {
        Drawing *drawing;
        int left, top;
        size_t n; /* number of slots so far */
} Slots;

/* Adds a slot. exists: the mdev or function exists. Otherwise its frame is dashed, with or without
 * a guest. */
static void add_slot(Slots *slots, const char *what, const Holder *holder, bool exists)
{
        int x = slots->left + (int)(slots->n % SLOTS_OF_ROW) * SLOT,
            y = slots->top + (int)(slots->n / SLOTS_OF_ROW) * SLOT;

        if (slots->n >= SLOTS_MAX)
                return;
        slots->n++;
        begin_group(slots->drawing, what, holder ? holder->name : "free");
        draw_box(slots->drawing, exists ? "slot" : "free", holder ? holder->colour : FREE, x, y,
                 SLOT - 2, SLOT - 2);
        end_group(slots->drawing);
}

/* Adds the slots of a device. For mdevs these are: existing ones, claimed ones that do not exist
 * yet, and free ones, which do not exist either. The number of free ones is the largest number of
 * available instances of any type, minus the number of claimed ones. Types exclude each other on
 * most GPUs. A physical function also has a slot for each of its virtual functions. */
static void add_slots(Slots *slots, const SnapshotDevice *device)
{
        const Snapshot *snapshot = slots->drawing->snapshot;
        uint64_t n_available = 0, n_promised = 0;
        const Holder *holder;

        for (size_t i = 0; i < device->n_mdev_types; i++)
                n_available = MAX(n_available, device->mdev_types[i].available_instances);
        for (size_t i = 0; i < snapshot->n_mdevs; i++)
                if (strcmp(snapshot->mdevs[i].parent, device->name) == 0)
                        add_slot(slots, snapshot->mdevs[i].type,
                                 find_device_holder(slots->drawing, "mdev",
                                                    snapshot->mdevs[i].uuid.text),
                                 true);
        while ((holder = find_promised(slots->drawing, device->name, n_promised))) {
                add_slot(slots, "mdev, not created", holder, false);
                n_promised++;
        }
        for (uint64_t i = n_promised; i < MIN(n_available, (uint64_t)SLOTS_MAX); i++)
                add_slot(slots, "free mdev", NULL, false);
        for (size_t i = 0; device->is_physical_function && i < snapshot->n_devices; i++) {
                const SnapshotDevice *function = &snapshot->devices[i];

                if (function->address[0] &&
                    strcmp(function->physical_function, device->address) == 0)
                        add_slot(slots, function->address,
                                 find_function_holder(slots->drawing, function), true);
        }
}

/* Returns a word for the kind of a device: parent of mdevs, physical function, or a PCI class of
 * the table. NULL: another kind, which is drawn only if a guest has the whole device. */
static const char *device_kind(const SnapshotDevice *device)
{
        static const struct {
                unsigned class;
                const char *kind;
        } kinds[] = { { 0x01, "storage" },
                      { 0x02, "network" },
                      { 0x03, "display" },
                      { 0x0b, "accelerator" },
                      { 0x12, "accelerator" } };

        if (device->n_mdev_types > 0)
                return "mdev parent";
        if (device->is_physical_function)
                return "physical function";
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (device->class_code >> 16 == kinds[i].class)
                        return kinds[i].kind;
        return NULL;
}

/* Draws a device with its slots. The height depends on the number of slots, so these are counted
 * first. */
static int draw_device(Drawing *drawing, const SnapshotDevice *device, int x, int y)
{
        const Holder *holder = find_device_holder(drawing, "address", device->address);
        const char *kind = device_kind(device), *address = device->address;
        Drawing measuring = *drawing;
        Slots slots = { drawing, x + GAP, y + 36, 0 }, measured = { &measuring, 0, 0, 0 };
        size_t n = DEVICE_WIDTH / CHARACTER;
        char ids[32];
        int height;

        measuring.measures = true;
        add_slots(&measured, device);
        height = DEVICE_HEIGHT +
                 (measured.n > 0 ? (int)((measured.n - 1) / SLOTS_OF_ROW) * SLOT : 0);
        snprintf(ids, sizeof(ids), "%04" PRIx32 ":%04" PRIx32, device->vendor_id,
                 device->product_id);
        begin_group(drawing, device->name, NULL);
        draw_box(drawing, "device", holder ? holder->colour : "#eef6ea", x, y, DEVICE_WIDTH,
                 height);
        draw_text(drawing, "mono", x + GAP, y + 13, n, "%s  %s",
                  address[0] ? address : device->name, address[0] ? ids : "");
        draw_text(drawing, "dim", x + GAP, y + 27, n, "%s",
                  device->product[0]         ? device->product
                  : device->n_mdev_types > 0 ? device->mdev_types[0].name
                  : kind                     ? kind
                                             : "");
        end_group(drawing);
        add_slots(&slots, device);
        if (slots.n == 0 && holder)
                draw_text(drawing, "small", x + GAP, y + 45, n, "%s", holder->name);
        return height;
}

/* Returns the cell of a device. Returns NUMA_NODE_NONE also for a cell that the snapshot lacks. */
static int find_cell(const Snapshot *snapshot, const SnapshotDevice *device)
{
        for (size_t i = 0; i < snapshot->n_cells; i++)
                if ((int)snapshot->cells[i].id == device->numa_node)
                        return device->numa_node;
        return NUMA_NODE_NONE;
}

/* Draws the devices of a cell, or of no cell, in two columns. Included are devices that guests have
 * and devices of a known kind. Virtual functions are slots of their physical function. */
static int draw_devices(Drawing *drawing, int numa_node, int left, int top)
{
        const Snapshot *snapshot = drawing->snapshot;
        int column = 0, y = top, highest = 0;

        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];
                int height;

                if (find_cell(snapshot, device) != numa_node || device->physical_function[0] ||
                    (!device_kind(device) &&
                     !find_device_holder(drawing, "address", device->address)))
                        continue;
                if (column == 2) {
                        y += highest + GAP;
                        column = highest = 0;
                }
                height = draw_device(drawing, device, left + column++ * (DEVICE_WIDTH + GAP), y);
                highest = MAX(highest, height);
        }
        return column > 0 ? y + highest + GAP - top : 0;
}

/* Cells. */

static int draw_cell(Drawing *drawing, const SnapshotCell *cell, int left, int top)
{
        int y = top + 26;

        draw_text(drawing, "head", left, top + 17, 40, "NUMA cell %u", cell->id);
        y += draw_memory(drawing, cell, left, y);
        y += draw_cpus(drawing, cell, left, y);
        y += draw_devices(drawing, (int)cell->id, left, y);
        return y + GAP - top;
}

/* Draws cells side by side, in frames of the same height. */
static int draw_row(Drawing *drawing, const SnapshotCell *cells, size_t n, int top)
{
        Drawing measuring = *drawing;
        int highest = 0;

        measuring.measures = true;
        for (size_t i = 0; i < n; i++)
                highest = MAX(highest, draw_cell(&measuring, &cells[i], 0, top));
        for (size_t i = 0; i < n; i++) {
                int left = MARGIN + (int)i * (CELL_WIDTH + MARGIN);

                draw_box(drawing, "cell", NULL, left, top, CELL_WIDTH, highest);
                (void)draw_cell(drawing, &cells[i], left + GAP, top);
        }
        return highest;
}

/* Below the cells: devices of no cell, usage, guests. */

/* Draws a line for an inventory, with a bar of its usage: green, yellow from 90 % on, red if it is
 * full. Usage without capacity is yellow. */
static void draw_inventory(Drawing *drawing, const char *provider, const char *resource_class,
                           const json_t *inventory, int y)
{
        uint64_t used = ctl_json_u64(inventory, "used"),
                 capacity = ctl_json_u64(inventory, "capacity");
        double share = used >= capacity ? 1.0 : (double)used / (double)capacity;
        const char *colour = share >= 1 && capacity > 0 ? "#d9534f"
                             : share >= 0.9             ? "#f0ad4e"
                                                        : "#5cb85c";
        int x = MARGIN + 330 + BAR_WIDTH + GAP;

        draw_text(drawing, "small", MARGIN, y + 10, 24, "%s", provider);
        draw_text(drawing, "small", MARGIN + 160, y + 10, 26, "%s", resource_class);
        draw_box(drawing, "bar", NULL, MARGIN + 330, y, BAR_WIDTH, 12);
        if (used > 0)
                draw_box(drawing, "part", colour, MARGIN + 331, y + 1,
                         (int)(share * (BAR_WIDTH - 4)) + 2, 10);
        if (capacity == 0 && used > 0)
                draw_text(drawing, "small", x, y + 10, 44, "%" PRIu64 " in use, none free", used);
        else
                draw_text(drawing, "small", x, y + 10, 44, "%" PRIu64 " of %" PRIu64, used,
                          capacity);
}

static int draw_usage(Drawing *drawing, int top)
{
        const json_t *provider;
        int y = top + HEAD;
        size_t i;

        draw_text(drawing, "head", MARGIN, top + 12, 40, "Usage");
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

/* Formats the sums of all living claims of a guest, over all providers. The caller frees. Returns
 * NULL if memory ran out. */
static char *format_claims(const Drawing *drawing, const Holder *holder)
{
        _cleanup_json_ json_t *sums = json_object();
        const json_t *claim, *allocation;
        size_t i, j;

        json_array_foreach((json_t *)drawing->claims, i, claim)
                json_array_foreach(json_object_get(claim, "allocations"), j, allocation)
                        if (has_claim(holder, claim) &&
                            ctl_json_add_amounts(sums, json_object_get(allocation, "resources")) <
                                    0)
                                return NULL;
        return sums ? ctl_json_format(sums, ctl_json_write_resources) : NULL;
}

/* Draws the legend: a line for each guest with its colour, state and claimed amounts. */
static int draw_guests(Drawing *drawing, int top)
{
        int y = top + HEAD;

        if (drawing->n_holders == 0)
                return 0;
        draw_text(drawing, "head", MARGIN, top + 12, 40, "Guests");
        for (size_t i = 0; i < drawing->n_holders; i++, y += LINE + 2) {
                const Holder *holder = &drawing->holders[i];
                _cleanup_free_ char *resources = format_claims(drawing, holder);

                drawing->page->failed |= !resources;
                draw_box(drawing, "slot", holder->colour, MARGIN, y, SLOT - 2, SLOT - 2);
                draw_text(drawing, "small", MARGIN + 20, y + 10, 130, "%s  (%s%s)  %s",
                          holder->name,
                          holder->domain ? domain_state_to_text(holder->domain->state)
                                         : "claimed, no domain",
                          holder->domain && holder->domain->n_pins == 0 ? ", not pinned" : "",
                          resources ? resources : "");
        }
        return y + GAP - top;
}

static int draw_title(Drawing *drawing, size_t n_columns)
{
        const Snapshot *snapshot = drawing->snapshot;
        char memory[CTL_TEXT_MAX];
        size_t n = n_columns * CELL_WIDTH / CHARACTER;

        draw_text(drawing, "title", MARGIN, MARGIN + 14, n / 2, "%s", snapshot->nodename);
        draw_text(drawing, "dim", MARGIN, MARGIN + 32, n, "%s %s; %u CPUs, %s; %s; sync state: %s",
                  snapshot->arch, snapshot->cpu_model, cpu_set_count(&snapshot->online_cpus),
                  ctl_text_kib(memory, snapshot->memory_kib), snapshot->hypervisor,
                  ctl_json_text(drawing->tree, "sync_state"));
        return MARGIN + 44;
}

/* Draws the title, cells, other devices, usage and guests below each other. Returns the height of
 * the picture. */
static int draw_all(Drawing *drawing, size_t n_columns)
{
        const Snapshot *snapshot = drawing->snapshot;
        int y = draw_title(drawing, n_columns), height;

        for (size_t i = 0; i < snapshot->n_cells; i += n_columns)
                y += MARGIN + draw_row(drawing, &snapshot->cells[i],
                                       MIN(n_columns, snapshot->n_cells - i), y);
        height = draw_devices(drawing, NUMA_NODE_NONE, MARGIN, y + HEAD);
        if (height > 0) {
                draw_text(drawing, "head", MARGIN, y + 12, 40, "Devices without a cell");
                y += height + HEAD + GAP;
        }
        y += draw_usage(drawing, y);
        return y + draw_guests(drawing, y) + MARGIN;
}

void ctl_draw(const Snapshot *snapshot, const json_t *tree, const json_t *claims, CtlPage *page)
{
        Drawing drawing = { .page = page,
                            .measures = true,
                            .snapshot = snapshot,
                            .tree = tree,
                            .claims = json_object_get(claims, "claims") };
        size_t n_columns = 2;
        int width, height;

        while (n_columns * n_columns < snapshot->n_cells && n_columns < COLUMNS_MAX)
                n_columns++;
        if (add_holders(&drawing) < 0) {
                page->failed = true;
                return;
        }
        width = MARGIN + (int)n_columns * (CELL_WIDTH + MARGIN);
        height = draw_all(&drawing, n_columns);
        drawing.measures = false;
        fprintf(page->output,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\">\n<title>",
                width, height, width, height);
        write_escaped(page, snapshot->nodename, SIZE_MAX);
        fputs("</title>\n<style>" STYLE "</style>\n", page->output);
        draw_box(&drawing, "page", NULL, 0, 0, width, height);
        (void)draw_all(&drawing, n_columns);
        fputs("</svg>\n", page->output);
        free(drawing.holders);
}
