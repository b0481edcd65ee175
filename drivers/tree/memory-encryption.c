/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Edits the providers of encrypted memory. A table has one provider for each model of AMD SEV. The
 * number of contexts of a model is the largest one that any emulator reports. A model without
 * contexts loses its provider, if the provider belongs to the agent and the host's contexts are
 * known (knows_all()). SEV-SNP uses the contexts of SEV-ES, so a host with SEV-SNP has no contexts
 * of SEV-ES. A host of another architecture than x86_64 has no contexts. If the emulators are
 * unknown, nothing changes on any host.
 *
 * A context is one guest, so max_unit is 1. The providers are children of the root, with Nova's
 * names and traits.
 *
 * Tests: tests/unit/drivers/tree/test-memory-encryption.c */

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

/* Counts the contexts of each model: the largest number of any emulator, limited to
 * INVENTORY_MAX_AMOUNT. SEV-SNP uses the contexts of SEV-ES, so a host with SNP offers none of
 * SEV-ES. */
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

/* Returns whether a model without contexts has none: all emulators were read, or one has no machine
 * type and thus stands for the host, as that of the linux driver. */
static bool knows_all(const Snapshot *snapshot)
{
        for (size_t i = 0; i < snapshot->n_emulators; i++)
                if (!snapshot->emulators[i].machine[0])
                        return true;
        return !snapshot->emulators_incomplete;
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

/* Creates or adopts the provider and sets its inventory and traits. */
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

/* Returns whether the provider belongs to the agent: it is a child of the root. It also has the
 * trait of the model, the owner trait, or an inventory of contexts and no other one. Older versions
 * of Placement lack the traits of some models. */
static bool is_ours(const TreeUpdate *update, const Provider *provider, Model model)
{
        const char *owner = update->config->owner_trait;

        return uuid_equal(&provider->parent, &update->root->uuid) &&
               (string_set_contains(&provider->traits, models[model].trait) ||
                (owner && owner[0] && string_set_contains(&provider->traits, owner)) ||
                (provider->n_inventories == 1 &&
                 provider_find_inventory(provider, memory_encryption_class)));
}

/* Removes the provider, or its inventories and the model's trait if other writers have providers
 * below it. */
static void withdraw(const TreeUpdate *update, Model model)
{
        Provider *provider = find_provider(update->tree, update->root, model);

        if (!provider || !is_ours(update, provider, model))
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
                else if (knows_all(update->snapshot))
                        withdraw(update, model);
        }
        return r;
}
