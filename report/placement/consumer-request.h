/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The requests about consumers, as values (facts E5, E8). Pure; see report/placement/request.h. */

#include "base/resource-request.h"
#include "report/placement/request.h"

#define PLACEMENT_MICROVERSION_IN_TREE "1.31"

/* PUT /allocations/{consumer}: all that it holds from now on; nothing removes it. With 1.38, its
 * type and mappings (NULL: none to send; Placement takes and ignores them), or with 1.30 and
 * neither when old is set or the type is not known: its type stays what it is then. The consumer
 * has passed placement_check_consumer(). */
PlacementRequest placement_put_consumer(const Consumer *consumer, const RequestMappings *mappings,
                                        bool old);

/* POST /allocations: the same for several, all of them or none. */
PlacementRequest placement_post_consumers(const Allocations *consumers, bool old);

/* What is left in the tree that root is of, if some provider of it can give that much of the class:
 * the summaries of GET /allocation_candidates for it. They are those of the whole tree, however few
 * candidates the answer has, so it is one request at any size. */
PlacementRequest placement_get_room(const Uuid *root, const char *resource_class, uint64_t amount);

/* The answer: what nobody holds of each provider (capacity without what is used), as allocations of
 * nobody; nothing when no provider can give that much. -EBADMSG with the name of the field. */
int placement_read_room(const json_t *body, Consumer **ret, Error *reterr);
