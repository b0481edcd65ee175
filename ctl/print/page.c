/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/page.h"

#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "ctl/print/text.h"

static const char *colour_end(const CtlPage *page, CtlColour colour)
{
        return colour == CTL_PLAIN || !page->style.colours ? "" : "\033[0m";
}

/* NULL when memory ran out, which the page keeps. */
static _printf_(2, 0) char *format_escaped(CtlPage *page, const char *format, va_list ap)
{
        _cleanup_free_ char *text = text_vformat(format, ap);
        char *escaped = text ? ctl_text_escape(text, page->style.utf8) : NULL;

        page->failed |= !escaped;
        return escaped;
}

void ctl_page_write(CtlPage *page, CtlColour colour, const char *format, ...)
{
        _cleanup_free_ char *text = NULL;
        va_list ap;

        va_start(ap, format);
        text = format_escaped(page, format, ap);
        va_end(ap);
        if (text)
                fprintf(page->output, "%s%s%s", ctl_colour(&page->style, colour), text,
                        colour_end(page, colour));
}

void ctl_page_lines(CtlPage *page, int indent, CtlColour colour, const char *text)
{
        for (;;) {
                size_t n = strcspn(text, "\n");

                fprintf(page->output, "%s%.*s%s\n", ctl_colour(&page->style, colour), (int)n, text,
                        colour_end(page, colour));
                if (!text[n])
                        return;
                text += n + 1;
                fprintf(page->output, "%*s", indent, "");
        }
}

static _printf_(4, 0) void write_rest(CtlPage *page, int indent, CtlColour colour,
                                      const char *format, va_list ap)
{
        _cleanup_free_ char *text = format_escaped(page, format, ap);

        if (!text)
                return;
        if (page->style.width > 2 * (unsigned)indent)
                ctl_text_wrap(text, page->style.width - (unsigned)indent);
        ctl_page_lines(page, indent, colour, text);
}

void ctl_page_rest(CtlPage *page, int indent, CtlColour colour, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        write_rest(page, indent, colour, format, ap);
        va_end(ap);
}

void ctl_page_field(CtlPage *page, int label_width, const char *label, CtlColour colour,
                    const char *format, ...)
{
        va_list ap;

        fprintf(page->output, "%*s%c ", label_width, label, label[0] ? ':' : ' ');
        va_start(ap, format);
        write_rest(page, label_width + 2, colour, format, ap);
        va_end(ap);
}
