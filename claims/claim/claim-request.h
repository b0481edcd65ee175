/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a caller asks for, checked and written down. Pure.
 *
 * Whatever reaches the fit and the store went through claim_request_check(), so that these may
 * trust amounts, names and uuids. */

#include "base/resource-request.h"
#include "base/uuid.h"
#include "claims/claim/claim.h"
#include "claims/claim/event.h"

/* More groups than any guest has: bounds the work of a fit and the size of a row. */
#define CLAIM_GROUPS_MAX  256
#define CLAIM_CLASSES_MAX 256 /* of one group */
#define CLAIM_TRAITS_MAX  64  /* required, and as many forbidden, of one group */

typedef struct ClaimRequest {
        Uuid consumer;
        const char *project_id;    /* may be NULL */
        const char *user_id;       /* may be NULL */
        const char *consumer_type; /* "INSTANCE", "MIGRATION"; may be NULL */
        bool resize_target;
        char life[CLAIM_LIFE_SIZE]; /* as a claim has it; "": not given */
        ResourceRequest resources;
        RequestMappings mappings; /* what whoever placed it says of its groups; none: not given */
        const EventAuthor *by;    /* who asks */
} ClaimRequest;

/* -EINVAL with words for a request that no host could take: no group, a group without resources, an
 * amount of 0 or above INVENTORY_MAX_AMOUNT (also as the sum over the groups), a malformed uuid,
 * class, trait, project, user or consumer type, a trait both required and forbidden, a subtree of a
 * group that is not there, a layout that is not that of the amounts, a suffixed group that is
 * mapped to several providers. A group without resources is taken when a subtree names it. */
int claim_request_check(const ClaimRequest *request, Error *reterr);

/* The resources in the form of Placement's query, the same text for equal requests:
 * "resources=VCPU:2&required=A,!B&resources_GPU=VGPU:1&group_policy=isolate". NULL when out of
 * memory. The caller frees. */
char *claim_request_format(const ResourceRequest *request);
