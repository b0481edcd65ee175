/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/field.h"

#include "agent/ctl/print/text.h"

int ctl_rest_print(const CtlStyle *style, int indent, CtlColour colour, const char *text,
                   FILE *output)
{
        _cleanup_free_ char *escaped = ctl_text_escape(text, style->utf8);

        if (!escaped)
                return -ENOMEM;
        if (style->width > 2 * (unsigned)indent)
                ctl_text_wrap(escaped, style->width - (unsigned)indent);
        ctl_style_write(style, colour, escaped, indent, output);
        return 0;
}

int ctl_field_print(const CtlStyle *style, int label_width, const char *label, CtlColour colour,
                    const char *text, FILE *output)
{
        fprintf(output, "%*s%c ", label_width, label, label[0] ? ':' : ' ');
        return ctl_rest_print(style, label_width + 2, colour, text, output);
}
