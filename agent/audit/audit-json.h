/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An audit as a JSON document, for D-Bus and computectl: what was found and what became of it, and
 * every consumer of this host with all that is known of it. */

#include <jansson.h>

#include "agent/audit/audit.h"

typedef enum AuditOutcome {
        AUDIT_FOUND, /* nothing was done about it */
        AUDIT_HEALED,
        AUDIT_FAILED,
} AuditOutcome;

/* What became of each finding: as many as the audit has. */
typedef struct AuditResult {
        AuditOutcome outcome;
        Error error; /* of AUDIT_FAILED */
} AuditResult;

/* A new reference, NULL when out of memory. */
json_t *audit_to_json(const AuditInput *input, const Audit *audit, const AuditResult *results);
