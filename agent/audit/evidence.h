/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides whether the server behind a consumer without claim and guest is alive. Pure.
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
 * LIMITATIONS: the end of a claim has this host's time. Where this host's clock was set back since,
 * an allocation that is younger than the end can look older. */

#include "agent/audit/audit-picture.h"

#define AUDIT_EVIDENCE_SIZE 768 /* bytes of the words, with the NUL */

typedef enum AuditLife {
        AUDIT_LIFE_ALIVE,
        AUDIT_LIFE_UNKNOWN,
        AUDIT_LIFE_ENDED,
} AuditLife;

/* Decides by the host's facts, its history and Placement's times. text gets the evidence, or for
 * AUDIT_LIFE_UNKNOWN why there is none. */
AuditLife audit_judge_life(const AuditPicture *picture, const Consumer *consumer,
                           char text[static AUDIT_EVIDENCE_SIZE]);
