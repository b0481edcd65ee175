/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The unit compute-agent.service as systemd knows it, read over D-Bus. */

#include <systemd/sd-bus.h>

#include "base/error.h"

/* First word of STATUS= when a start fails (agent/daemon.c). systemd keeps this text. */
#define CTL_UNIT_FAILED "failed: "

/* The texts are owned, and "" if systemd has none. */
typedef struct CtlUnit {
        char *load_state;   /* "loaded", "not-found" */
        char *active_state; /* "active", "inactive", "failed", "activating" */
        char *result;       /* "success", "exit-code", "signal" */
        char *status_text;  /* last STATUS= of the service */
        char *user;         /* User= */
        char *config;       /* FILE of --config in ExecStart= */
        char **groups;      /* SupplementaryGroups=, NULL-terminated; NULL: none */
        int exit_status;    /* exit code of the main process, or number of the signal */
        bool read_only;     /* ProtectSystem=strict */
        /* ReadWritePaths= and the folders of state, run time, cache and logs as absolute paths;
         * NULL-terminated */
        char **writable;
        struct {
                char *name, *path; /* parts of LoadCredential=NAME:PATH */
        } * credentials;
        size_t n_credentials;
} CtlUnit;

/* Frees the members. */
void ctl_unit_done(CtlUnit *unit);

/* Reads the unit. Waits at most 2 s for each property. Negative errno: a property could not be
 * read, or memory ran out; ret is then unchanged. */
int ctl_unit_read(sd_bus *bus, CtlUnit *ret);

/* Returns FILE of --config in the arguments of compute-agentd, borrowed; "": none. Pure. */
const char *ctl_unit_find_config(char *const argv[]);

/* Stores why the agent does not answer if the unit failed, starts or is active. Otherwise, for
 * example if the unit is only stopped, returns false and stores nothing. Pure. */
bool ctl_unit_explain(const CtlUnit *unit, Error *reterr);
