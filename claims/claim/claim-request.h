/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The request of a caller, its check and its text form. Pure.
 *
 * Every request of a caller passes claim_request_check() before the fit and the store see it. So
 * these can rely on valid amounts and names, and a valid uuid of the consumer. Requests that
 * claims/ makes itself, of a domain or of allocations, are not checked. */

#include "base/resource-request.h"
#include "base/uuid.h"
#include "claims/claim/claim.h"
#include "claims/claim/event.h"

/* Limits of a request. CLAIM_GROUPS_MAX is more than any guest needs: it bounds the work of a fit
 * and the size of a row. */
#define CLAIM_GROUPS_MAX  256
#define CLAIM_CLASSES_MAX 256 /* classes in one group */
#define CLAIM_TRAITS_MAX  64  /* required ones in one group; the same limit for forbidden ones */

typedef struct ClaimRequest {
        Uuid consumer;
        const char *project_id;    /* can be NULL */
        const char *user_id;       /* can be NULL */
        const char *consumer_type; /* "INSTANCE", "MIGRATION"; can be NULL */
        bool resize_target;
        char process[CLAIM_PROCESS_SIZE]; /* identity of the guest, as in a claim; "": none */
        ResourceRequest resources;
        RequestMappings mappings; /* providers that the scheduler chose for the groups; no items:
                                   * not given */
        const EventAuthor *by;    /* the author of the request */
} ClaimRequest;

/* Checks a request. Returns -ENOMEM on failure, and -EINVAL with words for an invalid request:
 *
 *   A request without groups, or a group without resources that no subtree names.
 *   More groups, classes, traits, cells or guest CPUs than the limits allow.
 *   An amount of 0 or above INVENTORY_MAX_AMOUNT, also as the sum over the groups.
 *   A malformed uuid of the consumer, class or trait.
 *   A project, user or consumer type above CLAIM_TEXT_MAX bytes or with a control character.
 *   A trait that is both required and forbidden.
 *   A subtree with a group that does not exist.
 *   A layout that differs from the amounts, or beside a suffixed group with CPUs or memory.
 *   A suffixed group that is mapped to several providers.
 *
 * Whether the host has the classes, and whether mapped groups and providers exist, is not checked.
 * The first fault ends the check. */
int claim_request_check(const ClaimRequest *request, Error *reterr);
