/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims, domains and devices in order, for reconcile_make() alone. */

#include "claims/reconcile.h"

/* Under whose uuid something is found: a claim under its consumer's, and its guest's if it has one;
 * or a domain. */
typedef struct ReconcileKnown {
        Uuid uuid;
        const void *is;
} ReconcileKnown;

/* In order, so that what is asked for each claim and guest does not look at all others. */
struct ReconcileIndex {
        ReconcileKnown *claims, *domains, *mdevs;
        size_t n_claims, n_domains, n_mdevs;
        const char **pci; /* addresses */
        size_t n_pci;
};

/* Borrows from input. ret must be zeroed, and done also after -ENOMEM. */
int reconcile_index_make(ReconcileIndex *index, const ReconcileInput *input);
void reconcile_index_done(ReconcileIndex *index);

/* The first one of that uuid; *ret_n: how many there are. */
const ReconcileKnown *reconcile_index_find(const ReconcileKnown *items, size_t n, const Uuid *uuid,
                                           size_t *ret_n);
