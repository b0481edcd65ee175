/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one line that tells people how the agent is: STATUS= of systemctl status, StatusText of
 * D-Bus. Pure. */

#include "agent/cycle/tracker.h"

/* All borrowed. */
typedef struct StatusFacts {
        const TrackerStatus *status;
        const Error *claim_error; /* why claims cannot be taken; code 0: they can */
        size_t n_providers, n_claims;
        ClaimDebts debts;
        const char *debt_trouble; /* why the debts are not settled; "": they are on their way */
} StatusFacts;

/* text gets at most size bytes. Returns text. */
const char *status_text(const StatusFacts *facts, char *text, size_t size);
