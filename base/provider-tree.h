/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tree of resource providers. The driver edits it, the claims check it, and the reporter
 * publishes it.
 *
 * Plain data for one thread, without generations (these belong to the reporter's mirror), HTTP or
 * hypervisor. A tree can have several roots: that of the host, and sharing providers, which have no
 * children. The array has parents before children, so a forward walk is top-down and a backward
 * walk bottom-up. A pointer to a Provider is valid until that provider is removed or the tree is
 * freed.
 *
 * One owner makes a tree. Then the tree can be sealed and shared by reference instead of by copy. A
 * tree with several owners must not change. */

#include "base/error.h"
#include "base/inventory.h"
#include "base/string-set.h"
#include "base/uuid.h"

#define PROVIDER_NAME_MAX 200 /* in characters, not bytes; Placement's limit */

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
        StringSet aggregates; /* uuids as text */
} Provider;

typedef struct ProviderTree {
        Provider **providers; /* parents before children */
        size_t n_providers;
        size_t n_allocated;
        size_t n_shares;    /* references besides that of the first owner */
        Provider **by_uuid; /* the same providers, sorted by uuid */
        Provider **by_name; /* the same, sorted by name, which never changes */
} ProviderTree;

/* Makes an empty tree with one owner. -ENOMEM. */
int provider_tree_new(ProviderTree **ret);

/* Releases one reference. The last one frees the tree. */
ProviderTree *provider_tree_free(ProviderTree *tree);
DEFINE_CLEANUP(ProviderTree *, provider_tree_free);

/* Seals the tree and returns a new reference, which provider_tree_free() releases. Until then no
 * owner must change the tree or its providers. Adding, removing or moving a provider aborts;
 * changes of one provider are not detected. */
ProviderTree *provider_tree_ref(const ProviderTree *tree);

/* Makes a deep copy with one owner and the same order. -ENOMEM. */
int provider_tree_copy(ProviderTree **ret, const ProviderTree *tree);

/* Compares providers, names, parents, inventories, traits and aggregates; the order of providers
 * does not matter. */
bool provider_tree_equal(const ProviderTree *a, const ProviderTree *b);

/* Adds a provider at the end; parent NULL, or an empty uuid, makes a root. The name is copied. The
 * new provider (borrowed) goes to *ret_provider, which can be NULL. Returns -EEXIST if the tree has
 * the name or the uuid. Returns -ENOENT if it does not have the parent. Returns -EINVAL if the name
 * is empty or longer than PROVIDER_NAME_MAX, or if the uuid is empty. Returns -ENOMEM when out of
 * memory. */
int provider_tree_add(ProviderTree *tree, const Uuid *uuid, const char *name, const Uuid *parent,
                      Provider **ret_provider, Error *reterr);

/* Removes the provider and its descendants. Returns false if the tree does not have it. */
bool provider_tree_remove(ProviderTree *tree, const Uuid *uuid);

/* Moves a provider of the tree with its descendants below another parent, and to the end of the
 * array. Returns -ENOENT if the tree does not have the parent, -ELOOP if the parent is the provider
 * or one of its descendants, or -ENOMEM; then nothing is changed. Cannot make a root. */
int provider_tree_move(ProviderTree *tree, Provider *provider, const Uuid *parent);

/* Returns the provider, borrowed, or NULL; in O(log n). */
Provider *provider_tree_find(const ProviderTree *tree, const Uuid *uuid);
Provider *provider_tree_find_name(const ProviderTree *tree, const char *name);

/* Returns true if provider is root or one of its descendants. */
bool provider_tree_in_subtree(const ProviderTree *tree, const Provider *provider, const Uuid *root);

/* Returns true if a provider names this one as its parent. */
bool provider_tree_has_children(const ProviderTree *tree, const Uuid *uuid);

/* Returns the record of a class, borrowed and writable, or NULL. */
Inventory *provider_find_inventory(const Provider *provider, const char *resource_class);

/* Returns true if the provider has the class, and an amount of it is not reserved. */
bool provider_offers(const Provider *provider, const char *resource_class);

/* Sets the record of a class and adds the class if needed. Returns -EINVAL for an invalid name or
 * record, or -ENOMEM; then nothing is changed. */
int provider_set_inventory(Provider *provider, const char *resource_class,
                           const Inventory *inventory);

/* Removes the record of a class. Returns false if the provider does not have the class. */
bool provider_remove_inventory(Provider *provider, const char *resource_class);

/* Removes all records. */
void provider_clear_inventories(Provider *provider);

/* Compares uuid, name, parent, inventories, traits and aggregates. */
bool provider_equal(const Provider *a, const Provider *b);

/* Compares the classes and their records (inventory_equal()). */
bool provider_inventories_equal(const Provider *a, const Provider *b);

/* Replaces a's inventories with copies of b's, valid or not. -ENOMEM leaves a unchanged. */
int provider_copy_inventories(Provider *a, const Provider *b);

/* Copies inventories, traits and aggregates. -ENOMEM can leave a part of them copied. */
int provider_copy_contents(Provider *to, const Provider *from);
