/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Does about the findings of an audit what is asked for, one after the other. Claims are looked at
 * again right before each write: one may have come or gone while Placement was asked. It writes
 * with the consumer's generation, reads again what moved meanwhile, and lets be what somebody else
 * wrote. Main thread; nothing blocks but the claim database's own disk. */

#include "agent/audit/audit.h"
#include "agent/guests/comparison.h"
#include "report/reporter.h"

/* Borrowed, until done is called. */
typedef struct HealerOrder {
        ClaimService *claims;
        Reporter *reporter;
        const AuditInput *input;
        Audit *audit;           /* what became of each finding is noted there */
        Allocations *consumers; /* who was read; those that are read again are replaced */
        bool everything;        /* false: claims of evacuated guests end, and nothing is written */
        const Uuid *only;       /* nothing but what is found of this consumer; NULL: everything */
        const EventAuthor *by;  /* who wants it; NULL: this program itself */
        const char *refused;    /* why nothing may be written; NULL: it may */
} HealerOrder;

typedef struct Healer Healer;

/* Begins. done is called once, also from inside; it can free the healer, so *ret is set before.
 * -ENOMEM. */
int healer_begin(Healer **ret, const HealerOrder *order, void (*done)(void *userdata),
                 void *userdata);

/* Cancels what is under way. NULL is allowed; returns NULL. */
Healer *healer_free(Healer *healer);

/* Returns how many findings are done. */
size_t healer_get_position(const Healer *healer);
