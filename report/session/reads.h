/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* N reads in parallel, at most as many at a time as the session can have connections. So another
 * request of the session waits for one of them and not for all.
 *
 * After a failure no further read begins. The answers of reads under way still go to the caller, so
 * that a later refresh need not repeat them. The outcome is the worst of all, with the words of the
 * first read that had it. */

#include "report/session/session.h"

typedef struct Reads Reads;

/* Functions of the caller. The first, make_request, makes the request of the i-th read. The second,
 * take, receives each end of a read, stores the answer and returns REPORT_DONE, or the failure with
 * words in error. At first error has the words of the read. take can call reads_repeat() and must
 * not free the reads. The third, done, is called once after the last answer, unless the reads are
 * freed before, and never from inside reads_new(). done can free the reads. */
typedef struct ReadsOps {
        PlacementRequest (*make_request)(size_t i, void *userdata);
        int (*take)(size_t i, int result, const SessionAnswer *answer, Error *error,
                    void *userdata);
        void (*done)(int result, const Error *error, void *userdata);
} ReadsOps;

/* Starts n > 0 reads. ops and session are borrowed. -ENOMEM, -EINVAL. */
int reads_new(Reads **ret, Session *session, size_t n, const ReadsOps *ops, void *userdata,
              Error *reterr);

/* Lets the i-th read begin again when take() has returned REPORT_DONE, unless a read has failed.
 * The i-th read must be over, as inside its own take(). */
void reads_repeat(Reads *reads, size_t i);

void reads_get_progress(const Reads *reads, size_t *ret_done, size_t *ret_total);

/* Cancels the reads under way, without a callback. */
Reads *reads_free(Reads *reads);
DEFINE_CLEANUP(Reads *, reads_free);
