/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Judges one consumer by the three parties of an audit: how it differs from its claim, whether its
 * guest can be on its way to another host, and whether its server is alive. Pure.
 *
 * While Nova moves a guest, a migration holds on the source what the guest held there: a consumer
 * whose uuid nothing on the host knows of, and which Placement does not know as a migration (facts
 * G1). Until the move is confirmed, and that may be days, the guest's own consumer holds on the
 * target; or here, in its new size, when it is resized on its own host. Which migration belongs to
 * which guest cannot be known where there are several, and need not be: as long as there can be one
 * for a guest, both are on their way. There can be one where project and user are the same, which
 * Nova copies:
 *
 *   guest that is elsewhere           any consumer that holds CPUs or memory here and has no guest
 *   guest of which the claim differs  such a consumer of the size that claim or domain have
 *   guest that had another size here  such a consumer of the size that an ended claim of it had
 *
 * Nova allocates before it builds or copies a server. Until libvirt has the domain, a server that
 * lives and one that was deleted look alike in Placement. So an allocation is removed only with
 * positive evidence that its server ended here:
 *
 *   alive    Nova has a folder for the server, a migration of its project and user is here, or
 *            Placement says that the allocation was written less than the grace time ago
 *   ended    the newest event of the consumer in this host's history is the end of its claim, which
 *            a caller released or whose guest was gone, and the allocation is older than that
 *   unknown  all others; a lost history, too
 *
 * Age is no evidence: an image download, a volume creation or a copy can take hours. The domain and
 * the folder of a server that Nova rebuilds on a new volume are gone for that time, so a claim that
 * still lives and has no guest is no evidence either (decision placement/alive).
 *
 * LIMITATIONS: where the history has forgotten the ended claim (CLAIM_HISTORY_MAX), or was lost
 * with its file, the migration of a guest that was resized on its own host looks like a leftover;
 * and until then a leftover in the size that such a guest had looks like its migration. The end of
 * a claim has this host's time. Where this host's clock was set back since, an allocation that is
 * younger than the end can look older. */

#include "agent/audit/audit.h"
#include "claims/picture.h"

#define AUDIT_EVIDENCE_SIZE 768 /* bytes of the words, with the NUL */

typedef struct AuditEvidence {
        const AuditInput *input;
        Picture picture;
        PictureConsumer *consumers;   /* all that were read, in the order of the input */
        StringSet gone;               /* owners of guests that are elsewhere */
        StringSet resized;            /* owners and sizes of guests of which a claim differs */
        StringSet loose, loose_sizes; /* the same of consumers that may be migrations */
        StringSet migrations;         /* owners of those that Placement knows as migrations */
} AuditEvidence;

/* Borrows from input; ret must be zeroed, and done also after -ENOMEM. */
int audit_evidence_make(const AuditInput *input, AuditEvidence *ret);
void audit_evidence_done(AuditEvidence *evidence);

/* Returns true if there can be a migration of the guest that the consumer belongs to. size: a claim
 * of it here; NULL: the guest is elsewhere. */
bool audit_may_be_moving(const AuditEvidence *evidence, const Consumer *consumer,
                         const Claim *size);

typedef enum AuditLife {
        AUDIT_LIFE_ALIVE,
        AUDIT_LIFE_UNKNOWN,
        AUDIT_LIFE_ENDED,
} AuditLife;

/* Decides whether the server of a consumer without claim and guest is alive. text gets the
 * evidence, or for AUDIT_LIFE_UNKNOWN why there is none. */
AuditLife audit_judge_life(const AuditEvidence *evidence, const Consumer *consumer,
                           char text[static AUDIT_EVIDENCE_SIZE]);

/* Returns the provider if it is in the host's own tree, else NULL. */
const Provider *audit_own_provider(const AuditInput *input, const Uuid *uuid);

/* Return what the consumer holds in the host's own tree: of a class, and of CPUs and memory. */
uint64_t audit_sum_here(const AuditInput *input, const Consumer *consumer,
                        const char *resource_class);
GuestSize audit_size_here(const AuditInput *input, const Consumer *consumer);

/* Returns true if claims and consumers are compared in this class. */
bool audit_is_compared(const AuditInput *input, const Claim *claim, const char *resource_class);

/* How a consumer differs from its claim in the host's own tree. NULL: not in this way. */
typedef struct AuditDifference {
        const char *lower, *larger; /* first classes of which the consumer has less, or more */
        const char *elsewhere;      /* all amounts are equal: the first class on another provider */
        const Provider *provider;   /* where the consumer has that */
} AuditDifference;

bool audit_differs(const AuditInput *input, const Claim *claim, const Consumer *consumer,
                   AuditDifference *ret);
