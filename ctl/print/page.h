/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The destination of formatters: a stream, its style, and whether memory ran out. A page records
 * this failure as a stream records its error for ferror(). So formatters return nothing and check
 * nothing. The owner of the page checks it at the end. */

#include "base/error.h"
#include "base/macros.h"

typedef struct CtlStyle {
        bool colours;
        bool utf8;         /* false: only ASCII; other characters are escaped */
        bool terminal;     /* a person reads the output */
        bool legend;       /* print headings and hints */
        bool all;          /* cut nothing and leave out nothing */
        unsigned width;    /* columns of the terminal; 0: unlimited */
        uint64_t now_usec; /* CLOCK_REALTIME; "3min ago" is relative to it */
} CtlStyle;

typedef enum CtlColour {
        CTL_PLAIN,
        CTL_BOLD,
        CTL_DIM,
        CTL_GREEN,
        CTL_YELLOW,
        CTL_RED,
        CTL_HEADING,
        _CTL_COLOUR_MAX,
} CtlColour;

typedef struct CtlPage {
        CtlStyle style;
        FILE *output;
        bool failed;         /* memory ran out: the output is incomplete */
        const char *columns; /* value of --columns; NULL: all columns */
        Error usage;         /* an unknown column, whose table was not printed */
} CtlPage;

/* Finds the style from output, $SYSTEMD_COLORS, $NO_COLOR, $TERM, $COLUMNS and the locale. The
 * caller sets the locale before. Output that is no terminal has no limit of the width, so $COLUMNS
 * is ignored. "legend" is on, "all" is off. */
CtlStyle ctl_style_detect(FILE *output);

/* Returns the escape sequence that begins a colour; "" without colours. Static. */
const char *ctl_colour(const CtlStyle *style, CtlColour colour);

/* Writes a text in that colour. The text is escaped, also newlines in it. */
void ctl_page_write(CtlPage *page, CtlColour colour, const char *format, ...) _printf_(3, 4);

/* Writes the rest of a line on which indent columns are used. The text is escaped, and wrapped at
 * the width of the terminal if indent is less than half of it. Its next lines begin in the same
 * column. */
void ctl_page_rest(CtlPage *page, int indent, CtlColour colour, const char *format, ...)
        _printf_(4, 5);

/* Writes "Label: text", a line of pages such as that of "computectl status". The label is
 * right-aligned in that number of columns; "" continues the field above. The text is written as by
 * ctl_page_rest(). */
void ctl_page_field(CtlPage *page, int label_width, const char *label, CtlColour colour,
                    const char *format, ...) _printf_(5, 6);

/* Writes the lines of a text, each in that colour; lines below the first begin with indent blanks.
 * The caller escaped the text. */
void ctl_page_lines(CtlPage *page, int indent, CtlColour colour, const char *text);
