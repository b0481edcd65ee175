/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the sharing providers of other trees, and the allocated DISK_GB of the root. A refresh has
 * up to three stages: the lists of sharing providers, their parts in parallel, and the usage of the
 * root. A stage without anything to read is skipped. A failure of the lists or parts skips to the
 * usage.
 *
 * The members known and pools have the result of the last complete refresh. The members found and
 * read collect the new one, which replaces the old one when all parts have arrived. So a failure
 * leaves the old result. A tree without aggregates has no sharing providers, so its refresh drops
 * the result at once. A failure after sharing_refresh() has returned does not reach the caller. A
 * failed answer is logged at debug level. */

#include "report/sharing.h"

#include "base/log.h"
#include "report/session/reads.h"

static const char disk_class[] = "DISK_GB";

struct Sharing {
        Session *session;
        Uuid root;
        SharingUse use;
        StringSet asked;                 /* the aggregates for which known was listed */
        uint64_t listed_usec, read_usec; /* CLOCK_MONOTONIC, of the last list and the last parts */
        PlacementProviders known;        /* with the generations of the list before the parts were
                                            read */
        ProviderTree *pools;             /* the same providers with their parts */
        bool is_known;     /* a refresh has succeeded, or the tree had no aggregates */
        bool old;          /* read the list and the parts again, whatever their age */
        uint64_t disk_use; /* usage of the root, in GB */
        bool disk_use_known;

        /* Members of the refresh under way. */
        const ProviderTree *tree;
        StringSet aggregates;
        size_t next; /* index of the first aggregate that was not asked for yet */
        PlacementProviders found;
        ProviderTree *read; /* the providers of found, while their parts are read */
        Reads *reads;
        uint64_t now_usec;
        bool waited;
        SessionCall *call;
        void (*done)(void *userdata);
        void *userdata;
};

int sharing_new(Sharing **ret, Session *session, const Uuid *root, SharingUse use)
{
        Sharing *sharing = calloc(1, sizeof(Sharing));

        if (!sharing)
                return -ENOMEM;
        sharing->session = session;
        sharing->root = *root;
        sharing->use = use;
        *ret = sharing;
        return 0;
}

void sharing_cancel(Sharing *sharing)
{
        if (!sharing)
                return;
        sharing->call = session_call_cancel(sharing->call);
        sharing->reads = reads_free(sharing->reads);
        sharing->read = provider_tree_free(sharing->read);
        placement_providers_done(&sharing->found);
        string_set_done(&sharing->aggregates);
        sharing->tree = NULL;
}

static void drop_known(Sharing *sharing)
{
        placement_providers_done(&sharing->known);
        sharing->pools = provider_tree_free(sharing->pools);
        string_set_done(&sharing->asked);
}

Sharing *sharing_free(Sharing *sharing)
{
        if (!sharing)
                return NULL;
        sharing_cancel(sharing);
        drop_known(sharing);
        free(sharing);
        return NULL;
}

/* Collects the aggregates of all providers of the tree. */
static int collect_aggregates(const ProviderTree *tree, StringSet *ret)
{
        for (size_t i = 0; i < tree->n_providers; i++) {
                const StringSet *aggregates = &tree->providers[i]->aggregates;
                Uuid uuid;

                /* Only valid uuids, because they become part of a path. */
                for (size_t j = 0; j < aggregates->n_items; j++)
                        if (uuid_from_text(aggregates->items[j], &uuid) == 0 &&
                            string_set_add(ret, uuid.text) < 0)
                                return -ENOMEM;
        }
        return 0;
}

static const PlacementProvider *find_provider(const PlacementProviders *providers, const Uuid *uuid)
{
        for (size_t i = 0; i < providers->n_items; i++)
                if (uuid_equal(&providers->items[i].uuid, uuid))
                        return &providers->items[i];
        return NULL;
}

/* Moves the providers of a list to found. Providers of the host's own tree, and those that found
 * has already, are skipped. */
static int take_providers(Sharing *sharing, PlacementProviders *list)
{
        PlacementProviders *found = &sharing->found;
        PlacementProvider *items = reallocarray(found->items, found->n_items + list->n_items + 1,
                                                sizeof(PlacementProvider));

        if (!items)
                return -ENOMEM;
        found->items = items;
        for (size_t i = 0; i < list->n_items; i++) {
                PlacementProvider *item = &list->items[i];

                if (provider_tree_find(sharing->tree, &item->uuid) ||
                    find_provider(found, &item->uuid))
                        continue;
                found->items[found->n_items++] = *item;
                item->name = NULL;
        }
        return 0;
}

static void finish(Sharing *sharing)
{
        sharing_cancel(sharing);
        sharing->done(sharing->userdata);
}

/* The usage of the root. */

static bool has_disk(const ProviderTree *pools)
{
        for (size_t i = 0; pools && i < pools->n_providers; i++)
                if (provider_find_inventory(pools->providers[i], disk_class))
                        return true;
        return false;
}

/* Decides whether the usage must be read: the root has DISK_GB, and the member use says that this
 * inventory leaves Placement always, or while a sharing provider has DISK_GB. */
static bool needs_use(const Sharing *sharing)
{
        const Provider *root = provider_tree_find(sharing->tree, &sharing->root);

        return root && provider_find_inventory(root, disk_class) &&
               (sharing->use == SHARING_USE_ALWAYS ||
                (sharing->use == SHARING_USE_WITH_POOL && has_disk(sharing->pools)));
}

static void on_usages(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        _cleanup_(resources_done) Resources usages = RESOURCES_INIT;
        Sharing *sharing = userdata;
        Error words = *error;
        int r = result == REPORT_DONE ? placement_read_usages(answer->body, &usages, &words) : -EIO;

        sharing->call = NULL;
        if (r < 0)
                log_debug("Usage of the root: %s", error_text(&words, r));
        sharing->disk_use_known = r >= 0;
        sharing->disk_use = resources_get(&usages, disk_class);
        finish(sharing);
}

/* Sends the request for the usage. Returns true if it was sent; then on_usages() ends the
 * refresh. */
static bool ask_for_use(Sharing *sharing)
{
        return needs_use(sharing) &&
               session_send(sharing->session,
                            placement_request("GET", "/resource_providers/{uuid}/usages",
                                              sharing->root.text),
                            on_usages, sharing, &sharing->call, NULL) >= 0;
}

/* Starts the last stage, or ends the refresh. */
static void end_pools(Sharing *sharing)
{
        if (!ask_for_use(sharing))
                finish(sharing);
}

/* Logs the failure of a stage and starts the last stage. The old result stays. */
static void fail(Sharing *sharing, const Error *error, int r)
{
        log_debug("Sharing providers: %s", error_text(error, r));
        end_pools(sharing);
}

/* The parts of the sharing providers. */

/* Replaces the old result with the new one. */
static void keep_read(Sharing *sharing)
{
        drop_known(sharing);
        sharing->known = sharing->found;
        sharing->pools = sharing->found.n_items > 0 ? TAKE_PTR(sharing->read) : NULL;
        sharing->found = PLACEMENT_PROVIDERS_INIT;
        sharing->read_usec = sharing->now_usec;
        sharing->old = false;
}

/* Notes that the list was read, and its time and aggregates for needs_list(). */
static void note_listed(Sharing *sharing)
{
        string_set_done(&sharing->asked);
        sharing->asked = sharing->aggregates;
        sharing->aggregates = STRING_SET_INIT;
        sharing->listed_usec = sharing->now_usec;
        sharing->is_known = true;
}

static PlacementRequest make_request(size_t i, void *userdata)
{
        const Sharing *sharing = userdata;

        return placement_get_part(&sharing->found.items[i / _PLACEMENT_PART_MAX].uuid,
                                  (PlacementPart)(i % _PLACEMENT_PART_MAX));
}

static int on_part(size_t i, int result, const SessionAnswer *answer, Error *error, void *userdata)
{
        Sharing *sharing = userdata;
        Provider *pool = provider_tree_find(sharing->read,
                                            &sharing->found.items[i / _PLACEMENT_PART_MAX].uuid);

        if (result != REPORT_DONE)
                return result;
        return placement_read_part(answer->body, (PlacementPart)(i % _PLACEMENT_PART_MAX), pool,
                                   error) < 0
                       ? REPORT_E_UNAVAILABLE
                       : REPORT_DONE;
}

static void on_parts(int result, const Error *error, void *userdata)
{
        Sharing *sharing = userdata;

        if (result != REPORT_DONE) {
                fail(sharing, error, -EIO);
                return;
        }
        keep_read(sharing);
        note_listed(sharing);
        end_pools(sharing);
}

/* Starts the reads of the parts. Returns 1 if reads were started, 0 if the list has no providers,
 * or a negative errno. */
static int read_parts(Sharing *sharing, Error *reterr)
{
        static const ReadsOps ops = { make_request, on_part, on_parts };
        const PlacementProviders *found = &sharing->found;
        Provider *pool;
        int r = provider_tree_new(&sharing->read);

        for (size_t i = 0; r >= 0 && i < found->n_items; i++)
                r = provider_tree_add(sharing->read, &found->items[i].uuid, found->items[i].name,
                                      NULL, &pool, reterr);
        if (r < 0 || found->n_items == 0)
                return r;
        r = reads_new(&sharing->reads, sharing->session, found->n_items * _PLACEMENT_PART_MAX, &ops,
                      sharing, reterr);
        return r < 0 ? r : 1;
}

/* Checks whether the old parts are still good: sharing_forget() was not called, the providers are
 * the same, and so are the generations if a caller waits or the parts are SHARING_AGE_USEC old. */
static bool are_parts_current(const Sharing *sharing)
{
        bool aged = sharing->now_usec - sharing->read_usec >= SHARING_AGE_USEC;

        if (sharing->old || sharing->found.n_items != sharing->known.n_items)
                return false;
        for (size_t i = 0; i < sharing->found.n_items; i++) {
                const PlacementProvider *found = &sharing->found.items[i],
                                        *known = find_provider(&sharing->known, &found->uuid);

                if (!known || ((aged || sharing->waited) && found->generation != known->generation))
                        return false;
        }
        return true;
}

static void end_list(Sharing *sharing)
{
        Error error = ERROR_NULL;
        int r = are_parts_current(sharing) ? 0 : read_parts(sharing, &error);

        if (r > 0)
                return;
        if (r < 0) {
                fail(sharing, &error, r);
                return;
        }
        if (sharing->read)
                keep_read(sharing);
        note_listed(sharing);
        end_pools(sharing);
}

/* The list of sharing providers. */

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata);

static int ask(Sharing *sharing)
{
        PlacementRequest request = placement_get_in(
                "/resource_providers",
                "?required=MISC_SHARES_VIA_AGGREGATE&member_of=in:", &sharing->aggregates,
                &sharing->next);

        return session_send(sharing->session, request, on_answer, sharing, &sharing->call, NULL);
}

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        _cleanup_(placement_providers_done) PlacementProviders list = PLACEMENT_PROVIDERS_INIT;
        Sharing *sharing = userdata;
        Error words = *error;
        int r = result == REPORT_DONE ? 0 : -EIO;

        sharing->call = NULL;
        if (r == 0)
                r = placement_read_providers(answer->body, &list, &words);
        if (r == 0)
                r = take_providers(sharing, &list);
        if (r == 0 && sharing->next < sharing->aggregates.n_items) {
                r = ask(sharing);
                if (r >= 0)
                        return;
        }
        if (r < 0)
                fail(sharing, &words, r);
        else
                end_list(sharing);
}

/* Checks whether a list is due, as described in sharing.h. */
static bool needs_list(const Sharing *sharing)
{
        return sharing->aggregates.n_items > 0 &&
               (sharing->waited || sharing->old || sharing->known.n_items > 0 ||
                !string_set_equal(&sharing->aggregates, &sharing->asked) ||
                sharing->now_usec - sharing->listed_usec >= SHARING_AGE_USEC);
}

int sharing_refresh(Sharing *sharing, const ProviderTree *tree, bool waited, uint64_t now_usec,
                    void (*done)(void *userdata), void *userdata)
{
        int r;

        sharing_cancel(sharing);
        sharing->disk_use_known = false;
        if (collect_aggregates(tree, &sharing->aggregates) < 0)
                return -ENOMEM;
        if (sharing->aggregates.n_items == 0) {
                drop_known(sharing);
                sharing->is_known = true;
        }
        sharing->tree = tree;
        sharing->waited = waited;
        sharing->now_usec = now_usec;
        sharing->next = 0;
        sharing->done = done;
        sharing->userdata = userdata;
        if (!needs_list(sharing))
                return ask_for_use(sharing);
        r = ask(sharing);
        return r < 0 ? r : 1;
}

void sharing_forget(Sharing *sharing)
{
        sharing->old = true;
}

bool sharing_is_known(const Sharing *sharing)
{
        return sharing->is_known;
}

const ProviderTree *sharing_get(const Sharing *sharing)
{
        return sharing->pools;
}

bool sharing_get_disk_use(const Sharing *sharing, uint64_t *ret)
{
        if (sharing->disk_use_known)
                *ret = sharing->disk_use;
        return sharing->disk_use_known;
}
