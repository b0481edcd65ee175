/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/helper/connect.h"

#include <string.h>

#include "agent/helper/talk.h"
#include "base/clock.h"
#include "base/json.h"
#include "formats/format-names.h"

/* Allowed to nobody but who may read providers at all, and answered with little. */
#define PROBE_PATH "/resource_providers?uuid=00000000-0000-0000-0000-000000000000"

typedef struct Walk {
        const ReporterConfig *config;
        Talk *talk;
        int result;
        Error error;
        uint64_t asked_usec, answered_usec; /* CLOCK_REALTIME, around the exchange */
        char microversion[16];              /* the newest that Placement speaks; "": unknown */
} Walk;

/* The first request asks for the token; when there is none its failure is that of the token. */
static int walk_all(Walk *walk, Error *reterr)
{
        PlacementRequest request = placement_request("GET", PROBE_PATH, "");
        _cleanup_(talk_answer_done) TalkAnswer answer = { 0 };

        request.microversion = "1.14";
        walk->asked_usec = clock_usec(CLOCK_REALTIME);
        walk->result = talk_ask(walk->talk, request, &answer, &walk->error);
        walk->answered_usec = clock_usec(CLOCK_REALTIME);
        if (walk->result < 0 && reterr)
                *reterr = walk->error;
        return MIN(walk->result, 0);
}

/* {"versions": [{"id": "v1.0", "min_version": "1.0", "max_version": "1.39", …}]} */
static void read_version(Walk *walk, const json_t *body)
{
        const json_t *versions = json_object_get(body, "versions"),
                     *newest = json_object_get(json_array_get(versions, 0), "max_version");

        if (json_is_string(newest))
                snprintf(walk->microversion, sizeof(walk->microversion), "%s",
                         json_string_value(newest));
}

static int walk_version(Walk *walk, Error *reterr)
{
        PlacementRequest request = placement_request("GET", "/", "");
        _cleanup_(talk_answer_done) TalkAnswer answer = { 0 };
        int r;

        request.microversion = "1.0";
        r = talk_ask(walk->talk, request, &answer, reterr);
        if (r == REPORT_DONE)
                read_version(walk, answer.body);
        return MIN(r, 0);
}

/* How far this host's clock is ahead of Keystone's, in whole seconds: Keystone rounds down. 0 where
 * it cannot be distinguished from the time that the answer took. */
static int64_t clock_ahead_sec(const Walk *walk, uint64_t issued_usec)
{
        int64_t issued = (int64_t)(issued_usec / USEC_PER_SEC);
        int64_t asked = (int64_t)(walk->asked_usec / USEC_PER_SEC);
        int64_t answered = (int64_t)(walk->answered_usec / USEC_PER_SEC);

        if (issued_usec == 0 || (issued >= asked && issued <= answered))
                return 0;
        return issued < asked ? asked - issued : answered - issued;
}

/* Whose failure it was that came last: that of the token, when there is none to be had. */
static json_t *describe(const Walk *walk)
{
        bool keystone = walk->config->auth.kind > REPORTER_AUTH_ADMIN_TOKEN;
        static const KeystoneToken none = { 0 };
        const char *words = walk->result != REPORT_DONE ? walk->error.text : "";
        const char *outcome = report_outcome_to_text(walk->result);
        const KeystoneToken *given_token = talk_get_token(walk->talk);
        const KeystoneToken *token = given_token ? given_token : &none;
        bool given = given_token || !keystone;
        const char *endpoint = token->endpoint ? token->endpoint : walk->config->http.endpoint;

        return json_pack("{ss sb ss ss ss so ss sI ss ss ss}", "format", CONNECT_FORMAT, "keystone",
                         keystone, "error", given ? "" : words, "outcome",
                         given ? report_outcome_to_text(REPORT_DONE) : outcome, "scope",
                         token->scope, "roles", string_set_to_json(&token->roles), "endpoint",
                         endpoint ? endpoint : "", "clock_ahead_sec",
                         (json_int_t)clock_ahead_sec(walk, token->issued_usec), "placement_error",
                         given ? words : "", "placement_outcome", given ? outcome : "",
                         "microversion", walk->microversion);
}

int connect_examine(const Config *config, json_t **ret, Error *reterr)
{
        Walk walk = { .config = &config->reporter };
        int r = talk_new(&walk.talk, &config->reporter, reterr);

        if (r == 0)
                r = walk_all(&walk, reterr);
        if (r == 0 && walk.result == REPORT_DONE)
                r = walk_version(&walk, reterr);
        if (r == 0) {
                *ret = describe(&walk);
                r = *ret ? 0 : error_oom(reterr);
        }
        talk_free(walk.talk);
        return r;
}
