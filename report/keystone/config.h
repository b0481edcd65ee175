/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Checks the options of keystoneauth, under their names there: the user and the secret, the scope
 * of the token, and the choice of the endpoint in the catalogue. Pure. */

#include "base/error.h"
#include "base/placement-options.h"

static inline bool keystone_is_set(const char *text)
{
        return text && text[0] != '\0';
}

/* Checks whether a token can be requested with these options. -EINVAL with words; then *ret_option
 * (static) is the wrong option, or auth_type if one is missing. No value is quoted. Only secrets
 * are checked for UTF-8. */
int keystone_config_check(const KeystoneConfig *config, ReporterAuth kind, const char **ret_option,
                          Error *reterr);
