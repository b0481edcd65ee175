/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The image of a reshape: the whole tree and the changed consumers, before and after it. The
 * control writes the image to [agent] state_dir before a request with consumers is sent, so that
 * the reshape can be undone. A tree that is sent alone has no image. "computectl reshape --dry-run"
 * shows it. The JSON form of an image:
 *
 * {"format": "compute-agent-reshape/1", "taken_usec": 1, "node": "host1", "before": {the members
 * of formats/tree-json.h, "consumers": {"<uuid>": as GET /allocations}}, "after": the same,
 * "problems": [{"consumer": "<uuid>", "resource_class": "VGPU", "reason": "…"}]} */

#include <jansson.h>

#include "agent/tree/cordon.h"
#include "base/allocation.h"
#include "base/provider-tree.h"
#include "drivers/driver-reshape.h"

typedef struct ReshapeShape {
        ProviderTree *tree;
        Allocations *consumers; /* the consumers that were read, later only those that change, with
                                   all their allocations */
} ReshapeShape;

typedef struct ReshapeImage {
        uint64_t taken_usec; /* time of the decision, CLOCK_REALTIME */
        ReshapeShape before, after;
} ReshapeImage;

void reshape_image_done(ReshapeImage *image);

/* Returns a new reference, or NULL if memory is short. verdict NULL: no problems. */
json_t *reshape_image_to_json(const ReshapeImage *image, const Uuid *root, const char *node,
                              const DriverReshape *verdict);

/* Reads an image from its JSON form, without its problems. ret must be zeroed; the caller frees it
 * with reshape_image_done(). Returns -EBADMSG or -ENOMEM on failure, with ret unchanged. */
int reshape_image_from_json(const json_t *object, ReshapeImage *ret, Error *reterr);

/* Makes the shape that undoes a reshape. This shape has the tree of Placement (current), with the
 * old inventories and parents where the reshape changed them. It has the given consumers with all
 * their allocations; those that the reshape moved have their old ones. Consumers that are gone are
 * skipped.
 *
 * Returns -EBUSY with words if an inventory that the reshape changed, or a consumer that it moved,
 * is not as after the reshape. image.c has the exceptions. It also returns -EBUSY if another
 * consumer has an allocation from an inventory that would be removed. Other errors, with words:
 * -ENOMEM, and those of adding or moving a provider. ret must be zeroed, and stays so after an
 * error. The caller owns its members. */
int reshape_image_undo(const ReshapeImage *image, const ProviderTree *current,
                       const Allocations *consumers, ReshapeShape *ret, Error *reterr);

/* Returns true if tree has the shape after the reshape of the image, whose trees are not NULL.
 * Compares the inventories of each provider that the reshape creates or whose inventories it
 * changes. A provider with inventories that it removes must be gone or have none. Returns false if
 * there is no provider of these kinds, because the tree is no evidence then. So image->after.tree
 * itself has the shape only if the reshape changes inventories. */
bool reshape_image_is_reached(const ReshapeImage *image, const ProviderTree *tree);

/* Edits the inventories of image->after.tree from which a changed consumer has an amount that
 * Placement would refuse (facts E5), for example those that are withheld. Their limits then permit
 * the amount. Their total is the smallest one for all amounts in use (by image->after.consumers and
 * others), at most INVENTORY_MAX_AMOUNT. They keep their reserved amounts, except that a cordoned
 * device gets the one from before its cordon. The next tree withholds them again. The driver
 * restores their totals in the first tree that needs no reshape. image->after.consumers has all
 * consumers of the tree, with others, which can be NULL. Only the host with this root is edited.
 * cordon is borrowed and unchanged; NULL: none. Returns -ENOMEM or -EOVERFLOW on failure. */
int reshape_image_open(ReshapeImage *image, const Allocations *others, Cordon *cordon,
                       const Uuid *root);
