/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints tables with libsmartcols. The widths of columns are decided here and not by libsmartcols,
 * so that cells are cut in their middle and wrapped at blanks.
 *
 * The main structure is CtlTable. Its "places" map the caller's columns to those of the table,
 * because --columns can select and reorder the columns. Invariants: cells of columns that are not
 * shown are skipped, all texts are escaped, and after a failure the table accepts calls, but fills
 * no cell and prints nothing. Limit: lines are longer than a terminal that is too narrow for the
 * fixed columns and 8 characters of each other one. Headings, and the words of wrapped columns, are
 * never cut, and with --all or --columns no cell is, so these can make lines longer too. */

#include "ctl/print/table.h"

#include "base/text.h"
#include "ctl/print/text.h"

#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#define ROOMY     100 /* from this width of the terminal on, two blanks separate cells, else one */
#define WIDTH_MIN 8   /* smallest width of a narrowed column */

struct CtlTable {
        CtlPage *page;
        struct libscols_table *table;
        CtlColumn *columns; /* copies of the table's columns */
        size_t *places; /* index of each column of the caller in the table; SIZE_MAX: not shown */
        size_t n_places;
        struct libscols_line *line; /* the current line; borrowed */
        size_t column;              /* the caller's index of the next cell */
};

static bool is_roomy(const CtlStyle *style)
{
        return style->width == 0 || style->width >= ROOMY;
}

/* Checks whether the column is narrowed if the terminal is too narrow. */
static bool is_narrowed(const CtlColumn *column)
{
        return column->kind == CTL_COLUMN_CUT || column->kind == CTL_COLUMN_WRAP;
}

static int add_column(CtlTable *table, const CtlColumn *column)
{
        int flags = column->kind == CTL_COLUMN_RIGHT  ? SCOLS_FL_RIGHT
                    : column->kind == CTL_COLUMN_WRAP ? SCOLS_FL_WRAP
                                                      : 0;
        struct libscols_column *made = scols_table_new_column(table->table, column->name, 0, flags);

        if (!made)
                return -ENOMEM;
        if (column->kind == CTL_COLUMN_WRAP)
                scols_column_set_wrapfunc(made, scols_wrapnl_chunksize, scols_wrapnl_nextchunk,
                                          NULL);
        return scols_cell_set_color(
                scols_column_get_header(made),
                table->page->style.colours ? ctl_colour(&table->page->style, CTL_HEADING) : NULL);
}

/* Appends the caller's column i to the table. */
static int place_column(CtlTable *table, const CtlColumn *columns, size_t i)
{
        size_t place = scols_table_get_ncols(table->table);

        table->columns[place] = columns[i];
        table->places[i] = place;
        return add_column(table, &columns[i]);
}

/* Stores in page->usage that a column is unknown, with the known ones. n: length of the name. */
static int refuse_column(CtlTable *table, const char *name, size_t n, const CtlColumn *columns,
                         size_t n_columns)
{
        char known[CTL_TEXT_MAX] = "";
        size_t length = 0;

        for (size_t i = 0; i < n_columns && length < sizeof(known); i++)
                length += (size_t)snprintf(known + length, sizeof(known) - length, "%s%s",
                                           i > 0 ? "," : "", columns[i].name);
        return error_setf(&table->page->usage, EINVAL,
                          "Unknown column \"%.*s\". The columns are %s", (int)MIN(n, 40u), name,
                          known);
}

/* Adds the columns that the page names, each once, or all columns. Returns -EINVAL if one is
 * unknown. */
static int add_columns(CtlTable *table, const CtlColumn *columns, size_t n_columns)
{
        int r = 0;

        for (size_t i = 0; i < n_columns && !table->page->columns && r >= 0; i++)
                r = place_column(table, columns, i);
        for (const char *name = table->page->columns; name && r >= 0;) {
                size_t n = strcspn(name, ","), i = 0;

                while (i < n_columns &&
                       (strlen(columns[i].name) != n || strncasecmp(columns[i].name, name, n) != 0))
                        i++;
                if (i == n_columns)
                        return refuse_column(table, name, n, columns, n_columns);
                if (table->places[i] == SIZE_MAX)
                        r = place_column(table, columns, i);
                name = name[n] ? name + n + 1 : NULL;
        }
        return r;
}

/* Makes the table of libsmartcols and its columns. The caller frees after an error. */
static int make_table(CtlTable *table, const CtlColumn *columns, size_t n_columns)
{
        const CtlStyle *style = &table->page->style;

        table->table = scols_new_table();
        table->columns = calloc(n_columns, sizeof(CtlColumn));
        table->places = calloc(n_columns, sizeof(size_t));
        if (!table->table || !table->columns || !table->places)
                return -ENOMEM;
        table->n_places = n_columns;
        for (size_t i = 0; i < n_columns; i++)
                table->places[i] = SIZE_MAX;
        scols_table_enable_noencoding(table->table, 1);
        scols_table_enable_colors(table->table, style->colours);
        scols_table_enable_ascii(table->table, !style->utf8);
        if (is_roomy(style))
                scols_table_set_column_separator(table->table, "  ");
        scols_table_enable_noheadings(table->table, !style->legend);
        scols_table_set_termforce(table->table, style->width > 0 ? SCOLS_TERMFORCE_ALWAYS
                                                                 : SCOLS_TERMFORCE_NEVER);
        if (style->width > 0)
                scols_table_set_termwidth(table->table, style->width);
        return add_columns(table, columns, n_columns);
}

CtlTable *ctl_table_new(CtlPage *page, const CtlColumn *columns, size_t n_columns)
{
        CtlTable *table = calloc(1, sizeof(CtlTable));

        if (table)
                table->page = page;
        if (table && make_table(table, columns, n_columns) == 0)
                return table;
        if (page->usage.code == 0)
                page->failed = true;
        return ctl_table_free(table);
}

CtlTable *ctl_table_free(CtlTable *table)
{
        if (!table)
                return NULL;
        scols_unref_table(table->table);
        free(table->columns);
        free(table->places);
        free(table);
        return NULL;
}

void ctl_table_line(CtlTable *table)
{
        if (!table)
                return;
        table->line = scols_table_new_line(table->table, NULL);
        table->column = 0;
        table->page->failed |= !table->line;
}

/* Fills the next cell and advances. A column that is not shown only advances. */
static int set_cell(CtlTable *table, CtlColour colour, const char *text)
{
        size_t place = table->column < table->n_places ? table->places[table->column] : SIZE_MAX;
        struct libscols_cell *cell =
                place == SIZE_MAX ? NULL : scols_line_get_cell(table->line, place);
        _cleanup_free_ char *escaped = ctl_text_escape(text, table->page->style.utf8);

        table->column++;
        if (place == SIZE_MAX)
                return 0;
        if (!escaped || !cell)
                return -ENOMEM;
        if (scols_cell_refer_data(cell, escaped) < 0)
                return -ENOMEM;
        escaped = NULL;
        if (colour == CTL_PLAIN || !table->page->style.colours)
                return 0;
        return scols_cell_set_color(cell, ctl_colour(&table->page->style, colour));
}

void ctl_table_cell(CtlTable *table, CtlColour colour, const char *format, ...)
{
        _cleanup_free_ char *text = NULL;
        va_list ap;

        if (!table || table->page->failed)
                return;
        va_start(ap, format);
        text = text_vformat(format, ap);
        va_end(ap);
        table->page->failed = !text || set_cell(table, colour, text) < 0;
}

void ctl_table_skip(CtlTable *table, size_t n)
{
        if (table)
                table->column += n;
}

void ctl_table_text(CtlTable *table, const char *text)
{
        ctl_table_cell(table, CTL_PLAIN, "%s", text[0] ? text : "-");
}

void ctl_table_number(CtlTable *table, uint64_t number)
{
        if (number > 0)
                ctl_table_cell(table, CTL_PLAIN, "%" PRIu64, number);
        else
                ctl_table_text(table, "");
}

void ctl_table_take(CtlTable *table, char *text, const char *if_empty)
{
        if (table && !text)
                table->page->failed = true;
        if (text)
                ctl_table_cell(table, CTL_PLAIN, "%s", text[0] ? text : if_empty);
        free(text);
}

/* Returns the number of lines. */
static size_t count_lines(const CtlTable *table)
{
        return !table ? 0 : scols_table_get_nlines(table->table);
}

/* Returns the widest cell or heading of a column, in characters. */
static size_t measure_column(CtlTable *table, size_t column)
{
        const char *name = scols_cell_get_data(
                scols_column_get_header(scols_table_get_column(table->table, column)));
        size_t width = name ? strlen(name) : 0;

        for (size_t i = 0; i < count_lines(table); i++) {
                const char *text = scols_cell_get_data(
                        scols_line_get_cell(scols_table_get_line(table->table, i), column));

                width = MAX(width, text ? text_count_characters(text) : 0);
        }
        return width;
}

/* Cuts or wraps the cells of a column to that width in characters. */
static int narrow_column(CtlTable *table, size_t column, size_t width)
{
        for (size_t i = 0; i < count_lines(table); i++) {
                struct libscols_cell *cell =
                        scols_line_get_cell(scols_table_get_line(table->table, i), column);
                const char *text = scols_cell_get_data(cell);
                _cleanup_free_ char *narrow = NULL;

                if (!text)
                        continue;
                narrow = table->columns[column].kind == CTL_COLUMN_CUT
                                 ? ctl_text_cut(text, width, table->page->style.utf8)
                                 : strdup(text);
                if (!narrow)
                        return -ENOMEM;
                if (table->columns[column].kind == CTL_COLUMN_WRAP)
                        ctl_text_wrap(narrow, width);
                if (scols_cell_set_data(cell, narrow) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Divides the width of the terminal. Does nothing if the table fits, without a terminal, or with
 * --all or --columns. Columns that cannot be narrowed keep their width. The other columns share the
 * rest from left to right: each gets its own width or an equal part, whichever is smaller, and at
 * least WIDTH_MIN. The space that one column leaves is divided among the next ones. */
static int fit_columns(CtlTable *table)
{
        size_t n_columns = scols_table_get_ncols(table->table), n_left = 0;
        size_t taken = (n_columns - 1) * (is_roomy(&table->page->style) ? 2 : 1), wanted = taken,
               rest;

        for (size_t i = 0; i < n_columns; i++) {
                size_t width = measure_column(table, i);

                wanted += width;
                taken += is_narrowed(&table->columns[i]) ? 0 : width;
                n_left += is_narrowed(&table->columns[i]);
        }
        if (table->page->style.width == 0 || table->page->style.all ||
            wanted <= table->page->style.width)
                return 0;
        rest = table->page->style.width > taken ? table->page->style.width - taken : 0;
        for (size_t i = 0; i < n_columns; i++) {
                size_t width = measure_column(table, i), share;

                if (!is_narrowed(&table->columns[i]))
                        continue;
                share = MAX(MIN(width, rest / n_left), (size_t)WIDTH_MIN);
                rest -= MIN(share, rest);
                n_left--;
                if (narrow_column(table, i, share) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Writes the text without the blanks that libsmartcols appends to the last column. */
static void write_trimmed(char *text, FILE *output)
{
        for (char *line = text; *line;) {
                size_t length = strcspn(line, "\n"), n = length;
                bool last = line[length] == '\0';

                while (n > 0 && line[n - 1] == ' ')
                        n--;
                fwrite(line, 1, n, output);
                fputc('\n', output);
                line += length + !last;
        }
}

void ctl_table_print(CtlTable *table)
{
        _cleanup_free_ char *text = NULL;

        if (count_lines(table) > 0 && !table->page->failed) {
                if (fit_columns(table) == 0 &&
                    scols_print_table_to_string(table->table, &text) == 0)
                        write_trimmed(text, table->page->output);
                else
                        table->page->failed = true;
        }
        ctl_table_free(table);
}

void ctl_table_print_items(const json_t *items, const CtlColumn *columns, size_t n_columns,
                           void (*add)(CtlTable *table, const json_t *item, const CtlStyle *style),
                           CtlPage *page)
{
        CtlTable *table = ctl_table_new(page, columns, n_columns);
        const json_t *item;
        size_t i;

        json_array_foreach((json_t *)items, i, item) {
                ctl_table_line(table);
                add(table, item, &page->style);
        }
        ctl_table_print(table);
}
