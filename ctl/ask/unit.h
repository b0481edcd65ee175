/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The unit compute-agent.service as systemd has it, read over D-Bus. */

#include <systemd/sd-bus.h>

#include "base/error.h"

/* STATUS= of a start that fails begins with this (agent/daemon.c); systemd keeps the text. */
#define CTL_UNIT_FAILED "failed: "

typedef struct CtlUnitCredential {
        char *name, *path; /* LoadCredential=NAME:PATH */
} CtlUnitCredential;

/* Texts are owned, and "" if systemd has none. */
typedef struct CtlUnit {
        char *load_state;   /* "loaded", "not-found" */
        char *active_state; /* "active", "inactive", "failed", "activating" */
        char *result;       /* "success", "exit-code", "signal" */
        char *status_text;  /* STATUS= that the service sent last */
        char *user;         /* User= */
        char **groups;      /* SupplementaryGroups=, NULL-terminated */
        int exit_status;    /* of the main process: exit code or signal */
        bool read_only;     /* ProtectSystem=strict */
        char **writable;    /* absolute paths that the sandbox leaves writable, NULL-terminated */
        CtlUnitCredential *credentials;
        size_t n_credentials;
} CtlUnit;

void ctl_unit_done(CtlUnit *unit);

/* Waits at most two seconds for each answer. Negative errno: systemd cannot be asked. */
int ctl_unit_read(sd_bus *bus, CtlUnit *ret);

/* Stores why the agent does not answer, with what to do next; returns false and stores nothing if
 * the unit is only stopped. Pure. */
bool ctl_unit_explain(const CtlUnit *unit, Error *reterr);

/* Checks whether the sandbox of the unit lets the service write below that folder. Pure. */
bool ctl_unit_may_write(const CtlUnit *unit, const char *folder);

/* Returns how the credential file differs from the service's copy: NULL if it does not, or if this
 * process may read neither. folder: of the copies. Blocks on the disk. */
const char *ctl_unit_compare_credential(const CtlUnitCredential *credential, const char *folder);

/* Where systemd keeps the copies for the service that runs. */
#define CTL_UNIT_CREDENTIALS "/run/credentials/compute-agent.service"
