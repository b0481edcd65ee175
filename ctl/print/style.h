/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How computectl writes to whoever reads it: found out once from the environment, then passed to
 * every formatter, so that these read no environment and no clock of their own. */

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
