/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an audit looks at, in an order in which it can be found, and who of it may be on its way
 * from one host to another. Pure.
 *
 * While Nova moves a guest, a migration holds on the source what the guest held there: a consumer
 * whose uuid nothing on the host knows of, and which Placement does not know as a migration (facts
 * G1). Until the move is confirmed, and that may be days, the guest's own consumer holds on the
 * target; or here, in its new size, when it is resized on its own host. Which migration is whose
 * cannot be known where there are several, and need not be: as long as there may be one for a guest
 * both are on their way. There may be one where project and user are the same, which Nova copies:
 *
 *   guest that is elsewhere           any consumer that holds CPUs or memory here and has no guest
 *   guest of which the claim differs  such a consumer of the size that claim or domain have
 *   guest that had another size here  such a consumer of the size that an ended claim of it had
 *
 * LIMITATIONS: where the history has forgotten the ended claim (CLAIM_HISTORY_MAX), or was lost
 * with its file, the migration of a guest that was resized on its own host looks like what somebody
 * left; and until then what somebody left in the size that such a guest had looks like its
 * migration. */

#include "agent/audit/audit.h"

typedef struct AuditKey {
        Uuid uuid;
        const void *of;
} AuditKey;

typedef struct AuditKeys {
        AuditKey *items; /* in order */
        size_t n_items;
} AuditKeys;

typedef struct AuditPicture {
        const AuditInput *input;
        AuditKeys claims;             /* by consumer */
        AuditKeys handed;             /* claims that a migration has, by guest */
        AuditKeys domains;            /* by uuid */
        StringSet gone;               /* owners of guests that are elsewhere */
        StringSet resized;            /* owners and sizes of guests of which a claim differs */
        StringSet loose, loose_sizes; /* the same of consumers that may be migrations */
        StringSet migrations;         /* owners of those that Placement knows as migrations */
} AuditPicture;

/* Borrows from input; ret must be zeroed, and done also after -ENOMEM. */
int audit_picture_make(const AuditInput *input, AuditPicture *ret);
void audit_picture_done(AuditPicture *picture);

/* The consumer's older claim, or NULL. */
const Claim *audit_picture_claim(const AuditPicture *picture, const Uuid *consumer);

/* Its other claim, of a resize on this host; NULL: it has one at most. */
const Claim *audit_picture_second_claim(const AuditPicture *picture, const Uuid *consumer);
const HostDomain *audit_picture_domain(const AuditPicture *picture, const Uuid *uuid);

/* The guest that a claim is of: also while a migration has it. NULL: it has none here. */
const HostDomain *audit_picture_guest(const AuditPicture *picture, const Claim *claim);

/* Has a migration the claim of this guest? */
bool audit_picture_is_handed(const AuditPicture *picture, const Uuid *guest);

/* Is everything that it holds elsewhere? */
bool audit_picture_is_gone(const AuditPicture *picture, const Consumer *consumer);

/* A consumer that has no guest: may it be a migration of one that has? */
bool audit_picture_may_be_migration(const AuditPicture *picture, const Consumer *consumer);

/* Returns true if Placement knows another consumer here as a migration of the same owner. */
bool audit_picture_has_migration(const AuditPicture *picture, const Consumer *consumer);

/* A guest's consumer: may there be a migration of it? size NULL: a guest that is elsewhere. */
bool audit_picture_may_be_moving(const AuditPicture *picture, const Consumer *consumer,
                                 const Claim *size);

/* Of the host's own tree: NULL when it is not. */
const Provider *audit_own_provider(const AuditInput *input, const Uuid *uuid);

/* What the consumer holds here of a class. */
uint64_t audit_sum_here(const AuditInput *input, const Consumer *consumer,
                        const char *resource_class);

/* Is a claim looked at for this class? */
bool audit_is_compared(const AuditInput *input, const Claim *claim, const char *resource_class);

/* Returns the first class of which the consumer holds less here than the claim, or NULL;
 * ret_larger: the first of which it holds more. */
const char *audit_find_differing_sum(const AuditInput *input, const Claim *claim,
                                     const Consumer *consumer, const char **ret_larger);

/* Where all amounts are equal: the first class that the consumer has elsewhere than the claim, and
 * where; NULL: none. */
const char *audit_find_differing_provider(const AuditInput *input, const Claim *claim,
                                          const Consumer *consumer, const Provider **ret);
