/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Chooses the mediated device of a claim (facts H6), finds the devices that a provider counts, and
 * counts the devices of a claim. Pure, except that the uuid of a new mdev is random.
 *
 * The provider of a device is named "<node>_<device>". Nothing is chosen on a device that a taken
 * PCI device blocks. Otherwise the choice is an existing mdev on the device that has its type and
 * is not taken (claims/fit/taken.h), the one with the lowest uuid. If there is none, it is a new
 * mdev, as long as the device can have one more. HostDevice.available is the number that could
 * still be made at the poll, by the hardware and by max_instances. Claimed mdevs that do not exist
 * yet are subtracted from it. */

#include "base/error.h"
#include "base/resource-request.h"
#include "claims/claim/claim.h"
#include "claims/claim/host-facts.h"
#include "claims/claim/outcome.h"
#include "claims/fit/taken.h"

/* Returns the device that counts as the class on the provider, borrowed. NULL if there is none. */
const HostDevice *device_of_provider(const HostFacts *facts, const char *node,
                                     const char *provider_name, const char *resource_class);

/* Returns the next PCI device that counts as the class on the provider, borrowed. after: the
 * previous one, NULL for the first. NULL if there is no other one. The provider is named
 * "<node>_<ADDRESS>", by the address of the device or of its physical function (facts C7). The
 * provider of vGPU functions is named "<node>_<card>", by libvirt's name of the card. The provider
 * of a set is named "<node>_shapes_<SET>". */
const HostPci *pci_of_provider(const HostFacts *facts, const char *node, const char *provider_name,
                               const char *resource_class, const HostPci *after);

/* Returns the class that counts the device of a claim, borrowed from the facts. "" if the host does
 * not offer the device now, or offers it with another type. */
const char *device_class_of(const HostFacts *facts, const ClaimDevice *device);

/* Returns true if the request has a class that counts devices of this host. */
bool devices_are_asked(const HostFacts *facts, const ResourceRequest *request);

/* Returns the amount that a device of the claim stands for, beside the earlier devices: 1, or for a
 * device of a set the number of its members that no earlier device uses. */
uint64_t device_units(const HostFacts *facts, const Claim *claim, size_t device);

/* Returns the amount of the claim's devices for a class of one of its allocations. A device of the
 * provider counts unless it has another class of the allocation. So one whose class is unknown, or
 * has changed, counts for each class. */
uint64_t device_count_named(const HostFacts *facts, const Claim *claim,
                            const Allocation *allocation, const char *resource_class);

/* Returns the amount of devices that the claim has, but for which it names none, in sum over its
 * providers. Only amounts of devices that the host offers now count. The result is 0 if the claim
 * names as many devices in all as it has amounts below the root. */
uint64_t device_count_missing(const HostFacts *facts, const char *node, const Claim *claim);

/* Returns true if the identity of the claim's device can be recorded now. The host knows it, it
 * does not contradict the recorded one, it or its serial number is not recorded yet, and this host
 * offers the device at the address. */
bool device_lacks_identity(const HostFacts *facts, const ClaimDevice *device);

/* Yields the uuid of an mdev on the device. taken: by claims and guests. Returns CLAIM_DONE, or
 * CLAIM_E_NO_CAPACITY with words if no mdev is free and none can be made, or if the device is
 * blocked. */
int device_choose(const HostFacts *facts, const HostDevice *device, const Taken *taken, Uuid *ret,
                  Error *reterr);
