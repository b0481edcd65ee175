/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The identity of this host in Placement: the uuid of its root provider. A file "compute_id" keeps
 * this uuid, by Nova's rules (facts A2).
 *
 * The file is searched in the folder of every configuration file that was read, then in the state
 * folder. All these copies must agree. If none of these folders has it, the file of Nova's state
 * folder counts. If there is none at all, identity_load() creates one in the state folder. The new
 * file is synced to disk under another name and then linked to its own. So the creation never
 * overwrites an existing file, and no reader finds half of one. If two processes create it with
 * identity_load(), the second one takes the uuid of the first. Only identity_replace() replaces a
 * file. */

#include "base/error.h"
#include "base/uuid.h"
#include "config/config.h"

/* The folders that can have the file are those of config->files (NULL: none), config->state_dir,
 * and Nova's config->state_path, which is never written (NULL: none). */

/* Returns the uuid of this host, and creates the file if there is none. Fails with words, in most
 * cases with an advice. Examples: -EINVAL for a file without uuid and for files that differ (with
 * both names), -EROFS, -EACCES, -ENOENT (no state folder). Blocks on the disk. ret_created can be
 * NULL. */
int identity_load(const Config *config, Uuid *ret, bool *ret_created, Error *reterr);

/* Finds the file without creating one. Returns 1 if there is one, with its path in *ret_path (owned
 * by the caller), or 0. If several folders have it, the path is that of the first one. Errors are
 * those of identity_load(), and -ENOMEM. */
int identity_find(const Config *config, Uuid *ret, char **ret_path, Error *reterr);

/* Writes this uuid as the uuid of this host, only in the state folder. If the first file of the
 * search is in another folder, it belongs to the operator or to Nova, and the result is -EEXIST
 * with words. Likewise if another process has just created the file. An old file is replaced in one
 * step. Other errors are those of identity_load(). dry_run: writes nothing, and does not check
 * whether the state folder can be written. */
int identity_replace(const Config *config, const Uuid *uuid, bool dry_run, Error *reterr);
