/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/svg.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ctl/print/text.h"

#define STYLE                                                                                  \
        "text{font-family:'DejaVu Sans',Verdana,Arial,sans-serif;font-size:11px;fill:#222}"    \
        ".title{font-size:18px;font-weight:bold}.head{font-size:13px;font-weight:bold}"        \
        ".small{font-size:10px}.dim{font-size:10px;fill:#666}"                                 \
        ".mono{font-family:'DejaVu Sans Mono',monospace;font-size:10px}"                       \
        ".mid{font-size:9px;text-anchor:middle}"                                               \
        ".page{fill:#fff}.cell{fill:#f4f6f8;stroke:#8696a7}.core{fill:#dde3ea;stroke:#a9b5c2}" \
        ".cpu,.slot{stroke:#5a6b7d}.free{stroke:#8696a7;stroke-dasharray:2 2}"                 \
        ".off{fill:#bbb;stroke:#888}.device{stroke:#7da06a}"                                   \
        ".bar{fill:#fff;stroke:#8696a7}.part{stroke:none}"

/* Characters that UTF-8 has and XML has not. */
static bool is_noncharacter(const char *text)
{
        return strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0;
}

static void write_escaped(CtlPage *page, const char *foreign, size_t n)
{
        _cleanup_free_ char *harmless = ctl_text_escape(foreign, true), *text = NULL;

        if (harmless)
                text = ctl_text_cut(harmless, n, true);
        if (!text) {
                page->failed = true;
                return;
        }
        for (const char *c = text; *c; c++) {
                const char *entity = *c == '&'   ? "&amp;"
                                     : *c == '<' ? "&lt;"
                                     : *c == '>' ? "&gt;"
                                     : *c == '"' ? "&quot;"
                                                 : NULL;

                if (is_noncharacter(c)) {
                        fputc('?', page->output);
                        c += 2;
                } else if (entity) {
                        fputs(entity, page->output);
                } else {
                        fputc(*c, page->output);
                }
        }
}

void ctl_svg_begin(CtlPage *page, int width, int height, const char *title)
{
        fprintf(page->output,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\">\n<title>",
                width, height, width, height);
        write_escaped(page, title, SIZE_MAX);
        fputs("</title>\n<style>" STYLE "</style>\n", page->output);
        ctl_svg_box(page, "page", NULL, 0, 0, width, height);
}

void ctl_svg_end(CtlPage *page)
{
        fputs("</svg>\n", page->output);
}

void ctl_svg_group_begin(CtlPage *page, const char *tooltip)
{
        fputs("<g><title>", page->output);
        write_escaped(page, tooltip, SIZE_MAX);
        fputs("</title>\n", page->output);
}

void ctl_svg_group_end(CtlPage *page)
{
        fputs("</g>\n", page->output);
}

void ctl_svg_box(CtlPage *page, const char *class, const char *fill, int x, int y, int width,
                 int height)
{
        fprintf(page->output, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"",
                class, x, y, width, height);
        if (strcmp(class, "page") != 0 && strcmp(class, "part") != 0)
                fputs(" rx=\"3\"", page->output);
        if (fill)
                fprintf(page->output, " fill=\"%s\"", fill);
        fputs("/>\n", page->output);
}

void ctl_svg_text(CtlPage *page, const char *class, int x, int y, size_t n, const char *format, ...)
{
        _cleanup_free_ char *text = NULL;
        va_list ap;

        va_start(ap, format);
        text = text_vformat(format, ap);
        va_end(ap);
        if (!text) {
                page->failed = true;
                return;
        }
        fprintf(page->output, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
        write_escaped(page, text, n);
        fputs("</text>\n", page->output);
}
