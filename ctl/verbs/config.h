/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl cat-config" and "doctor": the configuration files as the daemon would read them. The
 * daemon is not asked. */

#include "base/error.h"
#include "base/string-set.h"
#include "config/config.h"
#include "ctl/ask/unit.h"

/* Each file with its name above it; the values of secrets, and of options that the agent does not
 * know, are not shown. config: a file instead of the host's own, or NULL. */
int ctl_config_cat(const char *config, FILE *output, Error *reterr);

/* The state of the configuration before a start. */
typedef struct CtlConfigReport {
        Config *config;        /* NULL: it cannot be read; owned */
        Error error;           /* why a start would fail; code 0: nothing is known */
        Error unchecked;       /* why the service's rights were not checked; code 0: they were */
        StringSet files;       /* files that the service cannot read or write, in words */
        StringSet credentials; /* credentials that a restart would change, in words */
} CtlConfigReport;

void ctl_config_report_done(CtlConfigReport *report);

/* Reads the configuration and opens, with the rights of the service's user, the files that a start
 * opens. Warnings of the configuration are in config->warnings. config: a file instead of the
 * host's own, or NULL; such a file is read with the caller's rights, and the other files with those
 * of the owner of its state folder. unit: NULL: not known. -ENOMEM. No other thread may run. */
int ctl_config_examine(const char *config, const CtlUnit *unit, CtlConfigReport *ret,
                       Error *reterr);

/* Returns by name how each credential of the unit differs from the copy that the service has.
 * -ENOMEM. */
int ctl_config_compare_credentials(const CtlUnit *unit, StringSet *ret);
