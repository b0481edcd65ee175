/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/sharing.h"

#include "base/log.h"

struct Sharing {
        Session *session;
        StringSet asked; /* the aggregates that known belongs to */
        uint64_t asked_usec;
        PlacementProviders known;

        /* Under way. */
        const ProviderTree *tree;
        StringSet aggregates;
        size_t next; /* the first aggregate that was not asked for yet */
        PlacementProviders found;
        uint64_t now_usec;
        SessionCall *call;
        SharingDone done;
        void *userdata;
};

int sharing_new(Sharing **ret, Session *session)
{
        Sharing *sharing = calloc(1, sizeof(Sharing));

        if (!sharing)
                return -ENOMEM;
        sharing->session = session;
        *ret = sharing;
        return 0;
}

void sharing_cancel(Sharing *sharing)
{
        if (!sharing)
                return;
        sharing->call = session_call_cancel(sharing->call);
        placement_providers_done(&sharing->found);
        string_set_done(&sharing->aggregates);
        sharing->tree = NULL;
}

Sharing *sharing_free(Sharing *sharing)
{
        if (!sharing)
                return NULL;
        sharing_cancel(sharing);
        placement_providers_done(&sharing->known);
        string_set_done(&sharing->asked);
        free(sharing);
        return NULL;
}

static int collect_aggregates(const ProviderTree *tree, StringSet *ret)
{
        for (size_t i = 0; i < tree->n_providers; i++) {
                const StringSet *aggregates = &tree->providers[i]->aggregates;
                Uuid uuid;

                /* they become part of a path */
                for (size_t j = 0; j < aggregates->n_items; j++)
                        if (uuid_from_text(aggregates->items[j], &uuid) == 0 &&
                            string_set_add(ret, uuid.text) < 0)
                                return -ENOMEM;
        }
        return 0;
}

static bool is_found(const PlacementProviders *providers, const Uuid *uuid)
{
        for (size_t i = 0; i < providers->n_items; i++)
                if (uuid_equal(&providers->items[i].uuid, uuid))
                        return true;
        return false;
}

/* Moves what is new, and not of the tree itself, from list to what was found. */
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

                if (provider_tree_find(sharing->tree, &item->uuid) || is_found(found, &item->uuid))
                        continue;
                found->items[found->n_items++] = *item;
                item->name = NULL;
        }
        return 0;
}

static void finish(Sharing *sharing, bool complete)
{
        if (complete) {
                placement_providers_done(&sharing->known);
                string_set_done(&sharing->asked);
                sharing->known = sharing->found;
                sharing->asked = sharing->aggregates;
                sharing->asked_usec = sharing->now_usec;
                sharing->found = PLACEMENT_PROVIDERS_INIT;
                sharing->aggregates = STRING_SET_INIT;
        }
        sharing_cancel(sharing);
        sharing->done(sharing->userdata);
}

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata);

static int ask(Sharing *sharing)
{
        return session_send(sharing->session,
                            placement_get_sharing_providers(&sharing->aggregates, &sharing->next),
                            on_answer, sharing, &sharing->call, NULL);
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
                log_debug("Sharing providers: %s", error_text(&words, r));
        finish(sharing, r >= 0);
}

int sharing_refresh(Sharing *sharing, const ProviderTree *tree, uint64_t now_usec, SharingDone done,
                    void *userdata)
{
        int r;

        sharing_cancel(sharing);
        if (collect_aggregates(tree, &sharing->aggregates) < 0)
                return -ENOMEM;
        if (sharing->aggregates.n_items == 0) {
                placement_providers_done(&sharing->known);
                string_set_done(&sharing->asked);
                return 0;
        }
        if (string_set_equal(&sharing->aggregates, &sharing->asked) &&
            now_usec - sharing->asked_usec < SHARING_AGE_USEC)
                return 0;
        sharing->tree = tree;
        sharing->now_usec = now_usec;
        sharing->next = 0;
        sharing->done = done;
        sharing->userdata = userdata;
        r = ask(sharing);
        return r < 0 ? r : 1;
}

void sharing_forget(Sharing *sharing)
{
        string_set_done(&sharing->asked);
}

const PlacementProviders *sharing_get(const Sharing *sharing)
{
        return &sharing->known;
}
