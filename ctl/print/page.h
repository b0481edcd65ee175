/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where formatters write: a stream, its style, and whether memory ran out on the way. As ferror()
 * keeps the failure of a stream, a page keeps this one, so that formatters return nothing and check
 * nothing; whoever has the page looks at its end. */

#include "base/error.h"
#include "ctl/print/style.h"

typedef struct CtlPage {
        CtlStyle style;
        FILE *output;
        bool failed;         /* memory ran out: what was written is not to be used */
        const char *columns; /* the columns of tables, as --columns names them; NULL: all */
        Error usage;         /* why a table was left out: a column is unknown */
} CtlPage;

/* A text of whoever, which is escaped, in that colour. */
void ctl_page_write(CtlPage *page, CtlColour colour, const char *format, ...) _printf_(3, 4);

/* The rest of a line that has that many columns already: a text of whoever, which is escaped, and
 * broken where the terminal ends; what is below begins in the same column. */
void ctl_page_rest(CtlPage *page, int indent, CtlColour colour, const char *format, ...)
        _printf_(4, 5);

/* "Label: text", the line of which pages like that of "computectl status" are made: the label,
 * right-aligned in that many columns ("" goes on below the last field), and a text as that of
 * ctl_page_rest(). */
void ctl_page_field(CtlPage *page, int label_width, const char *label, CtlColour colour,
                    const char *format, ...) _printf_(5, 6);

/* The lines of an escaped text, each in that colour; those below the first begin behind so many
 * blanks. */
void ctl_page_lines(CtlPage *page, int indent, CtlColour colour, const char *text);
