/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes texts to a page, and finds the style of an output. ctl_style_detect() reads the
 * environment, the terminal and the clock. All other functions use the style in the page, which
 * makes formatters testable.
 *
 * Invariants: each text is escaped before it reaches the stream, except labels, which are constants
 * of the program, and the text of ctl_page_lines(), which its caller escaped. A failed allocation
 * sets page->failed and leaves out the text. A colour ends with each text. In a text of several
 * lines it ends with each line, and begins again with the next one. Limit: a width from $COLUMNS
 * above 4096 is ignored. */

#include "ctl/print/page.h"

#include <langinfo.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "ctl/print/text.h"

#define WIDTH_DEFAULT 80
#define WIDTH_MAX     4096

/* The escape sequences that begin a colour. Green, yellow and red are bold too, and CTL_HEADING is
 * underlined. */
static const char *const sequences[_CTL_COLOUR_MAX] = {
        [CTL_PLAIN] = "",
        [CTL_BOLD] = "\033[1m",
        [CTL_DIM] = "\033[2m",
        [CTL_GREEN] = "\033[0;1;32m",
        [CTL_YELLOW] = "\033[0;1;33m",
        [CTL_RED] = "\033[0;1;31m",
        [CTL_HEADING] = "\033[4m",
};

/* Checks for a word that systemd reads as false. */
static bool is_false(const char *text)
{
        static const char *const words[] = { "0", "no", "n", "false", "f", "off" };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcasecmp(text, words[i]) == 0)
                        return true;
        return false;
}

/* Decides about colours: $SYSTEMD_COLORS wins over $NO_COLOR, which wins over the kind of the
 * terminal. */
static bool detect_colours(bool terminal)
{
        const char *wish = getenv("SYSTEMD_COLORS"), *no = getenv("NO_COLOR"),
                   *term = getenv("TERM");

        if (wish && wish[0])
                return !is_false(wish);
        if (no && no[0])
                return false;
        return terminal && term && strcmp(term, "dumb") != 0;
}

/* Returns the width of a terminal in columns: $COLUMNS if it is 1 to WIDTH_MAX, else that of the
 * terminal, else 80. Other output has no limit of the width. */
static unsigned detect_width(int fd)
{
        const char *columns = getenv("COLUMNS");
        struct winsize size;
        unsigned long wish;

        wish = columns ? strtoul(columns, NULL, 10) : 0;
        if (wish > 0 && wish <= WIDTH_MAX)
                return (unsigned)wish;
        if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
                return size.ws_col;
        return WIDTH_DEFAULT;
}

CtlStyle ctl_style_detect(FILE *output)
{
        bool terminal = isatty(fileno(output)) > 0;

        return (CtlStyle){
                .colours = detect_colours(terminal),
                .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
                .terminal = terminal,
                .legend = true,
                .width = terminal ? detect_width(fileno(output)) : 0,
                .now_usec = clock_usec(CLOCK_REALTIME),
        };
}

const char *ctl_colour(const CtlStyle *style, CtlColour colour)
{
        return style->colours ? sequences[colour] : "";
}

static const char *colour_end(const CtlPage *page, CtlColour colour)
{
        return colour == CTL_PLAIN || !page->style.colours ? "" : "\033[0m";
}

/* Formats and escapes a text; the caller frees. Returns NULL if memory ran out, which the page
 * records. */
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

/* Writes a text behind indent columns, wrapped at the width of the style. If the indent is half of
 * the width or more, the text is not wrapped, because it would have too few columns. */
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
