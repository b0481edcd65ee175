/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/auth.h"

#include <string.h>

struct Auth {
        char *header;
};

static int set_token(Auth *auth, const char *token, Error *reterr)
{
        if (!token || !*token)
                return error_setf(reterr, EINVAL,
                                  "auth_type = admin_token in [placement] needs token");
        for (const char *c = token; *c; c++)
                if (*c <= ' ' || *c >= 0x7f)
                        return error_setf(reterr, EINVAL,
                                          "token in [placement] holds a character that no token "
                                          "has (a blank, a line break?)");
        if (asprintf(&auth->header, "X-Auth-Token: %s", token) < 0) {
                auth->header = NULL;
                return error_oom(reterr);
        }
        return 0;
}

int auth_new(Auth **ret, ReporterAuth kind, const char *token, Error *reterr)
{
        _cleanup_(auth_freep) Auth *auth = calloc(1, sizeof(Auth));
        int r;

        if (!auth)
                return error_oom(reterr);
        switch (kind) {
        case REPORTER_AUTH_NONE:
                break;
        case REPORTER_AUTH_ADMIN_TOKEN:
                r = set_token(auth, token, reterr);
                if (r < 0)
                        return r;
                break;
        case REPORTER_AUTH_PASSWORD:
        case REPORTER_AUTH_V3APPLICATIONCREDENTIAL:
                return error_setf(reterr, EOPNOTSUPP,
                                  "auth_type = %s in [placement] is not supported yet: use none or "
                                  "admin_token",
                                  kind == REPORTER_AUTH_PASSWORD ? "password"
                                                                 : "v3applicationcredential");
        default:
                return error_setf(reterr, EINVAL, "auth_type in [placement] is unknown");
        }
        *ret = TAKE_PTR(auth);
        return 0;
}

Auth *auth_free(Auth *auth)
{
        if (!auth)
                return NULL;
        if (auth->header)
                explicit_bzero(auth->header, strlen(auth->header));
        free(auth->header);
        free(auth);
        return NULL;
}

const char *auth_get_header(const Auth *auth)
{
        return auth->header;
}
