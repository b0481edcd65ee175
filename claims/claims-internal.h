/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The functions that claims.c (requests), claims-guests.c (guests that are there already),
 * claims-devices.c and claims-host.c share. */

#include "claims/claims.h"
#include "claims/store/object.h"

#define CLAIM_ATTEMPTS_MAX 16

/* When a claim that is made now expires; 0: never. */
uint64_t claims_expiry_from(const Claims *claims, uint64_t now_usec);
int claims_load_view(Claims *claims, Error *reterr);

/* Something that other writers of the file may win a race against, tried until it is done: by a
 * loop "while (claims_attempt(&attempts, reterr)) attempts.result = …;", whose last result, an
 * outcome for callers of this folder, is in attempts.result then. CLAIM_E_RACE is tried again. From
 * the second time on the turn is taken before anything is read. */
typedef struct ClaimAttempts {
        Claims *claims;
        int n; /* this one's number, from 1 */
        int result;
} ClaimAttempts;

bool claims_attempt(ClaimAttempts *attempts, Error *reterr);

/* Devices that a claim is about to get; everything but the array is borrowed. */
typedef struct DeviceList {
        ClaimDevice *devices;
        size_t n_devices, n_allocated;
} DeviceList;

static inline void device_list_done(DeviceList *list)
{
        free(list->devices);
        *list = (DeviceList){ 0 };
}

/* -ENOMEM. */
int claims_add_device(DeviceList *list, const Provider *provider, const char *suffix,
                      const HostDevice *device, const Uuid *mdev);

int claims_add_pci(DeviceList *list, const Provider *provider, const char *suffix,
                   const HostPci *pci);

/* Adds a PCI device that somebody has already, and where it counts; one that this host does not
 * count, such as a network's, is nobody's business here. CLAIM_E_CONFLICT: another claim has it. */
int claims_hold_pci(Claims *claims, const HostPci *pci, Fit *fit, DeviceList *devices,
                    Error *reterr);

/* Adds what claims and guests have. */
int claims_taken(Claims *claims, Taken *ret, Error *reterr);

/* Limits the view to the devices that each provider can still give, for a fit of the request; what
 * is taken is added to ret when the request asks for devices. */
int claims_count_devices(Claims *claims, const ResourceRequest *request, Taken *ret, Error *reterr);

/* Adds that many free PCI devices of a provider, also to what is taken. CLAIM_E_NO_CAPACITY with
 * words. */
int claims_choose_pci(Claims *claims, const Provider *provider, const char *resource_class,
                      const char *suffix, uint64_t amount, Taken *taken, DeviceList *ret,
                      Error *reterr);

/* Names the devices of a fit. CLAIM_E_NO_CAPACITY with words. */
int claims_choose_devices(Claims *claims, const ResourceRequest *request, const Fit *fit,
                          Taken *taken, DeviceList *ret, Error *reterr);
