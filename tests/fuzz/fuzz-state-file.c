/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One text as each file of the state folder, read and used as at a start. A text that is accepted
 * is written, and its result must be accepted again. */

#include <sys/stat.h>

#include "agent/health/record.h"
#include "agent/reshape/image.h"
#include "agent/state/identity.h"
#include "agent/tree/cordon.h"
#include "agent/tree/device-ledger.h"
#include "agent/tree/provider-merge.h"
#include "base/json.h"
#include "base/log.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

#define ROOT "11111111-2222-4333-8444-555555555555"

static void write_file(const char *name, const char *text)
{
        char path[128];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), name);
        file = fopen(path, "we");
        assert(file);
        assert(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void remove_file(const char *name)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), name);
        (void)unlink(path);
}

static ProviderTree *make_tree(Uuid *root)
{
        const Inventory vgpus = INVENTORY_DEFAULT(4);
        ProviderTree *tree;
        Provider *host, *gpu;
        Uuid null = { 0 }, uuid;

        assert(uuid_from_text(ROOT, root) == 0);
        uuid = uuid_make_child(root, "gpu");
        assert(provider_tree_new(&tree) == 0);
        assert(provider_tree_add(tree, root, "host", &null, &host, NULL) == 0);
        assert(provider_tree_add(tree, &uuid, "host_pci_0000_41_00_0", root, &gpu, NULL) == 0);
        assert(provider_set_inventory(gpu, "VGPU", &vgpus) == 0);
        return tree;
}

static void ignore_device_change(const LedgerDevice *device, DeviceChange change, void *userdata)
{
}

static void try_ledger(const json_t *json)
{
        static const Snapshot nothing = { .nodename = (char *)"host" };
        _cleanup_(device_ledger_done) DeviceLedger ledger = DEVICE_LEDGER_INIT;
        _cleanup_(device_ledger_done) DeviceLedger again = DEVICE_LEDGER_INIT;
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        _cleanup_json_ json_t *written = NULL;
        DeviceUpdateInput input = { .now_usec = USEC_PER_SEC, .hold_usec = USEC_PER_SEC };
        Uuid root;

        if (device_ledger_from_json(json, &ledger, NULL) < 0)
                return;
        tree = make_tree(&root);
        assert(device_ledger_update(&ledger, &nothing, tree, &root, &input, ignore_device_change,
                                    NULL, NULL) == 0);
        (void)device_ledger_due_usec(&ledger, &input);
        written = device_ledger_to_json(&ledger);
        assert(written && device_ledger_from_json(written, &again, NULL) == 0);
        assert(again.n_devices == ledger.n_devices);
}

static void try_undo(const ReshapeImage *image)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        ReshapeShape shape = { 0 };
        Uuid root;

        tree = make_tree(&root);
        (void)reshape_image_undo(image, tree, image->after.consumers, &shape, NULL);
        provider_tree_free(shape.tree);
        allocations_free(shape.consumers);
}

static void try_image(const json_t *json)
{
        _cleanup_(reshape_image_done) ReshapeImage image = { 0 }, again = { 0 };
        _cleanup_json_ json_t *written = NULL;
        Uuid root;

        if (reshape_image_from_json(json, &image, NULL) < 0)
                return;
        try_undo(&image);
        assert(uuid_from_text(ROOT, &root) == 0);
        written = reshape_image_to_json(&image, &root, "host", NULL);
        assert(written && reshape_image_from_json(written, &again, NULL) == 0);
        assert(again.before.tree->n_providers == image.before.tree->n_providers);
        /* a consumer without allocations is not written */
        assert(again.after.consumers->n_consumers <= image.after.consumers->n_consumers);
}

static void ignore_problem(const char *text, void *userdata)
{
}

static void try_additions(const json_t *json)
{
        static const ProviderYaml nothing = PROVIDER_YAML_INIT;
        ProviderAdditions added = PROVIDER_ADDITIONS_INIT, left, again = PROVIDER_ADDITIONS_INIT;
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        _cleanup_json_ json_t *written = NULL;
        Uuid root;

        if (provider_additions_from_json(json, &added, NULL) < 0)
                return;
        tree = make_tree(&root);
        assert(provider_merge(tree, tree, &nothing, "", &added, &left, ignore_problem, NULL) == 0);
        written = provider_additions_to_json(&added);
        assert(written && provider_additions_from_json(written, &again, NULL) == 0);
        assert(again.n_items == added.n_items);
        provider_additions_done(&added);
        provider_additions_done(&left);
        provider_additions_done(&again);
}

static void try_cordon(const char *text)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        Cordon *cordon = NULL;
        Uuid root;

        write_file("cordon.json", text);
        assert(cordon_new(&cordon, fuzz_folder(), true, NULL) == 0);
        tree = make_tree(&root);
        cordon_clear(cordon, tree, &root, true);
        (void)cordon_apply(cordon, tree, &root, true, NULL);
        (void)cordon_view(cordon);
        cordon_free(cordon);
        remove_file("cordon.json");
        remove_file("cordon.json.corrupt");
}

static void try_health(const char *text)
{
        HealthRecord record, again;
        size_t n_reports;

        write_file("health.json", text);
        assert(health_record_load(&record, fuzz_folder(), NULL) >= 0);
        n_reports = record.n_reports;
        assert(health_record_save(&record, NULL) == 0);
        health_record_done(&record);
        assert(health_record_load(&again, fuzz_folder(), NULL) == 0);
        assert(again.n_reports == n_reports);
        health_record_done(&again);
        remove_file("health.json");
        remove_file("health.json.corrupt");
}

static void try_retained(const char *text)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL, *before = NULL;
        Retained *retained = NULL;
        RetainedTrees trees = { .known = true };
        Uuid root;

        write_file("retained.json", text);
        assert(retained_new(&retained, fuzz_folder(), true, NULL) == 0);
        tree = make_tree(&root);
        before = make_tree(&root);
        retained_clear(retained, before);
        provider_clear_inventories(provider_tree_find_name(tree, "host_pci_0000_41_00_0"));
        trees.base = trees.before = before;
        trees.root = &root;
        assert(retained_apply(retained, &trees, tree, NULL) == 0);
        free(retained_describe(retained, NULL));
        retained_free(retained);
        remove_file("retained.json");
        remove_file("retained.json.corrupt");
}

static void try_identity(const char *text)
{
        _cleanup_free_ char *path = NULL;
        Uuid uuid;

        write_file("compute_id", text);
        if (identity_find(&(Config){ .state_dir = (char *)(uintptr_t)fuzz_folder() }, &uuid, &path,
                          NULL) > 0)
                assert(strlen(uuid.text) == 36);
        remove_file("compute_id");
}

void fuzz_text(const char *text)
{
        _cleanup_json_ json_t *json = NULL;

        log_set_level(LOG_EMERG);
        try_identity(text);
        try_cordon(text);
        try_health(text);
        try_retained(text);
        if (json_parse(text, strlen(text), &json, NULL) < 0)
                return;
        try_ledger(json);
        try_image(json);
        try_additions(json);
}
