/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A session without authentication over the scripted HTTP of tests/fakes/http.h. */

#include "report/session/session.h"

#include "tests/fakes/http.h"
#include "tests/unit/test.h"

/* The answer of a Placement that is too old for the microversion. */
#define TOO_OLD "{'errors':[{'status':406,'detail':'','max_version':'1.30','min_version':'1.0'}]}"

static inline void fake_session_begin(sd_event **ret_event, Session **ret, uint64_t max_connections)
{
        const HttpConfig http = { .endpoint = "http://placement",
                                  .max_connections = max_connections };
        static const AuthConfig auth = { .kind = REPORTER_AUTH_NONE };

        assert_true(sd_event_new(ret_event) >= 0);
        assert_int_equal(session_new(ret, *ret_event, &http, &auth, NOVA_NONE, NULL), 0);
}

/* Frees both, after everything that used them. */
static inline void fake_session_end(sd_event *event, Session *session)
{
        session_free(session);
        sd_event_unref(event);
        fake_http_begin(NULL, "");
}
