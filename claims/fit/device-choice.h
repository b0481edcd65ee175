/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which mediated device a claim gets (facts H6). Pure, but for the uuid of a new one, which is
 * random.
 *
 * The provider of a device is named "<node>_<device>". An mdev of the device's type that exists and
 * is not taken (claims/fit/taken.h) goes first, the lowest uuid of them; else one that is to be
 * made, as long as the device has room for it. Room is what the device says, less the mdevs that
 * claims have and nobody made yet. */

#include "base/error.h"
#include "base/resource-request.h"
#include "claims/claim/claim.h"
#include "claims/claim/host-facts.h"
#include "claims/claim/outcome.h"
#include "claims/fit/taken.h"

/* The device that gives the class on the provider, borrowed; NULL when it is no device's. */
const HostDevice *device_of_provider(const HostFacts *facts, const char *node,
                                     const char *provider_name, const char *resource_class);

/* The next whole PCI device that counts as the class on the provider, behind that one (NULL: the
 * first); borrowed, NULL when there is none. Its provider is named "<node>_<ADDRESS>", by itself or
 * its physical function (facts C7). */
const HostPci *pci_of_provider(const HostFacts *facts, const char *node, const char *provider_name,
                               const char *resource_class, const HostPci *after);

/* Does the request ask for a class that devices of this host count as? */
bool devices_are_asked(const HostFacts *facts, const ResourceRequest *request);

/* How many devices the claim holds something of and does not name. */
uint64_t device_count_missing(const HostFacts *facts, const char *node, const Claim *claim);

/* Can the identity of the claim's device be recorded now? It was not recorded before, and this host
 * offers the device that is at the address. */
bool device_lacks_identity(const HostFacts *facts, const ClaimDevice *device);

/* taken: by claims and guests. */
int device_choose(const HostFacts *facts, const HostDevice *device, const Taken *taken, Uuid *ret,
                  Error *reterr);
