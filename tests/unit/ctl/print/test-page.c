/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/page.h"

#include <fcntl.h>

#include "tests/unit/test.h"

static FILE *open_terminal(void)
{
        int fd = posix_openpt(O_RDWR | O_NOCTTY);

        assert_true(fd >= 0);
        return fdopen(fd, "r+");
}

static void set_environment(const char *colors, const char *no_color, const char *term)
{
        unsetenv("SYSTEMD_COLORS");
        unsetenv("NO_COLOR");
        unsetenv("TERM");
        if (colors)
                setenv("SYSTEMD_COLORS", colors, true);
        if (no_color)
                setenv("NO_COLOR", no_color, true);
        if (term)
                setenv("TERM", term, true);
}

static void test_colours_table(void **state)
{
        static const struct {
                const char *systemd_colors, *no_color, *term;
                bool terminal, pipe; /* expected */
        } cases[] = {
                { NULL, NULL, "xterm", true, false }, { NULL, NULL, "dumb", false, false },
                { NULL, NULL, NULL, false, false },   { NULL, "1", "xterm", false, false },
                { NULL, "", "xterm", true, false },   { "1", NULL, "xterm", true, true },
                { "0", NULL, "xterm", false, false }, { "no", NULL, "xterm", false, false },
                { "256", "1", "dumb", true, true },   { "", NULL, "xterm", true, false },
        };
        _cleanup_fclose_ FILE *terminal = open_terminal(), *file = fopen("/dev/null", "w");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                set_environment(cases[i].systemd_colors, cases[i].no_color, cases[i].term);
                if (ctl_style_detect(terminal).colours != cases[i].terminal ||
                    ctl_style_detect(file).colours != cases[i].pipe)
                        fail_msg("case %zu", i);
        }
}

static void test_width(void **state)
{
        _cleanup_fclose_ FILE *terminal = open_terminal(), *file = fopen("/dev/null", "w");

        unsetenv("COLUMNS");
        assert_int_equal(ctl_style_detect(terminal).width,
                         80); /* a terminal without a known width */
        assert_int_equal(ctl_style_detect(file).width, 0);
        setenv("COLUMNS", "132", true);
        assert_int_equal(ctl_style_detect(terminal).width, 132);
        setenv("COLUMNS", "nonsense", true);
        assert_int_equal(ctl_style_detect(terminal).width, 80);
        setenv("COLUMNS", "99999999999999999999", true);
        assert_int_equal(ctl_style_detect(terminal).width, 80);
        assert_true(ctl_style_detect(terminal).terminal);
        assert_false(ctl_style_detect(file).terminal);
}

static void test_sequences(void **state)
{
        CtlStyle style = { .colours = true };

        for (int i = 0; i < _CTL_COLOUR_MAX; i++)
                assert_non_null(ctl_colour(&style, (CtlColour)i));
        style.colours = false;
        assert_string_equal(ctl_colour(&style, CTL_RED), "");
}

TEST_MAIN(test_colours_table, test_width, test_sequences)
