/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What Keystone answers to POST /v3/auth/tokens: a token with its catalogue, or a refusal. Pure.
 * Anything may come for an answer: HTML of a proxy, half of something, a catalogue of nonsense. */

#include "base/json.h"
#include "base/string-set.h"
#include "report/http/http.h"
#include "report/keystone/config.h"
#include "report/placement/outcome.h"

#define KEYSTONE_TOKEN_MAX 16384 /* bytes; Fernet tokens have some 200, JWS ones some 1000 */

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

/* The address of Placement in a catalogue ("catalog" of a token): by type, name and region, with
 * the first interface that is there. *ret is borrowed from catalog. -ENOENT or -EBADMSG with words.
 */
int keystone_catalog_find(const json_t *catalog, const KeystoneConfig *config, const char **ret,
                          Error *reterr);

/* "2026-11-21T02:33:42.000000Z" as time since the epoch. -EBADMSG. */
int keystone_read_time(const char *text, uint64_t *ret_usec);
