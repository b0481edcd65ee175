/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The result of a run: the document PREPARED_FORMAT in RUN/compute-agent-prepare/prepared.json.
 * Every user can read it. The next run reads from it for which claims types were set. */

#include "prepare/hardware.h"

#include "base/json.h"

/* The contents of a document beside the host. */
typedef struct PrepareResult {
        const PrepareClaims *claims;
        const PreparePlan *plan; /* the last plan: its steps that wait or are refused */
        const char *wanted;      /* content of prepare-wanted at the begin of the run */
        const char *error;       /* "": none; else nothing was changed for this reason */
} PrepareResult;

/* Makes the document. Pure. NULL: memory ran out. The caller owns the reference. */
json_t *prepare_record_make(const PrepareHost *host, const PrepareResult *result);

/* Returns the number of errors in a document: its own, of cards and of functions. Pure. */
size_t prepare_record_count_errors(const json_t *document);

/* Writes the document. Creates its folder. Returns a negative errno with words. */
int prepare_record_write(const PreparePaths *paths, const json_t *document, Error *reterr);

/* Sets the recorded claims of the functions from the document of the last run. A missing or invalid
 * document sets none. */
void prepare_record_read(const PreparePaths *paths, PrepareHost *host);
