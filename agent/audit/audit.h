/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds differences of Placement, the claims and the guests of this host, and a remedy for each.
 * Pure: the caller applies the remedies.
 *
 * An audit compares only this host's own tree. It ignores what a consumer holds of other hosts and
 * of sharing providers (facts G2.7, G2.8). It skips what can still be under way:
 *
 *   a consumer without claim and guest that was first seen or written less than the grace time ago,
 *     or whose server is being built or copied (agent/audit/evidence.h)
 *   a claim that is not confirmed, or younger than the grace time
 *   a guest that is being resized or migrated, and what can be its migration (the same)
 *
 * Classes that no guest shows (DISK_GB, an operator's own) are compared only where the claim counts
 * them.
 *
 * No remedy lowers an amount of a consumer that has a claim or a guest: an amount that is larger
 * than the claim's is another writer's, since all that the agent writes is in the claim. Nova
 * allocates more than a domain shows, for example for hw:emulator_threads_policy=isolate.
 *
 * No server that can be alive loses something by a remedy. A claim is reported only when claim and
 * guest agree, so that it is never less than what the guest has, and not while the consumer is
 * young. A claim that another writer reported and removed is not reported again. Where nothing
 * binds the guest to a provider, Placement decides which it is. A finding without a remedy says
 * why. */

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "claims/claim/claim.h"
#include "claims/claim/event.h"
#include "claims/claim/host-facts.h"

typedef enum AuditType {
        AUDIT_LEAKED,    /* it holds something here, and has neither claim nor guest */
        AUDIT_MIGRATION, /* the same of a migration: its instance is not here */
        AUDIT_UNTOLD,    /* a claim that we reported, and Placement has nothing of it any more */
        AUDIT_UNHELD,    /* the same of a claim that others reported, or none */
        AUDIT_AMOUNT,    /* a claim holds another amount than its consumer */
        AUDIT_LARGER,    /* another writer gave the consumer more than its claim holds, which is as
                            much as the guest has: information, and no problem */
        AUDIT_PROVIDER,  /* a claim holds it of other providers than its consumer */
        AUDIT_UNCLAIMED, /* a guest without a claim */
        AUDIT_EVACUATED, /* a claim, or a guest without one; its consumer is on other hosts, and
                            the guest does not run */
        AUDIT_ELSEWHERE, /* a claim; the same, and the guest runs */
        AUDIT_WITHDRAWN, /* what it holds is of a provider that gives nothing any more */
        AUDIT_RESIZED,   /* two claims of a resize that no migration explains any more */
        _AUDIT_TYPE_MAX,
} AuditType;

typedef enum AuditRemedy {
        AUDIT_REMEDY_NONE,          /* a person has to look */
        AUDIT_REMEDY_RELEASE_SHARE, /* this tree's part of the consumer goes from Placement */
        AUDIT_REMEDY_WRITE_CLAIM,   /* Placement gets what the claim holds */
        AUDIT_REMEDY_ADOPT,         /* the guest gets a claim */
        AUDIT_REMEDY_END_CLAIM,     /* the claim is released */
        _AUDIT_REMEDY_MAX,
} AuditRemedy;

/* Names in documents. */
extern const char *const audit_type_names[_AUDIT_TYPE_MAX];
extern const char *const audit_remedy_names[_AUDIT_REMEDY_MAX];

/* All types are problems but AUDIT_LARGER. */
static inline bool audit_type_is_problem(AuditType type)
{
        return type != AUDIT_LARGER;
}

typedef enum AuditOutcome {
        AUDIT_FOUND, /* nothing was done about it */
        AUDIT_HEALED,
        AUDIT_FAILED,
} AuditOutcome;

typedef struct AuditFinding {
        AuditType type;
        AuditRemedy remedy;
        Uuid consumer;
        int64_t claim_id;     /* 0: none */
        char *text;           /* for people */
        char *evidence;       /* why the remedy harms no server that lives; "": there is none */
        AuditOutcome outcome; /* what became of it; the healer writes it */
        Error error;          /* of AUDIT_FAILED */
} AuditFinding;

typedef struct Audit {
        AuditFinding *items;
        size_t n_items, n_allocated;
        size_t n_consumers; /* that hold something of the tree */
        size_t n_in_flight; /* what was left alone */
} Audit;

/* Returns the number of findings that are problems and are not healed. */
size_t audit_count_open(const Audit *audit);

void audit_done(Audit *audit);

/* When consumers were first seen as they are, from one call to the next. */
typedef struct AuditMemory {
        struct AuditSeen {
                Uuid consumer;
                int64_t generation;
                bool stranger; /* it has neither claim nor guest */
                uint64_t since_usec;
        } * items; /* by consumer */
        size_t n_items, n_allocated;
} AuditMemory;

void audit_memory_done(AuditMemory *memory);

typedef struct AuditInput {
        const Allocations *consumers; /* whole: who holds something of the tree, who has a claim,
                                         and guests without one that do not run */
        const ProviderTree *tree;     /* as Placement has it */
        Uuid root;
        const ClaimList *claims;  /* that live, without what they hold of sharing providers */
        const ClaimList *ended;   /* that the history has; NULL: none */
        const EventList *history; /* events of consumers, newest first; NULL: none */
        const Uuid *named;    /* a consumer whose server the operator says is deleted; NULL: none */
        const char *named_by; /* that operator */
        const HostFacts *facts;
        uint64_t now_usec;      /* CLOCK_REALTIME, as claims have it */
        uint64_t placement_sec; /* Placement's clock at that time; 0: unknown */
        uint64_t boot_usec;     /* CLOCK_BOOTTIME: since when consumers are seen */
        uint64_t grace_usec;
        bool disk_is_shared; /* a sharing provider has DISK_GB, so the local one may be withheld */
        bool started_only;   /* a guest that does not run needs no claim */
        const char *waits;   /* why nothing may be written or ended now, in words that end a
                                finding; NULL: it may */
} AuditInput;

/* ret must be zeroed. -ENOMEM leaves memory as it was. */
int audit_make(const AuditInput *input, AuditMemory *memory, Audit *ret);

/* Does the consumer hold something of the host's own tree? */
bool audit_holds_here(const AuditInput *input, const Consumer *consumer);
