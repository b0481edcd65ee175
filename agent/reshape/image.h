/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a reshape changes, before and after: written to [agent] state_dir before the request is
 * sent, so that it can be undone, and shown by "computectl reshape --dry-run". Its JSON form:
 *
 * {"format": "compute-agent-reshape/1", "taken_usec": 1, "node": "host1",
 *  "before": {"providers": [as in formats/tree-json.h], "consumers": {"<uuid>": as GET
 * /allocations}}, "after": the same, "problems": [{"consumer": "<uuid>", "resource_class": "VGPU",
 * "reason": "…"}]} */

#include <jansson.h>

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "drivers/driver-reshape.h"

typedef struct ReshapeShape {
        ProviderTree *tree;
        Allocations *consumers; /* those that change, whole */
} ReshapeShape;

typedef struct ReshapeImage {
        uint64_t taken_usec; /* CLOCK_REALTIME */
        ReshapeShape before, after;
} ReshapeImage;

void reshape_image_done(ReshapeImage *image);

/* verdict may be NULL: no problems. A new reference, NULL when out of memory. */
json_t *reshape_image_to_json(const ReshapeImage *image, const Uuid *root, const char *node,
                              const DriverReshape *verdict);

/* ret must be zeroed. -EBADMSG, -ENOMEM. */
int reshape_image_from_json(const json_t *object, ReshapeImage *ret, Error *reterr);

/* What leads back: the tree that Placement has (current), with those inventories of before that the
 * reshape changed, and its consumers (whole), with what they held before. Consumers that are gone
 * are passed over. -EBUSY with words when the host is not as the reshape left it: one of those
 * inventories or a consumer changed since, or another consumer holds something of what would go.
 * ret must be zeroed. -ENOMEM. */
int reshape_image_undo(const ReshapeImage *image, const ProviderTree *current,
                       const Allocations *consumers, ReshapeShape *ret, Error *reterr);
