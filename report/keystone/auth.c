/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/keystone/auth.h"

#include <string.h>

#include "base/secret.h"
#include "report/keystone/auth-engine.h"

/* None and admin_token: a header that never changes, or no header. */
typedef struct AuthFixed {
        Auth auth;
        char *header;
} AuthFixed;

static void fixed_free(Auth *auth)
{
        AuthFixed *fixed = (AuthFixed *)auth;

        secret_free(fixed->header);
        free(fixed);
}

static int fixed_get(Auth *auth, AuthPass *ret, Error *reterr)
{
        *ret = (AuthPass){ .header = ((AuthFixed *)auth)->header };
        return 0;
}

static const AuthOps fixed_ops = { .free = fixed_free, .get = fixed_get };

static int set_token(AuthFixed *fixed, const char *token, Error *reterr)
{
        if (!token || !*token)
                return error_setf(reterr, EINVAL,
                                  "auth_type = admin_token in [placement] needs token");
        for (const char *c = token; *c; c++)
                if (*c <= ' ' || *c >= 0x7f)
                        return error_setf(
                                reterr, EINVAL,
                                "token in [placement] holds a character that no token has (a blank, a line break?)");
        fixed->header = secret_join("X-Auth-Token: ", token);
        return fixed->header ? 0 : error_oom(reterr);
}

static int fixed_new(Auth **ret, const AuthConfig *config, Error *reterr)
{
        AuthFixed *fixed = calloc(1, sizeof(AuthFixed));
        _cleanup_(auth_freep) Auth *auth = (Auth *)fixed;
        int r;

        if (!fixed)
                return error_oom(reterr);
        auth->ops = &fixed_ops;
        if (config->kind == REPORTER_AUTH_ADMIN_TOKEN) {
                r = set_token(fixed, config->token, reterr);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(auth);
        return 0;
}

int auth_new(Auth **ret, sd_event *event, const AuthConfig *config, const HttpConfig *http,
             Error *reterr)
{
        switch (config->kind) {
        case REPORTER_AUTH_NONE:
        case REPORTER_AUTH_ADMIN_TOKEN:
                return fixed_new(ret, config, reterr);
        case REPORTER_AUTH_PASSWORD:
        case REPORTER_AUTH_V3APPLICATIONCREDENTIAL:
                return auth_keystone_new(ret, event, config, http, reterr);
        default:
                return error_setf(reterr, EINVAL, "auth_type in [placement] is unknown");
        }
}

Auth *auth_free(Auth *auth)
{
        if (auth)
                auth->ops->free(auth);
        return NULL;
}

void auth_set_listener(Auth *auth, AuthListener listener, void *userdata)
{
        auth->listener = listener;
        auth->userdata = userdata;
}

int auth_get(Auth *auth, AuthPass *ret, Error *reterr)
{
        return auth->ops->get(auth, ret, reterr);
}

bool auth_describe(const Auth *auth, AuthDescription *ret)
{
        return auth->ops->describe && auth->ops->describe(auth, ret);
}

void auth_note_accepted(Auth *auth, uint64_t serial)
{
        if (auth->ops->note_accepted)
                auth->ops->note_accepted(auth, serial);
}

bool auth_note_refused(Auth *auth, uint64_t serial, Error *reterr)
{
        return auth->ops->note_refused && auth->ops->note_refused(auth, serial, reterr);
}

void auth_doubt_endpoint(Auth *auth, uint64_t serial)
{
        if (auth->ops->doubt_endpoint)
                auth->ops->doubt_endpoint(auth, serial);
}

void auth_ask_at_once(Auth *auth)
{
        if (auth->ops->ask_at_once)
                auth->ops->ask_at_once(auth);
}
