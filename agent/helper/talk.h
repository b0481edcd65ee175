/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A conversation with Placement for a program that does one thing and ends: each request is waited
 * for. Never for the daemon. */

#include <jansson.h>

#include "report/reporter.h"
#include "report/session/session.h"

typedef struct Talk Talk;

typedef struct TalkAnswer {
        int status;            /* 0: there was none */
        json_t *body;          /* NULL: it has none */
        uint64_t modified_sec; /* since the epoch; 0: not known */
} TalkAnswer;

void talk_answer_done(TalkAnswer *answer);

/* config is borrowed. Does not connect. -EINVAL with words, -ENOMEM. */
int talk_new(Talk **ret, const ReporterConfig *config, Error *reterr);
Talk *talk_free(Talk *talk);
DEFINE_CLEANUP(Talk *, talk_free);

/* Takes the request over. Blocks until there is an answer, at most as long as the time-outs allow.
 * REPORT_DONE, a ReportOutcome with words, or a negative errno with words. ret, which must be
 * initialised, is the caller's to free whatever comes back. */
int talk_ask(Talk *talk, PlacementRequest request, TalkAnswer *ret, Error *reterr);

/* See auth_get_token(). */
const KeystoneToken *talk_get_token(const Talk *talk);
