/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A table on a terminal: libsmartcols with the style of the program on it.
 *
 * Every cell is escaped (ctl_text_escape()), so callers may pass foreign text as it came. Failures
 * are kept and returned by ctl_table_print(), so that filling a table needs no checks. */

#include <jansson.h>

#include "agent/ctl/print/style.h"
#include "base/error.h"

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

/* Names are copied, the style is borrowed and must outlive the table. -ENOMEM. */
int ctl_table_new(CtlTable **ret, const CtlStyle *style, const CtlColumn *columns,
                  size_t n_columns);
CtlTable *ctl_table_free(CtlTable *table);
DEFINE_CLEANUP(CtlTable *, ctl_table_free);

/* Begins a line; the cells that follow go there, from left to right. */
void ctl_table_line(CtlTable *table);
void ctl_table_cell(CtlTable *table, CtlColour colour, const char *format, ...) _printf_(3, 4);

/* A plain cell; "-" for "" and for 0. */
void ctl_table_text(CtlTable *table, const char *text);
void ctl_table_number(CtlTable *table, uint64_t number);

size_t ctl_table_count(const CtlTable *table);

/* Writes it, with headings when the style has a legend. An empty table writes nothing. -ENOMEM. */
int ctl_table_print(CtlTable *table, FILE *output);

/* Adds the lines of one item. -ENOMEM. */
typedef int (*CtlTableAdd)(CtlTable *table, const json_t *item, const CtlStyle *style);

/* A table with the lines of all items of an array. */
int ctl_table_print_items(const json_t *items, const CtlColumn *columns, size_t n_columns,
                          CtlTableAdd add, const CtlStyle *style, FILE *output);
