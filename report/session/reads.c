/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs n reads of a session in parallel, and reports once the worst outcome
 * (report_outcome_worse()). The reads begin in order, with at most as many at a time as the session
 * can have connections. A repeated read begins before reads that have not begun yet. A read is in
 * one of three states: not begun, under way (call is not NULL), or over. The final callback runs
 * when no read is under way. After a failure no further read begins, so the callback runs after the
 * answers of the reads under way. reads_repeat() makes a read "not begun" again.
 *
 * Tests: tests/unit/report/test-gather.c tests/unit/report/test-reporter.c */

#include "report/session/reads.h"

#include <assert.h>

typedef struct Read {
        Reads *reads;
        SessionCall *call; /* NULL: not under way */
        bool over;
} Read;

struct Reads {
        Session *session;
        const ReadsOps *ops;
        void *userdata;
        Read *items;
        size_t n_items, n_running, n_over;
        size_t next; /* begin_reads() continues at this index; a repeat moves it back */
        int result;
        Error error;
};

/* Keeps the worst outcome with the words of its first occurrence. */
static void note_failure(Reads *reads, int result, const Error *error)
{
        if (report_outcome_worse(reads->result, result) == reads->result)
                return;
        reads->result = result;
        reads->error = *error;
}

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata);

static int begin_one(Reads *reads, size_t i, Error *reterr)
{
        Read *item = &reads->items[i];
        int r = session_send(reads->session, reads->ops->make_request(i, reads->userdata),
                             on_answer, item, &item->call, reterr);

        if (r >= 0)
                reads->n_running++;
        return r;
}

/* Starts reads until all connections are in use or all reads have begun. A failure stops it. */
static int begin_reads(Reads *reads, Error *reterr)
{
        while (reads->result == REPORT_DONE && reads->next < reads->n_items &&
               reads->n_running < session_get_statistics(reads->session)->max_connections) {
                const Read *item = &reads->items[reads->next];
                int r = item->over || item->call ? 0 : begin_one(reads, reads->next, reterr);

                if (r < 0)
                        return r;
                reads->next++;
        }
        return 0;
}

/* Passes an answer to the caller, begins further reads, and runs the final callback after the last
 * answer. */
static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        Read *item = userdata;
        Reads *reads = item->reads;
        Error words = *error;
        int r;

        item->call = NULL;
        item->over = true;
        reads->n_running--;
        reads->n_over++;
        r = reads->ops->take((size_t)(item - reads->items), result, answer, &words,
                             reads->userdata);
        if (r == REPORT_DONE)
                r = begin_reads(reads, &words);
        if (r != REPORT_DONE)
                note_failure(reads, r, &words);
        /* The callback can free the reads. */
        if (reads->n_running == 0)
                reads->ops->done(reads->result, &reads->error, reads->userdata);
}

int reads_new(Reads **ret, Session *session, size_t n, const ReadsOps *ops, void *userdata,
              Error *reterr)
{
        _cleanup_(reads_freep) Reads *reads = calloc(1, sizeof(Reads));
        int r;

        assert(n > 0);
        if (reads)
                reads->items = calloc(n, sizeof(Read));
        if (!reads || !reads->items)
                return error_oom(reterr);
        reads->session = session;
        reads->n_items = n;
        reads->ops = ops;
        reads->userdata = userdata;
        for (size_t i = 0; i < n; i++)
                reads->items[i].reads = reads;
        r = begin_reads(reads, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(reads);
        return 0;
}

void reads_repeat(Reads *reads, size_t i)
{
        assert(reads->items[i].over);
        reads->items[i].over = false;
        reads->n_over--;
        reads->next = MIN(reads->next, i);
}

void reads_get_progress(const Reads *reads, size_t *ret_done, size_t *ret_total)
{
        *ret_done = reads->n_over;
        *ret_total = reads->n_items;
}

Reads *reads_free(Reads *reads)
{
        if (!reads)
                return NULL;
        for (size_t i = 0; reads->items && i < reads->n_items; i++)
                session_call_cancel(reads->items[i].call);
        free(reads->items);
        free(reads);
        return NULL;
}
