/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/connect.h"

#include <string.h>
#include <time.h>

#include "base/json.h"
#include "report/reporter.h"
#include "report/session.h"

/* Allowed to nobody but who may read providers at all, and answered with little. */
#define PROBE_PATH "/resource_providers?uuid=00000000-0000-0000-0000-000000000000"

typedef struct Walk {
        sd_event *event;
        Auth *auth; /* borrowed: the session's */
        Session *session;
        int result;
        Error error;
        uint64_t asked_usec, answered_usec; /* CLOCK_REALTIME, around the exchange */
} Walk;

static void walk_done(Walk *walk)
{
        session_free(walk->session);
        sd_event_unref(walk->event);
}

static uint64_t realtime_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        Walk *walk = userdata;

        walk->result = result;
        walk->error = *error;
        (void)sd_event_exit(walk->event, 0);
}

static int set_up(Walk *walk, const Config *config, Error *reterr)
{
        HttpConfig http;
        int r = sd_event_new(&walk->event);

        if (r < 0)
                return error_setf(reterr, r, "Cannot set up the event loop: %s", strerror(-r));
        r = reporter_make_auth(&config->reporter, walk->event, &walk->auth, reterr);
        if (r < 0)
                return r;
        reporter_make_http_config(&config->reporter, &http);
        return session_new(&walk->session, walk->event, &http, walk->auth, reterr);
}

/* The first request asks for the token; when there is none its failure is that of the token. */
static int walk_all(Walk *walk, Error *reterr)
{
        static const PlacementRequest request = {
                .method = "GET",
                .path = (char *)(uintptr_t)PROBE_PATH,
                .microversion = "1.14",
        };
        int r;

        walk->asked_usec = realtime_usec();
        r = session_send(walk->session, &request, on_answer, walk, NULL, reterr);
        if (r >= 0)
                r = sd_event_loop(walk->event);
        walk->answered_usec = realtime_usec();
        return r;
}

/* How far this host's clock is ahead of Keystone's, in whole seconds: Keystone rounds down. 0 where
 * it cannot be told apart from the time that the answer took. */
static int64_t clock_ahead_sec(const Walk *walk, uint64_t issued_usec)
{
        int64_t issued = (int64_t)(issued_usec / USEC_PER_SEC);
        int64_t asked = (int64_t)(walk->asked_usec / USEC_PER_SEC);
        int64_t answered = (int64_t)(walk->answered_usec / USEC_PER_SEC);

        if (issued_usec == 0 || (issued >= asked && issued <= answered))
                return 0;
        return issued < asked ? asked - issued : answered - issued;
}

/* Whose failure it was that came last: that of the token, when there is none. */
static json_t *describe(const Walk *walk)
{
        static const StringSet no_roles = STRING_SET_INIT;
        const char *words = walk->result != REPORT_DONE ? walk->error.text : "";
        const char *outcome = report_outcome_to_text(walk->result);
        AuthDescription token = { .scope = "", .roles = &no_roles };
        bool given = auth_describe(walk->auth, &token);

        return json_pack("{ss ss ss ss so ss sI ss ss}", "format", CONNECT_FORMAT, "error",
                         given ? "" : words, "outcome",
                         given ? report_outcome_to_text(REPORT_DONE) : outcome, "scope",
                         token.scope, "roles", string_set_to_json(token.roles), "endpoint",
                         token.endpoint ? token.endpoint : "", "clock_ahead_sec",
                         (json_int_t)clock_ahead_sec(walk, token.issued_usec), "placement_error",
                         given ? words : "", "placement_outcome", given ? outcome : "");
}

int connect_examine(const Config *config, json_t **ret, Error *reterr)
{
        _cleanup_(walk_done) Walk walk = { 0 };
        int r = set_up(&walk, config, reterr);

        if (r == 0)
                r = walk_all(&walk, reterr);
        if (r < 0)
                return r;
        *ret = describe(&walk);
        return *ret ? 0 : error_oom(reterr);
}
