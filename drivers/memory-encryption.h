/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Contexts of encrypted memory (AMD SEV, SEV-ES, SEV-SNP) as providers "<nodename>_amd_sev",
 * "…_amd_sev_es" and "…_amd_sev_snp" with MEM_ENCRYPTION_CONTEXT (facts C6). Pure. */

#include "base/allocation.h"
#include "drivers/driver.h"

/* True when the root still has the class, as older Novas had it, and the host a provider for it
 * (facts C5.3). */
bool memory_encryption_reshape_needed(const Snapshot *snapshot, const Provider *root);

/* Makes, adopts or removes the three providers. allocations, where given, are moved from the root
 * to the provider of SEV, one context a consumer. Changes nothing where the host's emulators are
 * not told. -EINVAL when a name is too long or taken elsewhere in the tree, -ENOMEM. */
int memory_encryption_update(const DriverConfig *config, const Snapshot *snapshot,
                             ProviderTree *tree, const Provider *root, Allocations *allocations,
                             Error *reterr);
