/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the daemon counts, in Prometheus's text format, in a file for node_exporter's textfile
 * collector. Names and their words stand in metrics.list. Counters begin anew with a reload. */

#include "agent/cycle/verdict.h"

/* claims: those that live; NULL: they cannot be read. */
void metrics_print(const CycleFacts *facts, const Verdict *verdict, const ClaimList *claims,
                   FILE *output);

/* Puts them into a file that everybody may read, under another name first: a reader sees all or
 * nothing. Negative errno with words. Blocks on the disk, without waiting for it to be synced. */
int metrics_save(const CycleFacts *facts, const Verdict *verdict, const ClaimList *claims,
                 const char *path, Error *reterr);
