/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* N reads in parallel, a bounded number at a time: another request of the session waits for one of
 * these, not for all.
 *
 * After a failure no further read begins. Those under way are still taken, because a later refresh
 * need not read them again. The outcome is the worst of all, with the words of the first such read.
 */

#include "report/session/session.h"

typedef struct Reads Reads;

/* make_request: makes the request of the i-th read. take: takes its answer and returns REPORT_DONE
 * or the failure, with words in error, which has those of the answer. It can call reads_repeat()
 * and must not free the reads. done: called once after the last answer, never from inside
 * reads_new(); it can free the reads. */
typedef struct ReadsOps {
        PlacementRequest (*make_request)(size_t i, void *userdata);
        int (*take)(size_t i, int result, const SessionAnswer *answer, Error *error,
                    void *userdata);
        void (*done)(int result, const Error *error, void *userdata);
} ReadsOps;

/* Starts n > 0 of them. ops and session are borrowed. -ENOMEM, -EINVAL. */
int reads_new(Reads **ret, Session *session, size_t n, const ReadsOps *ops, void *userdata,
              Error *reterr);

/* Sends the i-th read once more, which has ended or is being taken. */
void reads_repeat(Reads *reads, size_t i);

void reads_get_progress(const Reads *reads, size_t *ret_done, size_t *ret_total);

/* Cancels what is under way. */
Reads *reads_free(Reads *reads);
DEFINE_CLEANUP(Reads *, reads_free);
