/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who asks Keystone for a token, for what, and which endpoint of its catalogue is taken: the
 * options of keystoneauth, by their names there. Pure. */

#include "base/error.h"
#include "base/placement-options.h"

static inline bool keystone_is_set(const char *text)
{
        return text && text[0] != '\0';
}

/* Whether a token can be asked for at all. -EINVAL with words; *ret_option (static) is
 * the option that is wrong, or auth_type when one is missing. No value is quoted. */
int keystone_config_check(const KeystoneConfig *config, ReporterAuth kind, const char **ret_option,
                          Error *reterr);
