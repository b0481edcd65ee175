/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Checks that the service's user has the necessary rights to the files that a start of the service
 * uses.
 *
 * Root can read each file, so a check by root proves nothing for the service. The checks run in a
 * child process that has the user and groups of the service. The child is forked without exec, so
 * the caller must have only one thread.
 *
 * Limits: the sandbox of the unit (ProtectHome=, PrivateTmp=) and its Group= are not applied. The
 * caller compares the credentials that systemd gives to the service (LoadCredential=). */

#include <sys/types.h>

#include "config/config.h"

/* The user of the unit that the package installs. */
#define SERVICE_USER "compute-agent"

typedef struct ServiceRights {
        char *name; /* name of the user, or its number; owned */
        uid_t user;
        gid_t *groups;   /* the first is the main group; owned */
        size_t n_groups; /* 0: the rights of the caller, with which a file is reported only if it
                          * is missing */
} ServiceRights;

/* Frees the members. */
void service_rights_done(ServiceRights *rights);

/* Finds a user and its groups, and adds the groups of extra (NULL-terminated, or NULL), which are
 * SupplementaryGroups= of the unit. Unknown groups, and numbers of groups, are skipped. Returns
 * -ENOENT with words if no user with this name is found; a number is no name. Returns -EAGAIN if
 * the user gets more groups during the call, or -ENOMEM. The caller frees ret with
 * service_rights_done(). Blocks on the user database. */
int service_rights_find(ServiceRights *ret, const char *user, char *const extra[], Error *reterr);

/* Finds the rights of a user id. A user with a name gets the groups of the user database. A user id
 * without a name gets only group. Returns the errors of service_rights_find(). */
int service_rights_find_id(ServiceRights *ret, uid_t user, gid_t group, Error *reterr);

/* Opens the configuration files that config_load() would find. Returns 0 if all can be read, else a
 * negative errno with words that name the first failure. Blocks on the child. */
int service_access_check_config(const ServiceRights *rights, const char *file, Error *reterr);

/* Checks the state, credential_files, the files of TLS, [static] path, instances_path and *.yaml in
 * provider_config_location. Returns a negative errno with words if the service cannot write an
 * existing state folder, lock file or database, or cannot read one of credential_files, because a
 * start would fail. The service runs without each other file, so a failure there is a warning. A
 * missing state folder, provider_config_location or instances_path is no failure. Blocks on the
 * child. */
int service_access_check_rest(const ServiceRights *rights, const Config *config,
                              ConfigWarning warning, void *userdata, Error *reterr);
