/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Configuration against hardware: what does not fit, and which option to change. Pure. */

#include "drivers/host/host-config.h"

typedef enum FindingLevel {
        FINDING_WARNING, /* has no effect, or not the one that was meant */
        FINDING_ERROR,   /* the agent publishes nothing of this host with it */
        _FINDING_LEVEL_MAX,
} FindingLevel;

typedef struct Finding {
        FindingLevel level;
        char *option; /* "[compute] cpu_shared_set", "reserved_huge_pages" for one of [DEFAULT] */
        char *text;   /* what is wrong, and what to change */
} Finding;

typedef struct Findings {
        Finding *items; /* errors first */
        size_t n_items;
        size_t n_allocated;
} Findings;

void findings_done(Findings *findings);

/* The error, if any, with which driver_config_check() refuses the configuration, else what does not
 * fit the host. Adds to findings, which must be initialised. -ENOMEM. */
int verify_host(const HostConfig *config, const Snapshot *snapshot, Findings *findings);

/* {"nodename", "errors": n, "findings": [{"level", "option", "text"}]}. A new reference,
 * NULL when out of memory. */
json_t *findings_to_json(const Findings *findings, const char *nodename);
