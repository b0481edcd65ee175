/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads from Placement the content that the mirror lacks. A refresh of providers reads the list of
 * the tree. If the list equals the mirror, and the mirror is not doubtful, the refresh ends. If
 * not, it makes the next mirror from the list. It copies each provider that the mirror or an
 * unfinished refresh has in the same generation, and reads the parts of the others. From a doubtful
 * mirror (is_doubtful()) it copies none. After a failure the callback gets the next mirror as far
 * as it was read, or NULL. A refresh of names sends one request after another: each for as many
 * traits as fit into a path, and a last one for all classes, if there are any. It stores the
 * answers in the present mirror.
 *
 * Tests: tests/unit/report/test-reporter.c */

#include "report/refresh.h"

#include <assert.h>
#include <string.h>

#include "report/session/reads.h"

/* Limit for the reads of one provider (all its parts) that other writers keep changing. */
#define ROUNDS_MAX 4

struct Refresh {
        Session *session;
        SessionCall *call; /* request for the list, for traits or for classes */
        void (*done)(int result, Mirror *next, const Error *error, void *userdata);
        void *userdata;

        /* Used by refresh_new() alone. */
        Mirror *mirror;        /* the current mirror, borrowed */
        const Mirror *partial; /* the result of a failed refresh, borrowed; NULL: none */
        Uuid root;
        const char *root_name;
        Mirror *next;
        Uuid *stale;      /* the providers of next that must be read */
        unsigned *rounds; /* for each stale provider, how often its generation changed between the
                             reads of its parts */
        size_t n_stale;
        Reads *reads; /* _PLACEMENT_PART_MAX consecutive items for each provider of stale */

        /* Used by refresh_names_new() alone. */
        Mirror *trait_mirror; /* borrowed; gets the answers about traits and classes */
        StringSet traits, classes;
        size_t first_trait, next_trait; /* range of the traits in the request under way */
};

/* Runs the callback and passes the next mirror to it, also after a failure. */
static void finish(int result, const Error *error, void *userdata)
{
        Refresh *refresh = userdata;

        /* The callback can free the refresh. */
        refresh->done(result, TAKE_PTR(refresh->next), error, refresh->userdata);
}

static PlacementRequest make_request(size_t i, void *userdata)
{
        const Refresh *refresh = userdata;

        return placement_get_part(&refresh->stale[i / _PLACEMENT_PART_MAX],
                                  (PlacementPart)(i % _PLACEMENT_PART_MAX));
}

/* Reads all parts of a provider again, because its generation changed between the reads of its
 * parts. Returns REPORT_E_CONFLICT when that happens for the ROUNDS_MAX-th time. */
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

/* Stores the part that the i-th read returned. */
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
        /* The provider was deleted after the list was read. The refresh fails; the next one reads
         * the new list. */
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

/* Checks that Placement has the root under the configured name. An empty list is fine: the host is
 * new. Returns REPORT_E_REFUSED for another name. Returns -EBADMSG for a tree without its root,
 * which on_list() reports as REPORT_E_UNAVAILABLE. */
static int check_root(const Refresh *refresh, const PlacementProviders *providers, Error *reterr)
{
        const PlacementProvider *root = NULL;

        for (size_t i = 0; i < providers->n_items; i++)
                if (uuid_equal(&providers->items[i].uuid, &refresh->root))
                        root = &providers->items[i];
        if (!root && providers->n_items > 0)
                return error_setf(reterr, EBADMSG,
                                  "Placement returned the tree of %s without this root",
                                  refresh->root.text);
        if (!root || strcmp(root->name, refresh->root_name) == 0)
                return REPORT_DONE;
        error_setf(
                reterr, EEXIST,
                "Placement has this host (%s) as \"%.60s\", not as \"%.60s\". Nothing is written to it. If another host has the old name, this host is a clone of it: stop the agent, and remove compute_id and the other files of state_dir. If not, restore the old name of the host, or run \"computectl identity rename\"",
                root->uuid.text, root->name, refresh->root_name);
        return REPORT_E_REFUSED;
}

/* Checks whether the mirror can be wrong about a provider that has the generation of the list. A
 * provider that was deleted and created again can have its old generation, but then the list has
 * another last-modified. So a mirror that this process read is doubtful if all generations are
 * equal and last-modified differs. If a generation differs, the change of that provider explains
 * the other last-modified, so the mirror is not doubtful. A mirror that forgot its list, for
 * example by a write of this process, is not doubtful either: it has no last-modified to compare. A
 * mirror that was restored from an earlier process has no fingerprint of the list. It is doubtful
 * unless it has the providers, generations and last-modified of the list. */
static bool is_doubtful(const Refresh *refresh, bool is_current, uint64_t modified_sec)
{
        const PlacementSeen *last = refresh->mirror->list;
        bool is_restored = last && last->body.size == 0;

        if (!last || (is_restored && !is_current))
                return is_restored;
        return is_current && last->modified_sec != modified_sec;
}

/* Compares the list with the mirror, and starts the reads. If nothing changed, no mirror is made
 * and the refresh ends. A doubtful mirror loses its generations at once, and is read again as a
 * whole. */
static int take_list(Refresh *refresh, const SessionAnswer *answer, Error *reterr)
{
        _cleanup_(placement_providers_done) PlacementProviders providers = PLACEMENT_PROVIDERS_INIT;
        const PlacementSeen seen = { .body = fingerprint_make(answer->text, answer->size),
                                     .modified_sec = answer->modified_sec };
        bool is_current;
        int r = placement_read_tree(answer->body, &providers, reterr);

        if (r >= 0)
                r = check_root(refresh, &providers, reterr);
        if (r != REPORT_DONE)
                return r;
        is_current = mirror_is_current(refresh->mirror, &providers);
        if (is_doubtful(refresh, is_current, seen.modified_sec)) {
                mirror_forget_generations(refresh->mirror);
                refresh->partial = NULL;
        } else if (is_current) {
                mirror_set_list(refresh->mirror, &seen);
                return REPORT_DONE;
        }
        r = mirror_make_next(refresh->mirror, refresh->partial, &providers, &refresh->next, reterr);
        if (r < 0)
                return r;
        mirror_set_list(refresh->next, &seen);
        return start_reads(refresh, reterr);
}

static void on_list(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        Refresh *refresh = userdata;
        Error words = *error;

        refresh->call = NULL;
        if (result == REPORT_DONE && !answer->unchanged)
                result = take_list(refresh, answer, &words);
        if (result == -EBADMSG) {
                error_prefixf(&words, result, "Placement's list of providers");
                result = REPORT_E_UNAVAILABLE;
        }
        if (result != REPORT_DONE || !refresh->reads)
                finish(result, &words, refresh);
}

int refresh_new(Refresh **ret, Session *session, Mirror *mirror, const Mirror *partial,
                const Uuid *root, const char *root_name,
                void (*done)(int result, Mirror *next, const Error *error, void *userdata),
                void *userdata, Error *reterr)
{
        _cleanup_(refresh_freep) Refresh *refresh = calloc(1, sizeof(Refresh));
        PlacementRequest request;
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
        request = placement_get_tree(root);
        if (mirror->list)
                request.seen = *mirror->list;
        r = session_send(session, request, on_list, refresh, &refresh->call, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(refresh);
        return 0;
}

/* Names */

/* Stores for each trait of the last request whether Placement has it. */
static int take_traits(Refresh *refresh, const json_t *body, Error *reterr)
{
        _cleanup_(string_set_done) StringSet found = STRING_SET_INIT;
        int r = placement_read_traits(body, &found, reterr);

        if (r == -EBADMSG) {
                error_prefixf(reterr, r, "Placement's list of traits");
                return REPORT_E_UNAVAILABLE;
        }
        for (; r >= 0 && refresh->first_trait < refresh->next_trait; refresh->first_trait++) {
                const char *name = refresh->traits.items[refresh->first_trait];

                r = mirror_learn(refresh->trait_mirror, PLACEMENT_TRAITS, name,
                                 string_set_contains(&found, name));
        }
        return r < 0 ? error_oom(reterr) : REPORT_DONE;
}

/* Stores for each class whether Placement has it. */
static int take_classes(Refresh *refresh, const json_t *body, Error *reterr)
{
        _cleanup_(string_set_done) StringSet found = STRING_SET_INIT;
        int r = placement_read_classes(body, &refresh->classes, &found, reterr);

        if (r == -EBADMSG) {
                error_prefixf(reterr, r, "Placement's list of resource classes");
                return REPORT_E_UNAVAILABLE;
        }
        for (size_t i = 0; r >= 0 && i < refresh->classes.n_items; i++) {
                const char *name = refresh->classes.items[i];

                r = mirror_learn(refresh->trait_mirror, PLACEMENT_INVENTORIES, name,
                                 string_set_contains(&found, name));
        }
        return r < 0 ? error_oom(reterr) : REPORT_DONE;
}

static void on_classes(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        Refresh *refresh = userdata;
        Error words = *error;

        refresh->call = NULL;
        if (result == REPORT_DONE)
                result = take_classes(refresh, answer->body, &words);
        finish(result, &words, refresh);
}

static void on_traits(int result, const SessionAnswer *answer, const Error *error, void *userdata);

/* Sends the next request: for traits first, then for all classes. Returns 0, 1 if no name is left,
 * or a negative errno. */
static int ask_for_names(Refresh *refresh, Error *reterr)
{
        if (refresh->next_trait < refresh->traits.n_items)
                return session_send(refresh->session,
                                    placement_get_in("/traits", "?name=in:", &refresh->traits,
                                                     &refresh->next_trait),
                                    on_traits, refresh, &refresh->call, reterr);
        if (refresh->classes.n_items == 0)
                return 1;
        return session_send(refresh->session, placement_request("GET", "/resource_classes", ""),
                            on_classes, refresh, &refresh->call, reterr);
}

static void on_traits(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        Refresh *refresh = userdata;
        Error words = *error;
        int r = 1;

        refresh->call = NULL;
        if (result == REPORT_DONE)
                result = take_traits(refresh, answer->body, &words);
        if (result == REPORT_DONE)
                r = ask_for_names(refresh, &words);
        if (r != 0)
                finish(r < 0 ? r : result, &words, refresh);
}

int refresh_names_new(Refresh **ret, Session *session, Mirror *mirror, const StringSet *traits,
                      const StringSet *classes,
                      void (*done)(int result, Mirror *next, const Error *error, void *userdata),
                      void *userdata, Error *reterr)
{
        _cleanup_(refresh_freep) Refresh *refresh = calloc(1, sizeof(Refresh));
        int r;

        assert(traits->n_items + classes->n_items > 0);
        if (!refresh || string_set_copy(&refresh->traits, traits) < 0 ||
            string_set_copy(&refresh->classes, classes) < 0)
                return error_oom(reterr);
        refresh->session = session;
        refresh->trait_mirror = mirror;
        refresh->done = done;
        refresh->userdata = userdata;
        r = ask_for_names(refresh, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(refresh);
        return 0;
}

bool refresh_knows_root(const Refresh *refresh)
{
        return refresh->next;
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
        session_call_cancel(refresh->call);
        reads_free(refresh->reads);
        free(refresh->stale);
        free(refresh->rounds);
        mirror_free(refresh->next);
        string_set_done(&refresh->traits);
        string_set_done(&refresh->classes);
        free(refresh);
        return NULL;
}
