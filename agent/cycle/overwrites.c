/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares three trees for each value: the one that Placement had after the last attempt (left),
 * the one that the agent wants, and the one that Placement has now (remote). A value is a provider,
 * an inventory or a trait. Outside a pause, left equal to wanted, and remote different, means that
 * another writer has undone the value. Only the host's root and its descendants are compared, and
 * of these only the providers that both left and wanted have. An overwritten value is an Overwrite
 * ("part"), which counts the overwrites and has the end of its pause. During the pause,
 * overwrites_yield() changes the tree to publish to the other writer's value, so that the agent
 * does not rewrite it. The parts are a small unsorted array, so searches are linear. */

#include "agent/cycle/overwrites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Size of the description of a change, in bytes. */
#define HOW_MAX 160

static void part_done(Overwrite *part)
{
        free(part->name);
        free(part->part);
        free(part->how);
}

void overwrites_done(Overwrites *overwrites)
{
        for (size_t i = 0; i < overwrites->n_parts; i++)
                part_done(&overwrites->parts[i]);
        free(overwrites->parts);
        provider_tree_free(overwrites->left);
        *overwrites = (Overwrites){ 0 };
}

static Overwrite *find_part(const Overwrites *overwrites, bool is_trait, const Uuid *uuid,
                            const char *name)
{
        for (size_t i = 0; i < overwrites->n_parts; i++)
                if (overwrites->parts[i].is_trait == is_trait &&
                    uuid_equal(&overwrites->parts[i].uuid, uuid) &&
                    strcmp(overwrites->parts[i].part, name) == 0)
                        return &overwrites->parts[i];
        return NULL;
}

static int add_part(Overwrites *overwrites, bool is_trait, const Provider *provider,
                    const char *name, Overwrite **ret)
{
        Overwrite part = { .is_trait = is_trait,
                           .uuid = provider->uuid,
                           .name = strdup(provider->name),
                           .part = strdup(name) };

        if (!part.name || !part.part ||
            array_grow(&overwrites->parts, sizeof(Overwrite), overwrites->n_parts,
                       &overwrites->n_allocated) < 0) {
                part_done(&part);
                return -ENOMEM;
        }
        overwrites->parts[overwrites->n_parts] = part;
        *ret = &overwrites->parts[overwrites->n_parts++];
        return 0;
}

/* Returns the pause after the n-th overwrite, n at least OVERWRITES_MAX: it doubles up to its
 * maximum. */
static uint64_t pause_usec(unsigned n)
{
        uint64_t pause = OVERWRITES_PAUSE_USEC << MIN(n - OVERWRITES_MAX, 16U);

        return MIN(pause, OVERWRITES_PAUSE_MAX_USEC);
}

/* Counts an overwrite of a value, and begins its pause from the OVERWRITES_MAX-th overwrite on.
 * During the pause the difference is expected and does not count. how: text about the change, for
 * overwrites_describe(). */
static int note(Overwrites *overwrites, bool is_trait, const Provider *provider, const char *name,
                const char *how, uint64_t now_usec)
{
        Overwrite *part = find_part(overwrites, is_trait, &provider->uuid, name);
        char *copy;

        if (!part && add_part(overwrites, is_trait, provider, name, &part) < 0)
                return -ENOMEM;
        if (part->left_until_usec > now_usec)
                return 0;
        copy = strdup(how);
        if (!copy)
                return -ENOMEM;
        free(part->how);
        part->how = copy;
        part->n++;
        overwrites->n_undone++;
        part->last_usec = now_usec;
        if (part->n >= OVERWRITES_MAX)
                part->left_until_usec = now_usec + pause_usec(part->n);
        return 0;
}

/* Two absent inventories are equal. */
static bool same_inventory(const Inventory *a, const Inventory *b)
{
        return a && b ? inventory_equal(a, b) : a == b;
}

/* Writes the fields that differ, for example "total 8, not 16; ratio 1, not 4". The first value is
 * the one of Placement, the second is the one of this agent. */
static const char *format_difference(const Inventory *theirs, const Inventory *ours,
                                     char text[static HOW_MAX])
{
        const struct {
                const char *name;
                double theirs, ours;
        } fields[] = {
                { "total", (double)theirs->total, (double)ours->total },
                { "reserved", (double)theirs->reserved, (double)ours->reserved },
                { "ratio", theirs->allocation_ratio, ours->allocation_ratio },
                { "min_unit", (double)theirs->min_unit, (double)ours->min_unit },
                { "max_unit", (double)theirs->max_unit, (double)ours->max_unit },
                { "step_size", (double)theirs->step_size, (double)ours->step_size },
        };
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(fields) && n < HOW_MAX; i++)
                if (fields[i].theirs != fields[i].ours)
                        n += (size_t)snprintf(text + n, HOW_MAX - n, "%s%s %.15g, not %.15g",
                                              n > 0 ? "; " : "", fields[i].name, fields[i].theirs,
                                              fields[i].ours);
        return text;
}

/* Notes the inventories of a provider that another writer has undone. */
static int inspect_inventories(Overwrites *overwrites, const Provider *left, const Provider *wanted,
                               const Provider *remote, uint64_t now_usec)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < wanted->n_inventories; i++) {
                const InventoryRecord *record = &wanted->inventories[i];
                const char *name = record->resource_class;
                const Inventory *theirs = provider_find_inventory(remote, name);
                char how[HOW_MAX];

                if (same_inventory(provider_find_inventory(left, name), &record->inventory) &&
                    !same_inventory(theirs, &record->inventory))
                        r = note(overwrites, false, remote, name,
                                 theirs ? format_difference(theirs, &record->inventory, how)
                                        : "removed",
                                 now_usec);
        }
        /* Inventories that the agent does not want and another writer added, perhaps again. */
        for (size_t i = 0; r >= 0 && i < remote->n_inventories; i++) {
                const char *name = remote->inventories[i].resource_class;

                if (!provider_find_inventory(left, name) && !provider_find_inventory(wanted, name))
                        r = note(overwrites, false, remote, name, "added", now_usec);
        }
        return r;
}

/* Notes the traits of a provider that another writer has removed or added. */
static int inspect_traits(Overwrites *overwrites, const Provider *left, const Provider *wanted,
                          const Provider *remote, uint64_t now_usec)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < wanted->traits.n_items; i++) {
                const char *name = wanted->traits.items[i];

                if (string_set_contains(&left->traits, name) &&
                    !string_set_contains(&remote->traits, name))
                        r = note(overwrites, true, remote, name, "removed", now_usec);
        }
        for (size_t i = 0; r >= 0 && i < remote->traits.n_items; i++) {
                const char *name = remote->traits.items[i];

                if (!string_set_contains(&left->traits, name) &&
                    !string_set_contains(&wanted->traits, name))
                        r = note(overwrites, true, remote, name, "added", now_usec);
        }
        return r;
}

/* Compares the wanted providers of this host that Placement had after the last attempt. */
static int compare(Overwrites *overwrites, const ProviderTree *wanted, const ProviderTree *remote,
                   const Uuid *root, uint64_t now_usec)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < wanted->n_providers; i++) {
                const Provider *provider = wanted->providers[i];
                const Provider *before = provider_tree_find(overwrites->left, &provider->uuid);
                const Provider *now = provider_tree_find(remote, &provider->uuid);

                if (!before || !provider_tree_in_subtree(wanted, provider, root))
                        continue;
                if (!now)
                        r = note(overwrites, false, provider, "", "deleted", now_usec);
                if (now)
                        r = inspect_inventories(overwrites, before, provider, now, now_usec);
                if (r >= 0 && now)
                        r = inspect_traits(overwrites, before, provider, now, now_usec);
        }
        return r;
}

/* Forgets parts that were not overwritten for OVERWRITES_FORGET_USEC and for twice their last
 * pause. Iterates backward, because it removes items. */
static void forget(Overwrites *overwrites, uint64_t now_usec)
{
        for (size_t i = overwrites->n_parts; i > 0; i--) {
                Overwrite *part = &overwrites->parts[i - 1];
                uint64_t after = part->n >= OVERWRITES_MAX ? 2 * pause_usec(part->n) : 0;

                if (now_usec - part->last_usec <= MAX(after, OVERWRITES_FORGET_USEC))
                        continue;
                part_done(part);
                array_close(overwrites->parts, sizeof(Overwrite), &overwrites->n_parts, i - 1);
        }
}

int overwrites_update(Overwrites *overwrites, const ProviderTree *wanted,
                      const ProviderTree *remote, const Uuid *root, uint64_t now_usec)
{
        int r = 0;

        forget(overwrites, now_usec);
        if (overwrites->left)
                r = compare(overwrites, wanted, remote, root, now_usec);
        overwrites->left = provider_tree_free(overwrites->left);
        return r;
}

/* Makes the provider have the trait exactly if remote has it. Returns 1 if that changed it. */
static int yield_trait(Provider *provider, const Provider *remote, const char *name)
{
        return string_set_contains(&remote->traits, name)
                       ? string_set_add(&provider->traits, name)
                       : string_set_remove(&provider->traits, name);
}

static int yield_inventory(Provider *provider, const Provider *remote, const char *name)
{
        const Inventory *theirs = provider_find_inventory(remote, name);
        int r = 0;

        if (same_inventory(provider_find_inventory(provider, name), theirs))
                return 0;
        if (theirs)
                r = provider_set_inventory(provider, name, theirs);
        else
                (void)provider_remove_inventory(provider, name);
        return r < 0 ? r : 1;
}

/* Changes the value of the part in tree to that of remote, so that the plan has no request for
 * it. Returns 1 if the values were different. */
static int yield_value(const Overwrite *part, ProviderTree *tree, const ProviderTree *remote)
{
        Provider *provider = provider_tree_find(tree, &part->uuid);
        const Provider *theirs = provider_tree_find(remote, &part->uuid);

        if (!provider)
                return 0;
        if (!part->part[0] && !theirs)
                return provider_tree_remove(tree, &part->uuid);
        if (!part->part[0] || !theirs)
                return 0;
        return part->is_trait ? yield_trait(provider, theirs, part->part)
                              : yield_inventory(provider, theirs, part->part);
}

int overwrites_yield(const Overwrites *overwrites, ProviderTree *tree, const ProviderTree *remote,
                     uint64_t now_usec)
{
        int yields = 0;

        for (size_t i = 0; i < overwrites->n_parts; i++) {
                int r = 0;

                if (overwrites->parts[i].left_until_usec > now_usec)
                        r = yield_value(&overwrites->parts[i], tree, remote);
                if (r == -ENOMEM)
                        return r;
                yields |= r > 0;
        }
        return yields;
}

void overwrites_end_pauses(Overwrites *overwrites)
{
        for (size_t i = 0; i < overwrites->n_parts; i++)
                overwrites->parts[i].left_until_usec = 0;
}

void overwrites_keep_tree(Overwrites *overwrites, const ProviderTree *tree)
{
        provider_tree_free(overwrites->left);
        overwrites->left = tree ? provider_tree_ref(tree) : NULL;
}

size_t overwrites_count(const Overwrites *overwrites)
{
        size_t n = 0;

        for (size_t i = 0; i < overwrites->n_parts; i++)
                n += overwrite_is_repeated(&overwrites->parts[i]);
        return n;
}

char *overwrites_describe(const Overwrites *overwrites)
{
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);
        bool any = false;

        if (!file)
                return NULL;
        for (size_t i = 0; i < overwrites->n_parts; i++) {
                const Overwrite *part = &overwrites->parts[i];
                const char *kind = !part->part[0]   ? "provider "
                                   : part->is_trait ? "trait "
                                                    : "inventory ";

                if (!overwrite_is_repeated(part))
                        continue;
                fprintf(file, "%s%s%s%s%s: %s (overwritten %u times)", any ? "; " : "", kind,
                        part->part, part->part[0] ? " of " : "", part->name, part->how, part->n);
                any = true;
        }
        if (fclose(file) == 0)
                return text;
        free(text);
        return NULL;
}
