/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides how compute-agent-prepare changes the listed cards. Pure: the caller (run.c) reads the
 * claims and the hardware before, and executes the steps.
 *
 * Words: a card is a physical function of [device_prepare NAME], and a function is one of its
 * virtual functions. A type is the number of a vGPU type: 1428 stands for "nvidia-1428".
 *
 * Rules of the decision:
 *
 *   - A function that a process has open, or that is the parent of other devices, never changes. If
 *     that is not known, it counts as open.
 *   - A function with the type that its claim needs never changes, and neither does a vGPU whose
 *     claim needs no type.
 *   - A function of a pending claim gets no type, and loses no type that the claim needs.
 *   - Nothing is cleared while the claims are not completely known.
 *   - The number of functions is only replaced while all functions of the card are free: no claim,
 *     no open handle, no device of which it is the parent, and no type. The claims must be
 * completely known for that.
 */

#include "drivers/host/host-config.h"
#include "drivers/host/snapshot.h"

#define PREPARE_REASON_SIZE 256
#define PREPARE_NAME_SIZE   64 /* of a kernel driver or of a VFIO device */

typedef enum PrepareOpen {
        PREPARE_OPEN_NO,
        PREPARE_OPEN_YES,
        PREPARE_OPEN_PARENT,  /* it has mediated, vDPA or upper network devices, which guests can
                                 have */
        PREPARE_OPEN_UNKNOWN, /* the function, the descriptors of a process or the devices of
                                 which it is the parent cannot be read */
} PrepareOpen;

/* A virtual function. */
typedef struct PrepareFunction {
        char address[PCI_ADDRESS_SIZE];
        bool has_type; /* the driver of the function has nvidia/current_vgpu_type */
        uint64_t type; /* 0: the function is no vGPU */
        PrepareOpen open;
        char driver[PREPARE_NAME_SIZE]; /* bound kernel driver; "": none */
        char group[PREPARE_NAME_SIZE];  /* number of the IOMMU group; "": none */
        char vfio[PREPARE_NAME_SIZE];   /* VFIO device, "vfio7"; "": none */
        int64_t recorded; /* claim for which an earlier run set the type; 0: none is recorded */
        char unreadable[PREPARE_REASON_SIZE]; /* error of reading the function; "": none */
        char failed[PREPARE_REASON_SIZE];     /* error of a step of this pass; "": none */
} PrepareFunction;

/* A physical function that is listed. */
typedef struct PrepareCard {
        const HostPrepare *options; /* borrowed */
        char address[PCI_ADDRESS_SIZE];
        bool exists, has_driver;
        uint64_t n_virtual, max_virtual; /* sriov_numvfs, sriov_totalvfs */
        uint64_t offset, stride; /* routing ids of the functions (SR-IOV); stride 0: unknown */
        PrepareFunction *functions;
        size_t n_functions, n_allocated;
        bool unit_done;                       /* the unit of the card succeeded in this pass */
        char unreadable[PREPARE_REASON_SIZE]; /* error of reading the card; "": none */
        char failed[PREPARE_REASON_SIZE];     /* error of a step of this pass; "": none */
} PrepareCard;

typedef struct PrepareHost {
        PrepareCard *cards; /* in the order of the configuration */
        size_t n_cards;
} PrepareHost;

void prepare_host_done(PrepareHost *host);

/* A function that a living claim has, or that is below a mediated device of the claim. */
typedef struct PrepareClaim {
        int64_t id;
        bool is_pending;
        bool is_confirmed;
        char address[PCI_ADDRESS_SIZE];
        uint64_t type; /* 0: the claim is of the function itself or of a mediated device, or its
                          type is not of NVIDIA */
} PrepareClaim;

/* A device that the agent wants cleaned: its guest is gone. */
typedef struct PrepareDirty {
        int64_t row;        /* id of the unclean device (claims/claim/unclean.h) */
        int64_t since_usec; /* its time: another database can have the id again */
        char address[PCI_ADDRESS_SIZE];
} PrepareDirty;

typedef struct PrepareClaims {
        PrepareClaim *items; /* by id */
        size_t n_items, n_allocated;
        PrepareDirty *dirty; /* by address */
        size_t n_dirty, n_dirty_allocated;
        bool complete; /* false: the database is missing, or it lacks claims of Placement */
        bool missing;  /* there is no database, or it was never used */
} PrepareClaims;

void prepare_claims_done(PrepareClaims *claims);

/* Returns a living claim of an address, or NULL. Only mediated devices of one address can have
 * several. Borrowed. */
const PrepareClaim *prepare_find_claim(const PrepareClaims *claims, const char *address);

/* The kinds of steps, in the order of their execution. After the steps of one of the first five
 * kinds, claims and hardware are read again. The last two kinds change nothing. */
typedef enum PrepareKind {
        PREPARE_UNIT,      /* start the unit of the card, which has no functions */
        PREPARE_FUNCTIONS, /* write the number of functions of the card: value; 0 removes all */
        PREPARE_DRIVER,    /* bind the function to options->driver_override */
        PREPARE_CLEAR,     /* end the vGPU of the function: value is its type */
        PREPARE_SET,       /* make the function a vGPU: value is its type */
        PREPARE_WAIT,      /* a vGPU without a claim is in use, or the claims are not completely
                            * known: a later run ends it */
        PREPARE_REFUSE,    /* the request cannot be fulfilled now, also because a function that a
                            * claim needs is in use */
} PrepareKind;

typedef struct PrepareStep {
        PrepareKind kind;
        size_t card;
        size_t function; /* PREPARE_OF_CARD: the step is about the card */
        uint64_t value;
        int64_t claim; /* 0: none */
        char reason[PREPARE_REASON_SIZE];
} PrepareStep;

#define PREPARE_OF_CARD SIZE_MAX

typedef struct PreparePlan {
        PrepareStep *steps; /* by kind, then by card and function; PREPARE_SET: confirmed claims
                               first, then by the id of the claim */
        size_t n_steps, n_allocated;
} PreparePlan;

/* Makes the steps that lead from the hardware to the wanted state. A card or a function whose step
 * has failed in this pass gets no step. One that cannot be read, and a card that does not exist,
 * gets PREPARE_REFUSE. The functions of such cards get no step, and neither do those of a card that
 * waits for its driver, its unit or its functions. ret must be zeroed. The
 * caller frees its steps, also after a failure (-ENOMEM). */
int prepare_plan(const PrepareHost *host, const PrepareClaims *claims, PreparePlan *ret);

/* Returns true if a step of this kind changes the host. */
static inline bool prepare_kind_acts(PrepareKind kind)
{
        return kind < PREPARE_WAIT;
}
