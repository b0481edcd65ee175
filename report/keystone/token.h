/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* POST /v3/auth/tokens: its request, and its answer, which is a token with its catalogue or a
 * refusal. Pure. Any text can come as an answer: HTML of a proxy, half of a document, a catalogue
 * of nonsense. */

#include "base/json.h"
#include "base/string-set.h"
#include "report/http/http.h"
#include "report/keystone/config.h"
#include "report/placement/outcome.h"

#define KEYSTONE_TOKENS_PATH "/auth/tokens"
#define KEYSTONE_TOKEN_MAX   16384 /* bytes; Fernet tokens have some 200, JWS ones some 1000 */

typedef struct KeystoneToken {
        char *header;           /* "X-Auth-Token: …"; never logged */
        char *endpoint;         /* of Placement, from the catalogue; NULL when not looked for */
        uint64_t lifetime_usec; /* from its making to its end, by Keystone's clock; UINT64_MAX: it
                                 * ends never */
        uint64_t issued_usec;   /* since the epoch, by Keystone's clock; 0: it does not say */
        StringSet roles;
        char scope[128]; /* "project service", "system": for words */
} KeystoneToken;

#define KEYSTONE_TOKEN_INIT ((KeystoneToken){ .roles = STRING_SET_INIT })

/* auth_url with "/v3" at its end, added when it is not there. That is what keystoneauth's v3
 * plugins do: a password goes where the operator wrote, never where an answer points to. -ENOMEM.
 */
int keystone_make_base_url(const char *auth_url, char **ret);

/* The body, which the caller frees with secret_free(). config has passed
 * keystone_config_check(). -ENOMEM. */
int keystone_make_token_request(const KeystoneConfig *config, ReporterAuth kind, char **ret);

/* Wipes the token. */
void keystone_token_done(KeystoneToken *token);

/* ret must be initialised. wants_endpoint: the catalogue has to have Placement. REPORT_DONE,
 * REPORT_E_UNAUTHORIZED (the credential is refused), REPORT_E_UNAVAILABLE (everything else) or
 * -ENOMEM, with words. */
int keystone_read_answer(const KeystoneConfig *config, ReporterAuth kind, bool wants_endpoint,
                         const HttpResponse *response, KeystoneToken *ret, Error *reterr);

/* Returns true if the answer to GET of the base URL shows that another server than Keystone is
 * there: it has no version document. An answer of an overloaded server (408, 429, 5xx) shows
 * nothing. */
bool keystone_is_elsewhere(const HttpResponse *response);
