/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Contexts of encrypted memory (AMD SEV, SEV-ES, SEV-SNP) as providers "<nodename>_amd_sev",
 * "…_amd_sev_es" and "…_amd_sev_snp" with MEM_ENCRYPTION_CONTEXT (facts C6). Pure. */

#include "drivers/tree/child-provider.h"

extern const char memory_encryption_class[]; /* "MEM_ENCRYPTION_CONTEXT" */

/* The provider of SEV's contexts, where guests of older Novas that hold one of the root belong
 * (facts C5.3); NULL when there is none. */
const Provider *memory_encryption_find_sev(const ProviderTree *tree, const Provider *root);

/* Makes, adopts or removes the three providers. Changes nothing where the host's emulators are not
 * known. A provider that cannot be had (child-provider.h) is left out, and update->problem
 * says why.
 * -ENOMEM. */
int memory_encryption_update(TreeUpdate *update, Error *reterr);
