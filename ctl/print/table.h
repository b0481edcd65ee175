/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A table on a terminal: libsmartcols with the style of the program on it.
 *
 * Every cell is escaped (ctl_text_escape()), so callers may pass foreign text as it came. The page
 * keeps that memory ran out. */

#include <jansson.h>

#include "ctl/print/page.h"

typedef enum CtlColumnKind {
        CTL_COLUMN_LEFT,
        CTL_COLUMN_RIGHT, /* numbers */
        CTL_COLUMN_CUT,   /* gives way when the terminal is too narrow: "host1_…_00_0" */
        CTL_COLUMN_WRAP,  /* gives way by going on in the next line, broken at blanks */
} CtlColumnKind;

typedef struct CtlColumn {
        const char *name;
        CtlColumnKind kind;
} CtlColumn;

typedef struct CtlTable CtlTable;

/* Makes a table with the columns that the page names, in that order, or with all. Names are copied,
 * the page is borrowed and must outlive the table. NULL if memory ran out (page->failed) or the
 * page names an unknown column (page->usage); all functions below take NULL. */
CtlTable *ctl_table_new(CtlPage *page, const CtlColumn *columns, size_t n_columns);
CtlTable *ctl_table_free(CtlTable *table);

/* Begins a line; the cells that follow go there, from left to right. */
void ctl_table_line(CtlTable *table);
void ctl_table_cell(CtlTable *table, CtlColour colour, const char *format, ...) _printf_(3, 4);

/* Leaves n cells empty. */
void ctl_table_skip(CtlTable *table, size_t n);

/* Adds the first letters of a uuid; the whole uuid if the style is roomy. */
void ctl_table_uuid(CtlTable *table, const char *uuid);

/* A plain cell; "-" for "" and for 0. */
void ctl_table_text(CtlTable *table, const char *text);
void ctl_table_number(CtlTable *table, uint64_t number);

/* A plain cell of a text that is freed; NULL: memory ran out. For "" it shows what is given. */
void ctl_table_take(CtlTable *table, char *text, const char *if_empty);

size_t ctl_table_count(const CtlTable *table);

/* Writes it, with headings when the style has a legend, and frees it. An empty table writes
 * nothing. */
void ctl_table_print(CtlTable *table);

/* Adds the cells of one item, whose line has begun. */
typedef void (*CtlTableAdd)(CtlTable *table, const json_t *item, const CtlStyle *style);

/* A table with a line for each item of an array. */
void ctl_table_print_items(const json_t *items, const CtlColumn *columns, size_t n_columns,
                           CtlTableAdd add, CtlPage *page);
