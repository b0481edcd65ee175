/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Stores the content of Placement for one tree: the tree and, in a second array sorted by uuid, an
 * entry for each of its providers. The entry has the generation of the provider (-1: stale), and
 * during a read the generation of each part. A change of a part sets the generation last, so that a
 * failure leaves the provider stale. The mirror also stores the names of classes and traits that
 * its providers have, because Placement knows them, and those that were looked up or created.
 *
 * The tree can be shared (provider_tree_ref()). Then own_tree() replaces it with a copy before the
 * first change. So each function that changes the tree calls own_tree() first and looks up
 * providers after it. */

#include "report/publish/mirror.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"

#define PARTS_ALL ((1U << _PLACEMENT_PART_MAX) - 1)

typedef struct MirrorEntry {
        Uuid uuid;
        int64_t generation; /* -1: stale */
        int64_t listed;     /* generation in the list of providers; -1: it was not in the list */
        bool is_new;        /* see mirror_is_new() */
        /* Bits and generations of the parts that were read since the provider became stale. */
        unsigned parts_read;
        int64_t part_generations[_PLACEMENT_PART_MAX];
} MirrorEntry;

int mirror_new(Mirror **ret)
{
        _cleanup_(mirror_freep) Mirror *mirror = calloc(1, sizeof(Mirror));
        int r;

        if (!mirror)
                return -ENOMEM;
        r = provider_tree_new(&mirror->tree);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(mirror);
        return 0;
}

static void names_done(MirrorNames *names)
{
        string_set_done(&names->known_classes);
        string_set_done(&names->missing_classes);
        string_set_done(&names->known_traits);
        string_set_done(&names->missing_traits);
}

Mirror *mirror_free(Mirror *mirror)
{
        if (!mirror)
                return NULL;
        provider_tree_free(mirror->tree);
        free(mirror->entries);
        names_done(&mirror->names);
        free(mirror);
        return NULL;
}

static int order_entry(const void *key, const void *item)
{
        return uuid_order(key, &((const MirrorEntry *)item)->uuid);
}

/* Returns the position of the entry with that uuid, or the position at which to insert it. */
static size_t find_position(const Mirror *mirror, const Uuid *uuid, bool *ret_found)
{
        return array_find(mirror->entries, sizeof(MirrorEntry), mirror->n_entries, uuid,
                          order_entry, ret_found);
}

static MirrorEntry *find_entry(const Mirror *mirror, const Uuid *uuid)
{
        bool found;
        size_t position = find_position(mirror, uuid, &found);

        return found ? &mirror->entries[position] : NULL;
}

int64_t mirror_get_generation(const Mirror *mirror, const Uuid *provider)
{
        const MirrorEntry *entry = find_entry(mirror, provider);

        return entry ? entry->generation : -1;
}

/* Compares generation, name and parent of one provider. */
static bool provider_is_current(const Mirror *mirror, const PlacementProvider *item)
{
        const Provider *provider = provider_tree_find(mirror->tree, &item->uuid);

        return provider && mirror_get_generation(mirror, &item->uuid) == item->generation &&
               strcmp(provider->name, item->name) == 0 &&
               uuid_equal(&provider->parent, &item->parent);
}

/* Compares the numbers and looks up each provider of the list, which proves equal sets. */
bool mirror_is_current(const Mirror *mirror, const PlacementProviders *providers)
{
        if (mirror->list_is_stale || providers->n_items != mirror->n_entries)
                return false;
        for (size_t i = 0; i < providers->n_items; i++)
                if (!provider_is_current(mirror, &providers->items[i]))
                        return false;
        return true;
}

void mirror_set_list(Mirror *mirror, const PlacementSeen *seen)
{
        mirror->seen = *seen;
        mirror->list = &mirror->seen;
        mirror_clear_new(mirror);
}

/* Ensures that the mirror can change its tree: makes a copy if another owner has a reference. */
static int own_tree(Mirror *mirror)
{
        ProviderTree *copy;

        if (mirror->tree->n_shares == 0)
                return 0;
        if (provider_tree_copy(&copy, mirror->tree) < 0)
                return -ENOMEM;
        provider_tree_free(mirror->tree);
        mirror->tree = copy;
        return 0;
}

/* Adds a provider to the tree and to the entries. */
static int add_entry(Mirror *mirror, const Uuid *uuid, const char *name, const Uuid *parent,
                     int64_t generation, Provider **ret, Error *reterr)
{
        size_t position;
        bool found;
        int r;

        if (array_grow(&mirror->entries, sizeof(MirrorEntry), mirror->n_entries,
                       &mirror->n_allocated) < 0 ||
            own_tree(mirror) < 0)
                return error_oom(reterr);
        r = provider_tree_add(mirror->tree, uuid, name, parent, ret, reterr);
        if (r < 0)
                return r;
        position = find_position(mirror, uuid, &found);
        array_open(mirror->entries, sizeof(MirrorEntry), &mirror->n_entries, position);
        mirror->entries[position] =
                (MirrorEntry){ .uuid = *uuid, .generation = generation, .listed = -1 };
        mirror->list = NULL;
        return 0;
}

static int copy_names(MirrorNames *to, const MirrorNames *from)
{
        if (string_set_copy(&to->known_classes, &from->known_classes) < 0 ||
            string_set_copy(&to->missing_classes, &from->missing_classes) < 0 ||
            string_set_copy(&to->known_traits, &from->known_traits) < 0 ||
            string_set_copy(&to->missing_traits, &from->missing_traits) < 0)
                return -ENOMEM;
        return 0;
}

bool mirror_has_stale(const Mirror *mirror)
{
        if (mirror->list_is_stale)
                return true;
        for (size_t i = 0; i < mirror->n_entries; i++)
                if (mirror->entries[i].generation < 0)
                        return true;
        return false;
}

/* Lists the entries without a generation. */
int mirror_list_stale(const Mirror *mirror, Uuid **ret, size_t *ret_n)
{
        Uuid *list = calloc(MAX(mirror->n_entries, (size_t)1), sizeof(Uuid));
        size_t n = 0;

        if (!list)
                return -ENOMEM;
        for (size_t i = 0; i < mirror->n_entries; i++)
                if (mirror->entries[i].generation < 0)
                        list[n++] = mirror->entries[i].uuid;
        *ret = list;
        *ret_n = n;
        return 0;
}

static int learn_traits(Mirror *mirror, const StringSet *names)
{
        for (size_t i = 0; i < names->n_items; i++)
                if (mirror_learn(mirror, PLACEMENT_TRAITS, names->items[i], true) < 0)
                        return -ENOMEM;
        return 0;
}

/* Stores the names in that part of a provider as known to Placement. Aggregates have no names. */
static int learn_from(Mirror *mirror, const Provider *provider, PlacementPart part)
{
        if (part == PLACEMENT_TRAITS)
                return learn_traits(mirror, &provider->traits);
        if (part == PLACEMENT_INVENTORIES)
                for (size_t i = 0; i < provider->n_inventories; i++)
                        if (mirror_learn(mirror, part, provider->inventories[i].resource_class,
                                         true) < 0)
                                return -ENOMEM;
        return 0;
}

/* Returns the mirror that has the provider in the generation of the list; NULL: it must be read. */
static const Mirror *choose_source(const Mirror *mirror, const Mirror *partial,
                                   const PlacementProvider *item)
{
        if (mirror_get_generation(mirror, &item->uuid) == item->generation)
                return mirror;
        if (partial && mirror_get_generation(partial, &item->uuid) == item->generation)
                return partial;
        return NULL;
}

/* Adds a provider to the next mirror: a copy of the provider in source, or, if source is NULL, a
 * stale provider. learns: source is an unfinished refresh, whose names were not copied, so those of
 * the provider are stored. */
static int add_next(Mirror *next, const PlacementProvider *item, const Mirror *source, bool learns,
                    Error *reterr)
{
        int64_t generation = source ? item->generation : -1;
        Provider *provider;
        int r = add_entry(next, &item->uuid, item->name, &item->parent, generation, &provider,
                          reterr);

        if (r < 0)
                return r;
        find_entry(next, &item->uuid)->listed = item->generation;
        if (!source)
                return 0;
        if (provider_copy_contents(provider, provider_tree_find(source->tree, &item->uuid)) < 0 ||
            (learns && (learn_from(next, provider, PLACEMENT_INVENTORIES) < 0 ||
                        learn_from(next, provider, PLACEMENT_TRAITS) < 0)))
                return error_oom(reterr);
        return 0;
}

/* Makes the next mirror. Copies the names from the old one, because Placement keeps a class or
 * trait when a provider is deleted. */
int mirror_make_next(const Mirror *mirror, const Mirror *partial,
                     const PlacementProviders *providers, Mirror **ret, Error *reterr)
{
        _cleanup_(mirror_freep) Mirror *next = NULL;

        if (mirror_new(&next) < 0 || copy_names(&next->names, &mirror->names) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < providers->n_items; i++) {
                const PlacementProvider *item = &providers->items[i];
                const Mirror *source = choose_source(mirror, partial, item);
                int r = add_next(next, item, source, source == partial, reterr);

                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(next);
        return 0;
}

/* Checks whether all parts were read at the same generation. */
static bool parts_agree(const MirrorEntry *entry)
{
        for (size_t i = 1; i < _PLACEMENT_PART_MAX; i++)
                if (entry->part_generations[i] != entry->part_generations[0])
                        return false;
        return true;
}

/* Stores a part that was read. The provider gets its generation when the last part arrives and all
 * parts have the same one. */
int mirror_read(Mirror *mirror, const Uuid *provider, PlacementPart part, const json_t *body,
                Error *reterr)
{
        MirrorEntry *entry = find_entry(mirror, provider);
        Provider *target;
        int64_t generation;
        int r;

        if (own_tree(mirror) < 0)
                return error_oom(reterr);
        target = provider_tree_find(mirror->tree, provider);
        assert(entry && target);
        r = placement_read_generation(body, PLACEMENT_GENERATION_OF_PART, &generation, reterr);
        if (r >= 0)
                r = placement_read_part(body, part, target, reterr);
        if (r < 0)
                return r;
        if (learn_from(mirror, target, part) < 0)
                return error_oom(reterr);
        entry->part_generations[part] = generation;
        entry->parts_read |= 1U << part;
        if (entry->parts_read != PARTS_ALL)
                return 0;
        entry->parts_read = 0;
        if (!parts_agree(entry))
                return MIRROR_TORN;
        entry->generation = generation;
        /* Another writer changed the provider after the list was read. */
        if (generation != entry->listed)
                mirror->list = NULL;
        return 0;
}

int mirror_add(Mirror *mirror, const Provider *provider, int64_t generation)
{
        int r = add_entry(mirror, &provider->uuid, provider->name, &provider->parent, generation,
                          NULL, NULL);

        if (r >= 0)
                find_entry(mirror, &provider->uuid)->is_new = true;
        return r;
}

bool mirror_is_new(const Mirror *mirror, const Uuid *provider)
{
        const MirrorEntry *entry = find_entry(mirror, provider);

        return entry && entry->is_new;
}

void mirror_clear_new(Mirror *mirror)
{
        for (size_t i = 0; i < mirror->n_entries; i++)
                mirror->entries[i].is_new = false;
}

static int write_part(Provider *provider, PlacementPart part, const Provider *written)
{
        switch (part) {
        case PLACEMENT_INVENTORIES:
                return provider_copy_inventories(provider, written);
        case PLACEMENT_TRAITS:
                return string_set_copy(&provider->traits, &written->traits);
        default:
                return string_set_copy(&provider->aggregates, &written->aggregates);
        }
}

/* Makes the entry stale before the part is stored, so that a failure leaves it stale. */
int mirror_write(Mirror *mirror, const Provider *written, PlacementPart part, int64_t generation)
{
        MirrorEntry *entry = find_entry(mirror, &written->uuid);
        Provider *provider;

        if (!entry)
                return -ENOENT;
        mirror->list = NULL;
        entry->generation = -1;
        if (own_tree(mirror) < 0)
                return -ENOMEM;
        provider = provider_tree_find(mirror->tree, &written->uuid);
        if (write_part(provider, part, written) < 0 || learn_from(mirror, provider, part) < 0)
                return -ENOMEM;
        entry->generation = generation;
        return 0;
}

int mirror_move(Mirror *mirror, const Uuid *moved, const Uuid *parent, int64_t generation)
{
        MirrorEntry *entry = find_entry(mirror, moved);
        int r;

        if (!entry)
                return -ENOENT;
        mirror->list = NULL;
        /* A new parent leaves the generation of the provider unchanged. If Placement answered with
         * another one, another writer changed the provider. */
        if (entry->generation != generation)
                entry->generation = -1;
        r = own_tree(mirror);
        if (r >= 0)
                r = provider_tree_move(mirror->tree, provider_tree_find(mirror->tree, moved),
                                       parent);
        if (r < 0)
                entry->generation = -1;
        return r;
}

/* Removes the provider, and drops the entries of all removed providers in one pass, which keeps
 * their order. */
void mirror_remove(Mirror *mirror, const Uuid *provider)
{
        size_t n = 0;

        mirror->list = NULL;
        /* Without memory for the copy, the provider becomes stale, and the next refresh removes
         * it. */
        if (own_tree(mirror) < 0) {
                mirror_forget(mirror, provider);
                return;
        }
        if (!provider_tree_remove(mirror->tree, provider))
                return;
        for (size_t i = 0; i < mirror->n_entries; i++)
                if (provider_tree_find(mirror->tree, &mirror->entries[i].uuid))
                        mirror->entries[n++] = mirror->entries[i];
        mirror->n_entries = n;
}

void mirror_forget(Mirror *mirror, const Uuid *provider)
{
        MirrorEntry *entry = provider ? find_entry(mirror, provider) : NULL;

        mirror->list = NULL;
        if (entry)
                entry->generation = -1;
        else
                mirror->list_is_stale = true;
}

void mirror_forget_generations(Mirror *mirror)
{
        mirror->list = NULL;
        for (size_t i = 0; i < mirror->n_entries; i++)
                mirror->entries[i].generation = -1;
}

void mirror_forget_names(Mirror *mirror, bool also_known)
{
        string_set_done(&mirror->names.missing_classes);
        string_set_done(&mirror->names.missing_traits);
        if (also_known)
                names_done(&mirror->names);
}

/* Moves the name from the set other to the set to, so it is in one of them at most. */
static int learn(StringSet *to, StringSet *other, const char *name)
{
        if (string_set_add(to, name) < 0)
                return -ENOMEM;
        string_set_remove(other, name);
        return 0;
}

int mirror_learn(Mirror *mirror, PlacementPart part, const char *name, bool exists)
{
        MirrorNames *names = &mirror->names;
        bool of_trait = part == PLACEMENT_TRAITS;
        StringSet *known = of_trait ? &names->known_traits : &names->known_classes,
                  *missing = of_trait ? &names->missing_traits : &names->missing_classes;

        return exists ? learn(known, missing, name) : learn(missing, known, name);
}

/* Adds the name to ret, unless Placement is known to have it. *ret_unknown is set if the name is in
 * neither set. */
static int add_unknown(const StringSet *known, const StringSet *missing, const char *name,
                       StringSet *ret, bool *ret_unknown)
{
        if (string_set_contains(known, name))
                return 0;
        if (string_set_add(ret, name) < 0)
                return -ENOMEM;
        *ret_unknown |= !string_set_contains(missing, name);
        return 0;
}

static int add_unknown_traits(const MirrorNames *names, const Provider *provider, StringSet *ret,
                              bool *ret_unknown)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < provider->traits.n_items; i++)
                if (resource_class_valid(provider->traits.items[i]))
                        r = add_unknown(&names->known_traits, &names->missing_traits,
                                        provider->traits.items[i], ret, ret_unknown);
        return r;
}

static int add_unknown_classes(const MirrorNames *names, const Provider *provider, StringSet *ret,
                               bool *ret_unknown)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < provider->n_inventories; i++)
                if (resource_class_is_custom(provider->inventories[i].resource_class))
                        r = add_unknown(&names->known_classes, &names->missing_classes,
                                        provider->inventories[i].resource_class, ret, ret_unknown);
        return r;
}

int mirror_list_unknown(const Mirror *mirror, const ProviderTree *desired, StringSet *ret_traits,
                        StringSet *ret_classes)
{
        bool unknown_traits = false, unknown_classes = false;

        for (size_t i = 0; i < desired->n_providers; i++) {
                const Provider *provider = desired->providers[i];

                if (add_unknown_traits(&mirror->names, provider, ret_traits, &unknown_traits) < 0 ||
                    add_unknown_classes(&mirror->names, provider, ret_classes, &unknown_classes) <
                            0)
                        return -ENOMEM;
        }
        if (!unknown_traits)
                string_set_done(ret_traits);
        if (!unknown_classes)
                string_set_done(ret_classes);
        return 0;
}
