/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Pieces of an SVG picture, in units of a pixel. Text may be foreign: it is escaped, and what XML
 * cannot hold is replaced. Fills and classes are constants of the caller. Pure. */

#include "ctl/print/page.h"

/* Width that a text of n characters takes at most, in the class "small" or "mono". */
#define CTL_SVG_CHARACTER 7

/* What stands before and after the pieces of a picture. */
void ctl_svg_begin(CtlPage *page, int width, int height, const char *title);
void ctl_svg_end(CtlPage *page);

/* A piece that belongs together, with a text that a browser shows to who points at it. */
void ctl_svg_group_begin(CtlPage *page, const char *tooltip);
void ctl_svg_group_end(CtlPage *page);

void ctl_svg_box(CtlPage *page, const char *class, const char *fill, int x, int y, int width,
                 int height);

/* At its left end, or (class with "mid") around its middle; cut to n characters. */
void ctl_svg_text(CtlPage *page, const char *class, int x, int y, size_t n, const char *format, ...)
        _printf_(6, 7);
