/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds, creates, moves and removes the providers below the root. Tests:
 * tests/unit/drivers/tree/test-child-provider.c */
#include "drivers/tree/child-provider.h"

#include <errno.h>
#include <string.h>

Provider *child_provider_find_renamed(const ProviderTree *tree, const Provider *root,
                                      const char *name)
{
        Uuid uuid = uuid_make_child(&root->uuid, name);
        Provider *provider = provider_tree_find(tree, &uuid);

        return provider && strcmp(provider->name, name) != 0 ? provider : NULL;
}

/* Moves the provider below parent. Fails if parent is below the provider. */
static int put_under(ProviderTree *tree, Provider *provider, const Provider *parent, Error *reterr)
{
        int r;

        if (uuid_equal(&provider->parent, &parent->uuid))
                return 0;
        r = provider_tree_move(tree, provider, &parent->uuid);
        return r < 0 ? error_setf(reterr, r, "Provider %s cannot be moved below %s: %s",
                                  provider->name, parent->name, strerror(-r))
                     : 0;
}

/* Creates the provider. Placement keeps uuids, so a provider that was renamed still has the uuid
 * of this name, and a second one cannot be created. */
static int add(ProviderTree *tree, const Provider *root, const Provider *parent, const char *name,
               Provider **ret, Error *reterr)
{
        const Provider *renamed = child_provider_find_renamed(tree, root, name);
        Uuid uuid = uuid_make_child(&root->uuid, name);
        int r;

        if (renamed)
                return error_setf(
                        reterr, EEXIST,
                        "Provider %.60s was renamed to \"%.60s\" (%s). Restore its name, or remove it",
                        name, renamed->name, uuid.text);
        r = provider_tree_add(tree, &uuid, name, &parent->uuid, ret, reterr);
        return r < 0 ? error_prefixf(reterr, r, "Provider %.60s", name) : 0;
}

/* Finds the provider by its name, or creates it. A provider outside of the root's subtree
 * belongs to another host. */
static int ensure(ProviderTree *tree, const Provider *root, const Provider *parent,
                  const char *name, Provider **ret, Error *reterr)
{
        Provider *provider = provider_tree_find_name(tree, name);
        int r;

        if (!provider)
                return add(tree, root, parent, name, ret, reterr);
        if (!provider_tree_in_subtree(tree, provider, &root->uuid))
                return error_setf(reterr, EINVAL,
                                  "Provider %s (%s) is not below %s. Remove or rename it", name,
                                  provider->uuid.text, root->name);
        r = put_under(tree, provider, parent, reterr);
        if (r < 0)
                return r;
        *ret = provider;
        return 0;
}

int child_provider_ensure(TreeUpdate *update, const Provider *parent, const char *name,
                          Provider **ret)
{
        Error words = ERROR_NULL;
        int r;

        *ret = NULL;
        r = ensure(update->tree, update->root, parent, name, ret, &words);
        error_join(&update->problem, &words);
        return r == -ENOMEM ? r : 0;
}

int child_provider_own(const TreeUpdate *update, Provider *provider)
{
        const char *trait = update->config->owner_trait;

        return trait && trait[0] && string_set_add(&provider->traits, trait) < 0 ? -ENOMEM : 0;
}

bool child_provider_remove(const TreeUpdate *update, Provider *provider)
{
        if (provider_tree_has_children(update->tree, &provider->uuid)) {
                provider_clear_inventories(provider);
                return false;
        }
        provider_tree_remove(update->tree, &provider->uuid);
        return true;
}
