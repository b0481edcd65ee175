/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A table on a terminal: libsmartcols with the style of computectl.
 *
 * Each cell is escaped (ctl_text_escape()), so callers can pass text of guests unchanged. The page
 * records that memory ran out. */

#include <jansson.h>

#include "ctl/print/page.h"

typedef struct CtlColumn {
        const char *name;
        enum {
                CTL_COLUMN_LEFT,
                CTL_COLUMN_RIGHT, /* for numbers */
                CTL_COLUMN_CUT,   /* cut in the middle if the terminal is too narrow and --all is
                                   * not given: "host…_41_00_0" */
                CTL_COLUMN_WRAP,  /* wrapped at blanks in the same case */
        } kind;
} CtlColumn;

typedef struct CtlTable CtlTable;

/* Makes a table with the columns that the page names, each once and in that order, or with all.
 * Letters of either case match. Names are copied. The page is borrowed and must outlive the table.
 * Returns NULL if memory ran out (page->failed) or the page names an unknown column (page->usage).
 * All functions below accept NULL. */
CtlTable *ctl_table_new(CtlPage *page, const CtlColumn *columns, size_t n_columns);
CtlTable *ctl_table_free(CtlTable *table);

/* Begin a line, and fill its next cell from left to right. */
void ctl_table_line(CtlTable *table);
void ctl_table_cell(CtlTable *table, CtlColour colour, const char *format, ...) _printf_(3, 4);

/* Leaves n cells empty. */
void ctl_table_skip(CtlTable *table, size_t n);

/* Add a plain cell, which shows "-" for "" and for 0. */
void ctl_table_text(CtlTable *table, const char *text);
void ctl_table_number(CtlTable *table, uint64_t number);

/* Adds a plain cell with a text and frees the text; NULL: memory ran out. if_empty replaces the
 * text "". */
void ctl_table_take(CtlTable *table, char *text, const char *if_empty);

/* Writes the table and frees it. It has headings if the style has a legend. An empty table writes
 * nothing, and neither does a table after page->failed. */
void ctl_table_print(CtlTable *table);

/* Prints a table with a line for each item of an array. The callback add adds the cells of one
 * item. Its line has begun. */
void ctl_table_print_items(const json_t *items, const CtlColumn *columns, size_t n_columns,
                           void (*add)(CtlTable *table, const json_t *item, const CtlStyle *style),
                           CtlPage *page);
