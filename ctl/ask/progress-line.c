/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Draws the progress of an operation of the agent on standard error while the caller waits for the
 * reply to its call. The agent changes the properties OperationPhase, OperationDone and
 * OperationTotal; each signal redraws the line.
 *
 * The main structure is Waiting: the last known progress, and the reply when it has arrived.
 * Invariants: nothing is drawn during the first 300 ms, so a fast operation prints nothing, and the
 * line is erased before the call returns. Without a terminal or with timeout_usec 0,
 * ctl_progress_call() is a plain sd_bus_call(). */

#include "ctl/ask/progress-line.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "formats/interface.h"

#define BAR_MAX    40 /* width in characters */
#define BAR_MIN    8
#define QUIET_USEC (300 * USEC_PER_MSEC)
#define LINE_MAX   512

void ctl_progress_format(const char *kind, const Progress *progress, const CtlStyle *style,
                         char *line, size_t size)
{
        size_t width = MIN(style->width > 0 ? style->width : 80, size - 1), room, filled;
        char text[128];

        snprintf(text, sizeof(text), "%.30s: %.60s", kind, progress->phase);
        if (progress->n_total == 0 || progress->n_done > progress->n_total) {
                snprintf(line, width + 1, "%s", text);
                return;
        }
        snprintf(line, width + 1, "%s %" PRIu64 "/%" PRIu64, text, progress->n_done,
                 progress->n_total);
        room = width - strlen(line);
        if (room < BAR_MIN + 3)
                return;
        room = MIN(room - 3, BAR_MAX);
        filled = (size_t)((double)room * (double)progress->n_done / (double)progress->n_total);
        snprintf(line + strlen(line), size - strlen(line), " [%.*s%s%*s]", (int)filled,
                 "========================================", filled < room ? ">" : "",
                 (int)(filled < room ? room - filled - 1 : 0), "");
}

/* The state of one call. The callbacks of sd-bus get it as userdata. */
typedef struct Waiting {
        const CtlStyle *style;
        const char *method;
        char phase[64]; /* "": unknown */
        Progress progress;
        uint64_t begin_usec;   /* CLOCK_MONOTONIC */
        bool drawn;            /* the terminal shows a line */
        sd_bus_message *reply; /* owned; NULL: not received yet */
} Waiting;

/* Draws the line, unless the phase is unknown or the quiet time lasts. The phase comes from the
 * agent, so control characters are replaced. */
static void draw(Waiting *waiting)
{
        char line[LINE_MAX];

        if (!waiting->phase[0] || clock_usec(CLOCK_MONOTONIC) - waiting->begin_usec < QUIET_USEC)
                return;
        waiting->progress.phase = waiting->phase;
        ctl_progress_format(waiting->method, &waiting->progress, waiting->style, line,
                            sizeof(line));
        text_sanitize(line, '?');
        fprintf(stderr, "\r\033[K%s", line);
        fflush(stderr);
        waiting->drawn = true;
}

static void erase(Waiting *waiting)
{
        if (waiting->drawn)
                fputs("\r\033[K", stderr);
        fflush(stderr);
}

/* Reads the name and value of one property. Properties other than the three of the progress are
 * skipped. */
static int read_property(sd_bus_message *m, Waiting *waiting)
{
        const char *name, *phase;
        int r = sd_bus_message_read(m, "s", &name);

        if (r < 0)
                return r;
        if (strcmp(name, "OperationDone") == 0)
                return sd_bus_message_read(m, "v", "t", &waiting->progress.n_done);
        if (strcmp(name, "OperationTotal") == 0)
                return sd_bus_message_read(m, "v", "t", &waiting->progress.n_total);
        if (strcmp(name, "OperationPhase") != 0)
                return sd_bus_message_skip(m, "v");
        r = sd_bus_message_read(m, "v", "s", &phase);
        if (r >= 0)
                snprintf(waiting->phase, sizeof(waiting->phase), "%s", phase);
        return r;
}

/* Reads an "a{sv}" and redraws the line. Reading ends at the first property that cannot be parsed:
 * it must not disturb the call. */
static void read_properties(sd_bus_message *m, Waiting *waiting)
{
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_property(m, waiting);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        draw(waiting);
}

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        const char *interface;

        if (sd_bus_message_read(m, "s", &interface) >= 0)
                read_properties(m, userdata);
        return 0;
}

/* Receives the reply to GetAll, the present progress. An operation that ran before has signalled
 * its phase before this process listened. */
static int on_properties(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        if (!sd_bus_message_is_method_error(m, NULL))
                read_properties(m, userdata);
        return 0;
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        ((Waiting *)userdata)->reply = sd_bus_message_ref(m);
        return 0;
}

/* Processes the bus until the reply arrives. When the quiet time ends, the last signal is drawn
 * without waiting for the next one, which can take long. */
static int wait_for_reply(sd_bus *bus, Waiting *waiting)
{
        while (!waiting->reply) {
                uint64_t spent_usec = clock_usec(CLOCK_MONOTONIC) - waiting->begin_usec;
                int r = sd_bus_process(bus, NULL);

                if (r == 0) {
                        r = sd_bus_wait(bus, spent_usec < QUIET_USEC ? QUIET_USEC - spent_usec
                                                                     : UINT64_MAX);
                        if (r == 0)
                                draw(waiting);
                }
                if (r < 0 && r != -EINTR)
                        return r;
        }
        return 0;
}

/* Returns the reply to the caller, or its error as sd_bus_call() does. Releases the reply on an
 * error. */
static int finish(Waiting *waiting, sd_bus_error *error, sd_bus_message **ret_reply)
{
        const sd_bus_error *refusal = sd_bus_message_get_error(waiting->reply);
        int r;

        if (!refusal) {
                *ret_reply = waiting->reply;
                return 1;
        }
        /* The result is the negative errno that belongs to the name of the error. */
        r = sd_bus_error_copy(error, refusal);
        sd_bus_message_unref(waiting->reply);
        return r < 0 ? r : -EIO;
}

int ctl_progress_call(sd_bus *bus, sd_bus_message *m, uint64_t timeout_usec, sd_bus_error *error,
                      sd_bus_message **ret_reply)
{
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *match = NULL, *slot = NULL, *properties = NULL;
        const CtlStyle style = ctl_style_detect(stderr);
        Waiting waiting = { .style = &style,
                            .method = sd_bus_message_get_member(m),
                            .begin_usec = clock_usec(CLOCK_MONOTONIC) };
        int r;

        if (!style.terminal || timeout_usec == 0)
                return sd_bus_call(bus, m, timeout_usec, error, ret_reply);
        r = sd_bus_match_signal(bus, &match, BUS_NAME, BUS_PATH, "org.freedesktop.DBus.Properties",
                                "PropertiesChanged", on_changed, &waiting);
        if (r >= 0)
                r = sd_bus_call_async(bus, &slot, m, on_reply, &waiting, timeout_usec);
        if (r >= 0)
                r = sd_bus_call_method_async(bus, &properties, BUS_NAME, BUS_PATH,
                                             "org.freedesktop.DBus.Properties", "GetAll",
                                             on_properties, &waiting, "s", BUS_INTERFACE);
        if (r >= 0)
                r = wait_for_reply(bus, &waiting);
        erase(&waiting);
        return r < 0 ? r : finish(&waiting, error, ret_reply);
}
