/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The functions that claims.c (requests), claims-guests.c (claims by domains), claims-start.c,
 * claims-check.c, claims-devices.c and claims-host.c share. */

#include "claims/claims.h"
#include "claims/store/object.h"

/* Returns the expiry time of a claim that is made at now_usec, CLOCK_REALTIME. 0: never. */
uint64_t claims_expiry_from(const Claims *claims, uint64_t now_usec);

/* Devices that a claim will get. Everything but the array is borrowed. */
typedef struct DeviceList {
        ClaimDevice *devices;
        size_t n_devices, n_allocated;
} DeviceList;

static inline void device_list_done(DeviceList *list)
{
        free(list->devices);
        *list = (DeviceList){ 0 };
}

/* Adds a device to the list. Returns -ENOMEM on failure. */
int claims_add_device(DeviceList *list, const Provider *provider, const char *suffix,
                      const HostDevice *device, const Uuid *mdev);

/* Adds a PCI function to the list, without an mdev. Returns -ENOMEM on failure. */
int claims_add_pci(DeviceList *list, const Provider *provider, const char *suffix,
                   const HostPci *pci);

/* Adds a PCI device of a guest to devices, and the provider that counts it to the fit. A device
 * that this host does not count, such as a network's, is ignored, and so is one of a set. Returns
 * CLAIM_E_CONFLICT if a claim has the device, its card or a part of it. */
int claims_hold_pci(Claims *claims, const HostPci *pci, Fit *fit, DeviceList *devices,
                    Error *reterr);

/* Returns the index of the provider that counts a PCI device, SIZE_MAX if there is none. */
size_t claims_find_pci_provider(const Claims *claims, const HostPci *pci);

/* Looks for a living claim that has the PCI device, its card or a part of it. Returns 1 with words
 * if there is one. */
int claims_is_pci_claimed(Claims *claims, const char *address, Error *reterr);

/* A guest that is about to start. All pointers are borrowed. */
typedef struct ClaimStart {
        const HostDomain *domain;
        const StringSet *cordoned; /* uuids of the providers with cordons; NULL: none */
        const Claim *earlier;      /* claim of an earlier start, which has ended; NULL: none */
        bool writes;               /* the agent must write the claim to Placement */
        bool is_new;               /* set by prepare_once(): the claim did not exist before */
} ClaimStart;

/* Makes one attempt for a guest that has no claim. Stores nothing unless all of it fits. Returns
 * CLAIM_E_RACE if the caller must retry. */
int claims_prepare_new(Claims *claims, const ClaimStart *start, Claim **ret, Error *reterr);

/* Gives the request of a claim that was made before its domain (claims_claim_starting()) the CPUs
 * and the memory of the domain. Does nothing for other claims, or if the claim is confirmed.
 * Returns CLAIM_E_NOT_FOUND if the claim has ended. */
int claims_note_domain(Claims *claims, const Claim *claim, const HostDomain *domain, Error *reterr);

/* Adds the devices that claims and (from the first facts on) guests have, and those that are not
 * clean. */
int claims_taken(Claims *claims, Taken *ret, Error *reterr);

/* Limits the view to the devices that each provider can still give, for a fit of the request. Adds
 * the taken devices to ret. Does neither before the first facts, or if the request asks for no
 * devices. */
int claims_count_devices(Claims *claims, const ResourceRequest *request, Taken *ret, Error *reterr);

/* Adds amount free PCI devices of a provider to ret, and to the taken devices. Returns
 * CLAIM_E_NO_CAPACITY with words if the provider has fewer; those that were found are added. For a
 * set, adds all devices of one partition of the amount, or none. */
int claims_choose_pci(Claims *claims, const Provider *provider, const char *resource_class,
                      const char *suffix, uint64_t amount, Taken *taken, DeviceList *ret,
                      Error *reterr);

/* Chooses the devices of a fit, piece by piece; none if the caller never polls. Returns
 * CLAIM_E_NO_CAPACITY with words at the first piece that has not enough, or that can be a device's
 * before the first poll; ret keeps the devices that were chosen before. */
int claims_choose_devices(Claims *claims, const ResourceRequest *request, const Fit *fit,
                          Taken *taken, DeviceList *ret, Error *reterr);
