/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads provider.yaml: inventories and traits that an operator adds to providers, in Nova's schema
 * 1 (facts A12). Pure: it converts text to entries.
 *
 * A bad entry is skipped, and so is one whose target has the same text as that of an earlier entry
 * of any file. A file that is empty, too large, too deep or not YAML is refused. So is one without
 * a quoted schema_version, of another major version, or whose "providers" is not a list. After too
 * many items (by aliases) the rest of a file is refused. Documents after the first, and members
 * that are not in the schema, are ignored without words. Exceptions are "__source_file" and unknown
 * fields of an inventory: their entry is bad. The fields of an inventory are checked. Only custom
 * classes and traits (CUSTOM_…) are accepted. Each problem is reported to the caller in words, and
 * so is a newer minor version, which is read. */

#include "agent/state/yaml-text.h"
#include "base/error.h"
#include "base/provider-tree.h"
#include "base/string-set.h"
#include "base/uuid.h"

#define PROVIDER_YAML_MAX_BYTES   YAML_TEXT_MAX_BYTES
#define PROVIDER_YAML_MAX_ENTRIES 10000 /* entries of all files; inventories or traits of one */

/* Additions to one target, which is named by exactly one of uuid, name and compute_node. */
typedef struct ProviderYamlEntry {
        char *source; /* path of the file, for messages */
        Uuid uuid;
        char *name;
        bool compute_node;  /* "$COMPUTE_NODE": every compute node that no other entry names */
        const char *target; /* "$COMPUTE_NODE", the uuid or the name; borrowed from the entry */
        InventoryRecord *inventories;
        size_t n_inventories, n_inventories_allocated;
        StringSet classes; /* the classes of the inventories */
        StringSet traits;
} ProviderYamlEntry;

typedef struct ProviderYaml {
        ProviderYamlEntry **entries;
        size_t n_entries;
        size_t n_allocated;
} ProviderYaml;

#define PROVIDER_YAML_INIT ((ProviderYaml){ 0 })

void provider_yaml_done(ProviderYaml *yaml);

/* Adds the entries of one file, with source as its name in messages. text has n bytes. The callback
 * problem receives words, once for each skipped entry, a refused file, or a newer minor version,
 * borrowed during the call. Returns 0, even if entries were skipped, -EINVAL for a refused file, or
 * -ENOMEM. After an error yaml can have some of the entries. */
int provider_yaml_add(ProviderYaml *yaml, const char *source, const char *text, size_t n,
                      void (*problem)(const char *text, void *userdata), void *userdata);
