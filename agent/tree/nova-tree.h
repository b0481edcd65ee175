/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A tree that is nova-compute's ([agent] nova = observe, beside), and what the agent makes of it.
 * Pure. */

#include "base/provider-tree.h"

/* Does Nova leave reserved as it finds it? It does of PCI devices that are given whole, whose
 * providers are named after host and address ("host1_0000:81:00.0"): what it wants of them is total
 * and max_unit alone (facts C7). Of all other classes it writes reserved itself. */
bool nova_keeps_reserved(const ProviderTree *tree, const Uuid *root, const Provider *provider);

/* remote is what Placement holds, wanted what the agent would make of it; ret is remote, but for
 * what is reserved.
 *
 * nova_tree_to_claim(): the host that claims are fitted to. Nobody is promised what either has
 * reserved, and nothing that Placement does not know. wanted itself, where Placement does not know
 * this host yet.
 * nova_tree_to_send(): what may be written beside nova-compute. -ENOMEM. */
int nova_tree_to_claim(const ProviderTree *remote, const ProviderTree *wanted, const Uuid *root,
                       ProviderTree **ret);
int nova_tree_to_send(const ProviderTree *remote, const ProviderTree *wanted, const Uuid *root,
                      ProviderTree **ret);
