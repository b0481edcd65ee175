/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/child-provider.h"

#include <string.h>

static int put_under(ProviderTree *tree, Provider *provider, const Provider *parent, Error *reterr)
{
        int r;

        if (uuid_equal(&provider->parent, &parent->uuid))
                return 0;
        r = provider_tree_move(tree, provider, &parent->uuid);
        return r < 0 ? error_setf(reterr, r, "Provider %s cannot be put below %s: %s",
                                  provider->name, parent->name, strerror(-r))
                     : 0;
}

int child_provider_ensure(ProviderTree *tree, const Provider *root, const Provider *parent,
                          const char *name, Provider **ret, Error *reterr)
{
        Provider *provider = provider_tree_find_name(tree, name);
        Uuid uuid;
        int r;

        if (!provider) {
                uuid = uuid_make_child(&root->uuid, name);
                r = provider_tree_add(tree, &uuid, name, &parent->uuid, ret, reterr);
                return r < 0 ? error_prefixf(reterr, r == -EEXIST ? -EINVAL : r, "Provider %s",
                                             name)
                             : 0;
        }
        if (!provider_tree_in_subtree(tree, provider, &root->uuid))
                return error_setf(reterr, EINVAL,
                                  "Provider %s (%s) is not below %s: remove or rename it", name,
                                  provider->uuid.text, root->name);
        r = put_under(tree, provider, parent, reterr);
        if (r < 0)
                return r;
        *ret = provider;
        return 0;
}
