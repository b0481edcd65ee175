/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Placement's answers about allocations as values (facts E5). Pure; see report/placement/answer.h.
 */

#include <jansson.h>

#include "base/allocation.h"
#include "base/error.h"

/* Can the type be sent? "unknown" is what Placement shows for writers before 1.38, and refuses. */
bool placement_consumer_type_valid(const char *type);

/* Nothing can be written of a consumer without project and user: -EINVAL with words. */
int placement_check_consumer(const Consumer *consumer, Error *reterr);

/* The same for each; NULL: there is none. */
int placement_check_consumers(const Allocations *consumers, Error *reterr);

/* There are some, and each has a type that can be sent. */
bool placement_consumers_typed(const Allocations *consumers);

/* GET /resource_providers/{uuid}/allocations: adds what each consumer holds of the provider. */
int placement_read_provider_allocations(const json_t *body, const Uuid *provider, Allocations *ret,
                                        Error *reterr);

/* {"allocations": {"<provider>": {"resources": {"VCPU": 2}}}, "project_id", "user_id",
 * "consumer_generation"[, "consumer_type"]}: what PUT /allocations/{consumer} takes, with its type
 * where it has one. A new reference, NULL when out of memory. */
json_t *placement_consumer_to_json(const Consumer *consumer, bool with_type);

/* GET /allocations/{consumer}: adds the consumer, whole. One that holds nothing is not added. */
int placement_read_consumer(const json_t *body, const Uuid *uuid, Allocations *ret, Error *reterr);

/* The same as a consumer by itself; one that holds nothing has generation -1. */
int placement_read_whole(const json_t *body, const Uuid *uuid, Consumer **ret, Error *reterr);

/* {"<consumer>": {…}} of all, as POST /allocations and POST /reshaper take them. A new reference,
 * NULL when out of memory. */
json_t *placement_consumers_to_json(const Allocations *allocations, bool with_types);
