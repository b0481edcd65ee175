/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An audit as a JSON document, for D-Bus and computectl: what was found and what became of it, and
 * every consumer of this host with all that is known of it. */

#include <jansson.h>

#include "agent/audit/audit.h"

/* A new reference, NULL when out of memory. */
json_t *audit_to_json(const AuditInput *input, const Audit *audit);
