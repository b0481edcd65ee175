/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who we are, for Placement: the seam where Keystone will come in.
 *
 * The session asks for the headers of each request, and tells of a 401. Today's kinds know their
 * headers from the start. A token of Keystone's has to be fetched first and again after a 401;
 * auth_get_headers() will then return -EAGAIN and the session hold its requests until told. */

#include "base/error.h"

typedef enum ReporterAuth {
        REPORTER_AUTH_NONE,
        REPORTER_AUTH_ADMIN_TOKEN, /* X-Auth-Token: token */
        REPORTER_AUTH_PASSWORD,
        REPORTER_AUTH_V3APPLICATIONCREDENTIAL,
        _REPORTER_AUTH_MAX,
        _REPORTER_AUTH_INVALID = -EINVAL,
} ReporterAuth;

typedef struct Auth Auth;

/* The token is copied. -EOPNOTSUPP for the kinds that need Keystone, -EINVAL for a token that is
 * missing or cannot be a header (it is not quoted), -ENOMEM. */
int auth_new(Auth **ret, ReporterAuth kind, const char *token, Error *reterr);

/* Wipes the token. */
Auth *auth_free(Auth *auth);
DEFINE_CLEANUP(Auth *, auth_free);

/* One header line, borrowed, or NULL when the kind sends none. Never log it. */
const char *auth_get_header(const Auth *auth);
