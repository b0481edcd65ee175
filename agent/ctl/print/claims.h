/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl claims" and "claim": claims as tables. Pure.
 *
 * A claim is {"id", "consumer", "state": "claimed" | "confirmed" | "released", "resize_target",
 * "project", "user", "created_usec", "expires_usec", "ended_usec", "end_reason", "allocations":
 * [{"provider": "<uuid>", "name", "resources": {"VCPU": 2}}],
 * "devices": (agent/ctl/print/devices.h), "boot_id"}; times are microseconds of
 * CLOCK_REALTIME, 0: never, not yet. */

#include <jansson.h>

#include "agent/ctl/print/style.h"
#include "base/error.h"

#define CTL_CLAIMS_FORMAT "compute-agent-claims/1" /* {"format", "claims": [claim]} */
#define CTL_CLAIM_FORMAT \
        "compute-agent-claim/1" /* {"format", "id", "consumer", "allocations", "devices"} */
#define CTL_PROBLEMS_FORMAT "compute-agent-problems/1" /* {"format", "problems"} */

/* history: with the columns of ended claims. -ENOMEM. */
int ctl_claims_print(const json_t *document, bool history, const CtlStyle *style, FILE *output);

/* Drops the claims that neither have the device (libvirt's name) nor hold anything of the provider
 * (name or uuid) that name is. */
void ctl_claims_keep(json_t *document, const char *name);

/* A claim that was just made. -ENOMEM. */
int ctl_claim_print(const json_t *document, const CtlStyle *style, FILE *output);
