/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl migrate-inventory": what the service does at its start, while it does not run, and
 * then over: for upgrades with all services down (specification 4, "Offline Upgrade Script").
 *
 * With a folder for --direct, a Placement of its own is started for it: uwsgi with one process on a
 * Unix socket in a folder that only this user can enter, with Placement's configuration from there
 * and without Keystone. Only traffic to the database leaves the host. It ends with this program,
 * whatever happens to that. Blocks until all is done. */

#include "base/error.h"

typedef enum CtlMigrate {
        CTL_MIGRATE_DONE = 0,      /* also when there was nothing to do */
        CTL_MIGRATE_FAILED = 1,    /* not everything was done: compute-agentd said what */
        CTL_MIGRATE_RUNNING = 3,   /* the service runs */
        CTL_MIGRATE_PLACEMENT = 4, /* the private Placement did not start */
} CtlMigrate;

/* config and direct may be NULL. CtlMigrate with words in reterr unless 0, or a negative errno. */
int ctl_migrate(const char *config, const char *direct, Error *reterr);
