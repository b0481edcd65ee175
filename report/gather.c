/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads from Placement the consumers with allocations of some providers. A gathering has two stages
 * of parallel reads (report/session/reads.h). The first reads the allocations of each provider into
 * seen: consumers with their parts on these providers only. The second reads each wanted consumer
 * completely into consumers. A consumer is wanted if it has an allocation of one of the classes on
 * these providers, or if classes is NULL. An empty set of classes wants none. At the end the
 * consumers of the second stage are removed from seen, and the rest are the others. If no consumer
 * is wanted, there is no second stage.
 *
 * gather_consumers_new() begins with the second stage. When the service is too old for types of
 * consumers, each read that failed for it is repeated without the type, and all later ones omit it.
 * A read is repeated once, and a service that is too old for the repeated read too is a failure.
 * The outcome of a failure is the worst of all reads (reads.h), and the callback then gets no
 * consumers. A provider that was deleted counts as REPORT_E_CONFLICT, a body of another form as
 * REPORT_E_UNAVAILABLE. */

#include "report/gather.h"

#include <string.h>

#include "report/session/reads.h"

struct Gather {
        Session *session;
        StringSet classes;  /* consumers with allocations of these are wanted */
        bool all;           /* every consumer is wanted */
        bool without_types; /* types are not needed, or the service is too old for them */
        bool *sent_typed;   /* for each uuid: its last read asked for the type */
        Uuid *uuids;        /* the providers to read; in the second stage the consumers */
        size_t n_uuids;
        Reads *reads;
        bool second; /* the second stage is running */
        Allocations *seen, *consumers;
        GatherDone done;
        void *userdata;
};

static PlacementRequest make_request(size_t i, void *userdata)
{
        Gather *gather = userdata;
        const Uuid *uuid = &gather->uuids[i];

        gather->sent_typed[i] = gather->second && !gather->without_types;
        return gather->second ? placement_get_consumer(uuid, gather->sent_typed[i])
                              : placement_get_provider_allocations(uuid);
}

/* Stores a consumer with all its allocations. A consumer without allocations leaves no entry. */
static int take_consumer(Gather *gather, const Uuid *uuid, const SessionAnswer *answer,
                         Error *reterr)
{
        int r = placement_read_consumer(answer->body, uuid, gather->consumers, reterr);
        Consumer *consumer = r == 0 ? allocations_find(gather->consumers, uuid) : NULL;

        if (consumer)
                consumer->modified_sec = answer->modified_sec;
        return r;
}

/* Stores the allocations in the answer to a read of either stage. */
static int take_answer(Gather *gather, size_t i, const SessionAnswer *answer, Error *reterr)
{
        const Uuid *uuid = &gather->uuids[i];
        int r = gather->second ? take_consumer(gather, uuid, answer, reterr)
                               : placement_read_provider_allocations(answer->body, uuid,
                                                                     gather->seen, reterr);

        if (r != -EBADMSG)
                return r;
        error_prefixf(reterr, r, "Placement's answer about allocations of %s", uuid->text);
        return REPORT_E_UNAVAILABLE;
}

static int on_read(size_t i, int result, const SessionAnswer *answer, Error *error, void *userdata)
{
        Gather *gather = userdata;

        if (result == REPORT_DONE)
                return take_answer(gather, i, answer, error);
        if (result == REPORT_E_TOO_OLD && gather->sent_typed[i]) {
                gather->without_types = true;
                reads_repeat(gather->reads, i);
                return REPORT_DONE;
        }
        /* The provider was deleted after it was listed. */
        if (answer->status == 404 && answer->verdict.from_placement)
                return REPORT_E_CONFLICT;
        return result;
}

/* Checks whether the consumer has an allocation of one of the wanted classes, or all consumers are
 * wanted. */
static bool is_wanted(const Gather *gather, const Consumer *consumer)
{
        for (size_t i = 0; i < gather->classes.n_items; i++)
                if (consumer_sum(consumer, gather->classes.items[i]) > 0)
                        return true;
        return gather->all;
}

static void on_all_read(int result, const Error *error, void *userdata);

static int start_reads(Gather *gather, Error *reterr)
{
        static const ReadsOps ops = { make_request, on_read, on_all_read };

        gather->reads = reads_free(gather->reads);
        free(gather->sent_typed);
        gather->sent_typed = calloc(gather->n_uuids, sizeof(bool));
        if (!gather->sent_typed)
                return error_oom(reterr);
        return reads_new(&gather->reads, gather->session, gather->n_uuids, &ops, gather, reterr);
}

/* Starts the second stage, the reads of the wanted consumers. Returns 0, 1 if no consumer is
 * wanted, or a negative errno. */
static int start_second(Gather *gather, Error *reterr)
{
        const Allocations *seen = gather->seen;
        Uuid *uuids = calloc(seen->n_consumers + 1, sizeof(Uuid));
        size_t n = 0;

        if (!uuids)
                return error_oom(reterr);
        for (size_t i = 0; i < seen->n_consumers; i++)
                if (is_wanted(gather, seen->consumers[i]))
                        uuids[n++] = seen->consumers[i]->uuid;
        free(gather->uuids);
        gather->uuids = uuids;
        gather->n_uuids = n;
        gather->second = true;
        return n == 0 ? 1 : start_reads(gather, reterr);
}

/* Ends the gathering: runs the callback with both sets of consumers after a success, else without
 * them. */
static void finish(Gather *gather, int result, const Error *error)
{
        bool done = result == REPORT_DONE;

        /* Consumers that were read completely are not among the others. */
        for (size_t i = 0; gather->second && i < gather->n_uuids; i++)
                allocations_remove(gather->seen, &gather->uuids[i]);
        /* The callback can free the gathering. */
        gather->done(result, done ? TAKE_PTR(gather->consumers) : NULL,
                     done ? TAKE_PTR(gather->seen) : NULL, error, gather->userdata);
}

static void on_all_read(int result, const Error *error, void *userdata)
{
        Gather *gather = userdata;
        Error words = *error;
        int r = result;

        if (r == REPORT_DONE && !gather->second) {
                r = start_second(gather, &words);
                if (r == 0)
                        return;
                r = r > 0 ? REPORT_DONE : r;
        }
        finish(gather, r, &words);
}

static int start(Gather **ret, const Gather *like, const StringSet *classes, const Uuid *uuids,
                 size_t n, Error *reterr)
{
        _cleanup_(gather_freep) Gather *gather = calloc(1, sizeof(Gather));
        int r;

        if (!gather)
                return error_oom(reterr);
        *gather = *like;
        gather->uuids = calloc(n, sizeof(Uuid));
        if (!gather->uuids || allocations_new(&gather->seen) < 0 ||
            allocations_new(&gather->consumers) < 0 ||
            (classes && string_set_copy(&gather->classes, classes) < 0))
                return error_oom(reterr);
        memcpy(gather->uuids, uuids, n * sizeof(Uuid));
        gather->n_uuids = n;
        r = start_reads(gather, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(gather);
        return 0;
}

int gather_new(Gather **ret, Session *session, const Uuid *providers, size_t n_providers,
               const StringSet *classes, GatherDone done, void *userdata, Error *reterr)
{
        const Gather like = { .session = session,
                              .all = !classes,
                              .without_types = classes,
                              .done = done,
                              .userdata = userdata };

        return start(ret, &like, classes, providers, n_providers, reterr);
}

int gather_consumers_new(Gather **ret, Session *session, const Uuid *consumers, size_t n_consumers,
                         GatherDone done, void *userdata, Error *reterr)
{
        const Gather like = {
                .session = session, .all = true, .second = true, .done = done, .userdata = userdata
        };

        return start(ret, &like, NULL, consumers, n_consumers, reterr);
}

void gather_get_progress(const Gather *gather, Progress *ret)
{
        *ret = (Progress){ .phase = "gathering" };
        if (gather->reads)
                reads_get_progress(gather->reads, &ret->n_done, &ret->n_total);
}

Gather *gather_free(Gather *gather)
{
        if (!gather)
                return NULL;
        reads_free(gather->reads);
        string_set_done(&gather->classes);
        allocations_free(gather->seen);
        allocations_free(gather->consumers);
        free(gather->uuids);
        free(gather->sent_typed);
        free(gather);
        return NULL;
}
