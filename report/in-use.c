/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/in-use.h"

#include <string.h>

#include "base/array.h"
#include "report/outcome.h"

typedef struct InUseEntry {
        Provider desired; /* uuid and inventories alone */
        int64_t generation;
        Error error;
} InUseEntry;

static void entry_done(InUseEntry *entry)
{
        provider_clear_inventories(&entry->desired);
        free(entry->desired.inventories);
}

static void remove_entry(InUse *in_use, size_t i)
{
        entry_done(&in_use->entries[i]);
        array_close(in_use->entries, sizeof(InUseEntry), &in_use->n_entries, i);
}

void in_use_done(InUse *in_use)
{
        while (in_use->n_entries > 0)
                remove_entry(in_use, in_use->n_entries - 1);
        free(in_use->entries);
        *in_use = IN_USE_INIT;
}

int in_use_add(InUse *in_use, const Provider *desired, int64_t generation, const char *words)
{
        InUseEntry entry = { .desired.uuid = desired->uuid, .generation = generation };

        for (size_t i = in_use->n_entries; i > 0; i--)
                if (uuid_equal(&in_use->entries[i - 1].desired.uuid, &desired->uuid))
                        remove_entry(in_use, i - 1);
        error_setf(&entry.error, EBUSY, "%s", words);
        if (array_grow(&in_use->entries, sizeof(InUseEntry), in_use->n_entries,
                       &in_use->n_allocated) < 0 ||
            provider_copy_inventories(&entry.desired, desired) < 0)
                return -ENOMEM;
        in_use->entries[in_use->n_entries++] = entry;
        return 0;
}

static bool still_stands(const InUseEntry *entry, const Mirror *mirror, const Provider *desired)
{
        return desired && provider_tree_find(mirror_get_tree(mirror), &desired->uuid) &&
               mirror_get_generation(mirror, &desired->uuid) == entry->generation &&
               provider_inventories_equal(desired, &entry->desired);
}

int in_use_apply(InUse *in_use, const Mirror *mirror, ProviderTree *desired, Error *reterr)
{
        for (size_t i = in_use->n_entries; i > 0; i--) {
                const InUseEntry *entry = &in_use->entries[i - 1];
                Provider *provider = provider_tree_find(desired, &entry->desired.uuid);

                if (!still_stands(entry, mirror, provider))
                        remove_entry(in_use, i - 1);
                else if (provider_copy_inventories(
                                 provider,
                                 provider_tree_find(mirror_get_tree(mirror), &provider->uuid)) < 0)
                        return error_oom(reterr);
        }
        if (in_use->n_entries == 0)
                return 0;
        if (reterr)
                *reterr = in_use->entries[0].error;
        return REPORT_E_IN_USE;
}
