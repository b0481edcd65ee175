/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who called, in words, for the journal: "root", "uid 1000", with the pid, and with command and
 * unit where the service sees them. Main thread; reads files of this host. */

#include "agent/bus/gate.h"
#include "claims/claim/claim.h"

typedef struct BusCaller {
        char name[64]; /* the user alone */
        EventAuthor author;
} BusCaller;

/* Of the call that is being served. */
void bus_caller_find(const BusGate *gate, sd_bus_message *call, BusCaller *ret);

/* Writes into the journal what somebody made of a claim: "promised to …", "released"; reason may be
 * "" or NULL. With amounts and devices, and fields for claim, consumer and caller. */
void bus_caller_note(const BusCaller *caller, const Claim *claim, const char *reason,
                     const char *format, ...) _printf_(4, 5);
