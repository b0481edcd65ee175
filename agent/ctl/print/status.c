/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/status.h"

#include "agent/ctl/print/field.h"
#include "agent/ctl/print/json.h"
#include "agent/ctl/print/text.h"
#include "agent/formats/format-names.h"
#include "agent/formats/interface.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define INDENT      2 /* of the verdict */
#define LABEL_WIDTH 11

static bool has_text(const json_t *object, const char *key)
{
        return ctl_json_text(object, key)[0] != '\0';
}

uint64_t ctl_status_owed(const json_t *status)
{
        return ctl_json_u64(status, "n_owed_writes") + ctl_json_u64(status, "n_owed_removals") +
               ctl_json_u64(status, "n_owed_moves");
}

json_t *ctl_status_make_not_running(const char *why)
{
        return json_pack("{ss ss ss}", "format", STATUS_FORMAT, "state", "not-running", "summary",
                         why);
}

CtlStatusExit ctl_status_exit(const json_t *status)
{
        const char *state = ctl_json_text(status, "state");

        if (strcmp(state, "not-running") == 0)
                return CTL_STATUS_NOT_RUNNING;
        return strcmp(state, STATE_OK) == 0 ? CTL_STATUS_OK : CTL_STATUS_NOT_WELL;
}

CtlColour ctl_status_colour(const json_t *object)
{
        const char *state = ctl_json_text(object, "state");

        return strcmp(state, STATE_OK) == 0         ? CTL_GREEN
               : strcmp(state, STATE_DEGRADED) == 0 ? CTL_RED
                                                    : CTL_YELLOW;
}

static int print_field(const CtlStyle *style, FILE *output, CtlColour colour, const char *label,
                       const char *format, ...) _printf_(5, 6);
static int print_field(const CtlStyle *style, FILE *output, CtlColour colour, const char *label,
                       const char *format, ...)
{
        _cleanup_free_ char *text = NULL;
        va_list ap;

        va_start(ap, format);
        text = text_vformat(format, ap);
        va_end(ap);
        if (!text)
                return -ENOMEM;
        return ctl_field_print(style, LABEL_WIDTH, label, colour, text, output);
}

/* "synced; last published Mon 2025-01-06 12:00:00 UTC; 3min ago" */
static int print_timed_field(const CtlStyle *style, FILE *output, const char *label,
                             const char *state, const char *verb, const char *never, uint64_t usec)
{
        char time[CTL_TEXT_MAX], relative[CTL_TEXT_MAX];

        if (usec == 0)
                return print_field(style, output, CTL_PLAIN, label, "%s; %s", state, never);
        return print_field(style, output, CTL_PLAIN, label, "%s; %s %s; %s", state, verb,
                           ctl_text_time(time, usec),
                           ctl_text_relative(relative, usec, style->now_usec));
}

static int print_reasons(const json_t *status, const CtlStyle *style, FILE *output)
{
        const json_t *reason;
        size_t i;
        int r = 0;

        json_array_foreach(json_object_get(status, "reasons"), i, reason)
                if (r >= 0)
                        r = print_field(style, output, ctl_status_colour(reason),
                                        i == 0 ? "Reasons" : "", "%s; see \"%s\"",
                                        ctl_json_text(reason, "text"),
                                        ctl_json_text(reason, "command"));
        return r;
}

/* How long it has not been as it should. */
static int print_since(const json_t *status, const CtlStyle *style, FILE *output)
{
        uint64_t usec = ctl_json_u64(status, "sync_since_usec");
        char time[CTL_TEXT_MAX], relative[CTL_TEXT_MAX];

        if (usec == 0)
                return 0;
        return print_field(style, output, CTL_PLAIN, "", "since %s; %s", ctl_text_time(time, usec),
                           ctl_text_relative(relative, usec, style->now_usec));
}

static int print_parts(const json_t *status, const CtlStyle *style, FILE *output)
{
        bool driver_fails = has_text(status, "hypervisor_error");
        const char *sync_state = ctl_json_text(status, "sync_state");
        bool standalone = strcmp(sync_state, SYNC_STATE_STANDALONE) == 0;
        int r;

        if ((r = print_reasons(status, style, output)) < 0 ||
            (r = print_field(style, output, CTL_PLAIN, "Node", "%s",
                             has_text(status, "node") ? ctl_json_text(status, "node")
                                                      : "not known before the first poll")) < 0 ||
            (r = print_field(style, output, CTL_PLAIN, "Root", "%s",
                             ctl_json_text(status, "root"))) < 0 ||
            (r = print_timed_field(style, output, "Driver", ctl_json_text(status, "driver"),
                                   "last polled", "not polled yet",
                                   ctl_json_u64(status, "last_poll_usec"))) < 0)
                return r;
        if (driver_fails && ctl_json_u64(status, "last_poll_usec") > 0 &&
            (r = print_field(style, output, CTL_PLAIN, "",
                             "The last poll that ended well is kept")) < 0)
                return r;
        if (standalone)
                r = print_field(style, output, CTL_PLAIN, "Sync", "%s", sync_state);
        else
                r = print_timed_field(style, output, "Sync", sync_state, "last published",
                                      "not published since the start",
                                      ctl_json_u64(status, "last_sync_usec"));
        if (r >= 0 && strcmp(sync_state, SYNC_STATE_LEFT) == 0)
                return print_field(
                        style, output, CTL_PLAIN, "",
                        "[agent] nova is %s: %" PRIu64
                        " request(s) would make it equal to this host, see \"computectl plan\"",
                        ctl_json_text(status, "nova"), ctl_json_u64(status, "n_differences"));
        if (r >= 0 && !standalone && strcmp(sync_state, SYNC_STATE_SYNCED) != 0)
                r = print_since(status, style, output);
        if (r >= 0 && strcmp(ctl_json_text(status, "reshape_access"), RESHAPE_ACCESS_REFUSED) == 0)
                r = print_field(style, output, CTL_YELLOW, "",
                                "The user lacks the role service: it may not reshape");
        return r;
}

/* Nothing when nothing is owed. */
static int print_owed(const json_t *status, const CtlStyle *style, FILE *output)
{
        if (ctl_status_owed(status) == 0)
                return 0;
        return print_field(
                style, output, CTL_YELLOW, "Owed",
                "%" PRIu64 " to write to Placement, %" PRIu64 " to remove, %" PRIu64 " to move",
                ctl_json_u64(status, "n_owed_writes"), ctl_json_u64(status, "n_owed_removals"),
                ctl_json_u64(status, "n_owed_moves"));
}

static int print_figures(const json_t *status, const CtlStyle *style, FILE *output)
{
        int r;

        if ((r = print_field(style, output, CTL_PLAIN, "Providers", "%" PRIu64,
                             ctl_json_u64(status, "n_providers"))) < 0 ||
            (r = print_field(style, output, CTL_PLAIN, "Claims", "%" PRIu64,
                             ctl_json_u64(status, "n_claims"))) < 0 ||
            (r = print_owed(status, style, output)) < 0)
                return r;
        if (strcmp(ctl_json_text(status, "sync_state"), SYNC_STATE_STANDALONE) != 0 &&
            (r = print_field(style, output, CTL_PLAIN, "Placement",
                             "%" PRIu64 " requests, %" PRIu64 " writes, %" PRIu64 " conflicts",
                             ctl_json_u64(status, "n_requests"), ctl_json_u64(status, "n_writes"),
                             ctl_json_u64(status, "n_conflicts"))) < 0)
                return r;
        return print_field(style, output, CTL_PLAIN, "Version", "%s",
                           ctl_json_text(status, "version"));
}

/* "on HOST: SUMMARY", behind INDENT columns; broken where the terminal ends. */
static int print_running(const char *node, const char *summary, const CtlStyle *style,
                         CtlColour colour, FILE *output)
{
        _cleanup_free_ char *text =
                text_format("compute-agent%s%s: %s", node[0] ? " on " : "", node, summary);
        char *rest;

        if (!text)
                return -ENOMEM;
        if (style->width > 2 * INDENT)
                ctl_text_wrap(text, style->width - INDENT);
        rest = text + strlen(text) - strlen(summary);
        fprintf(output, "%s%s%s %.*s%*s", ctl_colour(style, colour), style->utf8 ? "●" : "*",
                ctl_colour_end(style), (int)(rest - text), text, rest[-1] == '\n' ? INDENT : 0, "");
        ctl_style_write(style, colour, rest, INDENT, output);
        return 0;
}

int ctl_status_print_verdict(const json_t *status, const CtlStyle *style, FILE *output)
{
        bool running = ctl_status_exit(status) != CTL_STATUS_NOT_RUNNING;
        _cleanup_free_ char *node = ctl_text_escape(ctl_json_text(status, "node"), style->utf8),
                            *summary =
                                    ctl_text_escape(ctl_json_text(status, "summary"), style->utf8);

        if (!node || !summary)
                return -ENOMEM;
        if (running)
                return print_running(node, summary, style, ctl_status_colour(status), output);
        fputs(style->utf8 ? "○ " : "* ", output);
        return ctl_rest_print(style, INDENT, CTL_PLAIN, ctl_json_text(status, "summary"), output);
}

int ctl_status_print(const json_t *status, const CtlStyle *style, FILE *output)
{
        int r = ctl_status_print_verdict(status, style, output);

        if (r < 0 || ctl_status_exit(status) == CTL_STATUS_NOT_RUNNING)
                return r;
        r = print_parts(status, style, output);
        return r < 0 ? r : print_figures(status, style, output);
}
