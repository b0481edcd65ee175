/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the daemon counts, in Prometheus's text format, in a file for node_exporter's textfile
 * collector. Names and their words stand in metrics.list. Counters begin anew with a reload. */

#include "agent/cycle/verdict.h"
#include "agent/tree/device-ledger.h"
#include "claims/claim/claim.h"
#include "claims/claim/host-view.h"

/* All borrowed. */
typedef struct Metrics {
        const Verdict *verdict;
        const TrackerStatus *status;
        const ReporterStatistics *statistics;
        const ProviderTree *tree;    /* NULL: not known yet */
        const HostView *view;        /* the host as claims have it; NULL: nothing is used */
        const Snapshot *snapshot;    /* NULL: not polled yet */
        const DeviceLedger *devices; /* that are expected; NULL: not known */
        const ClaimList *claims;     /* that live; NULL: they cannot be read */
        const AuditorState *audit;   /* NULL: none yet */
        ClaimsOwed owed;
        size_t n_claims;
        bool claims_up; /* claims can be taken */
        NovaMode nova;
        const Contest *contest; /* NULL: nothing is known */
        bool host_cordoned;
        size_t n_devices_cordoned;
} Metrics;

void metrics_print(const Metrics *metrics, FILE *output);

/* Puts them into a file that everybody may read, under another name first: a reader sees all or
 * nothing. Negative errno with words. Blocks on the disk, without waiting for it to be synced. */
int metrics_save(const Metrics *metrics, const char *path, Error *reterr);
