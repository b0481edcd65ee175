/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an engine of auth.h fills in. */

#include "report/keystone/auth.h"

typedef struct AuthOps {
        void (*free)(Auth *auth);
        int (*get)(Auth *auth, AuthPass *ret, Error *reterr);
        /* NULL: nothing is learned from it */
        void (*note_accepted)(Auth *auth, uint64_t serial);
        bool (*note_refused)(Auth *auth, uint64_t serial, Error *reterr);
        void (*doubt_endpoint)(Auth *auth, uint64_t serial);
        void (*ask_at_once)(Auth *auth);
        bool (*describe)(const Auth *auth, AuthDescription *ret);
} AuthOps;

/* The first member of each engine. */
struct Auth {
        const AuthOps *ops;
        AuthListener listener;
        void *userdata;
};

int auth_keystone_new(Auth **ret, sd_event *event, const AuthConfig *config, const HttpConfig *http,
                      Error *reterr);
