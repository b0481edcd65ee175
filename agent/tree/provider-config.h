/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* [compute] provider_config_location at work: reads the folder's *.yaml in every cycle, merges them
 * into the tree and keeps what it added in a file of state_dir, which is written before anything
 * is sent. Logs each problem once. Main thread; blocks on the disk. */

#include "base/error.h"
#include "base/provider-tree.h"

typedef struct ProviderConfig ProviderConfig;

/* Texts are copied. location may name a folder that is not there: then there is nothing to add.
 * read_only: never write the state (--dry-run). -ENOMEM. */
int provider_config_new(ProviderConfig **ret, const char *location, const char *state_dir,
                        const char *owner_trait, bool read_only);
ProviderConfig *provider_config_free(ProviderConfig *config);
DEFINE_CLEANUP(ProviderConfig *, provider_config_free);

/* Edits tree. known: tree holds what Placement holds; else it is a first picture, of which nothing
 * is concluded, remembered or logged. What cannot be read, merged or remembered is logged and left
 * out; -ENOMEM only. */
int provider_config_apply(ProviderConfig *config, ProviderTree *tree, bool known, Error *reterr);
