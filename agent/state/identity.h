/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who this host is in Placement: the uuid of its root provider, kept in a file "compute_id" with
 * Nova's rules (facts A2).
 *
 * Searched in the folder of every configuration file that was read, then in state_dir; all copies
 * must agree. None: one is made, in state_dir only. It is synced to disk under another name and
 * then linked to its own, so that an existing one is never overwritten, nobody sees half of it, and
 * of two makers the second takes the first one's. */

#include "base/error.h"
#include "base/uuid.h"

/* config_files: as Config.files. -EINVAL with words (a file that is no uuid, files that differ:
 * both named), -EROFS, -EACCES, -ENOENT (no state folder) … with words that say what to do. Blocks
 * on the disk. ret_created may be NULL. */
int identity_load(const char *const *config_files, const char *state_dir, Uuid *ret,
                  bool *ret_created, Error *reterr);

/* Looks, and makes none: 1 when there is one (ret_path is the first file that has it, and the
 * caller's), 0 when there is none. Errors as above, -ENOMEM. */
int identity_find(const char *const *config_files, const char *state_dir, Uuid *ret,
                  char **ret_path, Error *reterr);

/* Gives this host another uuid, in state_dir alone: a file beside a configuration file is an
 * operator's (-EEXIST with words). An old one is replaced in one step. Errors as above. */
int identity_replace(const char *const *config_files, const char *state_dir, const Uuid *uuid,
                     Error *reterr);
