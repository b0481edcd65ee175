/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/documents.h"

#include <errno.h>

#include "agent/formats/interface.h"
#include "agent/formats/tree-json.h"
#include "base/json.h"

void bus_documents_forget(BusDocuments *documents)
{
        for (size_t i = 0; i < _BUS_DOCUMENT_MAX; i++) {
                free(documents->texts[i]);
                documents->texts[i] = NULL;
        }
}

void bus_documents_done(BusDocuments *documents)
{
        bus_documents_forget(documents);
        snapshot_unref(documents->snapshot);
        documents->snapshot = NULL;
}

static int not_ready(const BusConfig *config, sd_bus_error *error)
{
        const TrackerStatus *status = tracker_get_status(config->tracker);

        return sd_bus_error_setf(error, BUS_ERROR_NOT_READY, "%s",
                                 status->hypervisor_error.code ? status->hypervisor_error.text
                                                               : "The host was not polled yet");
}

static int add_sharing(json_t *document, const PlacementProviders *sharing)
{
        _cleanup_json_ json_t *names = json_array();

        for (size_t i = 0; sharing && i < sharing->n_items; i++)
                if (json_array_append_new(names, json_string(sharing->items[i].name)) < 0)
                        return -ENOMEM;
        return json_object_set(document, "shares", names);
}

static int add_cordons(json_t *document, const ProviderTree *tree, const BusConfig *config)
{
        json_t *providers = json_object_get(document, "providers");

        for (size_t i = 0; i < tree->n_providers; i++) {
                bool cordoned = cordon_covers(config->cordon, tree, &config->root,
                                              &tree->providers[i]->uuid);

                if (json_object_set_new(json_array_get(providers, i), "cordoned",
                                        json_boolean(cordoned)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int make_tree(const BusConfig *config, json_t **ret, sd_bus_error *error)
{
        const ProviderTree *tree = tracker_get_tree(config->tracker);
        const Snapshot *snapshot = tracker_get_snapshot(config->tracker);
        Claims *claims = claim_service_get(config->claims);
        const HostView *view = NULL;
        _cleanup_json_ json_t *document = NULL;

        if (!tree || !snapshot)
                return not_ready(config, error);
        if (claims)
                claim_service_check(config->claims, claims_host(claims, &view, NULL));
        document =
                tree_to_json(tree, view, &config->root, snapshot->nodename,
                             sync_state_to_text(tracker_get_status(config->tracker)->sync_state));
        if (!document || add_sharing(document, tracker_get_sharing(config->tracker)) < 0 ||
            add_cordons(document, tree, config) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(document);
        return 0;
}

static int make_plan(const BusConfig *config, json_t **ret, sd_bus_error *error)
{
        _cleanup_(plan_freep) Plan *plan = NULL;
        Error words = ERROR_NULL;
        int r = tracker_plan(config->tracker, &plan, &words);

        if (r < 0)
                return sd_bus_error_setf(error, BUS_ERROR_NOT_READY, "%s", error_text(&words, r));
        *ret = plan_to_json(plan);
        return 0;
}

static int make_host(const BusConfig *config, json_t **ret, sd_bus_error *error)
{
        const Snapshot *snapshot = tracker_get_snapshot(config->tracker);

        if (!snapshot)
                return not_ready(config, error);
        *ret = snapshot_to_json(snapshot);
        return 0;
}

/* A new poll, or the end of a cycle, makes all of them old, also when nobody told. */
static void look_for_changes(BusDocuments *documents)
{
        const Snapshot *snapshot = tracker_get_snapshot(documents->config->tracker);
        uint64_t n_cycles = tracker_get_status(documents->config->tracker)->n_cycles;

        if (snapshot == documents->snapshot && n_cycles == documents->n_cycles)
                return;
        bus_documents_forget(documents);
        snapshot_unref(documents->snapshot);
        documents->snapshot = snapshot ? snapshot_ref(snapshot) : NULL;
        documents->n_cycles = n_cycles;
}

int bus_documents_reply(BusDocuments *documents, BusDocument document, sd_bus_message *call,
                        sd_bus_error *error)
{
        static int (*const makers[_BUS_DOCUMENT_MAX])(const BusConfig *, json_t **,
                                                      sd_bus_error *) = {
                [BUS_DOCUMENT_TREE] = make_tree,
                [BUS_DOCUMENT_PLAN] = make_plan,
                [BUS_DOCUMENT_HOST] = make_host,
        };
        char **text = &documents->texts[document];

        look_for_changes(documents);
        if (!*text) {
                _cleanup_json_ json_t *made = NULL;
                int r = makers[document](documents->config, &made, error);

                if (r < 0)
                        return r;
                *text = made ? json_dumps(made, JSON_COMPACT) : NULL;
                if (!*text)
                        return -ENOMEM;
        }
        return sd_bus_reply_method_return(call, "s", *text);
}
