/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares a claim with its guest: amounts, devices, cells and CPUs. Also compares its devices with
 * those of the host. A difference is a problem, which is shown to people; nothing is changed.
 * Pure. */

#include "claims/guest-index.h"

typedef struct ReconcileProblems {
        struct {
                Uuid consumer;
                int64_t claim_id; /* 0: none */
                char *text;       /* for people, the same for the same problem */
        } * items;
        size_t n_items, n_allocated;
} ReconcileProblems;

/* Adds a problem with a formatted text. Returns -ENOMEM on failure. */
int reconcile_add_problem(ReconcileProblems *problems, const Uuid *consumer, int64_t claim_id,
                          const char *format, ...) _printf_(4, 5);
void reconcile_problems_done(ReconcileProblems *problems);

/* Adds the differences between a claim and its guest. A claim with allocations of another writer
 * can have more than its guest, because Nova can allocate more than a domain shows. Any claim can
 * have CPUs for emulator and I/O threads. If the claim has no CPUs or no memory, that amount is not
 * compared. Cells and guest CPUs that the claim's layout lacks are not compared either. Only the
 * first guest CPU, the first pinned host CPU, and the first difference of each cell are added.
 * Returns -ENOMEM on failure; a part of the problems can be added then. */
int reconcile_compare(const GuestIndex *index, const Claim *claim, const HostDomain *domain,
                      ReconcileProblems *problems);

/* Adds the PCI devices of a claim that the host does not list, unless a guest is here without them.
 * Adds unlisted PCI devices of the guest that the claim does not name, too. Adds each address that
 * has another device than the claim was given, and each function with another vGPU type, or with
 * none while its guest runs. While the functions of the host are unknown, only types are compared.
 * The claim can have any state. domain NULL: no guest here. Returns -ENOMEM on failure. */
int reconcile_check_devices(const GuestIndex *index, const Claim *claim, const HostDomain *domain,
                            ReconcileProblems *problems);
