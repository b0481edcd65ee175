/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the provider tree for "computectl tree". A provider has a line for each inventory, and at
 * least one. With --all it has a line for each trait too, beside the inventories. The tree is drawn
 * into the first column here, because the cells of a tree line of libsmartcols share one colour and
 * alignment.
 *
 * The main structure is TreePrinter, with the links parent, first child and next sibling of each
 * provider as indexes. The document has parents before children. Siblings can have any order and
 * are sorted here; roots keep theirs. A provider whose parent does not precede it is printed as a
 * root. Sharing providers of other trees follow as one line each. Limit: a tree with more than 64
 * levels below its root is rejected, and nothing is printed. */

#include "ctl/print/tree.h"

#include "base/text.h"
#include "ctl/print/json.h"
#include "ctl/print/table.h"
#include "ctl/print/text.h"

#include <inttypes.h>
#include <string.h>

#define BAR_WIDTH        10
#define BAR_WIDTH_NARROW 5
#define FULL_PERCENT     90  /* a usage bar is yellow from here on */
#define NARROW           100 /* width of the terminal below which bars are short, in columns */
#define DEPTH_MAX        64  /* levels of providers, far more than the tree of any host has */

static const CtlColumn columns[] = {
        { "PROVIDER", CTL_COLUMN_LEFT }, { "CLASS", CTL_COLUMN_LEFT },
        { "USED", CTL_COLUMN_RIGHT },    { "CAPACITY", CTL_COLUMN_RIGHT },
        { "USAGE", CTL_COLUMN_LEFT },    { "TRAITS", CTL_COLUMN_CUT },
};
static const CtlColumn all_columns[] = {
        { "PROVIDER", CTL_COLUMN_LEFT },  { "CLASS", CTL_COLUMN_LEFT },
        { "USED", CTL_COLUMN_RIGHT },     { "CAPACITY", CTL_COLUMN_RIGHT },
        { "USAGE", CTL_COLUMN_LEFT },     { "TOTAL", CTL_COLUMN_RIGHT },
        { "RESERVED", CTL_COLUMN_RIGHT }, { "RATIO", CTL_COLUMN_RIGHT },
        { "TRAITS", CTL_COLUMN_LEFT },    { "UUID", CTL_COLUMN_LEFT },
};

typedef struct TreePrinter {
        const json_t *providers;
        size_t n_providers;
        ssize_t *parents;  /* index of each provider's parent, -1 for a root */
        ssize_t *children; /* index of each provider's first child, -1 for none */
        ssize_t *siblings; /* index of the next child of the same parent, -1 for none */
        CtlPage *page;
        CtlTable *table;
} TreePrinter;

static void tree_printer_done(TreePrinter *printer)
{
        free(printer->parents);
        free(printer->children);
        free(printer->siblings);
        ctl_table_free(printer->table);
}

/* Returns the index of the parent, which precedes the provider; -1: none. */
static ssize_t find_parent(const json_t *providers, size_t index)
{
        const char *parent = ctl_json_text(json_array_get(providers, index), "parent");

        for (size_t i = index; parent[0] && i-- > 0;)
                if (strcmp(parent, ctl_json_text(json_array_get(providers, i), "uuid")) == 0)
                        return (ssize_t)i;
        return -1;
}

static const char *name_of(const TreePrinter *printer, ssize_t index)
{
        return ctl_json_text(json_array_get(printer->providers, (size_t)index), "name");
}

/* Inserts a child into the list of its parent by name, with numbers as numbers: cell 9 precedes
 * cell 10. */
static void link_child(TreePrinter *printer, ssize_t parent, ssize_t child)
{
        ssize_t *place = &printer->children[parent];

        while (*place >= 0 && strverscmp(name_of(printer, *place), name_of(printer, child)) <= 0)
                place = &printer->siblings[*place];
        printer->siblings[child] = *place;
        *place = child;
}

static int link_providers(TreePrinter *printer)
{
        size_t n = printer->n_providers;

        printer->parents = calloc(n, sizeof(ssize_t));
        printer->children = calloc(n, sizeof(ssize_t));
        printer->siblings = calloc(n, sizeof(ssize_t));
        if (!printer->parents || !printer->children || !printer->siblings)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                printer->parents[i] = find_parent(printer->providers, i);
                printer->children[i] = printer->siblings[i] = -1;
        }
        for (size_t i = 0; i < n; i++)
                if (printer->parents[i] >= 0)
                        link_child(printer, printer->parents[i], (ssize_t)i);
        return 0;
}

/* Returns the colour of a usage bar: red if no capacity is free, and yellow from FULL_PERCENT on.
 * An inventory that is withheld or cordoned has no capacity. Its usage is yellow and not red,
 * because its guests use no more than they claimed. */
static CtlColour usage_colour(uint64_t used, uint64_t capacity)
{
        if (used == 0)
                return CTL_DIM;
        if (capacity > 0 && used >= capacity)
                return CTL_RED;
        if (capacity == 0)
                return CTL_YELLOW;
        return (double)used * 100 / (double)capacity >= FULL_PERCENT ? CTL_YELLOW : CTL_GREEN;
}

/* Writes "▉▉░░░", n characters wide ("##---" without utf8), and returns it. Any usage has at least
 * one mark, and only a bar without free capacity is full. */
static const char *make_bar(char buffer[static CTL_TEXT_MAX], uint64_t used, uint64_t capacity,
                            unsigned n, bool utf8)
{
        unsigned marks = 0;
        char *end = buffer;

        if (used > 0 && used >= capacity)
                marks = n;
        else if (used > 0)
                marks = MAX(MIN((unsigned)((double)used / (double)capacity * n + 0.5), n - 1), 1U);
        for (unsigned i = 0; i < n; i++)
                end = stpcpy(end, i < marks ? (utf8 ? "▉" : "#") : (utf8 ? "░" : "-"));
        *end = '\0';
        return buffer;
}

static void add_usage_cell(TreePrinter *printer, uint64_t used, uint64_t capacity)
{
        const CtlStyle *style = &printer->page->style;
        bool narrow = style->width > 0 && style->width < NARROW;
        char bar[CTL_TEXT_MAX], percent[CTL_TEXT_MAX] = "   -";

        if (capacity > 0)
                snprintf(percent, sizeof(percent), "%3.0f%%",
                         (double)used * 100 / (double)capacity);
        ctl_table_cell(
                printer->table, usage_colour(used, capacity), "%s %s",
                make_bar(bar, used, capacity, narrow ? BAR_WIDTH_NARROW : BAR_WIDTH, style->utf8),
                percent);
}

static void add_inventory_cells(TreePrinter *printer, const char *resource_class,
                                const json_t *inventory)
{
        uint64_t used = ctl_json_u64(inventory, "used"),
                 capacity = ctl_json_u64(inventory, "capacity");
        CtlTable *table = printer->table;

        ctl_table_cell(table, CTL_PLAIN, "%s", resource_class);
        ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, used);
        ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, capacity);
        add_usage_cell(printer, used, capacity);
        if (!printer->page->style.all)
                return;
        ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, ctl_json_u64(inventory, "total"));
        ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, ctl_json_u64(inventory, "reserved"));
        ctl_table_cell(table, CTL_PLAIN, "%g",
                       json_number_value(json_object_get(inventory, "allocation_ratio")));
}

/* Checks whether a trait distinguishes this host from other hosts of its kind. Traits of the CPU,
 * the architecture and the hypervisor do not, except COMPUTE_STATUS_DISABLED. */
static bool is_specific(const char *trait)
{
        static const char *const dull[] = { "COMPUTE_", "HW_CPU_", "HW_ARCH_" };

        for (size_t i = 0; i < ARRAY_SIZE(dull); i++)
                if (strncmp(trait, dull[i], strlen(dull[i])) == 0)
                        return strcmp(trait, "COMPUTE_STATUS_DISABLED") == 0;
        return true;
}

/* Returns the trait with that number, counted from 0. If "all" is false, only traits with
 * is_specific() count. Returns NULL if there are fewer. */
static const char *find_trait(const json_t *traits, size_t number, bool all)
{
        const json_t *trait;
        size_t i;

        json_array_foreach((json_t *)traits, i, trait)
                if (json_is_string(trait) && (all || is_specific(json_string_value(trait))) &&
                    number-- == 0)
                        return json_string_value(trait);
        return NULL;
}

/* Adds the cell with the trait of that line, one of n_lines. The cell of the last line also shows
 * the number of traits that got no line, for example "+12". */
static void add_trait_cell(TreePrinter *printer, const json_t *traits, size_t line, size_t n_lines)
{
        bool all = printer->page->style.all;
        const char *trait = find_trait(traits, line, all);
        size_t n = 0;

        while (n < n_lines && find_trait(traits, n, all))
                n++;
        if (line + 1 == n_lines && json_array_size(traits) > n)
                ctl_table_cell(printer->table, CTL_PLAIN, "%s%s+%zu", trait ? trait : "",
                               trait ? " " : "", json_array_size(traits) - n);
        else
                ctl_table_cell(printer->table, CTL_PLAIN, "%s", trait ? trait : "");
}

/* Returns the branch before the name of a provider, or before the lines below it. */
static const char *branch(const TreePrinter *printer, size_t index, bool first)
{
        bool utf8 = printer->page->style.utf8, last = printer->siblings[index] < 0;

        if (printer->parents[index] < 0)
                return "";
        if (first)
                return last ? (utf8 ? "└─" : "`-") : (utf8 ? "├─" : "|-");
        return last ? "  " : (utf8 ? "│ " : "| ");
}

/* Returns the words behind the name of a provider and their colour, for example " cordoned" and "
 * cordoned, missing"; "" if the provider is offered. */
static const char *find_mark(const json_t *provider, CtlColour *ret_colour)
{
        const char *withheld = ctl_json_text(provider, "withheld");
        bool missing = strcmp(withheld, "missing") == 0, unclean = strcmp(withheld, "unclean") == 0,
             cordoned = json_is_true(json_object_get(provider, "cordoned"));

        *ret_colour = missing ? CTL_RED : cordoned || withheld[0] ? CTL_YELLOW : CTL_PLAIN;
        if (!withheld[0])
                return cordoned ? " cordoned" : "";
        if (cordoned)
                return missing   ? " cordoned, missing"
                       : unclean ? " cordoned, not clean"
                                 : " cordoned, held";
        return missing ? " missing" : unclean ? " not clean" : " held";
}

/* Adds the first cell of a line. Lines below the name show the stem to the children. */
static void add_name_cell(TreePrinter *printer, size_t index, const char *prefix, bool first)
{
        const char *stem =
                printer->children[index] >= 0 ? (printer->page->style.utf8 ? "│" : "|") : "";
        const json_t *provider = json_array_get(printer->providers, index);
        CtlColour colour;
        const char *mark = find_mark(provider, &colour);

        ctl_table_cell(printer->table, first ? colour : CTL_PLAIN, "%s%s%s%s", prefix,
                       branch(printer, index, first),
                       first ? ctl_json_text(provider, "name") : stem, first ? mark : "");
}

/* Adds the lines of a provider. Inventories and traits are filled in parallel, one of each per
 * line. */
static void add_provider(TreePrinter *printer, size_t index, const char *prefix)
{
        const json_t *provider = json_array_get(printer->providers, index),
                     *traits = json_object_get(provider, "traits");
        json_t *inventories = json_object_get(provider, "inventories");
        void *inventory = json_object_iter(inventories);
        size_t n_lines = MAX(json_object_size(inventories), (size_t)1);

        if (printer->page->style.all)
                n_lines = MAX(n_lines, json_array_size(traits));
        for (size_t line = 0; line < n_lines; line++) {
                ctl_table_line(printer->table);
                add_name_cell(printer, index, prefix, line == 0);
                if (inventory) {
                        add_inventory_cells(printer, json_object_iter_key(inventory),
                                            json_object_iter_value(inventory));
                        inventory = json_object_iter_next(inventories, inventory);
                } else {
                        ctl_table_skip(printer->table, printer->page->style.all ? 7 : 4);
                }
                add_trait_cell(printer, traits, line, n_lines);
                if (printer->page->style.all)
                        ctl_table_cell(printer->table, CTL_PLAIN, "%s",
                                       line == 0 ? ctl_json_text(provider, "uuid") : "");
        }
}

/* Adds a provider and its descendants. prefix: the branches of its ancestors. */
static int add_subtree(TreePrinter *printer, size_t index, const char *prefix, unsigned depth,
                       Error *reterr)
{
        _cleanup_free_ char *below = NULL;

        if (depth > DEPTH_MAX)
                return error_setf(reterr, EBADMSG, "The provider tree has more than %d levels",
                                  DEPTH_MAX);
        add_provider(printer, index, prefix);
        below = text_format("%s%s", prefix, branch(printer, index, false));
        if (!below)
                return error_oom(reterr);
        for (ssize_t child = printer->children[index]; child >= 0;
             child = printer->siblings[child]) {
                int r = add_subtree(printer, (size_t)child, below, depth + 1, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Prints "shares: NAME" for each provider of another tree that shares with this one. */
static void print_sharing(const json_t *tree, CtlPage *page)
{
        const json_t *name;
        size_t i;

        json_array_foreach(json_object_get(tree, "shares"), i, name) {
                ctl_page_write(page, CTL_PLAIN, "shares: %s",
                               json_is_string(name) ? json_string_value(name) : "");
                fputc('\n', page->output);
        }
}

int ctl_tree_print(const json_t *tree, CtlPage *page, Error *reterr)
{
        _cleanup_(tree_printer_done) TreePrinter printer = { .page = page };
        json_t *providers;
        int r = json_read_array(tree, "providers", &providers, reterr);

        if (r < 0)
                return r;
        printer.providers = providers;
        printer.n_providers = json_array_size(providers);
        if (printer.n_providers == 0) {
                if (page->style.legend)
                        fputs("No providers.\n", page->output);
                return 0;
        }
        printer.table = page->style.all ? ctl_table_new(page, all_columns, ARRAY_SIZE(all_columns))
                                        : ctl_table_new(page, columns, ARRAY_SIZE(columns));
        if (link_providers(&printer) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < printer.n_providers; i++)
                if (printer.parents[i] < 0 && (r = add_subtree(&printer, i, "", 0, reterr)) < 0)
                        return r;
        ctl_table_print(TAKE_PTR(printer.table));
        if (page->failed)
                return error_oom(reterr);
        print_sharing(tree, page);
        return 0;
}
