/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/refresh.h"

#include <string.h>

/* How often a provider is read that others keep writing to. */
#define ROUNDS_MAX 4

/* One read: a part of a provider. */
typedef struct Read {
        Refresh *refresh;
        Uuid provider;
        MirrorPart part;
        unsigned round;
        SessionCall *call; /* NULL: not under way */
} Read;

struct Refresh {
        Session *session;
        const Mirror *mirror;
        Uuid root;
        const char *root_name;
        SessionCall *list_call;
        Mirror *next;
        Read *reads; /* _MIRROR_PART_MAX for each stale provider, in a row */
        size_t n_reads, n_running;
        RefreshDone done;
        void *userdata;
};

static void finish(Refresh *refresh, int result, const Error *error)
{
        Mirror *next = result == REPORT_DONE ? TAKE_PTR(refresh->next) : NULL;

        /* What still runs is of no more use. */
        for (size_t i = 0; i < refresh->n_reads; i++)
                refresh->reads[i].call = session_call_cancel(refresh->reads[i].call);
        /* The refresh may be gone after this. */
        refresh->done(result, next, error, refresh->userdata);
}

static int make_request(const Read *read, PlacementRequest *ret)
{
        switch (read->part) {
        case MIRROR_INVENTORIES:
                return placement_get_inventories(&read->provider, ret);
        case MIRROR_TRAITS:
                return placement_get_traits(&read->provider, ret);
        default:
                return placement_get_aggregates(&read->provider, ret);
        }
}

static void on_read(int result, const SessionAnswer *answer, const Error *error, void *userdata);

static int start_read(Read *read, Error *reterr)
{
        _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
        int r;

        if (make_request(read, &request) < 0)
                return error_oom(reterr);
        r = session_send(read->refresh->session, &request, on_read, read, &read->call, reterr);
        if (r >= 0)
                read->refresh->n_running++;
        return r;
}

/* Somebody wrote between the reads of a provider. */
static int read_again(Read *read, Error *reterr)
{
        Refresh *refresh = read->refresh;
        size_t first = (size_t)(read - refresh->reads);
        int r = 0;

        first -= first % _MIRROR_PART_MAX;
        if (read->round + 1 >= ROUNDS_MAX) {
                error_setf(reterr, ESTALE, "Provider %s changes faster than it can be read",
                           read->provider.text);
                return REPORT_E_CONFLICT;
        }
        for (size_t i = first; r >= 0 && i < first + _MIRROR_PART_MAX; i++) {
                refresh->reads[i].round++;
                r = start_read(&refresh->reads[i], reterr);
        }
        return r;
}

static int take_read(Read *read, const json_t *body, Error *reterr)
{
        int r = mirror_read(read->refresh->next, &read->provider, read->part, body, reterr);

        if (r == MIRROR_TORN)
                return read_again(read, reterr);
        if (r == -EBADMSG) {
                error_prefixf(reterr, r, "Placement's answer about provider %s",
                              read->provider.text);
                return REPORT_E_UNAVAILABLE;
        }
        return r < 0 ? r : REPORT_DONE;
}

static void on_read(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        Read *read = userdata;
        Refresh *refresh = read->refresh;
        Error words = *error;

        read->call = NULL;
        refresh->n_running--;
        if (result == REPORT_DONE)
                result = take_read(read, answer->body, &words);
        else if (answer->status == 404 && answer->verdict.from_placement)
                result = REPORT_E_CONFLICT; /* it was deleted since it was listed */
        if (result != REPORT_DONE || refresh->n_running == 0)
                finish(refresh, result, &words);
}

static int start_reads(Refresh *refresh, Error *reterr)
{
        _cleanup_free_ Uuid *stale = NULL;
        size_t n;

        if (mirror_list_stale(refresh->next, &stale, &n) < 0)
                return error_oom(reterr);
        refresh->reads = calloc(n * _MIRROR_PART_MAX + 1, sizeof(Read));
        if (!refresh->reads)
                return error_oom(reterr);
        refresh->n_reads = n * _MIRROR_PART_MAX;
        for (size_t i = 0; i < refresh->n_reads; i++) {
                int r;

                refresh->reads[i] = (Read){
                        .refresh = refresh,
                        .provider = stale[i / _MIRROR_PART_MAX],
                        .part = (MirrorPart)(i % _MIRROR_PART_MAX),
                };
                r = start_read(&refresh->reads[i], reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int check_root(const Refresh *refresh, const PlacementProviders *providers, Error *reterr)
{
        const PlacementProvider *root = NULL;

        for (size_t i = 0; i < providers->n_items; i++)
                if (uuid_equal(&providers->items[i].uuid, &refresh->root))
                        root = &providers->items[i];
        if (!root && providers->n_items > 0)
                return error_setf(reterr, EBADMSG, "The tree of %s comes without it",
                                  refresh->root.text);
        if (!root || strcmp(root->name, refresh->root_name) == 0)
                return REPORT_DONE;
        error_setf(reterr, EEXIST,
                   "Placement knows this host (%s) as \"%.60s\", not as \"%.60s\"; a provider is "
                   "not renamed by itself: give the host its old name back, or \"computectl "
                   "identity rename\"",
                   root->uuid.text, root->name, refresh->root_name);
        return REPORT_E_REFUSED;
}

static int take_list(Refresh *refresh, const json_t *body, Error *reterr)
{
        _cleanup_(placement_providers_done) PlacementProviders providers = PLACEMENT_PROVIDERS_INIT;
        int r;

        r = placement_read_tree(body, &providers, reterr);
        if (r >= 0)
                r = check_root(refresh, &providers, reterr);
        if (r != REPORT_DONE)
                return r;
        if (mirror_is_current(refresh->mirror, &providers))
                return REPORT_DONE;
        r = mirror_make_next(refresh->mirror, &providers, &refresh->next, reterr);
        return r < 0 ? r : start_reads(refresh, reterr);
}

static void on_list(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        Refresh *refresh = userdata;
        Error words = *error;

        refresh->list_call = NULL;
        if (result == REPORT_DONE)
                result = take_list(refresh, answer->body, &words);
        if (result == -EBADMSG) {
                error_prefixf(&words, result, "Placement's list of providers");
                result = REPORT_E_UNAVAILABLE;
        }
        if (result != REPORT_DONE || refresh->n_running == 0)
                finish(refresh, result, &words);
}

int refresh_new(Refresh **ret, Session *session, const Mirror *mirror, const Uuid *root,
                const char *root_name, RefreshDone done, void *userdata, Error *reterr)
{
        _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
        _cleanup_(refresh_freep) Refresh *refresh = calloc(1, sizeof(Refresh));
        int r;

        if (!refresh || placement_get_tree(root, &request) < 0)
                return error_oom(reterr);
        refresh->session = session;
        refresh->mirror = mirror;
        refresh->root = *root;
        refresh->root_name = root_name;
        refresh->done = done;
        refresh->userdata = userdata;
        r = session_send(session, &request, on_list, refresh, &refresh->list_call, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(refresh);
        return 0;
}

void refresh_get_progress(const Refresh *refresh, Progress *ret)
{
        *ret = (Progress){ .phase = "reading",
                           .n_done = refresh->n_reads - refresh->n_running,
                           .n_total = refresh->n_reads };
}

Refresh *refresh_free(Refresh *refresh)
{
        if (!refresh)
                return NULL;
        session_call_cancel(refresh->list_call);
        for (size_t i = 0; i < refresh->n_reads; i++)
                session_call_cancel(refresh->reads[i].call);
        free(refresh->reads);
        mirror_free(refresh->next);
        free(refresh);
        return NULL;
}
