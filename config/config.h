/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The configuration, with the sections, option names and syntax of nova.conf.
 *
 * One table (config/table.c) is the only place that defines each option: its type, its default and
 * its allowed values. A section that neither the agent nor Nova defines is a warning with file and
 * line, except [placement] auth_section. So is such a key in a section that the agent reads. A bad
 * value of an option that counts is an error, which names file, line and key, or the file of a
 * credential. Other modules check no value again. No configuration file is read after config_load()
 * has returned, except by another load.
 *
 * Names of sections and options match in letters of either case. References to other options
 * ("$name") are replaced as oslo.config does (config/settings.h). */

#include "base/error.h"
#include "base/placement-options.h"
#include "base/string-set.h"
#include "drivers/driver.h"

/* [agent] claim_mode */
typedef enum ClaimMode {
        CLAIM_MODE_AUTO,   /* a claim takes the allocations of a scheduler, else the agent writes
                              them; while Placement is away it claims locally */
        CLAIM_MODE_VERIFY, /* a claim needs the allocations of a scheduler */
        CLAIM_MODE_WRITE,  /* as auto, but rejects claims while Placement is away */
        _CLAIM_MODE_MAX,
} ClaimMode;

typedef struct Config {
        /* [DEFAULT] */
        char *state_path;     /* Nova's state folder; "/var/lib/nova" */
        char *claim_db;       /* "claim.sqlite", relative to state_dir */
        char *host;           /* "": the hostname */
        char *compute_driver; /* "libvirt", "linux" or "static", for driver_new() */
        bool debug;           /* used only for log_level */
        int log_level; /* [agent] log_level, else LOG_DEBUG if debug is true; as in syslog(3) */
        uint64_t claim_expiry_usec;    /* claim_expiry_time, seconds; 300; 0 never */
        uint64_t update_interval_usec; /* update_resources_interval, seconds; 0: the default of 60
                                          s; below 0: no periodic poll, stored as UINT64_MAX */
        /* [compute] */
        char *provider_config_location; /* "/etc/nova/provider_config/", as Nova has it */
        /* [agent] */
        char *state_dir;             /* folder of the agent; default: StateDirectory= of the unit */
        uint64_t device_settle_usec; /* device_settle_sec, seconds; 30 */
        uint64_t device_hold_usec;   /* device_hold_sec, seconds; 30 */
        uint64_t quiet_max_usec;     /* quiet_interval_max_sec, seconds; 240; 0: not used */
        uint64_t start_jitter_usec;  /* start_jitter_sec, seconds; 5 */
        char *metrics_file;          /* NULL: no metrics */
        uint64_t reshape_patience_usec; /* reshape_timeout, seconds; 300 */
        enum {
                CONFIG_STARTUP_DEGRADED, /* keep the old shape */
                CONFIG_STARTUP_EXIT,     /* end the service */
        } on_startup_failure;
        uint64_t heal_cycles; /* heal_each_cycles; 0: never */
        char **foreign_traits;
        int claim_mode; /* ClaimMode */
        /* [hook] */
        bool hook_enabled;
        uint64_t hook_timeout_usec; /* timeout, seconds; 10 */
        enum {
                CONFIG_HOOK_ALLOW, /* the guest starts; its claim follows when the agent runs */
                CONFIG_HOOK_DENY,  /* the guest does not start */
        } hook_when_away;          /* when_agent_is_away */
        const char *hook; /* all of it in one word: "" (not enabled), "allow" or "deny"; static;
                             NULL from config_load_hook() */
        /* [libvirt], [static], [devices], [mdev_*], [pci]: all in driver, whose members this struct
         * frees */
        char **device_specs;       /* [pci], as in the file; parsed in driver.host.pci_specs */
        char **enabled_mdev_types; /* as in the file; the used ones are in driver.host.mdev_types */
        DriverConfig driver;
        /* [placement] */
        char *auth_section; /* section with the options of authentication; NULL: [placement] */
        bool has_placement; /* the section exists; else the agent is standalone */
        char *placement_endpoint; /* endpoint_override, or endpoint; NULL: found in Keystone's
                                     catalogue */
        char *placement_fallback; /* endpoint */
        char *placement_token;    /* token, or the credential "placement-token"; never logged */
        char *cafile, *certfile, *keyfile;
        KeystoneConfig keystone; /* its secrets can come from the credentials "placement-password"
                                    and "placement-application-credential-secret" */
        ReporterConfig reporter; /* borrows strings of this struct */
        /* the files */
        char **files;               /* in the order in which they were read, NULL-terminated */
        StringSet warnings;         /* texts of all warnings */
        StringSet credential_files; /* paths of credentials that were read without
                                       $CREDENTIALS_DIRECTORY */
        size_t n_ignored; /* number of options that the agent ignores without a warning (settings.h)
                           */
} Config;

/* Receives a warning: "FILE:LINE: unknown option [placement] foo, ignoring". The text is borrowed
 * for the call and has no secret. */
typedef void (*ConfigWarning)(const char *text, void *userdata);

/* Reads a file and its drop-ins file.d/NAME.conf. file NULL: reads the first
 * compute-agent/compute-agent.conf of these folders: the sysconfdir of the build, /etc, /run,
 * PREFIX/lib, and /usr/lib. Its drop-ins are compute-agent/compute-agent.conf.d/NAME.conf of all
 * these folders, sorted by file name. For equal names the first folder wins, and a link to
 * /dev/null masks the name. Without a main file the drop-ins count, and else the defaults.
 *
 * A later file wins over an earlier one. Secrets come first from $CREDENTIALS_DIRECTORY. Without
 * that variable they come from files with the names of the credentials in compute-agent/ of the
 * sysconfdir, normally /etc/compute-agent/, that the caller can read. A credential that is empty,
 * has a NUL byte or is larger than 16 KiB is an error.
 *
 * Returns -EINVAL with words (exit code 78), -ENOENT if the named file does not exist, another
 * errno of reading, or -ENOMEM. The caller frees *ret with config_free(). warning can be NULL; all
 * warnings are also in the Config. Blocks on the disk. */
int config_load(Config **ret, const char *file, ConfigWarning warning, void *userdata,
                Error *reterr);

/* Does the same for a program that sends nothing to Placement, and so has no credential: it does
 * not check that [placement] is complete. */
int config_load_offline(Config **ret, const char *file, Error *reterr);

/* Reads the same files, but uses only [hook]. A guest that starts waits for the hook, so values and
 * references of other sections are not checked. Errors of syntax are errors in each section. All
 * members of the Config but files and those of [hook] are 0. Makes no warnings. Returns the errors
 * of config_load(). */
int config_load_hook(Config **ret, const char *file, Error *reterr);

/* Lets config->reporter borrow the present strings, and sets its use of local DISK_GB. Call it
 * after each change of a string. */
void config_lend_strings(Config *config);

/* Returns true if [agent] nova forbids the reservation of a device until it is clean. */
bool config_leaves_unclean(const Config *config);

Config *config_free(Config *config);
DEFINE_CLEANUP(Config *, config_free);
