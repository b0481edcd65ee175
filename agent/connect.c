/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/connect.h"

#include <string.h>
#include <time.h>

#include "agent/talk.h"
#include "base/json.h"

/* Allowed to nobody but who may read providers at all, and answered with little. */
#define PROBE_PATH "/resource_providers?uuid=00000000-0000-0000-0000-000000000000"

typedef struct Walk {
        Talk *talk;
        int result;
        Error error;
        uint64_t asked_usec, answered_usec; /* CLOCK_REALTIME, around the exchange */
} Walk;

static uint64_t realtime_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

/* The first request asks for the token; when there is none its failure is that of the token. */
static int walk_all(Walk *walk, Error *reterr)
{
        static const PlacementRequest request = {
                .method = "GET",
                .path = (char *)(uintptr_t)PROBE_PATH,
                .microversion = "1.14",
        };
        _cleanup_(talk_answer_done) TalkAnswer answer = { 0 };

        walk->asked_usec = realtime_usec();
        walk->result = talk_ask(walk->talk, &request, &answer, &walk->error);
        walk->answered_usec = realtime_usec();
        if (walk->result < 0 && reterr)
                *reterr = walk->error;
        return MIN(walk->result, 0);
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
        bool given = auth_describe(talk_get_auth(walk->talk), &token);

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
        Walk walk = { 0 };
        int r = talk_new(&walk.talk, &config->reporter, reterr);

        if (r == 0)
                r = walk_all(&walk, reterr);
        if (r == 0) {
                *ret = describe(&walk);
                r = *ret ? 0 : error_oom(reterr);
        }
        talk_free(walk.talk);
        return r;
}
