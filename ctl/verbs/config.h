/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The configuration files for "computectl cat-config" and "doctor", as the daemon would read them.
 * The daemon is not asked. */

#include "base/error.h"
#include "base/string-set.h"
#include "config/config.h"
#include "ctl/ask/unit.h"

/* Prints each file below its name. The values of secrets, and of options that the agent does not
 * know, are hidden (config.c has the exceptions). Returns 0, or a negative errno with words for a
 * file that cannot be found or read; the files before it are printed. config: a file instead of
 * those of the host, or NULL. */
int ctl_config_cat(const char *config, FILE *output, Error *reterr);

/* The state of the configuration before a start. */
typedef struct CtlConfigReport {
        Config *config;  /* NULL: it cannot be read; owned */
        Error error;     /* why a start would fail; code 0: no reason is known. A caller without
                            root can lack a right that the service has (EACCES). */
        Error unchecked; /* why the service's rights are unknown; code 0: they were checked, or
                            without root those of the caller */
        StringSet files; /* files that the service cannot read or write, in words */
        StringSet credentials; /* credentials that a restart would change, in words */
} CtlConfigReport;

/* Frees the members. */
void ctl_config_report_done(CtlConfigReport *report);

/* Reads the configuration, and checks with the rights of the service's user the files that a start
 * opens. Warnings of the configuration are in config->warnings. config: a file instead of those of
 * the host, or NULL. Such a file is read with the rights of the caller, and its other files with
 * those of the owner of its state folder if root asks. Credentials are then not compared. unit:
 * NULL: unknown. Returns -ENOMEM; other errors are in the report. The process must have only one
 * thread, because the check runs in a forked child. */
int ctl_config_examine(const char *config, const CtlUnit *unit, CtlConfigReport *ret,
                       Error *reterr);

/* Adds a sentence for each credential of the unit whose file differs from the copy of the service
 * on this host, or where one of the two is missing. Skips those that cannot be compared. Returns
 * -ENOMEM. */
int ctl_config_compare_credentials(const CtlUnit *unit, StringSet *ret);
