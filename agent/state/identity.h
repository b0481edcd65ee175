/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The identity of this host in Placement: the uuid of its root provider, kept in a file
 * "compute_id" with Nova's rules (facts A2).
 *
 * The file is searched in the folder of every configuration file that was read, then in the state
 * folder; all copies must agree. If none of these has it, that of Nova's state folder counts. If
 * there is none at all, one is made, in the state folder. It is synced to disk under another name
 * and then linked to its own, so that an existing file is never overwritten, no reader sees half of
 * it, and of two makers the second takes the first one's. */

#include "base/error.h"
#include "base/uuid.h"
#include "config/config.h"

/* Where the file can be. Everything is borrowed. */
typedef struct IdentityPlaces {
        const char *const *config_files; /* as Config.files; NULL: none */
        const char *state_dir;           /* of the agent */
        const char *nova_dir;            /* of Nova; never written; NULL: none */
} IdentityPlaces;

/* Returns the places that a configuration names; borrowed from it. */
IdentityPlaces identity_places(const Config *config);

/* -EINVAL with words (a file that is no uuid, files that differ: both named), -EROFS, -EACCES,
 * -ENOENT (no state folder) … with words that say what to do. Blocks on the disk. ret_created may
 * be NULL. */
int identity_load(const IdentityPlaces *places, Uuid *ret, bool *ret_created, Error *reterr);

/* Looks, and makes none: 1 when there is one (ret_path is the first file that has it, and the
 * caller's), 0 when there is none. Errors as above, -ENOMEM. */
int identity_find(const IdentityPlaces *places, Uuid *ret, char **ret_path, Error *reterr);

/* Gives this host another uuid, in the state folder alone: a file in another folder belongs to the
 * operator or to Nova (-EEXIST with words). An old one is replaced in one step. Errors as above. */
int identity_replace(const IdentityPlaces *places, const Uuid *uuid, Error *reterr);
