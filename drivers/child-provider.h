/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The providers that a driver keeps below its root: cells, devices, memory encryption. Pure. */

#include "base/error.h"
#include "base/provider-tree.h"

/* Finds the provider of this name, or makes it with the uuid that its name and the root give (so it
 * is the same after a loss of all state), and puts it under parent: the root, or a provider below
 * it, both of the tree. *ret is borrowed from the tree. -EINVAL when the name is held outside of
 * root's subtree or is no name that Placement takes, -ELOOP when parent lies below the provider,
 * -ENOMEM. */
int child_provider_ensure(ProviderTree *tree, const Provider *root, const Provider *parent,
                          const char *name, Provider **ret, Error *reterr);
