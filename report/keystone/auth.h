/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The identity of this client for Placement, and the endpoint of Placement if Keystone has it.
 *
 * With auth_type none or admin_token all is known from the start. A token of Keystone is fetched
 * first, again before it ends, and again when Placement rejects it. The session takes the present
 * pass for each request. While there is none, it holds its requests until the listener is called:
 * one token is fetched, however many requests wait.
 *
 * One thread, nothing blocks. */

#include <systemd/sd-event.h>

#include "base/error.h"
#include "base/placement-options.h"
#include "report/http/http.h"
#include "report/keystone/config.h"
#include "report/keystone/token.h"

/* Borrowed until the loop runs again. */
typedef struct AuthPass {
        const char *header;   /* a line, or NULL when none is sent; never log it */
        const char *endpoint; /* NULL: as configured */
        uint64_t serial;      /* increases with each new pass */
} AuthPass;

typedef struct Auth Auth;

/* http: the limits and TLS files for Keystone, borrowed strings; its endpoint is ignored. listener
 * is called from the loop when auth_get() will return something else than -EAGAIN. -EINVAL with
 * words for a configuration that cannot work (a token that is missing or cannot be a header is not
 * quoted), -ENOMEM. */
int auth_new(Auth **ret, sd_event *event, const AuthConfig *config, const HttpConfig *http,
             void (*listener)(void *userdata), void *userdata, Error *reterr);

/* Wipes what is secret. The listener is not called any more. */
Auth *auth_free(Auth *auth);
DEFINE_CLEANUP(Auth *, auth_free);

/* Returns 0 and the pass; -EAGAIN: one is being fetched, wait for the listener; a ReportOutcome
 * with words if there is none (credential refused, Keystone away); -ENOMEM. */
int auth_get(Auth *auth, AuthPass *ret, Error *reterr);

/* Returns the present token of Keystone, for messages. NULL: there is none, or no Keystone.
 * Borrowed until the loop runs again. */
const KeystoneToken *auth_get_token(const Auth *auth);

/* Learns from the status of Placement's answer to a request with that pass. 0: Placement was not
 * where the pass says, so the next auth_get() looks it up again, at most once a minute. After 401,
 * true: a new pass is worth a second attempt; false: the 401 is final, and reterr has words when
 * more is known than that. Any other status proves the pass. An answer to another pass than the
 * present one changes nothing. */
bool auth_note_answer(Auth *auth, uint64_t serial, int status, Error *reterr);

/* Ends the pause after a failure, because an operator waits. Not after Keystone refused the
 * credential, because another refusal can lock the account. */
void auth_ask_at_once(Auth *auth);
