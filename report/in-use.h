/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What was refused because it is in use, so that it is not sent again for nothing. Pure.
 *
 * Who frees an allocation raises the provider's generation (facts E3). As long as that stands, and
 * the same inventories are wanted, the answer would be the same. */

#include "report/mirror.h"

typedef struct InUse {
        struct InUseEntry *entries;
        size_t n_entries, n_allocated;
} InUse;

#define IN_USE_INIT ((InUse){ 0 })

void in_use_done(InUse *in_use);

/* Placement refused the inventories of desired, and has others of this generation now. words are
 * for people. -ENOMEM. */
int in_use_add(InUse *in_use, const Provider *desired, int64_t generation, const char *words);

/* Puts what Placement has in the place of what it would refuse, in every provider of desired, and
 * forgets what no longer stands. reterr gets the words of the first one when the result is not 0:
 * REPORT_E_IN_USE, -ENOMEM. */
int in_use_apply(InUse *in_use, const Mirror *mirror, ProviderTree *desired, Error *reterr);
