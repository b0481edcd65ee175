/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/helper/talk.h"

#include <string.h>

struct Talk {
        sd_event *event;
        Session *session;
        bool answered;
        int result;
        TalkAnswer *answer;
        Error error;
};

void talk_answer_done(TalkAnswer *answer)
{
        json_decref(answer->body);
        *answer = (TalkAnswer){ 0 };
}

Talk *talk_free(Talk *talk)
{
        if (!talk)
                return NULL;
        session_free(talk->session);
        sd_event_unref(talk->event);
        free(talk);
        return NULL;
}

int talk_new(Talk **ret, const ReporterConfig *config, Error *reterr)
{
        _cleanup_(talk_freep) Talk *talk = calloc(1, sizeof(Talk));
        int r;

        if (!talk)
                return error_oom(reterr);
        r = sd_event_new(&talk->event);
        if (r < 0)
                return error_setf(reterr, r, "Cannot set up the event loop: %s", strerror(-r));
        r = session_new(&talk->session, talk->event, &config->http, &config->auth, config->nova,
                        reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(talk);
        return 0;
}

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        Talk *talk = userdata;

        talk->answered = true;
        talk->result = result;
        talk->error = *error;
        /* what is counted is not the value */
        *talk->answer = (TalkAnswer){
                .status = answer->status,
                .body = json_incref((json_t *)(uintptr_t)answer->body),
                .modified_sec = answer->modified_sec,
        };
}

int talk_ask(Talk *talk, PlacementRequest request, TalkAnswer *ret, Error *reterr)
{
        int r;

        talk->answered = false;
        talk->answer = ret;
        r = session_send(talk->session, request, on_answer, talk, NULL, reterr);
        while (r >= 0 && !talk->answered) {
                r = sd_event_run(talk->event, UINT64_MAX);
                if (r < 0)
                        error_setf(reterr, r, "The event loop failed: %s", strerror(-r));
        }
        if (r < 0)
                return r;
        if (talk->result != REPORT_DONE && reterr)
                *reterr = talk->error;
        return talk->result;
}

const KeystoneToken *talk_get_token(const Talk *talk)
{
        return session_get_token(talk->session);
}
