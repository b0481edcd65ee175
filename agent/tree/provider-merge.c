/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Merges the entries of provider.yaml into a tree. A merge has two steps. First it removes the
 * listed additions of earlier merges that base has from the tree. Then it adds the traits and
 * inventories of the current entries. The only failure of a merge is -ENOMEM, which leaves the tree
 * undefined.
 *
 * ProviderAdditions lists the additions for each provider. An addition stays listed after its entry
 * was removed, until base lacks it. Otherwise a failed request would leave the addition in
 * Placement for ever. A trait or class that the provider still has after the first step is not
 * listed. It belongs to another writer or to the driver. provider-config.c calls this file for each
 * tree. */

#include "agent/tree/provider-merge.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"

/* The additions of the files to one provider: names that it did not have before. */
typedef struct ProviderAddition {
        Uuid provider;
        StringSet traits;
        StringSet classes;
} ProviderAddition;

/* The state of one merge. */
typedef struct Merge {
        ProviderTree *tree;
        const ProviderTree *base; /* the tree before the driver edited it; NULL: none */
        const ProviderYaml *yaml;
        const char *owner_trait;
        const ProviderAdditions *before;
        ProviderAdditions after;
        StringSet merged; /* uuids of providers that an entry was merged into */
        void (*problem)(const char *text, void *userdata);
        void *userdata;
} Merge;

static void addition_done(ProviderAddition *addition)
{
        string_set_done(&addition->traits);
        string_set_done(&addition->classes);
}

void provider_additions_done(ProviderAdditions *additions)
{
        for (size_t i = 0; i < additions->n_items; i++)
                addition_done(&additions->items[i]);
        free(additions->items);
        *additions = PROVIDER_ADDITIONS_INIT;
}

static ProviderAddition *find_addition(const ProviderAdditions *additions, const Uuid *provider)
{
        for (size_t i = 0; i < additions->n_items; i++)
                if (uuid_equal(&additions->items[i].provider, provider))
                        return &additions->items[i];
        return NULL;
}

/* Returns the additions of the provider, empty ones if there are none yet. */
static int ensure_addition(ProviderAdditions *additions, const Uuid *provider,
                           ProviderAddition **ret)
{
        ProviderAddition *addition = find_addition(additions, provider);

        if (!addition) {
                if (array_grow(&additions->items, sizeof(ProviderAddition), additions->n_items,
                               &additions->n_allocated) < 0)
                        return -ENOMEM;
                addition = &additions->items[additions->n_items++];
                *addition = (ProviderAddition){ .provider = *provider };
        }
        *ret = addition;
        return 0;
}

/* JSON */

static json_t *addition_to_json(const ProviderAddition *addition)
{
        return json_pack("{s:s, s:o, s:o}", "provider", addition->provider.text, "traits",
                         string_set_to_json(&addition->traits), "classes",
                         string_set_to_json(&addition->classes));
}

json_t *provider_additions_to_json(const ProviderAdditions *additions)
{
        _cleanup_json_ json_t *added = json_array();

        for (size_t i = 0; i < additions->n_items; i++)
                if (json_array_append_new(added, addition_to_json(&additions->items[i])) < 0)
                        return NULL;
        return json_pack("{s:s, s:O}", "format", PROVIDER_ADDITIONS_FORMAT, "added", added);
}

static int read_addition(const json_t *object, ProviderAdditions *additions, Error *reterr)
{
        ProviderAddition *addition;
        json_t *traits, *classes;
        Uuid provider;
        int r;

        if ((r = json_read_uuid(object, "provider", &provider, reterr)) < 0 ||
            (r = json_read_array(object, "traits", &traits, reterr)) < 0 ||
            (r = json_read_array(object, "classes", &classes, reterr)) < 0)
                return r;
        if (find_addition(additions, &provider))
                return error_setf(reterr, EBADMSG, "Provider %s is listed twice", provider.text);
        if (ensure_addition(additions, &provider, &addition) < 0)
                return error_oom(reterr);
        r = string_set_from_json(traits, &addition->traits, reterr);
        return r < 0 ? r : string_set_from_json(classes, &addition->classes, reterr);
}

int provider_additions_from_json(const json_t *json, ProviderAdditions *ret, Error *reterr)
{
        _cleanup_(provider_additions_done) ProviderAdditions additions = PROVIDER_ADDITIONS_INIT;
        json_t *added;
        int r = json_read_array(json, "added", &added, reterr);

        for (size_t i = 0; r == 0 && i < json_array_size(added); i++)
                r = read_addition(json_array_get(added, i), &additions, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(additions);
        return 0;
}

/* Removal of earlier additions */

/* Removes the earlier additions to one provider that base has from the tree, and lists them again:
 * they stay listed until base lacks them. That also holds for a provider that the tree lacks,
 * because retained_apply() can bring it back with what base has. An addition that base lacks is not
 * removed. If the tree has it, it is the driver's. So if the driver has begun to report an addition
 * whose entry then leaves the files, the addition leaves the tree for one cycle. */
static int remove_addition(Merge *merge, const ProviderAddition *addition)
{
        Provider *provider = provider_tree_find(merge->tree, &addition->provider);
        const Provider *old =
                merge->base ? provider_tree_find(merge->base, &addition->provider) : NULL;
        ProviderAddition *kept;

        if (!old)
                return 0;
        if (ensure_addition(&merge->after, &addition->provider, &kept) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < addition->traits.n_items; i++) {
                const char *trait = addition->traits.items[i];

                if (!string_set_contains(&old->traits, trait))
                        continue;
                if (provider)
                        (void)string_set_remove(&provider->traits, trait);
                if (string_set_add(&kept->traits, trait) < 0)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < addition->classes.n_items; i++) {
                const char *resource_class = addition->classes.items[i];

                if (!provider_find_inventory(old, resource_class))
                        continue;
                if (provider)
                        (void)provider_remove_inventory(provider, resource_class);
                if (string_set_add(&kept->classes, resource_class) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Restores the earlier additions to one provider. old: the provider in base. Returns 1 if the
 * provider lacked one, 0 if not, or -ENOMEM. */
static int keep_addition(const ProviderAddition *addition, const Provider *old, Provider *provider)
{
        int kept = 0;

        for (size_t i = 0; i < addition->traits.n_items; i++) {
                const char *trait = addition->traits.items[i];
                int r = string_set_contains(&old->traits, trait)
                                ? string_set_add(&provider->traits, trait)
                                : 0;

                if (r < 0)
                        return -ENOMEM;
                kept = MAX(kept, r);
        }
        for (size_t i = 0; i < addition->classes.n_items; i++) {
                const char *resource_class = addition->classes.items[i];
                const Inventory *inventory = provider_find_inventory(old, resource_class);

                if (!inventory || provider_find_inventory(provider, resource_class))
                        continue;
                if (provider_set_inventory(provider, resource_class, inventory) < 0)
                        return -ENOMEM;
                kept = 1;
        }
        return kept;
}

int provider_additions_keep(const ProviderAdditions *additions, const ProviderTree *base,
                            ProviderTree *tree)
{
        int kept = 0;

        for (size_t i = 0; base && i < additions->n_items; i++) {
                const ProviderAddition *addition = &additions->items[i];
                const Provider *old = provider_tree_find(base, &addition->provider);
                Provider *provider = provider_tree_find(tree, &addition->provider);
                int r = old && provider ? keep_addition(addition, old, provider) : 0;

                if (r < 0)
                        return r;
                kept = MAX(kept, r);
        }
        return kept;
}

/* New additions */

/* Reports the reason why an entry is skipped. */
static void complain(const Merge *merge, const ProviderYamlEntry *entry, const char *what)
{
        Error error;

        error_setf(&error, EINVAL, "%.80s: %.80s: %s", entry->source, entry->target, what);
        merge->problem(error.text, merge->userdata);
}

static int add_trait(Provider *provider, const char *trait, ProviderAddition *addition)
{
        int r = string_set_add(&provider->traits, trait);

        /* A trait that the provider has already belongs to another writer or the driver, so it
         * is not listed. */
        if (r <= 0)
                return r;
        return string_set_add(&addition->traits, trait) < 0 ? -ENOMEM : 0;
}

/* Adds the inventories and traits of an entry, and the owner trait. */
static int add_all(Merge *merge, const ProviderYamlEntry *entry, Provider *provider)
{
        ProviderAddition *addition;

        if (ensure_addition(&merge->after, &provider->uuid, &addition) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < entry->n_inventories; i++) {
                const InventoryRecord *record = &entry->inventories[i];

                if (provider_set_inventory(provider, record->resource_class, &record->inventory) <
                            0 ||
                    string_set_add(&addition->classes, record->resource_class) < 0)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < entry->traits.n_items; i++)
                if (add_trait(provider, entry->traits.items[i], addition) < 0)
                        return -ENOMEM;
        if (merge->owner_trait[0] && add_trait(provider, merge->owner_trait, addition) < 0)
                return -ENOMEM;
        return 0;
}

/* Merges an entry into a provider. There are two reasons to skip and report the entry. An earlier
 * entry named this provider in another way, or the provider already has an inventory of one of the
 * entry's classes. */
static int merge_into(Merge *merge, const ProviderYamlEntry *entry, Provider *provider)
{
        int r = string_set_add(&merge->merged, provider->uuid.text);

        if (r < 0)
                return r;
        if (r == 0) {
                complain(merge, entry, "the provider has another entry, by its other name");
                return 0;
        }
        for (size_t i = 0; i < entry->n_inventories; i++)
                if (provider_find_inventory(provider, entry->inventories[i].resource_class)) {
                        complain(merge, entry,
                                 "the provider has an inventory of this class from another source");
                        return 0;
                }
        return add_all(merge, entry, provider);
}

/* Merges an entry that names one provider. */
static int merge_named(Merge *merge, const ProviderYamlEntry *entry)
{
        Provider *provider = entry->name ? provider_tree_find_name(merge->tree, entry->name)
                                         : provider_tree_find(merge->tree, &entry->uuid);

        if (provider)
                return merge_into(merge, entry, provider);
        complain(merge, entry, "there is no such provider");
        return 0;
}

/* Returns true if an entry names this provider by name or uuid. */
static bool is_named(const Merge *merge, const Provider *provider)
{
        for (size_t i = 0; i < merge->yaml->n_entries; i++) {
                const ProviderYamlEntry *entry = merge->yaml->entries[i];

                if (entry->name ? strcmp(entry->name, provider->name) == 0
                                : uuid_equal(&entry->uuid, &provider->uuid))
                        return true;
        }
        return false;
}

/* Merges an entry for "$COMPUTE_NODE" into each root with the trait COMPUTE_NODE that no other
 * entry names. */
static int merge_compute_nodes(Merge *merge, const ProviderYamlEntry *entry)
{
        for (size_t i = 0; i < merge->tree->n_providers; i++) {
                Provider *provider = merge->tree->providers[i];
                int r;

                if (!uuid_empty(&provider->parent) ||
                    !string_set_contains(&provider->traits, "COMPUTE_NODE") ||
                    is_named(merge, provider))
                        continue;
                r = merge_into(merge, entry, provider);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Removes the records of providers without additions. */
static void drop_empty(ProviderAdditions *additions)
{
        size_t n = 0;

        for (size_t i = 0; i < additions->n_items; i++)
                if (additions->items[i].traits.n_items > 0 ||
                    additions->items[i].classes.n_items > 0)
                        additions->items[n++] = additions->items[i];
                else
                        addition_done(&additions->items[i]);
        additions->n_items = n;
}

static int run(Merge *merge)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < merge->before->n_items; i++)
                r = remove_addition(merge, &merge->before->items[i]);
        for (size_t i = 0; r == 0 && i < merge->yaml->n_entries; i++)
                r = merge->yaml->entries[i]->compute_node
                            ? merge_compute_nodes(merge, merge->yaml->entries[i])
                            : merge_named(merge, merge->yaml->entries[i]);
        drop_empty(&merge->after);
        return r;
}

int provider_merge(ProviderTree *tree, const ProviderTree *base, const ProviderYaml *yaml,
                   const char *owner_trait, const ProviderAdditions *before,
                   ProviderAdditions *ret_after, void (*problem)(const char *text, void *userdata),
                   void *userdata)
{
        Merge merge = {
                .tree = tree,
                .base = base,
                .yaml = yaml,
                .owner_trait = owner_trait,
                .before = before,
                .problem = problem,
                .userdata = userdata,
        };
        int r = run(&merge);

        string_set_done(&merge.merged);
        if (r < 0) {
                provider_additions_done(&merge.after);
                return r;
        }
        *ret_after = merge.after;
        return 0;
}
