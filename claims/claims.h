/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims: what is promised on this host, on disk before it is promised.
 *
 * This is the face of the folder: whoever claims talks to Claims, which fits the request
 * (claims/fit.h, pure) and writes it through a store (claims/store.h; SQLite is its first engine).
 * It knows no hypervisor, no HTTP and no D-Bus.
 *
 * A claim is committed before claims_claim() returns. The transaction compares the generation of
 * every provider it uses with the one that the fit saw (specification 1, "compare and update"), so
 * that two writers of one file can never promise the same amount twice; a lost race is fitted
 * again, a bounded number of times.
 *
 * Every call is synchronous on the main thread and takes as long as the disk's fsync. */

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "base/resource-request.h"

typedef enum ClaimState {
        CLAIM_STATE_CLAIMED,   /* promised; expires unless confirmed */
        CLAIM_STATE_CONFIRMED, /* a guest uses it */
        CLAIM_STATE_RELEASED,  /* ended; kept as history */
        _CLAIM_STATE_MAX,
        _CLAIM_STATE_INVALID = -EINVAL,
} ClaimState;

const char *claim_state_to_text(ClaimState state); /* "claimed", "confirmed", "released" */
ClaimState claim_state_from_text(const char *text);

/* Expected outcomes. */
typedef enum ClaimOutcome {
        CLAIM_DONE = 0,
        CLAIM_E_NO_CAPACITY = 1, /* some term of the request does not fit; reterr names it */
        CLAIM_E_UNKNOWN_CLASS,   /* no provider of this host has the class; reterr names it */
        CLAIM_E_CONFLICT,        /* the consumer holds a different claim */
        CLAIM_E_NOT_FOUND,       /* no live claim of that id */
        CLAIM_E_BUSY, /* lost the race to another writer too often, or the file stays locked */
        _CLAIM_OUTCOME_MAX,
} ClaimOutcome;

typedef struct Claim {
        int64_t id;
        Uuid consumer; /* instance_uuid of the specification's table */
        ClaimState state;
        bool resize_target; /* stands beside the first claim of the same consumer */
        char *host, *node;
        char *project_id, *user_id; /* "" when not given */
        Allocation *allocations;    /* what it holds: provider and resources */
        size_t n_allocations;
        char **provider_names; /* name of each allocation's provider, same order */
        uint64_t created_usec; /* CLOCK_REALTIME */
        uint64_t expires_usec; /* CLOCK_REALTIME; 0: never */
        uint64_t ended_usec;   /* 0: lives */
        char *end_reason;      /* "" while it lives */
} Claim;

Claim *claim_free(Claim *claim);
DEFINE_CLEANUP(Claim *, claim_free);

typedef struct ClaimList {
        Claim **claims;
        size_t n_claims;
        size_t n_allocated;
} ClaimList;

void claim_list_done(ClaimList *list);

typedef struct ClaimRequest {
        Uuid consumer;
        const char *project_id; /* may be NULL */
        const char *user_id;    /* may be NULL */
        bool resize_target;
        ResourceRequest resources;
} ClaimRequest;

typedef struct Claims Claims;

typedef struct ClaimsConfig {
        const char *path;     /* the database file; its folder must exist */
        const char *host;     /* "host" of the specification's table */
        const char *node;     /* "node" of it: the root provider's name */
        uint64_t expiry_usec; /* [DEFAULT] claim_expiry_time, 0: claims never expire */
} ClaimsConfig;

/* What claims_open() found. */
typedef enum ClaimsOpened {
        CLAIMS_OPENED = 0,
        CLAIMS_CREATED,   /* no file was there */
        CLAIMS_UPGRADED,  /* an older schema was upgraded; the old file is kept beside it */
        CLAIMS_SET_ASIDE, /* the file was corrupt: renamed (reterr has the words), and an empty one
                             made */
        _CLAIMS_OPENED_MAX,
} ClaimsOpened;

/* Opens or makes the database. Positive results are of ClaimsOpened, and the store is usable.
 * -EPROTONOSUPPORT: written by a newer program, the file is left untouched; -EROFS, -EACCES,
 * -ENOSPC, -EIO as the system says, with words. The strings of config are copied. */
int claims_open(Claims **ret, const ClaimsConfig *config, Error *reterr);
Claims *claims_free(Claims *claims);
DEFINE_CLEANUP(Claims *, claims_free);

/* Makes tree the host that claims are fitted to. Providers that claims still hold something of are
 * kept, with the inventory they had, when tree lacks them. Writes nothing when nothing changed. */
int claims_set_providers(Claims *claims, const ProviderTree *tree, Error *reterr);

/* Promises. The same consumer with an equal request yields the claim that it has (idempotent); with
 * another one CLAIM_E_CONFLICT. ret_claim (owned by the caller) is written on CLAIM_DONE alone.
 * -EINVAL with words for a request that no host could take. */
int claims_claim(Claims *claims, const ClaimRequest *request, Claim **ret_claim, Error *reterr);

/* The guest runs: the claim no longer expires. */
int claims_confirm(Claims *claims, int64_t id, Error *reterr);

/* Ends a claim; the reason (copied, at most 255 bytes) is kept in its history. CLAIM_E_NOT_FOUND.
 */
int claims_release(Claims *claims, int64_t id, const char *reason, Error *reterr);

/* The claims that live, oldest first; ended ones too (newest 1000) when history is set. ret must be
 * zeroed. */
int claims_list(Claims *claims, bool history, ClaimList *ret, Error *reterr);

/* One claim, living or ended. CLAIM_E_NOT_FOUND. */
int claims_get(Claims *claims, int64_t id, Claim **ret, Error *reterr);

/* What living claims use: one Consumer per claim's consumer, amounts by provider. */
int claims_usage(Claims *claims, Allocations **ret, Error *reterr);
