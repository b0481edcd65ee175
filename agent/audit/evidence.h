/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Judges one consumer of an audit: how it differs from its claim, whether its guest can be on its
 * way to another host, and whether its server is alive. Pure.
 *
 * While Nova moves a guest, a migration has the guest's allocations on the source. It is a consumer
 * whose uuid belongs to nothing on the host. Nova writes no consumer type, so Placement shows only
 * migrations of other writers as such (facts G1). Until the move is confirmed, which can take days,
 * the guest's own consumer has allocations on the target. If it is resized on its own host, it has
 * them here, in its new size. If there are several migrations, the guest of each one is unknown.
 * The audit does not need to know it: as long as a migration can belong to a guest, guest and
 * migration count as being moved. A migration can belong to a guest if project and user are equal,
 * because Nova copies these. Its type must be MIGRATION, unknown or absent, no claim of a guest was
 * moved to it, and it must fit one of these cases.
 *
 * The guest is elsewhere: any consumer fits that has CPUs or memory here and has no guest.
 *
 * The guest's claim differs from its allocations: such a consumer fits if it has the size of the
 * claim or of the domain.
 *
 * The guest had another size here, by an ended claim in the history: such a consumer fits if it has
 * the size of an ended claim. This case protects only the migration.
 *
 * Nova allocates before it builds or copies a server. Until libvirt has the domain, a living server
 * and a deleted one look alike in Placement. So an allocation is removed only with positive
 * evidence that its server ended here, or if the operator names its consumer. The evidence has
 * three results.
 *
 * Alive: one of four facts is known. Nova has a folder for the server. The consumer can be the
 * migration of a guest of this host. Placement shows a consumer of its project and user here as a
 * migration, and does not show the consumer itself as one. Placement shows that the allocation was
 * written less than the grace time ago.
 *
 * Ended: the newest event of the consumer in this host's history is the end of its claim. A caller
 * released the claim, or its guest was gone. The allocation is older than that event by 2 s or
 * more. None of the facts above is known. Nova's folders and the time of the allocation are known.
 *
 * Unknown: all other cases, for example a lost history or unreadable folders.
 *
 * Age is no evidence: an image download, a volume creation or a copy can take hours. While Nova
 * rebuilds a server on a new volume, its domain and its folder are gone. So a living claim without
 * a guest is no evidence either (decision placement/alive).
 *
 * LIMITATIONS: the history forgets ended claims (CLAIM_HISTORY_MAX), and its file can be lost.
 * Without its ended claim, the migration of a guest that was resized on its own host looks like a
 * leftover. With the ended claim, a leftover in the former size of such a guest looks like its
 * migration. The end of a claim has this host's time. If this host's clock was set back since, an
 * allocation that is younger than the end can look older. */

#include "agent/audit/audit.h"
#include "claims/guest-index.h"

#define AUDIT_EVIDENCE_SIZE 768 /* length of the evidence in words, in bytes, with the NUL */

/* The sets for the judgement, made once per AuditRun. Keys are texts, which evidence.c describes.
 * The caller sets input, which is borrowed, and zeroes the rest. */
typedef struct AuditEvidence {
        const AuditInput *input;
        GuestIndex index;
        ConsumerRead *consumers;      /* all consumers that were read, in the order of the input */
        StringSet gone;               /* owners of guests that are elsewhere */
        StringSet resized;            /* owners and sizes of guests whose claim differs, or that had
                                         another size */
        StringSet loose, loose_sizes; /* owners, and sizes, of possible migrations */
        StringSet migrations;         /* owners of consumers with allocations here that Placement
                                         shows as migrations */
        size_t n_added;               /* things of the input that were added so far */
} AuditEvidence;

/* Adds at most n things of the input. Returns 1 if things are left. Returns 0 if the evidence is
 * complete and can be used. Returns -ENOMEM on failure. The caller calls audit_evidence_done() in
 * any case. */
int audit_evidence_step(AuditEvidence *evidence, size_t n);
void audit_evidence_done(AuditEvidence *evidence);

/* Returns true if a consumer here can be the migration of the guest whose consumer is given. It
 * must have the size of the claim size, which is the guest's here, or that of the claim's domain.
 * NULL: the guest is elsewhere, and any size fits. */
bool audit_may_be_moving(const AuditEvidence *evidence, const Consumer *consumer,
                         const Claim *size);

typedef enum AuditServerState {
        AUDIT_SERVER_ALIVE,
        AUDIT_SERVER_UNKNOWN,
        AUDIT_SERVER_ENDED,
} AuditServerState;

/* Decides whether the server of a consumer without a guest, and without a claim that explains it,
 * is alive, by the rules above. The age that AuditMemory knows does not count here. The evidence is
 * written to text, or for AUDIT_SERVER_UNKNOWN the reason why there is none, with an advice. */
AuditServerState audit_judge_server(const AuditEvidence *evidence, const Consumer *consumer,
                                    char text[static AUDIT_EVIDENCE_SIZE]);

/* Returns the provider if it is in the host's own tree, else NULL. */
const Provider *audit_own_provider(const AuditInput *input, const Uuid *uuid);

/* Returns true if each allocation of the consumer is from the host's own tree or from a sharing
 * provider of this host. */
bool audit_names_no_other(const AuditInput *input, const Consumer *consumer);

/* Returns the consumer's amount of a class in the host's own tree, and its amounts of CPUs and
 * memory. */
uint64_t audit_sum_here(const AuditInput *input, const Consumer *consumer,
                        const char *resource_class);
GuestSize audit_size_here(const AuditInput *input, const Consumer *consumer);

/* Returns true if the claim (NULL: none) explains the allocations of its consumer. A claim without
 * a request that is not confirmed does not: it was made of these very allocations, for a lost claim
 * database. */
bool audit_explains(const Claim *claim);

/* Returns true if claims and consumers are compared in this class. */
bool audit_is_compared(const AuditInput *input, const Claim *claim, const char *resource_class);

/* The difference between a consumer and its claim in the host's own tree. NULL: no difference of
 * this kind. */
typedef struct AuditDifference {
        const char *lower, *larger; /* first class of which the consumer has less, and first one of
                                       which it has more */
        const char *elsewhere;      /* all amounts are equal: first class from another provider */
        const Provider *provider;   /* provider from which the consumer has the class elsewhere */
} AuditDifference;

/* Compares a consumer with its claim. Returns true if they differ. ret borrows from claim, consumer
 * and the tree of the input. */
bool audit_differs(const AuditInput *input, const Claim *claim, const Consumer *consumer,
                   AuditDifference *ret);
