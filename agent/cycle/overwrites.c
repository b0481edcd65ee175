/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares three trees for each value: the one that Placement had after the last attempt (left),
 * the one that the agent wants, and the one that Placement has now (remote). Left equal to wanted,
 * and remote different, means that another writer has undone the value. Only providers below the
 * host's root that existed in left are compared. The parts are a small unsorted array, so searches
 * are linear. */

#include "agent/cycle/contest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Size of the description of a change, in bytes. */
#define HOW_MAX 160

static void part_done(ContestPart *part)
{
        free(part->name);
        free(part->part);
        free(part->how);
}

void contest_done(Contest *contest)
{
        for (size_t i = 0; i < contest->n_parts; i++)
                part_done(&contest->parts[i]);
        free(contest->parts);
        provider_tree_free(contest->left);
        *contest = (Contest){ 0 };
}

static ContestPart *find_part(const Contest *contest, ContestKind kind, const Uuid *uuid,
                              const char *name)
{
        for (size_t i = 0; i < contest->n_parts; i++)
                if (contest->parts[i].kind == kind && uuid_equal(&contest->parts[i].uuid, uuid) &&
                    strcmp(contest->parts[i].part, name) == 0)
                        return &contest->parts[i];
        return NULL;
}

static int add_part(Contest *contest, ContestKind kind, const Provider *provider, const char *name,
                    ContestPart **ret)
{
        ContestPart part = { .kind = kind,
                             .uuid = provider->uuid,
                             .name = strdup(provider->name),
                             .part = strdup(name) };

        if (!part.name || !part.part ||
            array_grow(&contest->parts, sizeof(ContestPart), contest->n_parts,
                       &contest->n_allocated) < 0) {
                part_done(&part);
                return -ENOMEM;
        }
        contest->parts[contest->n_parts] = part;
        *ret = &contest->parts[contest->n_parts++];
        return 0;
}

/* Returns the pause after the n-th change, n at least CONTEST_MAX: it doubles up to its maximum. */
static uint64_t pause_usec(unsigned n)
{
        uint64_t pause = CONTEST_PAUSE_USEC << MIN(n - CONTEST_MAX, 16U);

        return MIN(pause, CONTEST_PAUSE_MAX_USEC);
}

/* Counts a change of a value by another writer. During the pause of a part, the difference is
 * expected and does not count. */
static int note(Contest *contest, ContestKind kind, const Provider *provider, const char *name,
                const char *how, uint64_t now_usec)
{
        ContestPart *part = find_part(contest, kind, &provider->uuid, name);
        char *copy;

        if (!part && add_part(contest, kind, provider, name, &part) < 0)
                return -ENOMEM;
        if (part->left_until_usec > now_usec)
                return 0;
        copy = strdup(how);
        if (!copy)
                return -ENOMEM;
        free(part->how);
        part->how = copy;
        part->n++;
        contest->n_undone++;
        part->last_usec = now_usec;
        if (part->n >= CONTEST_MAX)
                part->left_until_usec = now_usec + pause_usec(part->n);
        return 0;
}

/* Two absent inventories are equal. */
static bool same_inventory(const Inventory *a, const Inventory *b)
{
        return a && b ? inventory_equal(a, b) : a == b;
}

/* Writes the different fields, for example "total 8, not 16; ratio 1, not 4": first their value,
 * then ours. */
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
static int look_at_inventories(Contest *contest, const Provider *left, const Provider *wanted,
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
                        r = note(contest, CONTEST_INVENTORY, remote, name,
                                 theirs ? format_difference(theirs, &record->inventory, how)
                                        : "removed",
                                 now_usec);
        }
        /* Inventories that the agent removed and another writer added again. */
        for (size_t i = 0; r >= 0 && i < remote->n_inventories; i++) {
                const char *name = remote->inventories[i].resource_class;

                if (!provider_find_inventory(left, name) && !provider_find_inventory(wanted, name))
                        r = note(contest, CONTEST_INVENTORY, remote, name, "added", now_usec);
        }
        return r;
}

/* Notes the traits of a provider that another writer has removed or added. */
static int look_at_traits(Contest *contest, const Provider *left, const Provider *wanted,
                          const Provider *remote, uint64_t now_usec)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < wanted->traits.n_items; i++) {
                const char *name = wanted->traits.items[i];

                if (string_set_contains(&left->traits, name) &&
                    !string_set_contains(&remote->traits, name))
                        r = note(contest, CONTEST_TRAIT, remote, name, "removed", now_usec);
        }
        for (size_t i = 0; r >= 0 && i < remote->traits.n_items; i++) {
                const char *name = remote->traits.items[i];

                if (!string_set_contains(&left->traits, name) &&
                    !string_set_contains(&wanted->traits, name))
                        r = note(contest, CONTEST_TRAIT, remote, name, "added", now_usec);
        }
        return r;
}

/* Compares the providers below the root that existed at the last attempt. */
static int compare(Contest *contest, const ProviderTree *wanted, const ProviderTree *remote,
                   const Uuid *root, uint64_t now_usec)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < wanted->n_providers; i++) {
                const Provider *provider = wanted->providers[i];
                const Provider *before = provider_tree_find(contest->left, &provider->uuid);
                const Provider *now = provider_tree_find(remote, &provider->uuid);

                if (!before || !provider_tree_in_subtree(wanted, provider, root))
                        continue;
                if (!now)
                        r = note(contest, CONTEST_PROVIDER, provider, "", "deleted", now_usec);
                if (now)
                        r = look_at_inventories(contest, before, provider, now, now_usec);
                if (r >= 0 && now)
                        r = look_at_traits(contest, before, provider, now, now_usec);
        }
        return r;
}

/* Forgets parts that were not undone for a long time. Iterates backward, because it removes
 * items. */
static void forget(Contest *contest, uint64_t now_usec)
{
        for (size_t i = contest->n_parts; i > 0; i--) {
                ContestPart *part = &contest->parts[i - 1];
                uint64_t after = part->n >= CONTEST_MAX ? 2 * pause_usec(part->n) : 0;

                if (now_usec - part->last_usec <= MAX(after, CONTEST_FORGET_USEC))
                        continue;
                part_done(part);
                array_close(contest->parts, sizeof(ContestPart), &contest->n_parts, i - 1);
        }
}

int contest_look(Contest *contest, const ProviderTree *wanted, const ProviderTree *remote,
                 const Uuid *root, uint64_t now_usec)
{
        int r = 0;

        forget(contest, now_usec);
        if (contest->left)
                r = compare(contest, wanted, remote, root, now_usec);
        contest->left = provider_tree_free(contest->left);
        return r;
}

/* Gives the provider the trait if remote has it, and removes it otherwise. */
static int give_in_trait(Provider *provider, const Provider *remote, const char *name)
{
        if (string_set_contains(&remote->traits, name))
                return string_set_add(&provider->traits, name);
        (void)string_set_remove(&provider->traits, name);
        return 0;
}

static int give_in_inventory(Provider *provider, const Provider *remote, const char *name)
{
        const Inventory *theirs = provider_find_inventory(remote, name);

        if (theirs)
                return provider_set_inventory(provider, name, theirs);
        (void)provider_remove_inventory(provider, name);
        return 0;
}

/* Changes the value of the part in tree to that of remote. */
static int give_in(const ContestPart *part, ProviderTree *tree, const ProviderTree *remote)
{
        Provider *provider = provider_tree_find(tree, &part->uuid);
        const Provider *theirs = provider_tree_find(remote, &part->uuid);

        if (!provider)
                return 0;
        if (part->kind == CONTEST_PROVIDER) {
                if (!theirs)
                        (void)provider_tree_remove(tree, &part->uuid);
                return 0;
        }
        if (!theirs)
                return 0;
        return part->kind == CONTEST_TRAIT ? give_in_trait(provider, theirs, part->part)
                                           : give_in_inventory(provider, theirs, part->part);
}

int contest_give_in(const Contest *contest, ProviderTree *tree, const ProviderTree *remote,
                    uint64_t now_usec)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < contest->n_parts; i++)
                if (contest->parts[i].left_until_usec > now_usec)
                        r = give_in(&contest->parts[i], tree, remote);
        return r == -ENOMEM ? r : 0;
}

void contest_leave(Contest *contest, const ProviderTree *tree)
{
        provider_tree_free(contest->left);
        contest->left = tree ? provider_tree_ref(tree) : NULL;
}

size_t contest_count(const Contest *contest)
{
        size_t n = 0;

        for (size_t i = 0; i < contest->n_parts; i++)
                n += contest_is_repeated(&contest->parts[i]);
        return n;
}

char *contest_describe(const Contest *contest)
{
        static const char *const kinds[] = {
                [CONTEST_PROVIDER] = "provider ",
                [CONTEST_INVENTORY] = "inventory ",
                [CONTEST_TRAIT] = "trait ",
        };
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);
        bool any = false;

        if (!file)
                return NULL;
        for (size_t i = 0; i < contest->n_parts; i++) {
                const ContestPart *part = &contest->parts[i];

                if (!contest_is_repeated(part))
                        continue;
                fprintf(file, "%s%s%s%s%s: %s (overwritten %u times)", any ? "; " : "",
                        kinds[part->kind], part->part, part->part[0] ? " of " : "", part->name,
                        part->how, part->n);
                any = true;
        }
        if (fclose(file) == 0)
                return text;
        free(text);
        return NULL;
}
