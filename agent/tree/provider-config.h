/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Applies [compute] provider_config_location: reads the folder's *.yaml files for each tree and
 * merges them into it. The list of additions is kept in "provider-config.json" of state_dir. A
 * changed list is written before a request is sent. Each problem is logged once as long as it
 * lasts. Main thread; blocks on the disk. */

#include "base/error.h"
#include "base/provider-tree.h"

typedef struct ProviderConfig ProviderConfig;

/* Loads the additions. A damaged file of them is logged, and there are none then. Texts are copied.
 * location can be a folder that does not exist: it has no files. owner_trait marks the providers
 * with additions; NULL: none. read_only: the state is not written (--dry-run), and a damaged file
 * is not set aside. Returns a negative errno with words if the file cannot be read, because a later
 * write would replace it. */
int provider_config_new(ProviderConfig **ret, const char *location, const char *state_dir,
                        const char *owner_trait, bool read_only, Error *reterr);
ProviderConfig *provider_config_free(ProviderConfig *config);
DEFINE_CLEANUP(ProviderConfig *, provider_config_free);

/* Edits tree, which was made from base (NULL: from none). known: that of tree_maker_make(); false:
 * nothing is stored or logged. Entries that cannot be merged are logged and skipped. If all files
 * were read, the earlier additions of skipped entries leave the tree. If a file or the folder
 * cannot be read or parsed, that is logged. The entries that were read are merged, and the earlier
 * additions that were not merged again stay as base has them. A missing folder has no files. So has
 * one that the agent cannot look up (EACCES), while there are no additions. A list of additions
 * that cannot be stored is logged, and the additions are still applied. Returns -ENOMEM on
 * failure. */
int provider_config_apply(ProviderConfig *config, ProviderTree *tree, const ProviderTree *base,
                          bool known, Error *reterr);
