/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds differences between Placement, the claims and the guests of this host, and a remedy for
 * each. Pure: the caller applies the remedies.
 *
 * An audit compares only amounts from this host's own tree (facts G2.7, G2.8). A consumer whose
 * allocations are all from sharing providers of this host names no other host, so it counts as here
 * (CONSUMER_HERE). An audit skips and counts four kinds of things that can still change. First, a
 * consumer with allocations from this tree, without guest and without a claim that explains them.
 * It is skipped if its server is alive by the evidence (agent/audit/evidence.h). It is also skipped
 * if it was first seen, written or left without owner less than the grace time ago. It is not
 * skipped if the operator names it. Second, a claim that is not confirmed, or that has a pending or
 * unanswered write; only AUDIT_WITHDRAWN is looked for in it, and only if its consumer has
 * allocations. Third, a claim without allocations in Placement, younger than the grace time, and a
 * pair of claims. The pair is skipped if one claim is not confirmed, if the second one or the
 * consumer is new, or if the guest can be moving. It is also skipped if the consumer has
 * allocations, but none from this tree. The second claim of a pair is always counted, and the first
 * one is counted if the pair is skipped. Fourth, a consumer that can be the migration of a guest,
 * and a guest that can be moving. That guest is skipped if its claim differs from its consumer, or
 * if its consumer is on other hosts. A running guest without a claim is listed nevertheless.
 *
 * Classes that neither a guest nor a device of the host shows (DISK_GB, an operator's own) are
 * compared only if the claim has an amount of the class. A claim has at most one finding about its
 * amounts or providers. AUDIT_WITHDRAWN is looked for only if claim and consumer agree, or if the
 * claim can still change, and never in a pair of claims. A lost device then comes before an
 * inventory.
 *
 * No remedy lowers a consumer's amount from this tree if the consumer has a guest, or a claim that
 * explains its allocations (audit_explains()). An amount that is larger than the claim's belongs to
 * another writer, because the agent writes only the amounts of claims. Nova allocates more than a
 * domain shows, for example for hw:emulator_threads_policy=isolate.
 *
 * A server that can be alive by the evidence loses no allocation by a remedy, unless the operator
 * names its consumer. A claim is written to Placement only if claim and guest agree, so Placement
 * never gets less than the guest has. It is also not written while its consumer is new (first seen
 * or written less than the grace time ago), or while AuditInput.waits has a reason. If another
 * writer made and removed the allocations of a claim, the claim is not written. If the guest is
 * bound to neither of two providers, Placement's provider stays. If a reason prevents a remedy, the
 * finding has no remedy, and its text ends with the reason. */

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "claims/claim/claim.h"
#include "claims/claim/event.h"
#include "claims/claim/host-facts.h"

/* Types of findings. The comment names the difference. */
typedef enum AuditType {
        AUDIT_LEAKED,    /* a consumer with allocations here, without guest and without a claim that
                            explains them, whose server is not alive by the evidence */
        AUDIT_MIGRATION, /* a leaked consumer whose type in Placement is MIGRATION */
        AUDIT_MISSING,   /* the agent wrote a claim, and Placement has no allocation for it any more
                          */
        AUDIT_UNALLOCATED, /* Placement has no allocation for a claim that the agent did not write
                            */
        AUDIT_AMOUNT,      /* a claim has another amount than its consumer, and it is not
                              AUDIT_LARGER */
        AUDIT_LARGER,    /* another writer gave the consumer more than its claim has, and claim and
                            guest agree: information, and no problem */
        AUDIT_PROVIDER,  /* a claim has a class from other providers than its consumer */
        AUDIT_UNCLAIMED, /* a guest without a claim */
        AUDIT_EVACUATED, /* a claim, or a guest without one; its consumer is on other hosts, and the
                            guest does not run, or the driver does not know the guests */
        AUDIT_ELSEWHERE, /* a claim; its consumer is on other hosts, and the guest runs */
        AUDIT_WITHDRAWN, /* an allocation whose inventory is absent or has no capacity, or a claim
                            of a PCI device that the host no longer lists */
        AUDIT_RESIZED,   /* two confirmed claims of one consumer, without a migration that explains
                            them */
        _AUDIT_TYPE_MAX,
} AuditType;

/* The change that repairs a finding. The healer (agent/audit/healer.h) applies it. */
typedef enum AuditRemedy {
        AUDIT_REMEDY_NONE,          /* none: the operator must decide */
        AUDIT_REMEDY_RELEASE_SHARE, /* remove the consumer's allocations from this tree, and those
                                       from sharing providers if it names no other host */
        AUDIT_REMEDY_WRITE_CLAIM,   /* write the claim's allocations to Placement */
        AUDIT_REMEDY_ADOPT,         /* make a claim of the guest */
        AUDIT_REMEDY_END_CLAIM,     /* release the claim */
        _AUDIT_REMEDY_MAX,
} AuditRemedy;

/* Names in documents. */
extern const char *const audit_type_names[_AUDIT_TYPE_MAX];
extern const char *const audit_remedy_names[_AUDIT_REMEDY_MAX];

/* Returns true for all types except AUDIT_LARGER. */
static inline bool audit_type_is_problem(AuditType type)
{
        return type != AUDIT_LARGER;
}

/* A difference. The texts are owned. */
typedef struct AuditFinding {
        AuditType type;
        AuditRemedy remedy;
        Uuid consumer;
        int64_t claim_id; /* 0: none */
        char *text;       /* description for people */
        char *evidence;   /* reason why the remedy harms no living server; "": there is no remedy */
        enum {
                AUDIT_FOUND, /* no remedy was applied */
                AUDIT_HEALED,
                AUDIT_FAILED,
        } outcome;   /* result of the remedy, which the healer sets */
        Error error; /* error of AUDIT_FAILED */
} AuditFinding;

typedef struct Audit {
        AuditFinding *items;
        size_t n_items, n_allocated;
        size_t n_done;      /* number of findings that the healer is done with */
        size_t n_consumers; /* number of consumers with allocations from the tree */
        size_t n_in_flight; /* number of things that were skipped; a claim of which only
                               AUDIT_WITHDRAWN was looked for counts, too */
} Audit;

void audit_done(Audit *audit);

/* The times when consumers were first seen in their present state. The caller keeps it from one
 * audit to the next. It is empty after a start, so the first audit finds each consumer new. */
typedef struct AuditMemory {
        struct AuditSeen {
                Uuid consumer;
                int64_t generation;
                bool unowned; /* it has neither a guest nor a claim that explains its allocations */
                uint64_t since_usec;
        } * items; /* sorted by consumer; the caller frees them */
        size_t n_items, n_allocated;
} AuditMemory;

/* The inputs of an audit, all borrowed. */
typedef struct AuditInput {
        const Allocations *consumers; /* consumers with allocations from the tree, consumers of
                                         claims, and guests that do not run, unless
                                         started_only. Each with all its allocations; those
                                         without any are left out; sorted by uuid */
        const ProviderTree *tree;     /* Placement's tree */
        Uuid root;
        const Uuid *pools; /* sharing providers of this host */
        size_t n_pools;
        const ClaimList *claims;  /* living claims, without allocations from sharing providers */
        const ClaimList *ended;   /* ended claims in the history; NULL: none */
        const EventList *history; /* events of consumers, newest first; NULL: none */
        const Uuid *named; /* consumer that the operator named because its server is deleted; NULL:
                              none */
        const char *named_by; /* name of that operator */
        const HostFacts *facts;
        bool guests_unknown;                   /* the driver does not know the guests */
        bool (*is_alive)(const char *process); /* process_is_alive(), for the process of a claim */
        uint64_t now_usec; /* CLOCK_REALTIME, the clock of claims; a claim from its future counts as
                              young */
        uint64_t placement_sec; /* Placement's clock at that time, in seconds; 0: not known */
        uint64_t boot_usec;     /* CLOCK_BOOTTIME, the clock of AuditMemory */
        uint64_t grace_usec;
        bool disk_is_shared; /* a sharing provider has DISK_GB, so the local one can be withheld */
        bool started_only;   /* a guest that does not run needs no claim */
        const char *waits;   /* reason why nothing can be written or released now, as the end of a
                                finding's text; NULL: it can. AUDIT_REMEDY_ADOPT does not depend on
                                it */
} AuditInput;

/* An audit that is made in steps, because a host can have thousands of guests. */
typedef struct AuditRun AuditRun;

/* Begins an audit. input, everything in it, and memory are borrowed and must not change until
 * audit_run_free(), except by audit_run_step(). Returns -ENOMEM on failure. */
int audit_run_new(AuditRun **ret, const AuditInput *input, AuditMemory *memory);
AuditRun *audit_run_free(AuditRun *run);

/* Looks at about n consumers, claims or guests. Returns 1 if some are left, or -ENOMEM. Returns 0
 * if the findings are complete: then they are in ret, and the memory is that of this audit. */
int audit_run_step(AuditRun *run, size_t n, Audit *ret);

/* Returns true if the consumer has an allocation from the host's own tree. */
bool audit_holds_here(const AuditInput *input, const Consumer *consumer);
