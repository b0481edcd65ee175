/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which devices a server attaches that is about to start, and whose devices this host
 * chooses. A scheduler has allocated amounts of device classes to the server. Its claim names the
 * devices. Pure. */

#include "base/string-set.h"
#include "claims/claim/claim.h"
#include "claims/claim/host-facts.h"
#include "claims/claim/host-view.h"

typedef enum AttachVerdict {
        ATTACH_KEEP,    /* the claim has as many devices of the classes on each provider as the
                         * allocations */
        ATTACH_MAKE,    /* there is no claim, so one must be made */
        ATTACH_REPLACE, /* the claim has other devices, so another claim must replace it */
        /* The server cannot start, with words. */
        ATTACH_E_NOT_PLACED,    /* the consumer has no allocation of a class on this host */
        ATTACH_E_UNKNOWN_CLASS, /* a class counts no devices here */
        ATTACH_E_UNAVAILABLE,   /* a device is missing, replaced or withheld */
        ATTACH_E_CONFLICT,      /* the claim has other devices, and must stay: another program
                                 * requested it, a migration took it over, or the agent writes its
                                 * allocations */
} AttachVerdict;

typedef struct AttachInput {
        const HostFacts *facts;
        const HostView *view;
        const char *node;
        const StringSet *classes; /* the device classes of the server, at least one */
        const Consumer *placed;   /* all allocations of the server; NULL: Placement is away, and the
                                     claim decides */
        const Claim *claim;       /* the living claim of the server; NULL: none */
} AttachInput;

/* Returns a verdict; reterr has the words of those that are errors, and is unchanged by others.
 * Without allocations the verdict is never ATTACH_MAKE or ATTACH_REPLACE. It is ATTACH_E_NOT_PLACED
 * for a class of which the claim has no device, or only devices that the host lost. If a claim is
 * kept, its devices of the classes are on the host, and none is known to have another identity. Its
 * other devices are not checked.
 *
 * A withheld provider gives no new device. A claim keeps its device on a withheld provider, because
 * a cordon stops no guest. */
AttachVerdict attach_decide(const AttachInput *input, Error *reterr);
