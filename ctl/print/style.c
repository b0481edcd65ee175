/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/style.h"

#include <langinfo.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/clock.h"

#define WIDTH_DEFAULT 80
#define WIDTH_MAX     4096
#define ROOMY         130 /* columns */
#define FULL_PERCENT  90  /* from here on a usage bar is yellow */

static const char *const sequences[_CTL_COLOUR_MAX] = {
        [CTL_PLAIN] = "",
        [CTL_BOLD] = "\033[1m",
        [CTL_DIM] = "\033[2m",
        [CTL_GREEN] = "\033[0;1;32m",
        [CTL_YELLOW] = "\033[0;1;33m",
        [CTL_RED] = "\033[0;1;31m",
        [CTL_HEADING] = "\033[4m",
};

static bool text_means_no(const char *text)
{
        static const char *const words[] = { "0", "no", "n", "false", "f", "off" };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcasecmp(text, words[i]) == 0)
                        return true;
        return false;
}

static bool detect_colours(bool terminal)
{
        const char *wish = getenv("SYSTEMD_COLORS"), *no = getenv("NO_COLOR"),
                   *term = getenv("TERM");

        if (wish && wish[0])
                return !text_means_no(wish);
        if (no && no[0])
                return false;
        return terminal && term && strcmp(term, "dumb") != 0;
}

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

bool ctl_style_is_roomy(const CtlStyle *style)
{
        return style->all || style->width == 0 || style->width >= ROOMY;
}

CtlColour ctl_usage_colour(uint64_t used, uint64_t capacity)
{
        if (used == 0)
                return CTL_DIM;
        if (capacity > 0 && used >= capacity)
                return CTL_RED;
        if (capacity == 0)
                return CTL_YELLOW;
        return (double)used * 100 / (double)capacity >= FULL_PERCENT ? CTL_YELLOW : CTL_GREEN;
}
