/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/reshaper-probe.h"

struct ReshaperProbe {
        SessionCall *call;
        ReshaperProbeDone done;
        void *userdata;
};

ReshaperAccess reshaper_access_of(const SessionAnswer *answer)
{
        if (answer->status == 204)
                return RESHAPER_ALLOWED;
        if (!answer->verdict.from_placement)
                return answer->status == 403 ? RESHAPER_FORBIDDEN : RESHAPER_UNKNOWN;
        switch (answer->status) {
        case 400:
        case 409:
                return RESHAPER_ALLOWED;
        case 403:
        case 404: /* it has no reshaper, or not for the microversion asked for */
        case 406:
                return RESHAPER_FORBIDDEN;
        default:
                return RESHAPER_UNKNOWN;
        }
}

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        ReshaperProbe *probe = userdata;

        probe->call = NULL;
        /* The probe may be gone after this. */
        probe->done(reshaper_access_of(answer), probe->userdata);
}

int reshaper_probe_new(ReshaperProbe **ret, Session *session, ReshaperProbeDone done,
                       void *userdata, Error *reterr)
{
        _cleanup_(reshaper_probe_freep) ReshaperProbe *probe = calloc(1, sizeof(ReshaperProbe));
        int r;

        if (!probe)
                return error_oom(reterr);
        probe->done = done;
        probe->userdata = userdata;
        r = session_send(session, placement_probe_reshaper(), on_answer, probe, &probe->call,
                         reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(probe);
        return 0;
}

ReshaperProbe *reshaper_probe_free(ReshaperProbe *probe)
{
        if (!probe)
                return NULL;
        session_call_cancel(probe->call);
        free(probe);
        return NULL;
}
