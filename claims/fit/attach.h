/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides about a server that is about to start: its present claim names the devices that it
 * attaches, a new claim must name them, or the server cannot start. A scheduler has allocated
 * amounts of device classes to the server, and this host chooses the devices. Pure. */

#include "base/string-set.h"
#include "claims/claim/claim.h"
#include "claims/claim/host-facts.h"
#include "claims/claim/host-view.h"

typedef enum AttachVerdict {
        ATTACH_KEEP,    /* the claim has all devices: as many of the classes on each provider as the
                           allocations, or, without allocations, one of each class */
        ATTACH_MAKE,    /* there is no claim, so one must be made */
        ATTACH_REPLACE, /* the claim has other devices, so another must replace it */
        /* The server cannot start, with words. */
        ATTACH_E_NOT_PLACED,    /* no allocation of a class on this host; without allocations, no
                                   device of it in the claim */
        ATTACH_E_UNKNOWN_CLASS, /* a class counts no devices on an allocated provider */
        ATTACH_E_UNAVAILABLE,   /* a device is missing, replaced or withheld */
        ATTACH_E_CONFLICT, /* the claim has other devices, and must stay: another program requested
                              it, a migration took it over, or the agent writes its allocations */
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
 * A withheld provider gives no new device: without a claim that has enough devices there, the
 * verdict is ATTACH_E_UNAVAILABLE. A claim keeps its devices on a withheld provider, because a
 * cordon stops no guest. */
AttachVerdict attach_decide(const AttachInput *input, Error *reterr);
