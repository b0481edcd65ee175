/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* References in values, as oslo.config replaces them:
 *
 *   $name, ${name}    the option of that name in the same section, else in [DEFAULT]
 *   ${section.name}   the option of another section
 *   $$, \\$           a dollar sign
 *
 * The value of a referenced option has its own references replaced. An option that no file sets has
 * its default, if this agent knows the option. Other text after a dollar sign stays as it is. */

#include "config/settings.h"

/* Replaces the references in the values that count for an option of this agent. Other values are
 * replaced only where one of these refers to them. -EINVAL with words that name file, line and
 * option if a reference leads nowhere or in a circle, -ENOMEM. */
int config_expand(ConfigSettings *settings, Error *reterr);

/* Returns a copy of a default value with its references replaced; section: that of its option. The
 * caller frees. Errors as above. */
int config_expand_default(ConfigSettings *settings, const char *section, const char *text,
                          char **ret, Error *reterr);
