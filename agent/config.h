/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The configuration: nova.conf's own sections and option names, read with libini_config.
 *
 * One table (config.c) says for each option its type, default and what is allowed; it is the only
 * place. An unknown section or key is a warning with file and line, a bad value an error with file,
 * line, key and what is allowed. Values are checked here, so that nobody else has to. Nothing is
 * read after config_load() returned. */

#include "base/error.h"
#include "base/string-set.h"
#include "drivers/driver.h"
#include "report/reporter.h"

typedef struct Config {
        /* [DEFAULT] */
        char *state_path;              /* "/var/lib/compute-agent" */
        char *claim_db;                /* "claim.sqlite", relative to state_path */
        char *instances_path;          /* default "/var/lib/nova/instances", as Nova has it */
        char *host;                    /* "" : the host's name */
        char *compute_driver;          /* "libvirt" (also "libvirt.LibvirtDriver") or "static" */
        int log_level;                 /* [DEFAULT] debug = true, or [agent] log_level */
        uint64_t claim_expiry_usec;    /* claim_expiry_time, seconds; 300; 0 never */
        uint64_t update_interval_usec; /* update_resources_interval, seconds; 0: the default of 60;
                                        * < 0 is taken as "no periodic poll" and stored as
                                        * UINT64_MAX */
        /* [agent] */
        char *owner_trait; /* "OWNER_NOVA"; "" for none */
        /* [libvirt], [static], [devices], [mdev_*]: in driver, which borrows from strings owned
         * here */
        char *connection_uri;
        char *static_path;
        DriverConfig driver;
        /* [placement] */
        bool has_placement;       /* the section is there: else the agent is standalone */
        char *placement_endpoint; /* endpoint_override, or endpoint */
        char *placement_token;    /* token, or the credential "placement-token"; never logged */
        char *cafile, *certfile, *keyfile;
        ReporterConfig reporter; /* borrows from strings owned here */
        /* what was read */
        char **files; /* in the order of reading, NULL-terminated */
} Config;

/* Called for everything worth a warning: "FILE:LINE: unknown option [placement] foo, ignoring". */
typedef void (*ConfigWarning)(const char *text, void *userdata);

/* Reads file and the drop-ins file.d/NAME.conf; file NULL: the first
 * compute-agent/compute-agent.conf of /etc, /run and /usr/lib with the drop-ins
 * compute-agent.conf.d/NAME.conf of all three, merged by file name (the first folder wins; a link
 * to /dev/null masks). No main file is no error: defaults apply. A later file wins over an earlier
 * one. Secrets come from $CREDENTIALS_DIRECTORY first. -EINVAL with words (exit code 78), -ENOENT
 * when file was named and is not there, -EACCES, -ENOMEM. Blocks on file reads. */
int config_load(Config **ret, const char *file, ConfigWarning warning, void *userdata,
                Error *reterr);
Config *config_free(Config *config);
DEFINE_CLEANUP(Config *, config_free);
