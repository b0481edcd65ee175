/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The functions that the files of the store share beside the frame. Each is for files above its own
 * (frame.h has the order), and within a transaction of the caller. */

#include "claims/store/frame.h"
#include "claims/store/rows.h"

/* store-events.c: writes down what happened to a claim, which still exists. The event of a pending
 * claim is written, and not listed until the claim is promised. */
int store_note_claim(Claims *claims, int64_t id, const EventNote *note, uint64_t usec,
                     Error *reterr);
int store_forget_events(Claims *claims, int64_t claim, Error *reterr);

/* store-host.c: makes wanted the host. CLAIM_E_RACE. */
int store_write_changes(Claims *claims, const HostView *wanted, Error *reterr);

/* store-host.c: bumps the generation of a provider that is still as the view has it.
 * CLAIM_E_RACE. */
int store_bump(Claims *claims, const HostProvider *provider, Error *reterr);
