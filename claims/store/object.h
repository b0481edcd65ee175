/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The contents of a Claims, and the functions by which the deciding files of claims/ read and write
 * it. Only these files and the store include it. A write that rests on claims->view compares the
 * generation of every provider that it fitted amounts to with that of the view. It increments it in
 * the same transaction ("compare and update", specification 1). No policy here. */

#include <systemd/sd-id128.h>

#include "claims/claim/claim-request.h"
#include "claims/claim/host-facts.h"
#include "claims/claim/host-view.h"
#include "claims/fit/fit.h"
#include "claims/fit/taken.h"
#include "claims/store/sqlite.h"
#include "claims/store/store.h"

typedef enum StatementId {
#define STATEMENT(name, ...) STATEMENT_##name,
#include "claims/store/statements.h"
#undef STATEMENT
        _STATEMENT_MAX,
} StatementId;

struct Claims {
        Sqlite *sqlite;
        sqlite3_stmt *statements[_STATEMENT_MAX];
        bool has_turn;  /* the write lock is taken: a write transaction is open that the next write
                           ends */
        bool in_group;  /* the writes are parts of the transaction of claims_begin_group() */
        HostView *view; /* view of the last read; NULL: none yet, or the last read failed */
        const EventAuthor *author; /* borrowed; NULL: this program */
        char *host, *node;         /* texts of new claims */
        char boot_id[SD_ID128_STRING_MAX];
        bool is_unread; /* claims_is_unread() */

        /* Members that the store does not use, except that store_taken() passes facts on. */
        const HostFacts *facts; /* borrowed; NULL: unknown */
        bool has_devices;       /* facts will come: until then no device can be chosen */
        ClaimsRules rules;
};

/* A claim that will be written. Everything is borrowed. */
typedef struct StoreClaim {
        const ClaimRequest *request;
        const char *request_text; /* resource_request_format() */
        uint64_t created_usec, expires_usec;
        bool confirmed; /* the claim of a guest that runs already */
        ClaimWriteState write_state;
        ClaimReported reported;
        const ClaimDevice *devices;
        size_t n_devices;
        const Layout *layout;
        const char *reason; /* reason for the events; NULL: a caller requested the claim */
} StoreClaim;

/* A claim of schema version 1 whose providers are still unknown. */
typedef struct StoreUnplaced {
        int64_t id;
        Uuid consumer;
        uint64_t vcpus, memory_mb, disk_gb;
        char *pci;                  /* addresses in any form */
        const ClaimDevice *devices; /* devices that the claim will get; borrowed */
        size_t n_devices;
} StoreUnplaced;

static inline void store_unplaced_done(StoreUnplaced *claim)
{
        free(claim->pci);
        *claim = (StoreUnplaced){ 0 };
}

#define CLAIM_ATTEMPTS_MAX 16

/* An operation that can lose a race against other writers of the file. The caller repeats it with
 * the loop "while (claims_attempt(&attempts, reterr)) attempts.result = …;". After the loop,
 * attempts.result is the last result, an outcome for callers of this folder. CLAIM_E_RACE is
 * retried. From the second attempt on, the write lock is taken before anything is read. */
typedef struct ClaimAttempts {
        Claims *claims;
        int n; /* number of this attempt, from 1 */
        int result;
} ClaimAttempts;

bool claims_attempt(ClaimAttempts *attempts, Error *reterr);

/* Reads the host into claims->view, in one consistent state, and removes the limits of devices from
 * it. A tree of the same epoch is not read again. */
int store_load_view(Claims *claims, Error *reterr);

/* Stores wanted as the host where it differs from the view, and moves amounts of claims between
 * providers. A provider that changed gets the next generation. Amounts that claims no longer hold
 * are not moved. Returns CLAIM_E_RACE if the host changed since the read. */
int store_write_host(Claims *claims, const HostView *wanted, const StoreShift *shifts,
                     size_t n_shifts, Error *reterr);

/* Writes a claim and its allocations, and yields the claim as it was stored. Returns CLAIM_E_RACE
 * if a provider changed. Returns CLAIM_E_CONFLICT if the consumer has a living claim of this role,
 * or if another claim has one of the devices or held host CPUs. */
int store_insert(Claims *claims, const StoreClaim *claim, const Fit *fit, Claim **ret,
                 Error *reterr);

/* Gives an unplaced claim its allocations, possibly none, and its devices. Returns CLAIM_E_RACE,
 * CLAIM_E_CONFLICT, or CLAIM_E_NOT_FOUND if the claim has ended or is placed. */
int store_place(Claims *claims, const StoreUnplaced *claim, const Fit *fit, Error *reterr);

/* Replaces the allocations of a living claim by those of fit, for the group without a suffix. Its
 * devices and layout stay. Returns CLAIM_E_RACE or CLAIM_E_NOT_FOUND. */
int store_complete(Claims *claims, int64_t id, const Uuid *consumer, const Fit *fit, Error *reterr);

/* Yields the first unplaced claim with an id above after. Returns CLAIM_E_NOT_FOUND if there is
 * none. */
int store_next_unplaced(Claims *claims, int64_t after, StoreUnplaced *ret, Error *reterr);

/* Replaces the request of a living claim. Returns CLAIM_E_NOT_FOUND if there is none. */
int store_set_request(Claims *claims, int64_t id, const char *request, Error *reterr);

/* Makes a pending move of the claim from that of the claim to, which replaces it for the same
 * consumer. Does nothing if there is none. Within a transaction. */
int store_pass_move(Claims *claims, int64_t from, int64_t to, Error *reterr);

/* Stores the text that identifies the guest of a living claim. Returns CLAIM_E_NOT_FOUND if there
 * is none. */
int store_set_process(Claims *claims, int64_t id, const char *process, Error *reterr);

/* Adds every device of a living claim. with_unclean: also adds the unclean devices of no living
 * claim. */
int store_taken(Claims *claims, bool with_unclean, Taken *ret, Error *reterr);

/* Marks the claim as checked in this boot and adds these devices. Adds the cells and guest CPUs of
 * layout (NULL: none) to a claim without cells, and its held CPUs to any claim. Removes the CPUs of
 * dropped from those that the claim holds. Returns CLAIM_E_NOT_FOUND or CLAIM_E_CONFLICT. */
int store_renew(Claims *claims, int64_t id, const ClaimDevice *devices, size_t n_devices,
                const Layout *layout, const CpuSet *dropped, Error *reterr);

/* Records the identity of the device at the address, if the claim has none for it. */
int store_set_identity(Claims *claims, int64_t id, const char *address, const char *identity,
                       Error *reterr);

/* Replaces the providers of a claim's devices that the host does not have, by those of the devices'
 * names among its allocations. Returns CLAIM_E_NOT_FOUND without words if there is none. */
int store_find_providers(Claims *claims, int64_t id, Error *reterr);

/* Returns CLAIM_E_NOT_FOUND with words: no living claim has that id. */
int store_not_found(int64_t id, Error *reterr);
