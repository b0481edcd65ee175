/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "Label: text", the line of which pages like that of "computectl status" are made. */

#include "agent/ctl/print/style.h"

/* The rest of a line that has that many columns already: a text of whoever, which is escaped, and
 * broken where the terminal ends; what is below begins in the same column. -ENOMEM. */
int ctl_rest_print(const CtlStyle *style, int indent, CtlColour colour, const char *text,
                   FILE *output);

/* The label, right-aligned in that many columns ("" goes on below the last field), and a text as
 * that of ctl_rest_print(). -ENOMEM. */
int ctl_field_print(const CtlStyle *style, int label_width, const char *label, CtlColour colour,
                    const char *text, FILE *output);
