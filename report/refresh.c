/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/refresh.h"

#include <string.h>

#include "report/session/reads.h"

/* How often a provider is read that others keep writing to. */
#define ROUNDS_MAX 4

struct Refresh {
        Session *session;
        const Mirror *mirror, *partial;
        Uuid root;
        const char *root_name;
        SessionCall *list_call;
        Mirror *next;
        Uuid *stale;
        unsigned *rounds; /* how often each of these was read */
        size_t n_stale;
        Reads *reads; /* _PLACEMENT_PART_MAX for each of these, in a row */
        RefreshDone done;
        void *userdata;
};

static void finish(int result, const Error *error, void *userdata)
{
        Refresh *refresh = userdata;

        /* The refresh may be gone after this. */
        refresh->done(result, TAKE_PTR(refresh->next), error, refresh->userdata);
}

static PlacementRequest make_request(size_t i, void *userdata)
{
        const Refresh *refresh = userdata;

        return placement_get_part(&refresh->stale[i / _PLACEMENT_PART_MAX],
                                  (PlacementPart)(i % _PLACEMENT_PART_MAX));
}

/* Somebody wrote between the reads of a provider. */
static int read_again(Refresh *refresh, size_t n, Error *reterr)
{
        if (++refresh->rounds[n] >= ROUNDS_MAX) {
                error_setf(reterr, ESTALE, "Provider %s changes faster than it can be read",
                           refresh->stale[n].text);
                return REPORT_E_CONFLICT;
        }
        for (size_t i = 0; i < _PLACEMENT_PART_MAX; i++)
                reads_repeat(refresh->reads, n * _PLACEMENT_PART_MAX + i);
        return REPORT_DONE;
}

static int take_read(Refresh *refresh, size_t i, const json_t *body, Error *reterr)
{
        size_t n = i / _PLACEMENT_PART_MAX;
        int r = mirror_read(refresh->next, &refresh->stale[n],
                            (PlacementPart)(i % _PLACEMENT_PART_MAX), body, reterr);

        if (r == MIRROR_TORN)
                return read_again(refresh, n, reterr);
        if (r == -EBADMSG) {
                error_prefixf(reterr, r, "Placement's answer about provider %s",
                              refresh->stale[n].text);
                return REPORT_E_UNAVAILABLE;
        }
        return r < 0 ? r : REPORT_DONE;
}

static int on_read(size_t i, int result, const SessionAnswer *answer, Error *error, void *userdata)
{
        if (result == REPORT_DONE)
                return take_read(userdata, i, answer->body, error);
        /* it was deleted since it was listed */
        if (answer->status == 404 && answer->verdict.from_placement)
                return REPORT_E_CONFLICT;
        return result;
}

static int start_reads(Refresh *refresh, Error *reterr)
{
        static const ReadsOps ops = { make_request, on_read, finish };

        if (mirror_list_stale(refresh->next, &refresh->stale, &refresh->n_stale) < 0)
                return error_oom(reterr);
        if (refresh->n_stale == 0)
                return 0;
        refresh->rounds = calloc(refresh->n_stale, sizeof(unsigned));
        if (!refresh->rounds)
                return error_oom(reterr);
        return reads_new(&refresh->reads, refresh->session, refresh->n_stale * _PLACEMENT_PART_MAX,
                         &ops, refresh, reterr);
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
        error_setf(
                reterr, EEXIST,
                "Placement knows this host (%s) as \"%.60s\", not as \"%.60s\"; a provider is not renamed by itself: give the host its old name back, or \"computectl identity rename\"",
                root->uuid.text, root->name, refresh->root_name);
        return REPORT_E_REFUSED;
}

static int take_list(Refresh *refresh, const json_t *body, Error *reterr)
{
        _cleanup_(placement_providers_done) PlacementProviders providers = PLACEMENT_PROVIDERS_INIT;
        int r = placement_read_tree(body, &providers, reterr);

        if (r >= 0)
                r = check_root(refresh, &providers, reterr);
        if (r != REPORT_DONE)
                return r;
        if (mirror_is_current(refresh->mirror, &providers))
                return REPORT_DONE;
        r = mirror_make_next(refresh->mirror, refresh->partial, &providers, &refresh->next, reterr);
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
        if (result != REPORT_DONE || !refresh->reads)
                finish(result, &words, refresh);
}

int refresh_new(Refresh **ret, Session *session, const Mirror *mirror, const Mirror *partial,
                const Uuid *root, const char *root_name, RefreshDone done, void *userdata,
                Error *reterr)
{
        _cleanup_(refresh_freep) Refresh *refresh = calloc(1, sizeof(Refresh));
        int r;

        if (!refresh)
                return error_oom(reterr);
        refresh->session = session;
        refresh->mirror = mirror;
        refresh->partial = partial;
        refresh->root = *root;
        refresh->root_name = root_name;
        refresh->done = done;
        refresh->userdata = userdata;
        r = session_send(session, placement_get_tree(root), on_list, refresh, &refresh->list_call,
                         reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(refresh);
        return 0;
}

void refresh_get_progress(const Refresh *refresh, Progress *ret)
{
        *ret = (Progress){ .phase = "reading" };
        if (refresh->reads)
                reads_get_progress(refresh->reads, &ret->n_done, &ret->n_total);
}

Refresh *refresh_free(Refresh *refresh)
{
        if (!refresh)
                return NULL;
        session_call_cancel(refresh->list_call);
        reads_free(refresh->reads);
        free(refresh->stale);
        free(refresh->rounds);
        mirror_free(refresh->next);
        free(refresh);
        return NULL;
}
