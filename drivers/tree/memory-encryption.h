/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Contexts of encrypted memory (AMD SEV, SEV-ES, SEV-SNP) as providers "<nodename>_amd_sev",
 * "…_amd_sev_es" and "…_amd_sev_snp" with MEM_ENCRYPTION_CONTEXT (facts C6). Pure. */

#include "drivers/tree/child-provider.h"

extern const char memory_encryption_class[]; /* "MEM_ENCRYPTION_CONTEXT" */

/* Returns the provider of SEV's contexts, or NULL if it is missing or has no inventory of them.
 * Guests of older versions of Nova that have a context of the root belong there (facts C5.3).
 * Borrowed. */
const Provider *memory_encryption_find_sev(const ProviderTree *tree, const Provider *root);

/* Creates, adopts or removes the three providers. Changes nothing if the snapshot has no emulators.
 * A model without contexts loses its provider, if the list of emulators is complete and the
 * provider belongs to the agent. If another writer has providers below it, it stays without
 * inventories and trait. A provider that is impossible (child-provider.h) is left out, and
 * update->problem has the reason. -ENOMEM. */
int memory_encryption_update(TreeUpdate *update, Error *reterr);
