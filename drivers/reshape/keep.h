/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Leaving inventories as they were, in a tree that was edited already. Pure. */

#include "base/provider-tree.h"
#include "drivers/reshape/rules.h"

/* Where a renamed class would go, its new name takes the record over, unless the provider has one
 * of that name. -ENOMEM. */
int reshape_rename_classes(const ReshapeHost *host, ProviderTree *tree);

/* Gives the class, and what it would have turned into, the inventories of host->before; providers
 * that are gone come back for it. -ENOMEM, -EINVAL. */
int reshape_keep_class(const ReshapeHost *host, ProviderTree *tree, const char *resource_class,
                       Error *reterr);

/* The same for each inventory that usage still has something of: a class that is in use cannot go
 * (and Placement would refuse all of the reshape). */
int reshape_keep_used(const ReshapeHost *host, ProviderTree *tree, const Consumer *usage,
                      Error *reterr);

/* Lets each consumer keep what it holds: a total that shrank, and max_unit with it, under an amount
 * that does not move would make Placement refuse the consumer as a whole. No more than what is used
 * by all together is made room for, and the next update sets the right limits. */
void reshape_relax_limits(const ReshapeHost *host, ProviderTree *tree, const Allocations *consumers,
                          const Consumer *usage);

/* Removes new providers that came to offer nothing. */
void reshape_drop_empty(const ReshapeHost *host, ProviderTree *tree);
