/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* "computectl watch": shows the state of the agent until the user ends it. It fetches documents at
 * its start, after a signal of the agent, and when the agent starts or ends on the bus. It also
 * does when the connection was lost, and every few seconds while the agent does not answer. An
 * error of the call for the status counts as no answer, also if the agent runs. On a terminal it
 * redraws the pages of "status", "tree" and "claims". Elsewhere it prints a line for each change.
 * With --json it shows no pages, but prints the status document as one line at each change.
 *
 * It ends with 0 by SIGINT, SIGTERM or SIGHUP. If it shows pages and its input is a terminal too,
 * it also ends with 0 after "q" or at the end of the input. It fails if memory runs out, if a line
 * cannot be written, or if the event loop or the bus cannot be opened. A local bus that is missing
 * is tried again instead.
 *
 * The main structure is Watch: the event loop, the last documents and the screen. One timer runs
 * each second, so that ages advance; fetch_usec decides whether it fetches too. Pages, but not
 * lines, use the alternate screen, without a cursor and with unbuffered keys. A page is written in
 * one piece without clearing first, so it does not flicker. Limit: each call of a fetch blocks the
 * loop for up to 5 s, and opening a bus over ssh can block it longer.
 *
 * Tests: tests/integration/ctl/test_watch.py tests/unit/ctl/print/test-status.c */

#include "ctl/verbs/verbs.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <systemd/sd-event.h>
#include <termios.h>
#include <time.h>

#include "base/clock.h"
#include "ctl/ask/bus.h"
#include "ctl/print/claims.h"
#include "ctl/print/status.h"
#include "ctl/print/text.h"
#include "ctl/print/tree.h"
#include "ctl/verbs/common.h"
#include "formats/format-names.h"
#include "formats/interface.h"

#define TICK_USEC   USEC_PER_SEC          /* ages advance */
#define SETTLE_USEC (100 * USEC_PER_MSEC) /* signals within this time are one change */
#define RETRY_USEC  (3 * USEC_PER_SEC)    /* while the agent does not answer */
#define ANSWER_USEC (5 * USEC_PER_SEC)    /* limit of a call, during which no key is read */

#define ROWS_DEFAULT 24

/* Sequences of xterm, which today's terminals know: the alternate screen, no wrapping of long
 * lines, no cursor. */
#define ENTER "\033[?1049h\033[?7l\033[?25l"
#define LEAVE "\033[?25h\033[?7h\033[?1049l"

typedef enum Key {
        KEY_NONE,
        KEY_QUIT, /* q, Q, or the end of the input */
        KEY_UP,
        KEY_DOWN,
        KEY_PAGE_UP,
        KEY_PAGE_DOWN,
} Key;

typedef struct Screen {
        bool open;
        bool has_keys;         /* standard input is a terminal too */
        struct termios before; /* settings of the terminal */
        size_t first;          /* index of the text's line at the top */
        char *shown;           /* the page that was written last; NULL: none */
} Screen;

typedef struct Watch {
        Ctl *ctl;
        sd_event *event;
        sd_event_source *tick;
        sd_bus *bus;         /* NULL: must be opened again */
        Screen screen;       /* open only while pages are shown */
        uint64_t fetch_usec; /* CLOCK_MONOTONIC; UINT64_MAX: no fetch is planned */
        json_t *status, *tree, *claims;
        char *last_line; /* the line that was printed last */
        Error error;     /* why the loop ended; code 0: without an error */
} Watch;

/* The screen. */

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
                        return; /* a closed terminal also sends SIGHUP, which ends the loop */
                text += m;
                n -= (size_t)m;
        }
}

/* Prepares the terminal: sets unbuffered keys without echo, and enters the alternate screen. ^Z is
 * disabled, because it would leave that screen open. */
static void screen_open(Screen *screen)
{
        struct termios raw;

        *screen = (Screen){ .open = true };
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

/* Restores the terminal. */
static void screen_close(Screen *screen)
{
        if (!screen->open)
                return;
        write_all(LEAVE, strlen(LEAVE));
        if (screen->has_keys)
                (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
        free(screen->shown);
        *screen = (Screen){ 0 };
}

/* Makes the next draw write again, after the terminal has changed its size. */
static void screen_forget(Screen *screen)
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

/* Writes the lines of a page, and the help for the keys into the last row. */
static void write_page(const char *text, size_t first, size_t n_rows, size_t n_lines, FILE *output)
{
        size_t n_shown = n_rows - 1;

        fputs("\033[?2026h\033[H",
              output); /* synchronized update: the terminal shows the page at once */
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

/* Shows the lines of the text that fit the terminal, from screen->first on. A page that equals the
 * last one is not written. Returns -ENOMEM. */
static int screen_draw(Screen *screen, const char *text)
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

/* Reads one key. The caller knows that standard input is readable. */
static Key screen_read_key(void)
{
        static const struct {
                const char *bytes;
                Key key;
        } keys[] = {
                { "q", KEY_QUIT },
                { "Q", KEY_QUIT },
                { "\004", KEY_QUIT },
                { "k", KEY_UP },
                { "\033[A", KEY_UP },
                { "\033OA", KEY_UP },
                { "j", KEY_DOWN },
                { "\033[B", KEY_DOWN },
                { "\033OB", KEY_DOWN },
                { " ", KEY_PAGE_DOWN },
                { "\033[6~", KEY_PAGE_DOWN },
                { "\033[5~", KEY_PAGE_UP },
        };
        char bytes[5] = "";
        ssize_t n = read(STDIN_FILENO, bytes, 1);

        if (n <= 0)
                return n < 0 && (errno == EINTR || errno == EAGAIN) ? KEY_NONE : KEY_QUIT;
        /* The other bytes of a sequence arrive with its first one. The next key stays for the next
         * call. */
        if (bytes[0] == '\033' && read(STDIN_FILENO, bytes + 1, 2) == 2 && bytes[2] >= '0' &&
            bytes[2] <= '9')
                (void)!read(STDIN_FILENO, bytes + 3, 1);
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (strcmp(bytes, keys[i].bytes) == 0)
                        return keys[i].key;
        return KEY_NONE;
}

/* Scrolls. The next draw limits the position. */
static void screen_scroll(Screen *screen, Key key)
{
        size_t step = key == KEY_PAGE_UP || key == KEY_PAGE_DOWN ? MAX(rows(), (size_t)3) - 2 : 1;

        if (key == KEY_UP || key == KEY_PAGE_UP)
                screen->first -= MIN(step, screen->first);
        if (key == KEY_DOWN || key == KEY_PAGE_DOWN)
                screen->first += step;
}

/* The agent. */

static void forget_facts(Watch *watch)
{
        json_t **const facts[] = { &watch->status, &watch->tree, &watch->claims };

        for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
                json_decref(*facts[i]);
                *facts[i] = NULL;
        }
}

static void watch_done(Watch *watch)
{
        screen_close(&watch->screen);
        forget_facts(watch);
        free(watch->last_line);
        sd_bus_flush_close_unref(watch->bus);
        sd_event_source_disable_unref(watch->tick);
        sd_event_unref(watch->event);
}

static uint64_t now_usec(const Watch *watch)
{
        uint64_t usec = 0;

        (void)sd_event_now(watch->event, CLOCK_MONOTONIC, &usec);
        return usec;
}

/* Plans a fetch in usec microseconds, unless an earlier one is planned. */
static void fetch_in(Watch *watch, uint64_t usec)
{
        uint64_t when = now_usec(watch) + usec, next;

        watch->fetch_usec = MIN(watch->fetch_usec, when);
        if (sd_event_source_get_time(watch->tick, &next) >= 0 && when < next)
                (void)sd_event_source_set_time(watch->tick, when);
}

/* Handles DocumentChanged: plans a fetch after SETTLE_USEC, so that signals that follow shortly
 * need no fetch of their own. */
static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        fetch_in(userdata, SETTLE_USEC);
        return 0;
}

/* Handles the start or end of the agent on the bus. */
static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        fetch_in(userdata, 0);
        return 0;
}

/* Opens a connection whose calls have the time limit ANSWER_USEC, and subscribes to the signals.
 * Returns a negative errno with words. */
static int open_bus(Watch *watch, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r = ctl_bus_open(&bus, watch->ctl->options.host, reterr);

        if (r < 0)
                return r;
        (void)sd_bus_set_method_call_timeout(bus, ANSWER_USEC);
        if ((r = sd_bus_match_signal(bus, NULL, BUS_NAME, BUS_PATH, BUS_INTERFACE,
                                     "DocumentChanged", on_signal, watch)) < 0 ||
            (r = sd_bus_add_match(
                     bus, NULL,
                     "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" BUS_NAME
                     "'",
                     on_owner, watch)) < 0 ||
            (r = sd_bus_attach_event(bus, watch->event, SD_EVENT_PRIORITY_NORMAL)) < 0)
                return error_setf(reterr, r, "Cannot watch the bus: %s", strerror(-r));
        watch->bus = TAKE_PTR(bus);
        return 0;
}

/* Fetches the documents. Before the first poll only the status exists, so the other ones are
 * optional. */
static int fetch_facts(Watch *watch, Error *reterr)
{
        int r = ctl_bus_describe(watch->bus, BUS_DOCUMENT_STATUS, STATUS_FORMAT, &watch->status,
                                 reterr);

        if (r < 0)
                return r;
        (void)ctl_bus_describe(watch->bus, BUS_DOCUMENT_TREE, TREE_FORMAT, &watch->tree, NULL);
        (void)ctl_bus_describe(watch->bus, BUS_DOCUMENT_CLAIMS, CLAIMS_FORMAT, &watch->claims,
                               NULL);
        return 0;
}

/* Fetches all documents, after opening the bus if necessary. Without an agent the status document
 * has the reason, and the next fetch is planned. */
static int fetch_all(Watch *watch)
{
        Error why = ERROR_NULL;
        int r = 0;

        forget_facts(watch);
        if (watch->bus && sd_bus_is_open(watch->bus) <= 0)
                watch->bus = sd_bus_flush_close_unref(watch->bus);
        if (!watch->bus)
                r = open_bus(watch, &why);
        if (r == 0)
                r = fetch_facts(watch, &why);
        watch->fetch_usec = UINT64_MAX;
        if (r == 0)
                return 0;
        /* A bus that cannot be opened ends the verb, unless there is only no local bus. For a
         * remote host, ssh would ask for passwords at each retry. */
        if (r == -ENOMEM || (!watch->bus && r != CTL_NOT_RUNNING))
                return error_setf(&watch->error, r, "%s", why.text);
        fetch_in(watch, RETRY_USEC);
        watch->status = ctl_status_make_not_running(why.text);
        return watch->status ? 0 : error_oom(&watch->error);
}

static void print_page(const Watch *watch, CtlPage *page)
{
        ctl_status_print(watch->status, page);
        if (watch->tree) {
                fputc('\n', page->output);
                (void)ctl_tree_print(watch->tree, page, NULL);
        }
        if (watch->claims) {
                fputc('\n', page->output);
                ctl_claims_print(watch->claims, false, page);
        }
}

static void print_summary(const Watch *watch, CtlPage *page)
{
        ctl_status_print_line(watch->status, watch->tree, page);
}

/* Returns the text that a formatter writes; the caller frees. NULL: memory ran out. */
static char *format(const Watch *watch, void (*print)(const Watch *watch, CtlPage *page))
{
        _cleanup_free_ char *text = NULL;
        size_t n;
        CtlPage page = { .style = ctl_style_detect(stdout), .output = open_memstream(&text, &n) };

        if (!page.output)
                return NULL;
        page.style.legend = watch->ctl->page.style.legend;
        print(watch, &page);
        return fclose(page.output) == 0 && !page.failed ? TAKE_PTR(text) : NULL;
}

static int draw_page(Watch *watch)
{
        _cleanup_free_ char *text = format(watch, print_page);

        if (!text || screen_draw(&watch->screen, text) < 0)
                return error_oom(&watch->error);
        return 0;
}

/* Prints a line if it differs from the last one. */
static int print_line(Watch *watch)
{
        _cleanup_free_ char *line = watch->ctl->options.json
                                            ? json_dumps(watch->status, JSON_COMPACT)
                                            : format(watch, print_summary);
        char time[CTL_TEXT_MAX];

        if (!line)
                return error_oom(&watch->error);
        if (watch->last_line && strcmp(watch->last_line, line) == 0)
                return 0;
        if (watch->ctl->options.json)
                puts(line);
        else
                printf("%s %s\n", ctl_text_time(time, clock_usec(CLOCK_REALTIME)), line);
        free(watch->last_line);
        watch->last_line = TAKE_PTR(line);
        /* A line longer than the buffer fails before fflush(). */
        return fflush(stdout) == 0 && !ferror(stdout)
                       ? 0
                       : error_setf(&watch->error, errno, "Cannot write the output: %s",
                                    strerror(errno));
}

static int show(Watch *watch)
{
        return watch->screen.open ? draw_page(watch) : print_line(watch);
}

/* Fetches if it is time or the connection is lost, and shows the result. */
static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        Watch *watch = userdata;
        int r = 0;

        (void)sd_event_source_set_time(source, now_usec(watch) + TICK_USEC);
        (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        if (now_usec(watch) >= watch->fetch_usec || (watch->bus && sd_bus_is_open(watch->bus) <= 0))
                r = fetch_all(watch);
        if (r >= 0)
                r = show(watch);
        return r < 0 ? sd_event_exit(watch->event, r) : 0;
}

static int on_key(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        Watch *watch = userdata;
        Key key = screen_read_key();

        if (key == KEY_QUIT)
                return sd_event_exit(watch->event, 0);
        screen_scroll(&watch->screen, key);
        return draw_page(watch) < 0 ? sd_event_exit(watch->event, -ENOMEM) : 0;
}

static int on_resize(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        Watch *watch = userdata;

        screen_forget(&watch->screen);
        return draw_page(watch) < 0 ? sd_event_exit(watch->event, -ENOMEM) : 0;
}

static int on_end(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        return sd_event_exit(((Watch *)userdata)->event, 0);
}

/* Handles a signal in the loop. The signal stays blocked, because the process ends soon after the
 * loop. */
static int add_signal(Watch *watch, int number, sd_event_signal_handler_t handler)
{
        sigset_t mask;

        sigemptyset(&mask);
        sigaddset(&mask, number);
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
                return -errno;
        return sd_event_add_signal(watch->event, NULL, number, handler, watch);
}

/* Makes the loop with its timer and signals. Keys and resizing matter only for pages. */
static int set_up(Watch *watch)
{
        int r = sd_event_new(&watch->event);

        if (r < 0 ||
            (r = sd_event_add_time(watch->event, &watch->tick, CLOCK_MONOTONIC, 0, 0, on_tick,
                                   watch)) < 0 ||
            (r = add_signal(watch, SIGINT, on_end)) < 0 ||
            (r = add_signal(watch, SIGTERM, on_end)) < 0 ||
            (r = add_signal(watch, SIGHUP, on_end)) < 0)
                return r;
        if (!watch->ctl->page.style.terminal || watch->ctl->options.json)
                return 0;
        r = add_signal(watch, SIGWINCH, on_resize);
        if (r >= 0 && isatty(STDIN_FILENO) > 0)
                r = sd_event_add_io(watch->event, NULL, STDIN_FILENO, EPOLLIN, on_key, watch);
        return r;
}

static int verb_watch(Ctl *ctl, Error *reterr)
{
        _cleanup_(watch_done) Watch watch = { .ctl = ctl };
        int r = set_up(&watch);

        if (r < 0)
                return error_setf(reterr, r, "Cannot watch: %s", strerror(-r));
        /* Fetched before the screen is taken, because ssh might ask a question. */
        r = fetch_all(&watch);
        if (r >= 0 && ctl->page.style.terminal && !ctl->options.json)
                screen_open(&watch.screen);
        if (r >= 0)
                r = sd_event_loop(watch.event);
        return r < 0 ? error_setf(reterr, r, "%s", error_text(&watch.error, r)) : EXIT_SUCCESS;
}

const CtlVerb ctl_watch_verbs[] = {
        { "watch", "", "Show status, usage and claims continuously", 0, CTL_REMOTE, NULL,
          verb_watch, NULL },
        { NULL, NULL, NULL, 0, CTL_LOCAL, NULL, NULL, NULL },
};
