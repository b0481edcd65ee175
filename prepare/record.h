/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes, writes and reads the result of a pass: the document PREPARED_FORMAT in
 * RUN/compute-agent-prepare/prepared.json. Every user can read it. The next pass reads from it for
 * which claims the types were set. */

#include "prepare/hardware.h"

#include "base/json.h"

#define PREPARE_FOLDER "compute-agent-prepare"
#define PREPARE_RECORD "prepared.json"

/* Makes the document. Pure. plan: the last one, with its steps that wait or are refused. wanted:
 * the content of prepare-wanted before the pass. error: why the pass was not completed; "": it was.
 * NULL: memory ran out or a text is not UTF-8. The caller owns the reference. *ret_n_errors is the
 * number of errors in the document: its own, of cards and of functions. */
json_t *prepare_record_make(const PrepareHost *host, const PrepareClaims *claims,
                            const PreparePlan *plan, const char *wanted, const char *error,
                            size_t *ret_n_errors);

/* Writes a document to a file NAME in RUN/FOLDER, which is created. Returns a negative errno with
 * words. */
int prepare_record_write(const PreparePaths *paths, const char *folder, const char *name,
                         const json_t *document, Error *reterr);

/* Sets the recorded claims of the functions from the document of the last pass. A document that is
 * missing, invalid or cannot be read sets none. */
void prepare_record_read(const PreparePaths *paths, PrepareHost *host);
