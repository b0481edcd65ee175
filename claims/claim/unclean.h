/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A device that a guest had, or can have had, and that was not proved to be clean since (decision
 * devices/clean). The row is written in the transaction of the claim, and goes after the proof. No
 * claim gets a device with a row, except that of its last guest while the state is held. Plain
 * data. */

#include "base/device-identity.h"
#include "base/uuid.h"
#include "claims/claim/host-facts.h"

#define UNCLEAN_NAME_SIZE   64
#define UNCLEAN_REASON_SIZE 256
#define UNCLEAN_WORDS_SIZE  (UNCLEAN_REASON_SIZE + 96)

typedef enum UncleanState {
        UNCLEAN_HELD,   /* a claim or a guest has it, or can have it */
        UNCLEAN_DIRTY,  /* its guest is gone: compute-agent-prepare cleans it */
        UNCLEAN_FAILED, /* it was not proved to be clean; it is cordoned until a person lifts that
                         */
        _UNCLEAN_STATE_MAX,
        _UNCLEAN_STATE_INVALID = -EINVAL,
} UncleanState;

const char *unclean_state_to_text(int state); /* "held", "dirty", "failed"; NULL for another
                                               * value */

typedef struct UncleanDevice {
        int64_t id; /* never used again in this database, also not for the same device */
        char address[HOST_ADDRESS_SIZE];
        char name[UNCLEAN_NAME_SIZE];        /* libvirt's name */
        char identity[DEVICE_IDENTITY_SIZE]; /* base/device-identity.h; "": not known */
        Uuid consumer;                       /* consumer of the last claim, or without one the only
                                                domain that had it; UUID_NULL: neither */
        int64_t claim;                       /* the last claim; 0: it had none */
        uint64_t since_usec;                 /* CLOCK_REALTIME of the last change of the state */
        int state;                           /* UncleanState */
        char reason[UNCLEAN_REASON_SIZE]; /* reason of UNCLEAN_FAILED, or why the cleaning waits in
                                             another state; "": none */
} UncleanDevice;

typedef struct UncleanDevices {
        UncleanDevice *items; /* by address */
        size_t n_items, n_allocated;
} UncleanDevices;

static inline void unclean_devices_done(UncleanDevices *devices)
{
        free(devices->items);
        *devices = (UncleanDevices){ 0 };
}

/* Returns the row of an address, borrowed, or NULL. */
const UncleanDevice *unclean_devices_find(const UncleanDevices *devices, const char *address);

/* Writes the state in words without a subject: "not clean: cleaning since 2026-01-01 10:00:00
 * UTC", with the reason. */
void unclean_describe(const UncleanDevice *device, char ret[static UNCLEAN_WORDS_SIZE]);
