/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* N reads in parallel, a bounded number at a time: whoever else has something to send meanwhile
 * waits for one of these, not for all.
 *
 * Once one has failed no further one begins; those under way are still taken, because what was read
 * need not be read again. The outcome is the worst of all, with the words of the first such. */

#include "report/session/session.h"

typedef struct Reads Reads;

/* make_request: that of the i-th read. take: its answer; REPORT_DONE, or what failed,
 * with words in error, which come as the answer's own. In take reads_repeat() is allowed, and
 * freeing is not. done: all are over; called once, never from inside reads_new(); it may free the
 * reads. */
typedef struct ReadsOps {
        PlacementRequest (*make_request)(size_t i, void *userdata);
        int (*take)(size_t i, int result, const SessionAnswer *answer, Error *error,
                    void *userdata);
        void (*done)(int result, const Error *error, void *userdata);
} ReadsOps;

/* Starts n > 0 of them. ops and session are borrowed. -ENOMEM, -EINVAL. */
int reads_new(Reads **ret, Session *session, size_t n, const ReadsOps *ops, void *userdata,
              Error *reterr);

/* Sends the i-th read once more, which is over, or is the one that is being taken. */
void reads_repeat(Reads *reads, size_t i);

void reads_get_progress(const Reads *reads, size_t *ret_done, size_t *ret_total);

/* Cancels what is under way. */
Reads *reads_free(Reads *reads);
DEFINE_CLEANUP(Reads *, reads_free);
