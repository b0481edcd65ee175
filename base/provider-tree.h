/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tree of resource providers: what the driver edits, the claims check and the reporter
 * publishes.
 *
 * Plain data on one thread. It knows no generation (those belong to the reporter's mirror), no HTTP
 * and no hypervisor. Several roots are allowed: the host's own, and sharing providers, which are
 * lone roots. Providers are kept parents first, so walking the array forwards is top-down and
 * backwards bottom-up. Pointers to a Provider stay valid until that provider is removed or the tree
 * freed.
 *
 * A tree is made by one owner. Then it can be sealed and shared by references instead of copies:
 * nothing in a tree with several owners may change. */

#include "base/error.h"
#include "base/inventory.h"
#include "base/string-set.h"
#include "base/uuid.h"

#define PROVIDER_NAME_MAX 200 /* characters, not bytes: Placement's limit */

typedef struct InventoryRecord {
        char *resource_class;
        Inventory inventory;
} InventoryRecord;

typedef struct Provider {
        Uuid uuid;
        char *name;
        Uuid parent;                  /* null for a root */
        InventoryRecord *inventories; /* sorted by class */
        size_t n_inventories;
        size_t n_inventories_allocated;
        StringSet traits;
        StringSet aggregates; /* uuids in text */
} Provider;

typedef struct ProviderTree {
        Provider **providers; /* parents before children */
        size_t n_providers;
        size_t n_allocated;
        size_t n_shares;    /* references beside that of the first owner */
        Provider **by_uuid; /* the same, sorted by uuid */
        Provider **by_name; /* and by name, which does not change */
} ProviderTree;

int provider_tree_new(ProviderTree **ret);

/* Releases one reference. The last one frees the tree. */
ProviderTree *provider_tree_free(ProviderTree *tree);
DEFINE_CLEANUP(ProviderTree *, provider_tree_free);

/* Seals the tree and takes a reference to it, which provider_tree_free() releases. Until then
 * neither owner may change anything in the tree; adding, removing or moving a provider aborts. */
ProviderTree *provider_tree_ref(const ProviderTree *tree);

/* A deep copy, with one owner. */
int provider_tree_copy(ProviderTree **ret, const ProviderTree *tree);

/* Same providers, names, parents, inventories, traits and aggregates, in whatever order. */
bool provider_tree_equal(const ProviderTree *a, const ProviderTree *b);

/* Adds a provider; parent NULL makes a root. The name is copied; ret_provider (borrowed) may be
 * NULL. -EEXIST for a name or uuid that the tree has, -ENOENT for an unknown parent, -EINVAL for a
 * name that is empty or longer than PROVIDER_NAME_MAX, -ENOMEM. */
int provider_tree_add(ProviderTree *tree, const Uuid *uuid, const char *name, const Uuid *parent,
                      Provider **ret_provider, Error *reterr);

/* Removes the provider and all below it. False when it is not there. */
bool provider_tree_remove(ProviderTree *tree, const Uuid *uuid);

/* Puts a provider, with all below it, under another parent. -ENOENT for a parent that is not in the
 * tree, -ELOOP for one that is the provider itself or lies below it, -ENOMEM. */
int provider_tree_move(ProviderTree *tree, Provider *provider, const Uuid *parent);

/* Borrowed, or NULL; in O(log n). */
Provider *provider_tree_find(const ProviderTree *tree, const Uuid *uuid);
Provider *provider_tree_find_name(const ProviderTree *tree, const char *name);

/* True when provider is root or lies below it. */
bool provider_tree_in_subtree(const ProviderTree *tree, const Provider *provider, const Uuid *root);

/* True when some provider names this one as its parent. */
bool provider_tree_has_children(const ProviderTree *tree, const Uuid *uuid);

/* The record of a class, borrowed and writable, or NULL. */
Inventory *provider_find_inventory(const Provider *provider, const char *resource_class);

/* Sets the record of a class, adding the class when needed. -EINVAL for an invalid name or record,
 * -ENOMEM. */
int provider_set_inventory(Provider *provider, const char *resource_class,
                           const Inventory *inventory);

/* False when the class was not there. */
bool provider_remove_inventory(Provider *provider, const char *resource_class);

void provider_clear_inventories(Provider *provider);

/* The same uuid, name, parent, inventories, traits and aggregates? */
bool provider_equal(const Provider *a, const Provider *b);

/* Same classes with equal records (inventory_equal()). */
bool provider_inventories_equal(const Provider *a, const Provider *b);

/* Replaces a's inventories with copies of b's, valid or not. -ENOMEM leaves a as it was. */
int provider_copy_inventories(Provider *a, const Provider *b);

/* And with them traits and aggregates. -ENOMEM, with some of it copied. */
int provider_copy_contents(Provider *to, const Provider *from);
