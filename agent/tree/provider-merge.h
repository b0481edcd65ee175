/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Merges the entries of provider.yaml into the tree that the driver made (facts A12), and remembers
 * what it added, so that what leaves the files leaves Placement, and only that (facts G2.13). Pure.
 *
 * An entry that cannot be obeyed costs that entry. */

#include <jansson.h>

#include "agent/tree/provider-yaml.h"
#include "base/provider-tree.h"

/* What the files put on one provider: names that were not there before. */
typedef struct ProviderAddition {
        Uuid provider;
        StringSet traits;
        StringSet classes;
} ProviderAddition;

typedef struct ProviderAdditions {
        ProviderAddition *items;
        size_t n_items;
        size_t n_allocated;
} ProviderAdditions;

#define PROVIDER_ADDITIONS_INIT ((ProviderAdditions){ 0 })

void provider_additions_done(ProviderAdditions *additions);

/* {"format": "compute-agent-additions/1", "added": [{"provider", "traits", "classes"}]} */
#define PROVIDER_ADDITIONS_FORMAT "compute-agent-additions/1"
json_t *provider_additions_to_json(const ProviderAdditions *additions);
int provider_additions_from_json(const json_t *json, ProviderAdditions *ret, Error *reterr);

/* Edits tree. before is what earlier merges added; ret_after is what is added now, and what was
 * added, is no longer wanted and was still in the tree: it is remembered until it is seen to be
 * gone. owner_trait ("" for none) is put on every provider that gets something. "$COMPUTE_NODE" is
 * every root with the trait COMPUTE_NODE that no entry names. A class or trait that is there and
 * was not added by us is somebody else's: such a class costs the entry, such a trait stays theirs.
 * -ENOMEM, with tree undefined. */
int provider_merge(ProviderTree *tree, const ProviderYaml *yaml, const char *owner_trait,
                   const ProviderAdditions *before, ProviderAdditions *ret_after,
                   ProviderYamlProblem problem, void *userdata);
