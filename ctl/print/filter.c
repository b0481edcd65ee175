/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/filter.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "ctl/print/text.h"

static const char *const claim_states[] = { "claimed", "confirmed", "released", NULL };

/* The kinds of formats/event-json.h. */
static const char *const event_kinds[] = { "claimed",    "adopted",  "released",  "expired",
                                           "moved",      "reshaped", "healed",    "cordoned",
                                           "uncordoned", "retired",  "unretired", NULL };

static const struct {
        const char *name;
        uint64_t usec;
} units[] = {
        { "s", USEC_PER_SEC },
        { "sec", USEC_PER_SEC },
        { "min", 60 * USEC_PER_SEC },
        { "m", 60 * USEC_PER_SEC },
        { "h", 3600 * USEC_PER_SEC },
        { "d", 86400 * USEC_PER_SEC },
        { "day", 86400 * USEC_PER_SEC },
        { "days", 86400 * USEC_PER_SEC },
        { "w", 7 * 86400 * USEC_PER_SEC },
};

/* Parses "-2h" and "2h ago". */
static bool parse_span(const char *text, uint64_t *ret_usec)
{
        bool minus = text[0] == '-';
        char unit[8] = "", rest[8] = "", excess;
        unsigned n;
        int n_read;

        text += minus;
        if (!isdigit((unsigned char)text[0]) || strspn(text, "0123456789") > 9)
                return false;
        n_read = sscanf(text, "%9u %7[a-z] %7s %c", &n, unit, rest, &excess);
        if (minus ? n_read != 2 : n_read != 3 || strcmp(rest, "ago") != 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (strcmp(unit, units[i].name) == 0) {
                        *ret_usec = n * units[i].usec;
                        return true;
                }
        return false;
}

static bool parse_date(const char *text, struct tm *ret)
{
        static const char *const formats[] = { "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S" };

        for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
                const char *end;

                *ret = (struct tm){ 0 };
                end = strptime(text, formats[i], ret);
                if (end && !*end)
                        return true;
        }
        return false;
}

/* Returns the begin of the day that is so many days before now. */
static time_t find_midnight(uint64_t now_usec, int days)
{
        time_t now = (time_t)(now_usec / USEC_PER_SEC);
        struct tm tm;

        if (!localtime_r(&now, &tm))
                return -1;
        tm.tm_sec = tm.tm_min = tm.tm_hour = 0;
        tm.tm_mday -= days;
        tm.tm_isdst = -1;
        return mktime(&tm);
}

int ctl_filter_parse_time(const char *text, uint64_t now_usec, uint64_t *ret_usec, Error *reterr)
{
        uint64_t span_usec;
        struct tm tm;
        time_t time = -1;

        if (parse_span(text, &span_usec)) {
                *ret_usec = span_usec < now_usec ? now_usec - span_usec : 1;
                return 0;
        }
        if (strcmp(text, "today") == 0 || strcmp(text, "yesterday") == 0) {
                time = find_midnight(now_usec, text[0] == 'y');
        } else if (parse_date(text, &tm)) {
                tm.tm_isdst = -1;
                time = mktime(&tm);
        }
        if (time <= 0)
                return error_setf(
                        reterr, EINVAL,
                        "\"%.40s\" is no time; examples: \"2026-11-20 10:00\", today, yesterday, -2h",
                        text);
        *ret_usec = (uint64_t)time * USEC_PER_SEC;
        return 0;
}

int ctl_filter_check_state(const CtlFilter *filter, bool events, Error *reterr)
{
        const char *const *known = events ? event_kinds : claim_states;
        char names[256] = "";
        size_t n = 0;

        if (!filter->state)
                return 0;
        for (size_t i = 0; known[i]; i++) {
                if (strcmp(known[i], filter->state) == 0)
                        return 0;
                n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i > 0 ? ", " : "",
                                      known[i]);
        }
        return error_setf(reterr, EINVAL, "--state takes one of %s, not \"%.40s\"", names,
                          filter->state);
}

static bool is_named(const json_t *array, const char *const keys[], const char *what)
{
        const json_t *item;
        size_t i;

        json_array_foreach((json_t *)array, i, item)
                for (const char *const *key = keys; *key; key++)
                        if (what[0] && strcasecmp(ctl_json_text(item, *key), what) == 0)
                                return true;
        return false;
}

/* Checks an item that names devices and allocations, as claims and events do. */
static bool has_device(const json_t *item, const char *what)
{
        static const char *const of_device[] = { "device", "address", "mdev", NULL },
                                 *const of_allocation[] = { "name", "provider", NULL };

        return is_named(json_object_get(item, "devices"), of_device, what) ||
               is_named(json_object_get(item, "allocations"), of_allocation, what);
}

static bool is_of_guest(const json_t *item, const char *guest)
{
        Uuid uuid;

        if (strcmp(ctl_json_text(item, "guest"), guest) == 0)
                return true;
        return uuid_from_text(guest, &uuid) == 0 &&
               (strcmp(ctl_json_text(item, "consumer"), uuid.text) == 0 ||
                strcmp(ctl_json_text(item, "of"), uuid.text) == 0);
}

static bool passes(const CtlFilter *filter, const json_t *item, const char *state, uint64_t usec)
{
        return (!filter->guest || is_of_guest(item, filter->guest)) &&
               (!filter->device || has_device(item, filter->device)) &&
               (!filter->state || strcmp(ctl_json_text(item, state), filter->state) == 0) &&
               usec >= filter->since_usec;
}

void ctl_filter_claims(const CtlFilter *filter, json_t *document)
{
        json_t *claims = json_object_get(document, "claims");

        for (size_t i = json_array_size(claims); i-- > 0;) {
                const json_t *claim = json_array_get(claims, i);
                uint64_t usec =
                        MAX(ctl_json_u64(claim, "created_usec"), ctl_json_u64(claim, "ended_usec"));

                if (!passes(filter, claim, "state", usec))
                        (void)json_array_remove(claims, i);
        }
}

void ctl_filter_events(const CtlFilter *filter, json_t *document)
{
        json_t *events = json_object_get(document, "events");

        for (size_t i = json_array_size(events); i-- > 0;) {
                const json_t *event = json_array_get(events, i);

                if (!passes(filter, event, "event", ctl_json_u64(event, "usec")))
                        (void)json_array_remove(events, i);
        }
}
