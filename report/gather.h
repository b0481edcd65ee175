/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A gathering: reads from Placement who holds what of some providers (facts B9).
 *
 * One GET of each provider's allocations in parallel; then, in parallel, each consumer whole that
 * holds something of one of the classes there: with its parts on sharing providers and on other
 * hosts, and its generation. What all others hold of these providers is known from the first reads,
 * and is not read again.
 *
 * Types of consumers are given when all are read. Who moves some classes needs none: a reshape
 * without types leaves them as they are, and Placement takes a fifth longer to send a consumer with
 * its type.
 *
 * LIMITATIONS: a consumer that holds something of sharing providers alone is not found. */

#include "base/allocation.h"
#include "base/progress.h"
#include "report/session/session.h"

typedef struct Gather Gather;

/* result: 0, a ReportOutcome or a negative errno, with words unless 0. On 0 consumers (whole) and
 * others (what they hold of the providers) are owned by the callee; else both are NULL. Called
 * once, never from inside gather_new(); it may free the gathering. */
typedef void (*GatherDone)(int result, Allocations *consumers, Allocations *others,
                           const Error *error, void *userdata);

/* providers and classes are copied; classes NULL: every consumer is read whole. At least one
 * provider. The session is borrowed. -ENOMEM. */
int gather_new(Gather **ret, Session *session, const Uuid *providers, size_t n_providers,
               const StringSet *classes, GatherDone done, void *userdata, Error *reterr);

/* The second part alone: these consumers (copied; at least one), whole, and no others. One that
 * holds nothing is not among what is gathered. */
int gather_consumers_new(Gather **ret, Session *session, const Uuid *consumers, size_t n_consumers,
                         GatherDone done, void *userdata, Error *reterr);

/* Requests of the running part of it. */
void gather_get_progress(const Gather *gather, Progress *ret);

/* Cancels what is under way. */
Gather *gather_free(Gather *gather);
DEFINE_CLEANUP(Gather *, gather_free);
