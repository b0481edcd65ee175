/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A gathering: reads from Placement which consumers have allocations of some providers (facts B9).
 *
 * It sends one GET for the allocations of each provider, in parallel. Then it reads each consumer
 * that has an allocation of one of the given classes there, or all consumers, also in parallel:
 * with its generation and all its allocations, also on sharing providers and on other hosts. The
 * allocations of the other consumers on these providers are known from the first reads.
 *
 * Types of consumers are read only if all consumers are, or with gather_consumers_new(), and if the
 * service has types. A move of some classes needs no types: a reshape without types leaves them
 * unchanged, and Placement needs a fifth longer to send a consumer with its type.
 *
 * LIMITATIONS: a consumer with allocations of sharing providers only is not found. A consumer whose
 * allocations end between both reads, or begin after the first, is in neither set. */

#include "base/allocation.h"
#include "base/progress.h"
#include "report/session/session.h"

typedef struct Gather Gather;

/* Receives the end of a gathering. result is 0, a ReportOutcome or a negative errno, with words
 * unless result is 0. On 0 the callback owns consumers (complete) and others (their allocations of
 * the providers); else both are NULL. Called once unless the gathering is freed before, never from
 * inside gather_new() or gather_consumers_new(). The callback can free the gathering. */
typedef void (*GatherDone)(int result, Allocations *consumers, Allocations *others,
                           const Error *error, void *userdata);

/* Starts a gathering. providers (at least one) and classes are copied. classes NULL: every consumer
 * is read completely; an empty set: none is. The session is borrowed. -ENOMEM, or -EINVAL of
 * session_send(). */
int gather_new(Gather **ret, Session *session, const Uuid *providers, size_t n_providers,
               const StringSet *classes, GatherDone done, void *userdata, Error *reterr);

/* Starts with the second stage: reads these consumers (copied; at least one) completely, and no
 * others. A consumer without allocations is not in the result. */
int gather_consumers_new(Gather **ret, Session *session, const Uuid *consumers, size_t n_consumers,
                         GatherDone done, void *userdata, Error *reterr);

/* Returns the progress of the running stage, in requests. */
void gather_get_progress(const Gather *gather, Progress *ret);

/* Cancels the requests under way. */
Gather *gather_free(Gather *gather);
DEFINE_CLEANUP(Gather *, gather_free);
