/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The JSON document "tree" of Describe(), and "computectl tree --json":
 *
 * {"format": "compute-agent-tree/1", "node": "host1", "root": "<uuid>", "sync_state": "synced",
 * "providers": [{"uuid", "name", "parent": "<uuid>" | null, "traits": [], "aggregates": [],
 *                 "inventories": {"VCPU": {"total", "reserved", "min_unit", "max_unit",
 * "step_size", "allocation_ratio", "capacity", "used"}}}]}
 *
 * Describe() adds "shares": [], the names of providers of other trees that share with this one.
 * Describe() also adds to each provider "cordoned": true | false and "withheld": "missing" | "held"
 * | "unclean" | "", and "devices": [] with the PCI addresses to the provider of a set
 * ([device_shapes NAME]). Parents precede children, and siblings are sorted by name. "used" is the
 * sum of living claims on the provider. tree_to_json() makes none of the members that Describe()
 * adds. */

#include <jansson.h>

#include "base/provider-tree.h"
#include "claims/claim/host-view.h"

/* Makes the document. view: the host as the claims know it; NULL: each "used" is 0. Returns a new
 * reference, or NULL if memory ran out or a text is not UTF-8. */
json_t *tree_to_json(const ProviderTree *tree, const HostView *view, const Uuid *root,
                     const char *node, const char *sync_state);
