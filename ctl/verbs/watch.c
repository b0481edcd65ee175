/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* "computectl watch": shows the agent until it is told to end. Asks only when the agent signals a
 * change, and every few seconds while it does not answer. On a terminal a page that is drawn anew,
 * else a line (with --json a status document) for each change. */

#include "ctl/verbs/verbs.h"

#include <signal.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "base/clock.h"
#include "ctl/ask/bus.h"
#include "ctl/print/screen.h"
#include "ctl/print/status.h"
#include "ctl/print/text.h"
#include "ctl/print/watch.h"
#include "ctl/verbs/common.h"
#include "formats/format-names.h"
#include "formats/interface.h"

#define TICK_USEC   USEC_PER_SEC          /* ages are counted on */
#define SETTLE_USEC (100 * USEC_PER_MSEC) /* signals that come together are one change */
#define RETRY_USEC  (3 * USEC_PER_SEC)    /* while nobody answers */
#define ANSWER_USEC (5 * USEC_PER_SEC)    /* no longer than one would wait for a key */

typedef struct Watch {
        Ctl *ctl;
        sd_event *event;
        sd_event_source *tick;
        sd_bus *bus;         /* NULL: to be opened again */
        CtlScreen screen;    /* open on a terminal alone */
        uint64_t fetch_usec; /* CLOCK_MONOTONIC; when to ask next */
        json_t *status, *tree, *claims;
        char *last_line;
        Error error; /* what ends it */
} Watch;

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
        ctl_screen_close(&watch->screen);
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

/* Asks after usec, unless it is to ask sooner. */
static void fetch_in(Watch *watch, uint64_t usec)
{
        uint64_t when = now_usec(watch) + usec, next;

        watch->fetch_usec = MIN(watch->fetch_usec, when);
        if (sd_event_source_get_time(watch->tick, &next) >= 0 && when < next)
                (void)sd_event_source_set_time(watch->tick, when);
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        fetch_in(userdata, SETTLE_USEC);
        return 0;
}

/* The agent has come or gone. */
static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        fetch_in(userdata, 0);
        return 0;
}

static int open_bus(Watch *watch, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r = ctl_bus_open(&bus, watch->ctl->options.host, reterr);

        if (r != CTL_BUS_DONE)
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
                return error_setf(reterr, r, "The bus cannot be watched: %s", strerror(-r));
        watch->bus = TAKE_PTR(bus);
        return CTL_BUS_DONE;
}

/* Keeps what there was when it cannot be had. */
static void fetch_document(Watch *watch, const char *name, const char *format, json_t **member)
{
        json_t *document;

        if (ctl_bus_describe(watch->bus, name, format, &document, NULL) != CTL_BUS_DONE)
                return;
        json_decref(*member);
        *member = document;
}

/* What of the agent can be had: before the first poll there is a status and nothing else. */
static int fetch_facts(Watch *watch, Error *reterr)
{
        int r = ctl_bus_describe(watch->bus, BUS_DOCUMENT_STATUS, STATUS_FORMAT, &watch->status,
                                 reterr);

        if (r != CTL_BUS_DONE)
                return r;
        fetch_document(watch, BUS_DOCUMENT_TREE, TREE_FORMAT, &watch->tree);
        fetch_document(watch, BUS_DOCUMENT_CLAIMS, CLAIMS_FORMAT, &watch->claims);
        return CTL_BUS_DONE;
}

/* 0: there is a status to show, if only of why there is none. */
static int fetch_all(Watch *watch)
{
        Error why = ERROR_NULL;
        int r = CTL_BUS_DONE;

        forget_facts(watch);
        if (watch->bus && sd_bus_is_open(watch->bus) <= 0)
                watch->bus = sd_bus_flush_close_unref(watch->bus);
        if (!watch->bus)
                r = open_bus(watch, &why);
        if (r == CTL_BUS_DONE)
                r = fetch_facts(watch, &why);
        watch->fetch_usec = UINT64_MAX;
        if (r == CTL_BUS_DONE)
                return 0;
        /* A host that was not reached once would ask for passwords again and again. */
        if (r == -ENOMEM || (!watch->bus && r < 0))
                return error_setf(&watch->error, r, "%s", why.text);
        fetch_in(watch, RETRY_USEC);
        json_decref(watch->status);
        watch->status = ctl_status_make_not_running(why.text);
        return watch->status ? 0 : error_oom(&watch->error);
}

/* What a formatter makes of what is known; NULL when memory ran out. */
static char *format(const Watch *watch, void (*print)(const CtlWatchFacts *facts, CtlPage *page))
{
        const CtlWatchFacts facts = { watch->status, watch->tree, watch->claims };
        _cleanup_free_ char *text = NULL;
        size_t n;
        CtlPage page = { .style = ctl_style_detect(stdout), .output = open_memstream(&text, &n) };

        if (!page.output)
                return NULL;
        page.style.legend = watch->ctl->page.style.legend;
        print(&facts, &page);
        return fclose(page.output) == 0 && !page.failed ? TAKE_PTR(text) : NULL;
}

static int draw_page(Watch *watch)
{
        _cleanup_free_ char *text = format(watch, ctl_watch_print);

        if (!text || ctl_screen_draw(&watch->screen, text) < 0)
                return error_oom(&watch->error);
        return 0;
}

static int print_line(Watch *watch)
{
        _cleanup_free_ char *line = ctl_wants_json(watch->ctl)
                                            ? json_dumps(watch->status, JSON_COMPACT)
                                            : format(watch, ctl_watch_print_line);
        char time[CTL_TEXT_MAX];

        if (!line)
                return error_oom(&watch->error);
        if (watch->last_line && strcmp(watch->last_line, line) == 0)
                return 0;
        if (ctl_wants_json(watch->ctl))
                puts(line);
        else
                printf("%s %s\n", ctl_text_time(time, clock_usec(CLOCK_REALTIME)), line);
        free(watch->last_line);
        watch->last_line = TAKE_PTR(line);
        return fflush(stdout) == 0
                       ? 0
                       : error_setf(&watch->error, errno, "Cannot write: %s", strerror(errno));
}

static int show(Watch *watch)
{
        return watch->screen.open ? draw_page(watch) : print_line(watch);
}

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
        CtlKey key = ctl_screen_read_key();

        if (key == CTL_KEY_QUIT)
                return sd_event_exit(watch->event, 0);
        ctl_screen_scroll(&watch->screen, key);
        return draw_page(watch) < 0 ? sd_event_exit(watch->event, -ENOMEM) : 0;
}

static int on_resize(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        Watch *watch = userdata;

        ctl_screen_forget(&watch->screen);
        return draw_page(watch) < 0 ? sd_event_exit(watch->event, -ENOMEM) : 0;
}

static int on_end(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        return sd_event_exit(((Watch *)userdata)->event, 0);
}

static int add_signal(Watch *watch, int number, sd_event_signal_handler_t handler)
{
        sigset_t mask;

        sigemptyset(&mask);
        sigaddset(&mask, number);
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
                return -errno;
        return sd_event_add_signal(watch->event, NULL, number, handler, watch);
}

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
        if (!watch->ctl->page.style.terminal || ctl_wants_json(watch->ctl))
                return 0;
        r = add_signal(watch, SIGWINCH, on_resize);
        if (r >= 0 && isatty(STDIN_FILENO) > 0)
                r = sd_event_add_io(watch->event, NULL, STDIN_FILENO, EPOLLIN, on_key, watch);
        return r;
}

int ctl_verb_watch(Ctl *ctl, Error *reterr)
{
        _cleanup_(watch_done) Watch watch = { .ctl = ctl };
        int r = set_up(&watch);

        if (r < 0)
                return error_setf(reterr, r, "Cannot watch: %s", strerror(-r));
        /* Before the screen is taken: ssh may have something to ask. */
        r = fetch_all(&watch);
        if (r >= 0 && ctl->page.style.terminal && !ctl_wants_json(ctl))
                ctl_screen_open(&watch.screen);
        if (r >= 0)
                r = sd_event_loop(watch.event);
        return r < 0 ? error_setf(reterr, r, "%s", error_text(&watch.error, r)) : EXIT_SUCCESS;
}
