/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The configuration: nova.conf's own sections, option names and syntax.
 *
 * One table (config/table.c) says for each option its type, default and what is allowed; it
 * is the only place. An unknown section or key is a warning with file and line, a bad value an
 * error with file, line, key and what is allowed. Other modules check no value again. Nothing is
 * read after config_load() returned.
 *
 * Names of sections and options are compared without regard to case. References to other options
 * ("$name") are replaced as oslo.config does it (config/settings.h). */

#include "base/error.h"
#include "base/placement-options.h"
#include "base/string-set.h"
#include "drivers/driver.h"

/* [agent] on_startup_failure */
typedef enum ConfigStartupFailure {
        CONFIG_STARTUP_DEGRADED, /* the old shape is served */
        CONFIG_STARTUP_EXIT,
        _CONFIG_STARTUP_FAILURE_MAX,
} ConfigStartupFailure;

/* [hook] when_agent_is_away */
typedef enum ConfigHookAway {
        CONFIG_HOOK_ALLOW, /* the guest starts, and gets its claim when the agent is back */
        CONFIG_HOOK_DENY,
        _CONFIG_HOOK_AWAY_MAX,
} ConfigHookAway;

/* [agent] claim_mode */
typedef enum ClaimMode {
        CLAIM_MODE_AUTO,   /* verify what was placed, else write; local while Placement is away */
        CLAIM_MODE_VERIFY, /* only what was placed */
        CLAIM_MODE_WRITE,  /* as auto, and nothing while Placement is away */
        _CLAIM_MODE_MAX,
} ClaimMode;

typedef struct Config {
        /* [DEFAULT] */
        char *state_path;           /* Nova's state folder; "/var/lib/nova" */
        char *claim_db;             /* "claim.sqlite", relative to state_dir */
        char *host;                 /* "" : the host's name */
        char *compute_driver;       /* "libvirt", "linux" or "static", as driver_new() has them */
        bool debug;                 /* only its part in log_level counts */
        int log_level;              /* [DEFAULT] debug = true, or [agent] log_level */
        uint64_t claim_expiry_usec; /* claim_expiry_time, seconds; 300; 0 never */
        uint64_t update_interval_usec; /* update_resources_interval, seconds; 0: the default of 60;
                                        * < 0 is taken as "no periodic poll" and stored as
                                        * UINT64_MAX */
        /* [compute] */
        char *provider_config_location; /* "/etc/nova/provider_config/", as Nova has it */
        /* [agent] */
        char *state_dir;                /* of the agent; default: the unit's StateDirectory= */
        uint64_t device_settle_usec;    /* device_settle_sec, seconds; 30 */
        uint64_t device_hold_usec;      /* device_hold_sec, seconds; 30 */
        uint64_t start_jitter_usec;     /* start_jitter_sec, seconds; 5 */
        char *metrics_file;             /* NULL: no metrics */
        uint64_t reshape_patience_usec; /* reshape_timeout, seconds; 300 */
        int on_startup_failure;         /* ConfigStartupFailure */
        uint64_t heal_cycles;           /* heal_each_cycles; 0: never */
        char **foreign_traits;
        int claim_mode; /* ClaimMode */
        /* [hook] */
        bool hook_enabled;
        uint64_t hook_timeout_usec; /* timeout, seconds; 10 */
        int hook_when_away;         /* ConfigHookAway */
        /* [libvirt], [static], [devices], [mdev_*], [pci]: in driver, all of it owned */
        char **device_specs;       /* [pci], as written; parsed ones are in driver.pci_specs */
        char **enabled_mdev_types; /* as written; those that count are in driver.mdev_types */
        DriverConfig driver;
        /* [placement] */
        char *auth_section;       /* where the options of authentication stand; NULL: here */
        bool has_placement;       /* the section is there: else the agent is standalone */
        char *placement_endpoint; /* endpoint_override, or endpoint; NULL when auth_type looks it up
                                   * in Keystone */
        char *placement_fallback; /* endpoint */
        char *placement_token;    /* token, or the credential "placement-token"; never logged */
        char *cafile, *certfile, *keyfile;
        KeystoneConfig keystone; /* secrets: or the credentials "placement-password" and
                                  * "placement-application-credential-secret" */
        ReporterConfig reporter; /* borrows from strings owned here */
        /* what was read */
        char **files;               /* in the order of reading, NULL-terminated */
        StringSet warnings;         /* each text that was worth a warning */
        StringSet credential_files; /* paths of credentials that were read without systemd's folder
                                     */
        size_t n_ignored;           /* options that belong to Nova or its libraries alone */
} Config;

/* Called for everything worth a warning: "FILE:LINE: unknown option [placement] foo, ignoring". The
 * text is borrowed for the call and holds no secret. */
typedef void (*ConfigWarning)(const char *text, void *userdata);

/* Reads file and the drop-ins file.d/NAME.conf; file NULL: the first
 * compute-agent/compute-agent.conf of /etc, /run and /usr/lib (and of the sysconfdir and libdir of
 * another prefix) with the drop-ins compute-agent.conf.d/NAME.conf of all of them, merged by file
 * name (the first folder wins; a link to /dev/null masks). No main file is no error: defaults
 * apply. A later file wins over an earlier one. Secrets come from $CREDENTIALS_DIRECTORY first, or,
 * without it, from files of the credentials' names in the folder of the configuration. -EINVAL with
 * words (exit code 78), -ENOENT when file was named and is not there, -EACCES, -ENOMEM. warning may
 * be NULL. Blocks on file reads. */
int config_load(Config **ret, const char *file, ConfigWarning warning, void *userdata,
                Error *reterr);

/* The same files, and of them [hook] alone: a guest that starts waits for it, and what is wrong
 * elsewhere is not its. All else of the Config is 0. */
int config_load_hook(Config **ret, const char *file, Error *reterr);

/* Replaces [placement] by a Placement behind a Unix socket that takes "admin" for a token. -ENOMEM.
 */
int config_set_direct(Config *config, const char *socket);

/* The files that config_load() would read, NULL-terminated; the caller frees with strings_free().
 */
int config_find_files(const char *file, ConfigWarning warning, void *userdata, char ***ret,
                      Error *reterr);
/* Has the structs of the siblings borrow what is in the strings now: after a change. */
void config_lend_strings(Config *config);

/* What [hook] says, in a word: "" (not enabled), "allow" or "deny". */
const char *config_hook_to_text(const Config *config);

Config *config_free(Config *config);
DEFINE_CLEANUP(Config *, config_free);
