/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The identity of this client for Placement, and the endpoint of Placement if it comes from
 * Keystone's catalogue.
 *
 * With auth_type none or admin_token everything is known at the start. Otherwise a token of
 * Keystone is fetched for the first request. A later request fetches another one if the token's end
 * is near, or if Placement rejected the token or was not at the endpoint of the catalogue. In a
 * pause after a failure no request does. The session gets the present pass for each request. While
 * a token is fetched, and none is valid or the endpoint is looked up again, the session holds its
 * requests until the listener is called. One token is fetched for all waiting requests.
 *
 * One thread, nothing blocks. */

#include <systemd/sd-event.h>

#include "base/error.h"
#include "base/placement-options.h"
#include "report/http/http.h"
#include "report/keystone/config.h"
#include "report/keystone/token.h"

/* The header and the endpoint for a request. Borrowed until the loop runs again, or until
 * auth_note_answer(), which can free them after 401. */
typedef struct AuthPass {
        const char *header;   /* a line, or NULL for no header; never log it */
        const char *endpoint; /* NULL: the configured endpoint */
        uint64_t serial;      /* increases with each new pass */
} AuthPass;

typedef struct Auth Auth;

/* Makes an identity. The HTTP configuration has the limits and TLS files for Keystone (borrowed
 * strings); its endpoint, service, max_connections and max_body_bytes are replaced. The listener is
 * called from the loop when an exchange with Keystone has ended, with a token or a failure. Returns
 * -EINVAL with words for an unusable configuration, without a quote of the token, -ENOMEM, or an
 * errno of sd-event. */
int auth_new(Auth **ret, sd_event *event, const AuthConfig *config, const HttpConfig *http,
             void (*listener)(void *userdata), void *userdata, Error *reterr);

/* Wipes the secrets. The listener is not called any more. */
Auth *auth_free(Auth *auth);
DEFINE_CLEANUP(Auth *, auth_free);

/* Returns 0 and the pass, or -EAGAIN: one is fetched, so wait for the listener. Otherwise returns
 * the last failure with words: a ReportOutcome (credential rejected, Keystone away) or a negative
 * errno. */
int auth_get(Auth *auth, AuthPass *ret, Error *reterr);

/* Returns the present token of Keystone for messages. NULL: there is no token, or no Keystone.
 * Borrowed like an AuthPass. */
const KeystoneToken *auth_get_token(const Auth *auth);

/* Notes the status of Placement's answer to a request with that pass. Status 0: Placement was not
 * at the endpoint of the pass. If the endpoint is from Keystone's catalogue, the next auth_get()
 * looks it up again, at most once a minute and not in a pause after a failure. After 401, true
 * means that the request must be sent again with the pass of the next auth_get(). False means that
 * the 401 is final; then reterr has words if more is known. Any other status proves the pass. With
 * Keystone, an answer to another pass than the present one changes nothing, and a 401 then returns
 * true. Without Keystone each 401 is final. */
bool auth_note_answer(Auth *auth, uint64_t serial, int status, Error *reterr);

/* Ends the pause after a failure, because an operator waits. The pause after Keystone rejected the
 * credential stays, because another rejection can lock the account. */
void auth_ask_at_once(Auth *auth);
