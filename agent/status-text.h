/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one line that tells people how the agent is: STATUS= of systemctl status, StatusText of
 * D-Bus. Pure. */

#include "agent/tracker.h"

/* text gets at most size bytes. Returns text. */
const char *status_text(const TrackerStatus *status, const Error *claim_error, size_t n_providers,
                        size_t n_claims, char *text, size_t size);
