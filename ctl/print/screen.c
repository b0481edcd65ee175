/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/screen.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define ROWS_DEFAULT 24

/* xterm's sequences, which every terminal of today knows: the other screen, no wrapping of lines
 * that are too long, no cursor. */
#define ENTER "\033[?1049h\033[?7l\033[?25l"
#define LEAVE "\033[?25h\033[?7h\033[?1049l"

static size_t rows(void)
{
        struct winsize size;

        return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row
                                                                               : ROWS_DEFAULT;
}

static void write_all(const char *text, size_t n)
{
        while (n > 0) {
                ssize_t m = write(STDOUT_FILENO, text, n);

                if (m < 0 && errno == EINTR)
                        continue;
                if (m < 0)
                        return; /* a terminal that went away sends SIGHUP */
                text += m;
                n -= (size_t)m;
        }
}

void ctl_screen_open(CtlScreen *screen)
{
        struct termios raw;

        *screen = (CtlScreen){ .open = true };
        screen->has_keys = tcgetattr(STDIN_FILENO, &screen->before) == 0;
        if (screen->has_keys) {
                raw = screen->before;
                raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
                raw.c_cc[VMIN] = 0;
                raw.c_cc[VTIME] = 0;
                raw.c_cc[VSUSP] = _POSIX_VDISABLE;
                (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
        }
        fflush(stdout);
        write_all(ENTER, strlen(ENTER));
}

void ctl_screen_close(CtlScreen *screen)
{
        if (!screen->open)
                return;
        write_all(LEAVE, strlen(LEAVE));
        if (screen->has_keys)
                (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
        free(screen->shown);
        *screen = (CtlScreen){ 0 };
}

void ctl_screen_forget(CtlScreen *screen)
{
        free(screen->shown);
        screen->shown = NULL;
}

static size_t count_lines(const char *text)
{
        size_t n = 0;

        for (; *text; text++)
                n += *text == '\n';
        return n;
}

/* The page, and in the last row what keys there are. */
static void write_page(const char *text, size_t first, size_t n_rows, size_t n_lines, FILE *output)
{
        size_t n_shown = n_rows - 1;

        fputs("\033[?2026h\033[H", output); /* terminals that know it show the page at once */
        for (size_t i = 0; i < first; i++)
                text = strchr(text, '\n') + 1;
        for (size_t i = 0; i < n_shown; i++) {
                size_t n = strcspn(text, "\n");

                fprintf(output, "%.*s\033[0m\033[K\r\n", (int)n, text);
                text += n + (text[n] == '\n');
        }
        if (n_lines > n_shown)
                fprintf(output, "\033[7m q quit  j/k scroll  line %zu-%zu of %zu \033[0m\033[K",
                        first + 1, MIN(first + n_shown, n_lines), n_lines);
        else
                fputs("\033[7m q quit \033[0m\033[K", output);
        fputs("\033[?2026l", output);
}

int ctl_screen_draw(CtlScreen *screen, const char *text)
{
        size_t n_rows = MAX(rows(), (size_t)2), n_lines = count_lines(text), n;
        char *page = NULL;
        FILE *stream = open_memstream(&page, &n);

        if (!stream)
                return -ENOMEM;
        screen->first = MIN(screen->first, n_lines > n_rows - 1 ? n_lines - (n_rows - 1) : 0);
        write_page(text, screen->first, n_rows, n_lines, stream);
        if (fclose(stream) != 0) {
                free(page);
                return -ENOMEM;
        }
        if (!screen->shown || strcmp(screen->shown, page) != 0)
                write_all(page, n);
        free(screen->shown);
        screen->shown = page;
        return 0;
}

CtlKey ctl_screen_read_key(void)
{
        static const struct {
                const char *bytes;
                CtlKey key;
        } keys[] = {
                { "q", CTL_KEY_QUIT },
                { "Q", CTL_KEY_QUIT },
                { "\004", CTL_KEY_QUIT },
                { "k", CTL_KEY_UP },
                { "\033[A", CTL_KEY_UP },
                { "\033OA", CTL_KEY_UP },
                { "j", CTL_KEY_DOWN },
                { "\033[B", CTL_KEY_DOWN },
                { "\033OB", CTL_KEY_DOWN },
                { " ", CTL_KEY_PAGE_DOWN },
                { "\033[6~", CTL_KEY_PAGE_DOWN },
                { "\033[5~", CTL_KEY_PAGE_UP },
        };
        char bytes[5] = "";
        ssize_t n = read(STDIN_FILENO, bytes, 1);

        if (n <= 0)
                return n < 0 && (errno == EINTR || errno == EAGAIN) ? CTL_KEY_NONE : CTL_KEY_QUIT;
        /* The rest of a sequence is there at once, or it is none; the next key is left for the next
         * call. */
        if (bytes[0] == '\033' && read(STDIN_FILENO, bytes + 1, 2) == 2 && bytes[2] >= '0' &&
            bytes[2] <= '9')
                (void)!read(STDIN_FILENO, bytes + 3, 1);
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (strcmp(bytes, keys[i].bytes) == 0)
                        return keys[i].key;
        return CTL_KEY_NONE;
}

void ctl_screen_scroll(CtlScreen *screen, CtlKey key)
{
        size_t step =
                key == CTL_KEY_PAGE_UP || key == CTL_KEY_PAGE_DOWN ? MAX(rows(), (size_t)3) - 2 : 1;

        if (key == CTL_KEY_UP || key == CTL_KEY_PAGE_UP)
                screen->first -= MIN(step, screen->first);
        if (key == CTL_KEY_DOWN || key == CTL_KEY_PAGE_DOWN)
                screen->first += step;
}
