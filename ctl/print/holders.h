/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who holds what on a host: guests by their domains and by their claims, each with a colour. Pure.
 */

#include "base/json.h"
#include "drivers/host/snapshot.h"

typedef struct Holder {
        const char *consumer;         /* uuid, of the domain or the claim */
        const char *name;             /* of the domain, else the uuid */
        const SnapshotDomain *domain; /* NULL: only claims */
        char colour[8];               /* "#rrggbb" */
} Holder;

/* Borrows from the snapshot and the claims. */
typedef struct Holders {
        Holder *items; /* domains in the snapshot's order, then claims without a domain */
        size_t n_items;
        const json_t *claims; /* array of ctl/print/claims.h, may be NULL */
} Holders;

void holders_done(Holders *holders);

/* claims: the document of ctl/print/claims.h, or NULL. -ENOMEM. */
int holders_init(Holders *ret, const Snapshot *snapshot, const json_t *claims);

/* Who is pinned to a CPU, who has an mdev, or the whole of a PCI device; NULL for nobody. */
const Holder *holders_find_cpu(const Holders *holders, unsigned cpu);
const Holder *holders_find_mdev(const Holders *holders, const Uuid *mdev);
const Holder *holders_find_pci(const Holders *holders, const char *address);

/* Whose claim has the mdev of that number, from 0, which is still to be made in a device (libvirt's
 * name); NULL when there are not so many. */
const Holder *holders_find_promised(const Holders *holders, const char *device, size_t number);

/* The memory that a guest has in a cell, by what its domain asks for. */
uint64_t holder_memory_kib(const Holder *holder, unsigned cell);

/* What all living claims of a guest hold, of whichever provider: an object of amounts, a new
 * reference; NULL when out of memory. */
json_t *holders_sum_claims(const Holders *holders, const Holder *holder);
