/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the daemon counts, in Prometheus's text format, in a file for node_exporter's textfile
 * collector. Names and their words stand in metrics.list. Counters begin anew with a reload. */

#include "agent/cycle/verdict.h"

/* Writes the metrics into a file that every user can read, under another name first, so that a
 * reader sees all or nothing. claims: those that live; NULL: they cannot be read. Negative errno
 * with words. Blocks on the disk, without waiting for it to be synced. */
int metrics_save(const CycleFacts *facts, const Verdict *verdict, const ClaimList *claims,
                 const char *path, Error *reterr);
