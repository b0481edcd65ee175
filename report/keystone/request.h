/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* POST /v3/auth/tokens: where to, and with what. Pure. */

#include "report/keystone/config.h"

#define KEYSTONE_TOKENS_PATH "/auth/tokens"

/* auth_url with "/v3" at its end, added when it is not there. That is what keystoneauth's v3
 * plugins do: a password goes where the operator wrote, never where an answer points to. -ENOMEM.
 */
int keystone_make_base_url(const char *auth_url, char **ret);

/* The body, which the caller frees with secret_free(). config has passed
 * keystone_config_check(). -ENOMEM. */
int keystone_make_token_request(const KeystoneConfig *config, ReporterAuth kind, char **ret);

/* "user nova" or "application credential 4711": for words. Borrows from config. */
void keystone_describe_user(const KeystoneConfig *config, ReporterAuth kind, const char **ret_kind,
                            const char **ret_name);
