/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes the daemon's metrics in Prometheus's text format, for the textfile collector of
 * node_exporter. Names and help texts are in metrics.list. Counters start again at 0 after a
 * restart and after a reload. */

#include "agent/cycle/verdict.h"

/* Writes the metrics to the file path, with mode 0644. The file is written as PATH.new and renamed,
 * so no reader sees a part of it. claims: the living claims with devices; NULL: unknown. Returns a
 * negative errno with words; the old file then stays. Blocks on the disk, but without fsync(). */
int metrics_save(const CycleFacts *facts, const Verdict *verdict, const ClaimList *claims,
                 const char *path, Error *reterr);
