/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Merges the entries of provider.yaml into the tree that the driver made (facts A12), and lists the
 * additions. The additions of an entry that left the files therefore leave the tree, unless the
 * list of them was lost. Nothing else leaves the tree (facts G2.13), with one exception: an
 * addition that the driver has begun to report leaves for one cycle when its entry is removed.
 * Pure.
 *
 * An entry that cannot be applied is skipped and adds nothing. It still counts as the entry of its
 * provider. */

#include <jansson.h>

#include "agent/tree/provider-yaml.h"
#include "base/provider-tree.h"

typedef struct ProviderAdditions {
        struct ProviderAddition *items;
        size_t n_items;
        size_t n_allocated;
} ProviderAdditions;

#define PROVIDER_ADDITIONS_INIT ((ProviderAdditions){ 0 })

void provider_additions_done(ProviderAdditions *additions);

/* {"format": "compute-agent-additions/1", "added": [{"provider", "traits", "classes"}]} */
#define PROVIDER_ADDITIONS_FORMAT "compute-agent-additions/1"

/* Returns NULL if memory is short. The caller owns the result. */
json_t *provider_additions_to_json(const ProviderAdditions *additions);

/* Does not check the format. Returns -EBADMSG with words, also for a provider that is listed twice,
 * or -ENOMEM; then ret is unchanged. */
int provider_additions_from_json(const json_t *json, ProviderAdditions *ret, Error *reterr);

/* Edits tree, which was made from base (NULL: from none): restores the additions that base has and
 * tree lacks, at providers of both trees, with the amounts of base. Returns 1 if there are any, 0
 * if not, or -ENOMEM with tree undefined. */
int provider_additions_keep(const ProviderAdditions *additions, const ProviderTree *base,
                            ProviderTree *tree);

/* Edits tree, which the driver made from base (NULL: from none). before has the additions of
 * earlier merges. ret_after gets the current ones, and those former ones that base still had: they
 * stay listed until a base lacks them. Adds owner_trait
 * ("" for none) to every provider that an entry was merged into. "$COMPUTE_NODE" is every root with
 * the trait COMPUTE_NODE that no entry names.
 *
 * A class or trait that the provider has already, and that is not an addition of before that base
 * has, belongs to another writer. An entry with such a class is skipped. Such a trait stays when
 * the entry is removed. An entry for "$COMPUTE_NODE" is skipped only for such a provider. An entry
 * is also skipped if tree has no provider of its name or uuid, or if an earlier entry named this
 * provider in another way. Each skipped entry is reported in words, except one for "$COMPUTE_NODE"
 * without any provider. The caller frees ret_after. Returns -ENOMEM on failure, with tree undefined
 * and ret_after unchanged. */
int provider_merge(ProviderTree *tree, const ProviderTree *base, const ProviderYaml *yaml,
                   const char *owner_trait, const ProviderAdditions *before,
                   ProviderAdditions *ret_after, void (*problem)(const char *text, void *userdata),
                   void *userdata);
