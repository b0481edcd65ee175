/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The claim database as the daemon uses it: opened when it can be, tried again when it cannot.
 *
 * A folder that is read-only or a disk that is full must not keep the agent from reporting what the
 * host has. Claims are refused with words until then. Main thread only; blocks on the disk.
 *
 * This header has the file and the host that claims are fitted to. Polls, answers of Placement and
 * their comparison with the claims are in agent/guests/comparison.h. */

#include <errno.h>

#include "base/provider-tree.h"
#include "claims/claims.h"
#include "claims/reconcile.h"
#include "drivers/driver.h"

typedef enum ClaimEvent {
        CLAIM_EVENT_ADDED,
        CLAIM_EVENT_CHANGED,
        CLAIM_EVENT_REMOVED,
} ClaimEvent;

/* Called with the claim as it is now. */
typedef void (*ClaimWatch)(ClaimEvent event, const Claim *claim, void *userdata);

/* Settings that a reload can change. */
typedef struct ClaimSettings {
        const HostConfig *driver; /* borrowed: which devices are configured */
        uint64_t expiry_usec;     /* [DEFAULT] claim_expiry_time; claims that live keep theirs */
        bool with_placement;      /* there is one: what it allocates is read for a new database */
        bool started_only;        /* guests claim when they start (claims/reconcile.h) */
        bool owes_guests;         /* what they claim then is reported to Placement
                                     (ClaimsRules) */
} ClaimSettings;

/* The last look at the clocks of this host (agent/guests/comparison.h). */
typedef struct ClockWatch {
        uint64_t real_usec, boot_usec; /* 0: none yet */
} ClockWatch;

/* The facts of a comparison of claims and guests, and what goes from one to the next. Members are
 * set by agent/guests/comparison.c alone. */
typedef struct ClaimComparison {
        /* One poll or two: a newer one may bring its guests before a cycle takes all of it. */
        Snapshot *snapshot; /* that facts borrows from; NULL before the first */
        Snapshot *guests;   /* the same, for the domains alone: as new or newer */
        HostFacts facts;
        bool driver_is_new;        /* the settings changed since the facts were made */
        ReconcileTouched *touched; /* claims since the poll of snapshot, or a little longer: it says
                                      nothing of their guests */
        size_t n_touched, n_touched_allocated;

        bool is_due; /* the poll was not compared yet */
        ReconcileMemory memory;
        ReconcileProblems problems;
        Uuid *away; /* guests that other hosts have */
        size_t n_away;
        uint64_t urgent_usec;     /* a poll that begins after this is followed by asking about all
                                     claims without a guest; 0: none is */
        Allocations *holding;     /* what Placement has of the consumers that were asked about */
        PictureConsumer *answers; /* the same, that borrow from it */
        size_t n_answers;
        bool complete;     /* all were read */
        bool absent;       /* the same; Placement does not have the tree yet */
        Allocations *held; /* what consumers hold of some providers, for the next comparison alone;
                              NULL: not read */
        uint64_t held_stamp; /* of these providers when that was read last */
        ClockWatch clock;
        int64_t known_id; /* of the newest claim when the clock was looked at last */
} ClaimComparison;

typedef struct ClaimService {
        /* Read by every user. */
        Claims *claims;           /* the open database, or NULL */
        Error error;              /* why there is none, or why the last change of it could not be
                                     stored; code 0: neither */
        const HostFacts *facts;   /* what the last poll found; NULL: there was none */
        uint64_t built_usec;      /* CLOCK_REALTIME of when this program began with an empty
                                     database; 0: it did not */
        ProviderTree *remembered; /* the host as the database had it when it was opened, or NULL:
                                     ratios of an operator are taken from there until Placement
                                     answers */
        ClaimSettings settings;
        ClaimComparison comparison;

        /* Used by agent/guests alone. */
        char *path, *name, *node; /* of the database, of the host, of its root provider */
        bool error_is_of_write;   /* the file is open, and a write is worth trying */
        bool lost;                /* claims is not what it was, and is closed by the next tend */
        char *closed, *hint;      /* see claim_service_set_closed(); NULL: nothing */
        ProviderTree *tree;  /* the host that claims are fitted to; NULL before the first one */
        bool tree_is_stored; /* the database has it */
        bool tree_is_absent; /* Placement did not have it when it was read last */
        StringSet in_hand;   /* consumers */
        int64_t last_id;     /* of the claims that were made */
        ClaimWatch watch;
        void *watch_userdata;
} ClaimService;

/* path (copied): of the database; NULL: none at all, and no complaint of it (--dry-run). host
 * (copied) is its name. Tries to open at once; a failure is the error of the service. -ENOMEM. */
int claim_service_new(ClaimService **ret, const char *path, const char *host,
                      const ClaimSettings *settings);
ClaimService *claim_service_free(ClaimService *service);
DEFINE_CLEANUP(ClaimService *, claim_service_free);

/* Opens the database when it is not open, and gives it the tree of the last
 * claim_service_set_tree(). Called once a cycle. Logs changes. */
void claim_service_tend(ClaimService *service);

/* Puts new settings in force. */
void claim_service_set(ClaimService *service, const ClaimSettings *settings);

/* The host that claims are fitted to; copied. */
void claim_service_set_tree(ClaimService *service, const ProviderTree *tree);

/* Rejects new claims, and sets the hint that is added to refusals: see ClaimsRules. Copied. */
void claim_service_set_closed(ClaimService *service, const char *reason, const char *hint);

/* The name of the host's root provider, once it is known; copied. */
void claim_service_set_node(ClaimService *service, const char *node);

/* Returns the open database; with words where there is none. */
static inline Claims *claim_service_require(ClaimService *service, Error *reterr)
{
        if (!service->claims)
                error_setf(reterr, EIO, "Claims cannot be used: %s", service->error.text);
        return service->claims;
}

/* Returns true if Placement must be read for a database that is new, since it can have replaced a
 * lost one. The database knows it from here on (claims_set_unknown()). */
bool claim_service_is_unread(ClaimService *service);

/* Called when a claim was made or answered with: a poll that began before says nothing of its
 * guest. claim_service_notify() does the same. */
void claim_service_touch(ClaimService *service, int64_t claim);

/* A consumer is in one hand at a time: of a claim that was read and not promised yet, or of a
 * healer that removes allocations without a claim. Returns false when another has it, or
 * without memory; the one that got it lets it go. */
bool claim_service_take_in_hand(ClaimService *service, const Uuid *consumer);
void claim_service_let_go(ClaimService *service, const Uuid *consumer);

/* Called with each result of claims.h, when what it yielded is no longer used: a file that was
 * moved away or is damaged (-ESTALE, -EUCLEAN) is closed and opened again. */
void claim_service_check(ClaimService *service, int result);

/* The same, with the words of a result below 0. A disk that did not take a write is an error of the
 * service until a write succeeds; one is tried with every cycle. */
void claim_service_note(ClaimService *service, int result, const Error *words);

/* The same, for a step of a cycle: the next claim_service_tend() opens a file that was lost. */
void claim_service_note_step(ClaimService *service, int result, const Error *words);

/* Writes an event into the history (claims_note()). An event that cannot be written is left out:
 * the journal has it. */
void claim_service_record(ClaimService *service, const EventNote *note);

/* One watcher, NULL for none, of every change but those of other processes. It can count and read
 * claims, but must not call claim_service_check() or claim_service_tend(): its caller uses the
 * database. */
void claim_service_watch(ClaimService *service, ClaimWatch watch, void *userdata);
void claim_service_notify(ClaimService *service, ClaimEvent event, const Claim *claim);

/* Returns the number of claims that live; 0 when the database is not open. Cheap. Closes nothing,
 * so that a watcher can call it. */
size_t claim_service_count(ClaimService *service);
