/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Guests that run on other CPUs than [compute] cpu_shared_set and cpu_dedicated_set give them
 * (facts C3, last row). Pure.
 *
 * A guest CPU that is pinned to one CPU of the host is a dedicated one, every other one floats over
 * the shared CPUs; one that libvirt tells no CPUs of may run anywhere. Nova does not start beside
 * such a guest. The agent tells: the guest is there, and stopping would not move it. Nothing is
 * found without cpu_dedicated_set, where pinned guests share the shared CPUs. */

#include "drivers/tree/cpu-plan.h"
#include "drivers/verify.h"

/* Adds one finding for each kind of fault, with the number of guests that have it and the names of
 * the first. -ENOMEM. */
int verify_guests(const CpuPlan *cpus, const Snapshot *snapshot, Findings *findings);
