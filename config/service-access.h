/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Checks that the service's user can open the files that a start of the service opens.
 *
 * Root can read every file, so a check that root runs says nothing about the service. The checks
 * run in a child process that has the service's user and groups.
 *
 * Limits: the sandbox of the unit (ProtectHome=, PrivateTmp=) is not applied. Credentials that
 * systemd gives to the service (LoadCredential=) are the caller's to compare. */

#include <sys/types.h>

#include "config/config.h"

/* The user of the unit that the package installs. */
#define SERVICE_USER "compute-agent"

typedef struct ServiceRights {
        char *name; /* of the user, or its number; owned */
        uid_t user;
        gid_t *groups;   /* the first is the main group; owned */
        size_t n_groups; /* 0: the rights of the caller, with which only missing files are found */
} ServiceRights;

void service_rights_done(ServiceRights *rights);

/* Finds the user and its groups, and adds those of extra (NULL-terminated, or NULL), which are
 * SupplementaryGroups= of the unit. -ENOENT with words if there is no such user, -ENOMEM. Blocks on
 * the user database. */
int service_rights_find(ServiceRights *ret, const char *user, char *const extra[], Error *reterr);

/* The same for a user id. A user id without a name gets the group that is passed, alone. */
int service_rights_find_id(ServiceRights *ret, uid_t user, gid_t group, Error *reterr);

/* Opens the configuration files as config_load() finds them. 0: all can be read. Negative errno
 * with words that name the first that cannot. Blocks on the child. */
int service_access_check_config(const ServiceRights *rights, const char *file, Error *reterr);

/* Opens what the configuration names. The start fails without the state folder, its lock file, the
 * database and the credential_files of the configuration: negative errno with words. The service
 * runs without each other file, so that one is a warning. Blocks on the child. */
int service_access_check_rest(const ServiceRights *rights, const Config *config,
                              ConfigWarning warning, void *userdata, Error *reterr);
