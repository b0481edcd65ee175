/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a Claims is made of, and what the files of claims/ that decide read and write: for these and
 * the store alone. A write that rests on claims->view compares the generation of every provider it
 * touches with the one of the view and bumps it in the same transaction ("compare and update",
 * specification 1). No policy here. */

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
        bool has_turn;             /* a write transaction is open that the next write ends */
        HostView *view;            /* of the last reading; NULL: none yet */
        const EventAuthor *author; /* borrowed; NULL: this program itself */
        char *host, *node;         /* whose new claims are */
        char boot_id[SD_ID128_STRING_MAX];
        bool is_unread; /* claims_is_unread() */

        /* What the store does not look at. */
        const HostFacts *facts; /* borrowed; NULL: not known */
        bool has_devices;       /* facts will come: until then no device can be named */
        ClaimsRules rules;
};

/* A claim to write. Everything is borrowed. */
typedef struct StoreClaim {
        const ClaimRequest *request;
        const char *request_text; /* claim_request_format() */
        uint64_t created_usec, expires_usec;
        bool confirmed; /* of a guest that runs already */
        ClaimWriteState write_state;
        ClaimReported reported;
        const ClaimDevice *devices;
        size_t n_devices;
        const Layout *layout;
        const char *reason; /* why it is made, for the events; NULL: it was asked for */
} StoreClaim;

/* A claim of schema version 1 that no provider is known for yet. */
typedef struct StoreUnplaced {
        int64_t id;
        Uuid consumer;
        char *node;
        uint64_t vcpus, memory_mb, disk_gb;
        char *pci;                  /* in whatever form the addresses are in there */
        const ClaimDevice *devices; /* that it is to hold; borrowed */
        size_t n_devices;
} StoreUnplaced;

static inline void store_unplaced_done(StoreUnplaced *claim)
{
        free(claim->node);
        free(claim->pci);
        *claim = (StoreUnplaced){ 0 };
}

/* Opens the file, makes it when it is missing or empty, brings it to SCHEMA_NEWEST and reads every
 * row. A damaged file is set aside.
 *
 * Yields a ClaimsOpened; the words for CLAIMS_UPGRADED and CLAIMS_SET_ASIDE are in reterr.
 * Negative: -EPROTONOSUPPORT for a file of a newer program or of an unknown shape, and -EMEDIUMTYPE
 * for a database of another program, all left untouched; -EBUSY after busy_usec; -ENOENT, -EROFS,
 * -EACCES, -ENOSPC, -EIO as the system says. Each with words. */
int store_open(Claims *claims, const char *path, uint64_t busy_usec, Error *reterr);
void store_close(Claims *claims);

/* Takes the writer's turn, so that the calls up to the next write, or to drop_turn, see one
 * state that no one else changes. */
int store_take_turn(Claims *claims, Error *reterr);
void store_drop_turn(Claims *claims);

/* Makes claims->view the host as it is, in one consistent state; only what changed since is read
 * anew. */
int store_load_view(Claims *claims, Error *reterr);

/* Makes wanted the host, where it differs from the view, and moves what claims hold from provider
 * to provider. A provider that changed gets the next generation. Amounts that claims no longer hold
 * are not moved. CLAIM_E_RACE. */
int store_write_host(Claims *claims, const HostView *wanted, const StoreShift *shifts,
                     size_t n_shifts, Error *reterr);

/* Writes a claim and its allocations, and yields it as it was stored. CLAIM_E_RACE;
 * CLAIM_E_CONFLICT: the consumer has a living claim of this role, or another claim has one of the
 * devices or of the host CPUs that are held. */
int store_insert(Claims *claims, const StoreClaim *claim, const Fit *fit, Claim **ret,
                 Error *reterr);

/* Gives an unplaced claim its allocations (none is allowed) and devices. CLAIM_E_RACE,
 * CLAIM_E_NOT_FOUND, CLAIM_E_CONFLICT. */
int store_place(Claims *claims, const StoreUnplaced *claim, const Fit *fit, Error *reterr);

/* A living claim holds this from now on, for the group without a suffix, in place of what
 * it held; its devices and layout stay. CLAIM_E_RACE, CLAIM_E_NOT_FOUND. */
int store_complete(Claims *claims, int64_t id, const Uuid *consumer, const Fit *fit, Error *reterr);

/* The first unplaced claim with an id above after. CLAIM_E_NOT_FOUND. */
int store_next_unplaced(Claims *claims, int64_t after, StoreUnplaced *ret, Error *reterr);

/* By what the guest of a living claim is known from now on. CLAIM_E_NOT_FOUND. */
int store_set_life(Claims *claims, int64_t id, const char *life, Error *reterr);

/* Adds every device that a living claim has. */
int store_taken(Claims *claims, Taken *ret, Error *reterr);

/* Marks the claim as checked in this boot and adds these devices. Adds the cells and guest CPUs of
 * layout (NULL: none) to a claim without cells, and its held CPUs to any claim. Removes the
 * CPUs of dropped from those that the claim holds. CLAIM_E_NOT_FOUND, CLAIM_E_CONFLICT. */
int store_renew(Claims *claims, int64_t id, const ClaimDevice *devices, size_t n_devices,
                const Layout *layout, const CpuSet *dropped, Error *reterr);

/* Records the identity of the device at the address, where the claim has none for it. */
int store_set_identity(Claims *claims, int64_t id, const char *address, const char *identity,
                       Error *reterr);

/* CLAIM_E_NOT_FOUND with words: no living claim has that id. */
int store_not_found(int64_t id, Error *reterr);
