/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl migrate-inventory": what the service does at its start, while it does not run, and
 * then over: for upgrades with all services down (specification 4, "Offline Upgrade Script").
 *
 * With a folder for --direct, a Placement of its own is started for it: uwsgi with one process on a
 * Unix socket in a folder that only this user can enter, with Placement's configuration from there
 * and without Keystone. Only traffic to the database leaves the host. It ends with this program,
 * whatever happens to that. Blocks until all is done.
 *
 * A node is a configuration: its file names the host, the root provider's identity and the folder
 * of its state. */

#include "base/error.h"

typedef enum CtlMigrate {
        CTL_MIGRATE_DONE = 0,      /* also when there was nothing to do */
        CTL_MIGRATE_FAILED = 1,    /* not everything was done: compute-agentd said what */
        CTL_MIGRATE_RUNNING = 3,   /* the service runs */
        CTL_MIGRATE_PLACEMENT = 4, /* the private Placement did not start */
} CtlMigrate;

/* configs: a file for each node, one after the other, ended by NULL; a first NULL stands for the
 * installed one. A node that fails keeps the others from nothing; the words are of the first that
 * did. direct may be NULL. CtlMigrate with words in reterr unless 0, or a negative errno. */
int ctl_migrate(const char *const *configs, const char *direct, Error *reterr);
