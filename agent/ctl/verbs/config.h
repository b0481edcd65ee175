/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl cat-config" and "check-config": the configuration files as the daemon would read
 * them. The daemon is not asked. */

#include "base/error.h"

/* Each file with its name above it; the values of secrets, and of options that the agent does not
 * know, are not shown. config: a file instead of the host's own, or NULL. */
int ctl_config_cat(const char *config, FILE *output, Error *reterr);

/* Reads all of it; warnings go to output, one per line. What the service has to read is looked at
 * by a child, with the service's rights (base/folder-owner.h). Errors of config_load(). ret_n_files
 * may be NULL. No other thread may run. */
int ctl_config_check(const char *config, FILE *output, size_t *ret_n_files, Error *reterr);
