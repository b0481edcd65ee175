/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* provider.yaml: inventories and traits that an operator adds to providers, in Nova's schema 1
 * (facts A12). Pure: text in, entries out.
 *
 * A bad entry costs that entry, a file that is no YAML or of another version costs that file; each
 * is reported to the caller in words. */

#include "agent/state/yaml-text.h"
#include "base/error.h"
#include "base/inventory.h"
#include "base/string-set.h"
#include "base/uuid.h"

#define PROVIDER_YAML_MAX_BYTES   YAML_TEXT_MAX_BYTES
#define PROVIDER_YAML_MAX_ENTRIES 10000 /* and inventories or traits of an entry */

typedef struct ProviderYamlInventory {
        char *resource_class;
        Inventory record;
} ProviderYamlInventory;

/* One target, by exactly one of uuid, name and compute_node. */
typedef struct ProviderYamlEntry {
        char *source; /* the file, for words */
        Uuid uuid;
        char *name;
        bool compute_node; /* "$COMPUTE_NODE": every compute node that no other entry names */
        ProviderYamlInventory *inventories;
        size_t n_inventories, n_inventories_allocated;
        StringSet traits;
} ProviderYamlEntry;

typedef struct ProviderYaml {
        ProviderYamlEntry **entries;
        size_t n_entries;
        size_t n_allocated;
} ProviderYaml;

#define PROVIDER_YAML_INIT ((ProviderYaml){ 0 })

void provider_yaml_done(ProviderYaml *yaml);

/* Called once for each thing that is left out; text is borrowed for the call. */
typedef void (*ProviderYamlProblem)(const char *text, void *userdata);

/* Adds the entries of one file, whose name source is for the words. 0, also when something was left
 * out; -ENOMEM. */
int provider_yaml_add(ProviderYaml *yaml, const char *source, const char *text, size_t n,
                      ProviderYamlProblem problem, void *userdata);

/* "COMPUTE_NODE", the uuid or the name. */
const char *provider_yaml_target(const ProviderYamlEntry *entry);
