/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds out whether this client may POST /reshaper, which takes another role than everything else
 * (facts E1). Placement looks at the role before it looks at the body: one with nothing in it is
 * refused with 403, or with 400 by a service that would do it. */

#include "report/session/session.h"

typedef enum ReshaperAccess {
        RESHAPER_UNKNOWN, /* not asked yet, or there was no clear answer */
        RESHAPER_ALLOWED,
        RESHAPER_FORBIDDEN,
} ReshaperAccess;

/* What any answer to POST /reshaper says of it. */
ReshaperAccess reshaper_access_of(const SessionAnswer *answer);

typedef struct ReshaperProbe ReshaperProbe;

/* Called once, never from inside reshaper_probe_new(); it may free the probe. */
typedef void (*ReshaperProbeDone)(ReshaperAccess access, void *userdata);

/* The session is borrowed and must outlive the probe. -ENOMEM. */
int reshaper_probe_new(ReshaperProbe **ret, Session *session, ReshaperProbeDone done,
                       void *userdata, Error *reterr);

/* Cancels what is under way. */
ReshaperProbe *reshaper_probe_free(ReshaperProbe *probe);
DEFINE_CLEANUP(ReshaperProbe *, reshaper_probe_free);
