/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A table has the providers by model. Their contexts are counted from the emulators. A provider
 * whose model has none goes, if it is ours. */

#include "drivers/tree/memory-encryption.h"

#include <string.h>

const char memory_encryption_class[] = "MEM_ENCRYPTION_CONTEXT";

typedef enum Model {
        MODEL_SEV,
        MODEL_SEV_ES,
        MODEL_SEV_SNP,
        _MODEL_MAX,
} Model;

static const struct {
        const char *suffix;
        const char *trait;
} models[_MODEL_MAX] = {
        [MODEL_SEV] = { "_amd_sev", "HW_CPU_X86_AMD_SEV" },
        [MODEL_SEV_ES] = { "_amd_sev_es", "HW_CPU_X86_AMD_SEV_ES" },
        [MODEL_SEV_SNP] = { "_amd_sev_snp", "HW_CPU_X86_AMD_SEV_SNP" },
};

/* How many contexts of each the host has: the most that any of its machine types may use. SNP takes
 * the contexts of SEV-ES for itself. */
static void count_contexts(const Snapshot *snapshot, uint64_t ret[static _MODEL_MAX])
{
        memset(ret, 0, _MODEL_MAX * sizeof(uint64_t));
        if (strcmp(snapshot->arch, "x86_64") != 0)
                return;
        for (size_t i = 0; i < snapshot->n_emulators; i++) {
                const SnapshotEmulator *emulator = &snapshot->emulators[i];

                if (emulator->sev)
                        ret[MODEL_SEV] = MAX(ret[MODEL_SEV], emulator->sev_max_guests);
                if (emulator->sev_es)
                        ret[MODEL_SEV_ES] = MAX(ret[MODEL_SEV_ES], emulator->sev_es_max_guests);
                if (emulator->sev_snp)
                        ret[MODEL_SEV_SNP] = MAX(ret[MODEL_SEV_SNP], emulator->sev_es_max_guests);
        }
        if (ret[MODEL_SEV_SNP] > 0)
                ret[MODEL_SEV_ES] = 0;
        for (Model model = 0; model < _MODEL_MAX; model++)
                ret[model] = MIN(ret[model], INVENTORY_MAX_AMOUNT);
}

static void make_name(const Provider *root, Model model, char ret[static CHILD_NAME_SIZE])
{
        snprintf(ret, CHILD_NAME_SIZE, "%s%s", root->name, models[model].suffix);
}

static Provider *find_provider(const ProviderTree *tree, const Provider *root, Model model)
{
        char name[CHILD_NAME_SIZE];

        make_name(root, model, name);
        return provider_tree_find_name(tree, name);
}

const Provider *memory_encryption_find_sev(const ProviderTree *tree, const Provider *root)
{
        const Provider *provider = find_provider(tree, root, MODEL_SEV);

        return provider && provider_find_inventory(provider, memory_encryption_class) ? provider
                                                                                      : NULL;
}

static int offer(TreeUpdate *update, Model model, uint64_t contexts, Error *reterr)
{
        Inventory record = INVENTORY_DEFAULT(contexts);
        char name[CHILD_NAME_SIZE];
        Provider *provider;
        int r;

        make_name(update->root, model, name);
        r = child_provider_ensure(update, update->root, name, &provider);
        if (r < 0)
                return error_oom(reterr);
        if (!provider)
                return 0;
        record.max_unit = 1;
        provider_clear_inventories(provider);
        if (provider_set_inventory(provider, memory_encryption_class, &record) < 0 ||
            string_set_add(&provider->traits, models[model].trait) < 0 ||
            child_provider_own(update, provider) < 0)
                return error_oom(reterr);
        return 0;
}

/* By its trait, or what it has: an older Placement does not know the traits of all models. */
static bool is_ours(const Provider *provider, const Provider *root, Model model)
{
        return uuid_equal(&provider->parent, &root->uuid) &&
               (string_set_contains(&provider->traits, models[model].trait) ||
                (provider->n_inventories == 1 &&
                 provider_find_inventory(provider, memory_encryption_class)));
}

static void withdraw(const TreeUpdate *update, Model model)
{
        Provider *provider = find_provider(update->tree, update->root, model);

        if (!provider || !is_ours(provider, update->root, model))
                return;
        if (!child_provider_remove(update, provider))
                string_set_remove(&provider->traits, models[model].trait);
}

int memory_encryption_update(TreeUpdate *update, Error *reterr)
{
        uint64_t contexts[_MODEL_MAX];
        int r = 0;

        if (update->snapshot->n_emulators == 0)
                return 0;
        count_contexts(update->snapshot, contexts);
        for (Model model = 0; r == 0 && model < _MODEL_MAX; model++) {
                if (contexts[model] > 0)
                        r = offer(update, model, contexts[model], reterr);
                else
                        withdraw(update, model);
        }
        return r;
}
