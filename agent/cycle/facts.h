/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is known of this host, its claims and Placement at a moment, in one place: what the verdict,
 * the metrics and the properties on D-Bus are made of. */

#include "agent/cycle/tracker.h"

/* All borrowed. */
typedef struct CycleFacts {
        const TrackerStatus *status;
        const ReporterStatistics *statistics; /* zeros when standalone */
        const char *driver;                   /* its name; NULL: not known */
        NovaMode nova;
        const Snapshot *snapshot;    /* the last that a poll brought; NULL: none */
        const ProviderTree *tree;    /* that the host should have; NULL: not known yet */
        const DeviceLedger *devices; /* that are expected; NULL: not known */
        const Retained *retained;    /* inventories in use that are gone; NULL: no Placement */
        const Contest *contest;      /* what somebody else writes in the tree; NULL: not known */
        const AuditorState *audit;   /* NULL: none yet */
        const StringSet *config_warnings; /* NULL: none */
        const Error *claim_error;         /* why claims cannot be taken; code 0: they can */
        const HostView *view;             /* the host as claims have it; NULL: not known */
        size_t n_claims;
        size_t n_disagreements; /* of claims and guests */
        ClaimsOwed owed;
        const char *owed_trouble; /* why the owed writes are not settled; "": they are on their way,
                                   * or NULL */
        const char *host_cordoned, *devices_cordoned; /* NULL: nothing is */
        size_t n_devices_cordoned;
} CycleFacts;

/* Blocks on the claim database's disk; what was borrowed from it before is not valid any more, and
 * neither is the view when it is asked again. */
void cycle_facts_look(const Tracker *tracker, const ClaimsOwed *owed, const char *owed_trouble,
                      CycleFacts *ret);
