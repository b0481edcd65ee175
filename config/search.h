/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which configuration files there are, in the order in which they are read. systemd's rules: the
 * first main file found, then the drop-ins of all folders by file name; of two of one name the one
 * in the first folder counts, and a link to /dev/null masks. */

#include "base/text.h"
#include "config/config.h"

/* With file: it (it must exist) and file.d/NAME.conf. Without: of each root (NULL-terminated,
 * "/etc" first) compute-agent/compute-agent.conf and compute-agent.conf.d/NAME.conf. ret_paths is
 * NULL-terminated and owned by the caller: strings_free(). -ENOENT when file is not there, -EACCES,
 * -ENOMEM, with words. */
int config_search(const char *const roots[], const char *file, ConfigWarning warning,
                  void *userdata, char ***ret_paths, Error *reterr);
