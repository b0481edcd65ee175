/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Guests that can run on dedicated CPUs without being pinned to them. Such a guest was started
 * before its CPUs became dedicated, or without Nova. Pure.
 *
 * The evidence is the domain itself: a guest CPU that is pinned to one host CPU has that CPU for
 * itself. Every other guest CPU floats over the CPUs of its pin, else over those of
 * <vcpu cpuset>, else over all. A guest that cannot be read is no evidence. */

#include "drivers/tree/cpu-plan.h"

/* Returns whether guest CPUs of the domain float over CPUs of the set. Adds these to ret, which may
 * be NULL. -ENOMEM. */
int cpu_guest_floats(const SnapshotDomain *domain, const CpuSet *over, CpuSet *ret);

/* Sets plan->floated to the dedicated CPUs over which running guests float. CPUs to which any
 * domain is pinned are left out: the claim of that domain counts them. If there are such guests,
 * ret_words (may be NULL) gets a sentence without its end that names the first one and the CPUs; it
 * is untouched otherwise. guests: the domains of this snapshot count. -ENOMEM. */
int cpu_guests_find(const Snapshot *guests, CpuPlan *plan, Error *ret_words);
