/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/gather.h"

#include "report/placement-consumer.h"

/* One read: of a provider's allocations, or of a consumer. */
typedef struct Read {
        Gather *gather;
        Uuid uuid;
        SessionCall *call; /* NULL: not under way */
} Read;

struct Gather {
        Session *session;
        StringSet classes;
        bool all;
        bool without_types; /* not needed, or the service is older than they are */
        Read *reads;        /* of the providers, then of the consumers */
        size_t n_reads, n_begun, n_running;
        bool second; /* the consumers are being read */
        Allocations *seen, *consumers;
        GatherDone done;
        void *userdata;
};

static void cancel_all(Gather *gather)
{
        for (size_t i = 0; i < gather->n_reads; i++)
                gather->reads[i].call = session_call_cancel(gather->reads[i].call);
        gather->n_running = 0;
}

static void finish(Gather *gather, int result, const Error *error)
{
        bool done = result == REPORT_DONE;

        cancel_all(gather);
        /* The gathering may be gone after this. */
        gather->done(result, done ? TAKE_PTR(gather->consumers) : NULL,
                     done ? TAKE_PTR(gather->seen) : NULL, error, gather->userdata);
}

static void on_read(int result, const SessionAnswer *answer, const Error *error, void *userdata);

static int start_read(Read *read, Error *reterr)
{
        _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
        Gather *gather = read->gather;
        int r;

        r = gather->second ? placement_get_consumer(&read->uuid, !gather->without_types, &request)
                           : placement_get_provider_allocations(&read->uuid, &request);
        if (r < 0)
                return error_oom(reterr);
        r = session_send(gather->session, &request, on_read, read, &read->call, reterr);
        if (r >= 0)
                gather->n_running++;
        return r;
}

/* No more at a time than there are connections: whoever else has something to send meanwhile waits
 * for one of these, not for all. */
static int begin_reads(Gather *gather, Error *reterr)
{
        while (gather->n_begun < gather->n_reads &&
               gather->n_running < session_get_max_connections(gather->session)) {
                int r = start_read(&gather->reads[gather->n_begun], reterr);

                if (r < 0)
                        return r;
                gather->n_begun++;
        }
        return 0;
}

static int start_reads(Gather *gather, const Uuid *uuids, size_t n, Error *reterr)
{
        free(gather->reads);
        gather->n_reads = gather->n_begun = 0;
        gather->reads = calloc(n + 1, sizeof(Read));
        if (!gather->reads)
                return error_oom(reterr);
        gather->n_reads = n;
        for (size_t i = 0; i < n; i++)
                gather->reads[i] = (Read){ .gather = gather, .uuid = uuids[i] };
        session_widen(gather->session, n);
        return begin_reads(gather, reterr);
}

static bool is_wanted(const Gather *gather, const Consumer *consumer)
{
        for (size_t i = 0; i < gather->classes.n_items; i++)
                if (consumer_sum(consumer, gather->classes.items[i]) > 0)
                        return true;
        return gather->all;
}

/* From the providers to the consumers. A positive number when there is none. */
static int start_second(Gather *gather, Error *reterr)
{
        size_t n = 0;
        _cleanup_free_ Uuid *uuids = calloc(gather->seen->n_consumers + 1, sizeof(Uuid));

        if (!uuids)
                return error_oom(reterr);
        gather->second = true;
        for (size_t i = 0; i < gather->seen->n_consumers; i++)
                if (is_wanted(gather, gather->seen->consumers[i]))
                        uuids[n++] = gather->seen->consumers[i]->uuid;
        return n == 0 ? 1 : start_reads(gather, uuids, n, reterr);
}

/* Those that were read whole are no others. */
static void drop_whole(Gather *gather)
{
        for (size_t i = 0; i < gather->n_reads; i++)
                allocations_remove(gather->seen, &gather->reads[i].uuid);
}

static int take_answer(Read *read, const json_t *body, Error *reterr)
{
        Gather *gather = read->gather;
        int r = gather->second
                        ? placement_read_consumer(body, &read->uuid, gather->consumers, reterr)
                        : placement_read_provider_allocations(body, &read->uuid, gather->seen,
                                                              reterr);

        if (r != -EBADMSG)
                return r;
        error_prefixf(reterr, r, "Placement's answer about allocations of %s", read->uuid.text);
        return REPORT_E_UNAVAILABLE;
}

/* All reads of a round are over. */
static void advance(Gather *gather)
{
        Error error = ERROR_NULL;
        int r = gather->second ? 1 : start_second(gather, &error);

        if (r > 0 && gather->n_reads > 0 && gather->second)
                drop_whole(gather);
        if (r != 0)
                finish(gather, r < 0 ? r : REPORT_DONE, &error);
}

static void on_read(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        Read *read = userdata;
        Gather *gather = read->gather;
        Error words = *error;

        read->call = NULL;
        gather->n_running--;
        if (result == REPORT_E_TOO_OLD && gather->second) {
                gather->without_types = true;
                result = start_read(read, &words);
        } else if (result == REPORT_DONE) {
                result = take_answer(read, answer->body, &words);
        } else if (answer->status == 404 && answer->verdict.from_placement) {
                result = REPORT_E_CONFLICT; /* the provider was deleted since it was listed */
        }
        if (result == REPORT_DONE)
                result = begin_reads(gather, &words);
        if (result != REPORT_DONE)
                finish(gather, result, &words);
        else if (gather->n_running == 0)
                advance(gather);
}

int gather_new(Gather **ret, Session *session, const Uuid *providers, size_t n_providers,
               const StringSet *classes, GatherDone done, void *userdata, Error *reterr)
{
        _cleanup_(gather_freep) Gather *gather = calloc(1, sizeof(Gather));
        int r;

        if (!gather || allocations_new(&gather->seen) < 0 ||
            allocations_new(&gather->consumers) < 0 ||
            (classes && string_set_copy(&gather->classes, classes) < 0))
                return error_oom(reterr);
        gather->all = !classes;
        gather->without_types = classes;
        gather->session = session;
        gather->done = done;
        gather->userdata = userdata;
        r = start_reads(gather, providers, n_providers, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(gather);
        return 0;
}

void gather_get_progress(const Gather *gather, Progress *ret)
{
        *ret = (Progress){ .phase = "gathering",
                           .n_done = gather->n_begun - gather->n_running,
                           .n_total = gather->n_reads };
}

Gather *gather_free(Gather *gather)
{
        if (!gather)
                return NULL;
        cancel_all(gather);
        string_set_done(&gather->classes);
        allocations_free(gather->seen);
        allocations_free(gather->consumers);
        free(gather->reads);
        free(gather);
        return NULL;
}
