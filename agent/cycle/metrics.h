/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes the daemon's metrics in Prometheus's text format, for the textfile collector of
 * node_exporter. Names and help texts are in metrics.list. Counters start again at 0 after a
 * restart and after a reload. */

#include "agent/cycle/verdict.h"

/* Writes the metrics to a file that every user can read. The file is written under another name and
 * renamed, so a reader never sees a part. claims: the living claims with devices; NULL: unknown.
 * Returns a negative errno with words; the old file then stays. Blocks on the disk, but does not
 * wait for a sync. */
int metrics_save(const CycleFacts *facts, const Verdict *verdict, const ClaimList *claims,
                 const char *path, Error *reterr);
