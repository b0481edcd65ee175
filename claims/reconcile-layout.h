/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares the CPUs and the memory of a claim with those of its guest. Both functions add a problem
 * for a difference, and return -ENOMEM. Pure. */

#include "claims/reconcile.h"

/* Nova can allocate more than a domain shows, and a claim can have CPUs for emulator and I/O
 * threads: a claim with these larger amounts is no problem. */
int reconcile_compare_amounts(const Claim *claim, const HostDomain *domain,
                              ReconcileProblems *problems);

/* Compares the host cells, the pins of guest CPUs, and the host CPUs that are held. */
int reconcile_compare_layout(const Claim *claim, const HostDomain *domain,
                             ReconcileProblems *problems);
