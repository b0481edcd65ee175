/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where formatters write: a stream, its style, and whether memory ran out on the way. As ferror()
 * keeps the failure of a stream, a page keeps this one, so that formatters return nothing and check
 * nothing. The owner of the page checks it at the end. */

#include "base/error.h"
#include "base/macros.h"

typedef struct CtlStyle {
        bool colours;
        bool utf8;         /* else plain ASCII, and foreign text beyond it is escaped */
        bool terminal;     /* a person reads along */
        bool legend;       /* headings and hints */
        bool all;          /* cut nothing, leave out nothing */
        unsigned width;    /* columns of the terminal; 0: lines may be as long as they are */
        uint64_t now_usec; /* CLOCK_REALTIME, what "3min ago" is counted from */
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
        bool failed;         /* memory ran out: what was written is not to be used */
        const char *columns; /* the columns of tables, as --columns names them; NULL: all */
        Error usage;         /* why a table was left out: a column is unknown */
} CtlPage;

/* Looks at output, $SYSTEMD_COLORS, $NO_COLOR, $TERM, $COLUMNS and the locale, which must be set
 * before. Legend is on, all is off. */
CtlStyle ctl_style_detect(FILE *output);

/* The escape sequence that begins a colour ("" without colours). Constants. */
const char *ctl_colour(const CtlStyle *style, CtlColour colour);

/* Whether there is room for whole uuids. */
bool ctl_style_is_roomy(const CtlStyle *style);

/* Returns the colour of a usage bar. Without capacity the guests keep an inventory that is withheld
 * or cordoned: yellow, since they hold no more than they were given. */
CtlColour ctl_usage_colour(uint64_t used, uint64_t capacity);

/* Writes a text, which is escaped, in that colour. */
void ctl_page_write(CtlPage *page, CtlColour colour, const char *format, ...) _printf_(3, 4);

/* Writes the rest of a line that has that many columns already: a text, which is escaped, and
 * broken where the terminal ends. Its next lines begin in the same column. */
void ctl_page_rest(CtlPage *page, int indent, CtlColour colour, const char *format, ...)
        _printf_(4, 5);

/* "Label: text", the line of which pages like that of "computectl status" are made: the label,
 * right-aligned in that many columns ("" goes on below the last field), and a text as that of
 * ctl_page_rest(). */
void ctl_page_field(CtlPage *page, int label_width, const char *label, CtlColour colour,
                    const char *format, ...) _printf_(5, 6);

/* Writes the lines of an escaped text, each in that colour; those below the first begin behind
 * indent blanks. */
void ctl_page_lines(CtlPage *page, int indent, CtlColour colour, const char *text);
