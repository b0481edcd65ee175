/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The request POST /v3/auth/tokens and its answer: a token with its catalogue, or a failure. Pure.
 * The answer can be any text: HTML of a proxy, half of a document, a wrong catalogue. */

#include "base/json.h"
#include "base/string-set.h"
#include "report/http/http.h"
#include "report/keystone/config.h"
#include "report/placement/outcome.h"

#define KEYSTONE_TOKENS_PATH "/auth/tokens"
#define KEYSTONE_TOKEN_MAX   16384 /* in bytes; Fernet: about 200, JWS: about 1000 */

typedef struct KeystoneToken {
        char *header;   /* "X-Auth-Token: …"; never logged */
        char *endpoint; /* endpoint of Placement, from the catalogue; NULL if it was not requested
                         */
        uint64_t lifetime_usec; /* from issue to end, by Keystone's clock; UINT64_MAX: without an
                                 * end */
        uint64_t issued_usec;   /* since the epoch, by Keystone's clock; 0: unknown */
        StringSet roles;
        char scope[128]; /* for messages, for example "project service" or "system" */
} KeystoneToken;

#define KEYSTONE_TOKEN_INIT ((KeystoneToken){ .roles = STRING_SET_INIT })

/* Makes the base URL: auth_url with "/v3" at its end, which is added if needed. keystoneauth's v3
 * plugins do the same: a password is sent to the address that the operator wrote, never to one from
 * an answer. The caller frees it. -ENOMEM. */
int keystone_make_base_url(const char *auth_url, char **ret);

/* Makes the body, which the caller frees with secret_free(). config has passed
 * keystone_config_check(). -ENOMEM, also if a text is not UTF-8. */
int keystone_make_token_request(const KeystoneConfig *config, ReporterAuth kind, char **ret);

/* Wipes the token. */
void keystone_token_done(KeystoneToken *token);

/* Reads an answer into ret, which must be initialised and is replaced only on REPORT_DONE.
 * wants_endpoint: the catalogue must have Placement. REPORT_DONE, REPORT_E_UNAUTHORIZED (401 or
 * 403: the credential is rejected), REPORT_E_UNAVAILABLE (every other failure) or -ENOMEM, with
 * words. */
int keystone_read_answer(const KeystoneConfig *config, ReporterAuth kind, bool wants_endpoint,
                         const HttpResponse *response, KeystoneToken *ret, Error *reterr);
