/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What happened, as a member of the document "events":
 *
 * {"id", "usec": CLOCK_REALTIME, "event": "claimed" | "adopted" | "released" | "expired" | "moved"
 * | "reshaped" | "healed" | "cordoned" | "uncordoned" | "retired" |
 * "unretired", "author": who wanted it, "" for the agent
 * itself, "uid": -1 not known, "claim": 0 of none, "consumer": uuid or "", "guest": the name of its
 * domain, "" when it is not known, "of": the guest that a migration's claim was of, uuid or "",
 * "allocations": [{"name", "class", "amount"}], "devices": [{"device", "address", "mdev"}], which
 * may lack all but the first, "reason"} */

#include <jansson.h>

#include "claims/claim/event.h"
#include "claims/claim/host-facts.h"

/* facts, of the last poll, may be NULL. A new reference, NULL when out of memory. */
json_t *event_to_json(const Event *event, const HostFacts *facts);
