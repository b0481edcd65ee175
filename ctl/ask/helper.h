/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What computectl does without the service: runs computectl-helper, which polls the hypervisor
 * once, or talks with Placement. It is a program of its own, so that computectl itself need not
 * load libvirt and libcurl. */

#include <jansson.h>
#include <limits.h>

#include "base/error.h"

/* Where a program of ours is: beside this one (an uninstalled build), else where it is installed.
 */
void ctl_find_program(char path[static PATH_MAX], const char *name, const char *folder);

/* config: a configuration file, or NULL for the host's own. driver: NULL for the one that it names.
 * The document of drivers/host/snapshot.h. Blocks until the program has ended. -errno with words;
 * what the program had to say went to standard error. */
int ctl_poll(const char *config, const char *driver, json_t **ret, Error *reterr);

/* The same; what of the configuration does not fit the host, the document of drivers/verify.h. */
int ctl_poll_verify(const char *config, json_t **ret, Error *reterr);

/* The way over Keystone to Placement, as computectl-helper walks it: with the configuration, or
 * with a cloud of clouds.yaml (NULL: none) in the place of its [placement]. */
int ctl_poll_connect(const char *config, const char *cloud, json_t **ret, Error *reterr);

typedef struct CtlIdentityQuestion {
        const char *order; /* "show", "adopt", "rename" */
        const char *flags; /* "force", "dry-run", both or "" */
        const char *name;  /* of this host; "": not known */
        const char *cloud; /* of clouds.yaml; NULL: as configured */
        const char *config;
} CtlIdentityQuestion;

/* Who this host is for Placement: the document of IDENTITY_FORMAT. Blocks and fails as above. */
int ctl_poll_identity(const CtlIdentityQuestion *question, json_t **ret, Error *reterr);
