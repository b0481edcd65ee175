/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the configuration files in the order in which they are read, by the rules of systemd. The
 * first main file comes first, then the drop-ins of all folders by file name. If two have the same
 * name, the one of the first folder counts. A link to /dev/null masks a name. A drop-in whose name
 * begins with a dot is skipped. */

#include "base/text.h"
#include "config/config.h"

/* With a file: finds it (it must exist) and file.d/NAME.conf. Without: finds
 * compute-agent/compute-agent.conf and compute-agent.conf.d/NAME.conf of each root
 * (NULL-terminated, in the order of precedence; NULL: the folders that config_load() names).
 * *ret_paths is NULL-terminated, and the caller frees it with strings_free(). A named file that is
 * /dev/null is left out, but its drop-ins count. Returns -ENOENT if file does not exist, -EACCES or
 * another errno of stat() or of reading a folder, or -ENOMEM, with words. Blocks on the disk. */
int config_search(const char *const roots[], const char *file, ConfigWarning warning,
                  void *userdata, char ***ret_paths, Error *reterr);

/* Finds the files whose names end with ending (".yaml") in folders (NULL-terminated), by the same
 * rules: sorted by name, the first folder counts, a link to /dev/null masks a name. Missing folders
 * are ignored. *ret_paths as above. Returns -EACCES or another errno of reading a folder, or
 * -ENOMEM, with words. */
int config_search_folders(const char *const folders[], const char *ending, ConfigWarning warning,
                          void *userdata, char ***ret_paths, Error *reterr);
