/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who this host is in Placement: the uuid of its root provider, kept in a file "compute_id" with
 * Nova's rules (facts A2).
 *
 * Searched in the folder of every configuration file that was read, then in state_path; all copies
 * must agree. None: one is made, in state_path only. It is synced to disk under another name and
 * then linked to its own, so that an existing one is never overwritten, nobody sees half of it, and
 * of two makers the second takes the first one's. */

#include "base/error.h"
#include "base/uuid.h"

/* config_files: as Config.files. -EINVAL with words (a file that is no uuid, files that differ:
 * both named), -EROFS, -EACCES, -ENOENT (no state folder) … with words that say what to do. Blocks
 * on the disk. ret_created may be NULL. */
int identity_load(const char *const *config_files, const char *state_path, Uuid *ret,
                  bool *ret_created, Error *reterr);
