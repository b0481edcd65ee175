/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who we are, for Placement, and where Placement is when Keystone knows it.
 *
 * Where auth_type is none or admin_token, all is known from the start. Keystone's token has to be
 * fetched first, again before it ends, and again when Placement refuses it. Whoever sends asks for
 * the pass of that moment. While there is none, requests are held back and asked for again when the
 * listener is called: however many wait, one token is asked for.
 *
 * One thread, nothing blocks. */

#include <systemd/sd-event.h>

#include "base/error.h"
#include "base/placement-options.h"
#include "report/http/http.h"
#include "report/keystone/answer.h"
#include "report/keystone/config.h"

/* Borrowed until the loop runs again. */
typedef struct AuthPass {
        const char *header;   /* a line, or NULL when none is sent; never log it */
        const char *endpoint; /* NULL: as configured */
        uint64_t serial;      /* of this pass: goes up with each new one */
} AuthPass;

typedef struct Auth Auth;
typedef void (*AuthListener)(void *userdata);

/* http: the limits and TLS files for Keystone, borrowed strings; its endpoint is not looked at.
 * -EINVAL with words for a configuration that cannot work (a token that is missing or cannot be a
 * header is not quoted), -ENOMEM. */
int auth_new(Auth **ret, sd_event *event, const AuthConfig *config, const HttpConfig *http,
             Error *reterr);

/* Wipes what is secret. The listener is not called any more. */
Auth *auth_free(Auth *auth);
DEFINE_CLEANUP(Auth *, auth_free);

/* Called from the loop when auth_get() will answer something else than -EAGAIN. */
void auth_set_listener(Auth *auth, AuthListener listener, void *userdata);

/* 0 and the pass; -EAGAIN: one is being fetched, wait for the listener; a ReportOutcome with words
 * when there is none (credential refused, Keystone away); -ENOMEM. */
int auth_get(Auth *auth, AuthPass *ret, Error *reterr);

/* The present token of Keystone's: for words. NULL when there is none, or no Keystone. Borrowed
 * until the loop runs again. */
const KeystoneToken *auth_get_token(const Auth *auth);

/* Placement took the pass, or answered it with 401. True: a new one is worth asking for; false:
 * the 401 is final, and reterr has words when more is known than that. What is said of another pass
 * than the present one changes nothing. */
void auth_note_accepted(Auth *auth, uint64_t serial);
bool auth_note_refused(Auth *auth, uint64_t serial, Error *reterr);

/* Placement was not there where the pass says: the next auth_get() looks again, at most once a
 * minute. */
void auth_doubt_endpoint(Auth *auth, uint64_t serial);

/* A person wants it: the next auth_get() asks for a token although the pause after a failure is not
 * over, unless Keystone refused the credential, which counts towards the lock of an account. */
void auth_ask_at_once(Auth *auth);
